//! How the two speeds look in every figure.

use crate::palette::Role;

/// What is the same for every figure of a phase.
pub struct PhaseLook {
    /// In running text, and the panel's id.
    pub name: &'static str,
    /// As a heading.
    pub heading: &'static str,
    /// Colour of its shapes.
    pub shape: Role,
    /// Colour of the shapes of a second cause beside it: attention and cache.
    pub half: Role,
    /// Colour of its text.
    pub ink: Role,
}

/// Prefill, always on the left, and decode.
pub const PHASES: [PhaseLook; 2] = [
    PhaseLook {
        name: "prefill",
        heading: "Prefill",
        shape: Role::Prefill,
        half: Role::PrefillHalf,
        ink: Role::PrefillInk,
    },
    PhaseLook {
        name: "decode",
        heading: "Decode",
        shape: Role::Decode,
        half: Role::DecodeHalf,
        ink: Role::DecodeInk,
    },
];

/// Size of notes and of the ceilings' values.
pub const NOTE: f64 = 12.0;
/// From a mark to the label beside it.
pub const BESIDE: f64 = 7.0;
