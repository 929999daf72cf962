//! Figures: SVG with a data layer, PNG, PDF.
