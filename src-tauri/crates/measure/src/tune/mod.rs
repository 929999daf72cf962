//! Finding the fastest settings by racing: which are tried, which fall out, which win.
//!
//! Pure functions of measured times; who measures them is not known here.
//!
//! - [`Target`] says what is to be fast, [`Space`] what may be turned for it.
//! - One [`Stage`] after the other turns one thing (CPU variant, threads, flash attention and
//!   repacking, micro-batch) around the best so far; a [`Race`] drops what is slower.
//! - [`Costs`] foresees the time of the full grid, of which racing gets a [`Share`].
//! - The winner meets llama-bench's defaults in alternating pairs; [`Verdict`] says whether it is
//!   faster beyond doubt. Otherwise the defaults stand.

mod costs;
mod pairs;
mod progress;
mod race;
mod space;
mod target;

pub use costs::{Costs, FinalPlan, Grid, MOST_PAIRS, Share};
pub use pairs::{FEWEST_PAIRS, Verdict, lower_rank};
pub use progress::{Decision, Searched, TuneProgress};
pub use race::{Fate, MINIMUM_GAIN, Race};
pub use space::{Change, Choice, MOST_VARIANTS, Space, Stage, thread_counts};
pub use target::{NotATarget, Speeds, Target};
