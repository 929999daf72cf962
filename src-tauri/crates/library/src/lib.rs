//! Models on disk, split sets, the built-in model.
