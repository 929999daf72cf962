//! End-to-end tests stand in `tests/tests`; what they share stands here.
