//! Plan, samples, summary: measuring and judging.
//!
//! - [`Plan`] says what is to be measured; [`threads`] and [`platform`] find the default threads.
//! - [`Bench::run`] measures and only measures: it asks an engine, and hands each sample to a
//!   [`Recorder`] when it is made. It needs the machine's [`Lease`].
//! - [`stats`] and [`judge`] are pure functions of what was found; words and colours belong to the
//!   faces.
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! use twospeed_engine::{Settings, fake::FakeEngine};
//! use twospeed_measure::lease::{self, Lease};
//! use twospeed_measure::model::MeasuredModel;
//! use twospeed_measure::plan::{Plan, presets};
//! use twospeed_measure::{Bench, InMemory, Stop, platform, summary};
//! # use twospeed_engine::settings::ModelPath;
//! # let model = MeasuredModel {
//! #     fingerprint: "a".into(), path: ModelPath("a.gguf".into()), name: "A".into(),
//! #     architecture: None, quantization: None, file_bytes: 1, parameters: 1,
//! #     active_parameters: None, weight_bytes_per_token: None, ability: None, synthetic: false,
//! # };
//! # let folder = tempfile::tempdir().unwrap();
//! # let place = folder.path().join("lease");
//!
//! let settings = Settings { n_threads: platform::default_threads(), ..Settings::default() };
//! let plan = Plan::of(&presets::quick(), &[model], &settings);
//! let lease = Lease::acquire(&place, "bench", jiff::Timestamp::now, |_| {}).await.unwrap();
//! let bench = Bench {
//!     engine: &FakeEngine::new(),
//!     recorder: &InMemory::default(),
//!     machine: &platform::machine(),
//!     app_version: "0.1.0",
//!     needs: &|_| None,
//!     lease: &lease,
//! };
//! let mut host = platform::Host::new();
//! let outcome = bench.run(&plan, &mut host, &Stop::new(), &mut |_| {}).await.unwrap();
//! for test in &outcome.tests {
//!     let samples: Vec<_> = test.samples.iter().map(|kept| kept.sample.clone()).collect();
//!     let speed = summary(test.test.spec, &samples).unwrap().tokens_per_second;
//!     println!("{}: {:.2} tok/s", test.test.spec, speed.mean);
//! }
//! # assert_eq!(outcome.tests.len(), 2);
//! # assert_ne!(place, lease::place());
//! # });
//! ```

pub mod energy;
pub mod figure;
pub mod interrupted;
pub mod judge;
pub mod kind;
pub mod lease;
pub mod machine;
pub mod memory;
pub mod model;
pub mod plan;
pub mod platform;
pub mod progress;
pub mod record;
pub mod resume;
pub mod run;
pub mod settle;
pub mod stats;
pub mod stop;
pub mod threads;
pub mod tune;
pub mod variants;
pub mod warning;

pub use kind::Kind;
pub use lease::Lease;
pub use memory::InMemory;
pub use plan::{Need, Plan, PlannedTest};
pub use progress::Progress;
pub use record::{
    Conditions, Recorder, RecorderError, RunRecord, SampleRecord, TestEnd, TestRecord, TestStatus,
};
pub use run::{Bench, RunEnd, RunOutcome, TestOutcome};
pub use stats::{Spread, Summary, summary};
pub use stop::Stop;
pub use variants::{NotStarted, Variants, Verdict};
pub use warning::Warning;
