//! The export format `twospeed.results/1`: runs with every sample and what was around them.
//!
//! UTF-8 JSON, one object. The types of this module are the format; field by field:
//!
//! ```text
//! format         "twospeed.results/1"
//! written_by     "twospeed 0.1.0"
//! exported_at    time
//! runs           [ run ]                                       see ExportedRun
//!   id             UUIDv7; importing it again adds nothing
//!   origin         "llama_bench" | "llama_batched_bench"       absent: Twospeed measured it
//!   started_at     time
//!   ended_at       time | null                                 null: it runs, or gave no sign of life
//!   status         "running" | "complete" | "stopped" | "interrupted"
//!   app_version    string                                      the Twospeed that measured; of another
//!                                                              tool its build; absent: unknown
//!   preset         string                                      what was asked for: "quick", "bench", ...
//!   machine        {id, name, cpu, physical_cores, logical_cores,
//!                   last_level_cache_bytes, memory_bytes, os}
//!   note           string                                      absent when there is none
//!   tests          [ test ]  in the order they ran             see ExportedTest
//!     id             UUIDv7
//!     position       place in the plan, from 0
//!     started_at     time
//!     model          {fingerprint, path, name, architecture, quantization, file_bytes, parameters,
//!                     active_parameters, weight_bytes_per_token, ability, synthetic}
//!     spec           {n_prompt, n_gen, n_depth}                tokens
//!     kind           {name: "first_token" | "prefix_cache" | "users" | "quality", ...}
//!                                                              absent: a speed
//!     settings       every setting of llama-bench by its name, with n_outputs, prio, numa
//!     unknown        [ name ]                                  absent: all is known. What is named here
//!                                                              stands not in settings, and elsewhere
//!                                                              with a value that says nothing
//!     repetitions    asked for
//!     warmup         whether an untimed warm-up came first
//!     samples        [ {index, ns, involuntary_switches, major_faults, at, reading, conditions} ]
//!                                                              reading: of kinds that are more than one speed
//!     reported       {avg_ns, stddev_ns, avg_ts, stddev_ts}    what another tool gave instead of samples
//!     told           {build_commit, build_number, cpu_info, gpu_info, backends, model_type,
//!                     model_size, model_n_params}              what another tool told of itself
//!     suspect        {reason, allowed_at}                      why it cannot be right
//!     end            how it ended | null while it runs         see ExportedEnd
//!       status         "done" | "failed" | "cancelled" | "interrupted" | "skipped"
//!       code, message, log                                     only of "failed"
//!       reason                                                 only of "skipped"
//!       ended_at       time
//!       worker         {protocol, engine, variant, variants, devices, cpu_info, gpu_info,
//!                       backends, system_info} | null
//!       loaded         {load_ns, resident_before, page_cache, model_type, ...} | null
//!       placement      {context_ns, n_ctx, offloaded_layers, total_layers, flash_attention,
//!                       buffers} | null
//!       anchor_before_ns, anchor_after_ns                      the fixed kernel beside the test
//!       state_before, state_after                              the machine's load, swap, clock, ...
//!       peak_rss_bytes
//!       warnings       [ {warning, ...} ]
//! ```
//!
//! - A speed is `1e9 * (n_prompt + n_gen) / ns` tokens per second of each sample; figures are
//!   computed from samples and stand nowhere in the file, but for what another tool reported.
//! - Times are RFC 3339 in UTC; names that end in `_ns` are integer nanoseconds, in `_bytes`
//!   integer bytes. What is unknown is null or absent, never 0.
//! - A path that is no Unicode is `{"bytes": [..]}`.
//! - Fields of a run or a test that a reader does not know are to be kept and written again;
//!   Twospeed does. A field that shapes a result (a new setting) raises the number of the format,
//!   so that nothing that differs is ever taken for equal.

use std::io::Write;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use twospeed_engine::protocol::{Hello, Loaded, Placement, Sample};
use twospeed_engine::{Settings, TestSpec};
use twospeed_measure::machine::{Machine, MachineState};
use twospeed_measure::model::MeasuredModel;
use twospeed_measure::warning::Warning;
use twospeed_measure::{Conditions, Kind, SampleRecord, TestEnd, TestRecord, TestStatus};
use uuid::Uuid;

use crate::History;
use crate::error::{Fault, HistoryError};
use crate::query;
use crate::read::Extra;
use crate::run::{Origin, RunStatus, Unreadable, WholeRun};
use crate::test::{Reported, Suspect, Test, Told};

/// Name and version of the format.
pub const FORMAT: &str = "twospeed.results/1";

/// A run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExportedRun {
    /// UUIDv7.
    pub id: Uuid,
    /// The tool whose output it was; absent where Twospeed measured it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// When it started.
    pub started_at: Timestamp,
    /// When it ended.
    pub ended_at: Option<Timestamp>,
    /// Whether and how it ended.
    pub status: RunStatus,
    /// Version of the Twospeed that measured it, or of another tool its build.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub app_version: String,
    /// What was asked for.
    pub preset: String,
    /// The machine it ran on.
    pub machine: Machine,
    /// What the person wrote about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The tests, in the order they ran.
    pub tests: Vec<ExportedTest>,
    /// Fields this version does not know.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// A test with its samples.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExportedTest {
    /// UUIDv7.
    pub id: Uuid,
    /// Its place in the plan, from 0.
    pub position: u32,
    /// When it started.
    pub started_at: Timestamp,
    /// The model's content.
    pub model: MeasuredModel,
    /// What is timed.
    pub spec: TestSpec,
    /// What of it is measured.
    #[serde(default, skip_serializing_if = "Kind::is_speed")]
    pub kind: Kind,
    /// Every setting that is known, by llama-bench's names: see [`Settings`].
    pub settings: Map<String, Value>,
    /// What is not known: see [`Test::unknown`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<String>,
    /// Repetitions asked for.
    pub repetitions: u32,
    /// One untimed warm-up came first.
    pub warmup: bool,
    /// The timed repetitions.
    pub samples: Vec<ExportedSample>,
    /// What another tool gave instead of samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reported: Option<Reported>,
    /// What another tool told of itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told: Option<Told>,
    /// Why it cannot be right.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suspect: Option<Suspect>,
    /// How it ended.
    pub end: Option<ExportedEnd>,
    /// Fields this version does not know.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// A timed repetition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExportedSample {
    /// What the engine said.
    #[serde(flatten)]
    pub sample: Sample,
    /// When it ended, a label only.
    pub at: Timestamp,
    /// The machine around it.
    #[serde(default, skip_serializing_if = "Conditions::is_unknown")]
    pub conditions: Conditions,
}

/// How a test ended and what was around it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExportedEnd {
    /// How it ended.
    #[serde(flatten)]
    pub status: TestStatus,
    /// When it ended.
    pub ended_at: Timestamp,
    /// The worker that ran it.
    pub worker: Option<Hello>,
    /// The model as the engine loaded it.
    pub loaded: Option<Loaded>,
    /// What lay where.
    pub placement: Option<Placement>,
    /// Anchor before.
    pub anchor_before_ns: Option<u64>,
    /// Anchor after.
    pub anchor_after_ns: Option<u64>,
    /// State of the machine before.
    pub state_before: Option<MachineState>,
    /// State of the machine after.
    pub state_after: Option<MachineState>,
    /// Highest resident memory of the worker.
    pub peak_rss_bytes: Option<u64>,
    /// What a reader of the result should know.
    pub warnings: Vec<Warning>,
}

impl History {
    /// Writes runs as `twospeed.results/1`, in the order given, one at a time: memory is needed
    /// for one run however many there are. Deleted runs are written when they are named.
    ///
    /// Gives what could not be written since this version cannot read it.
    ///
    /// Errors: [`HistoryError::UnknownRun`], before anything is written;
    /// [`HistoryError::ExportNotWritten`] when `out` fails.
    pub async fn export(
        &self,
        runs: &[Uuid],
        exported_at: Timestamp,
        out: &mut (dyn Write + Send),
    ) -> Result<Vec<Unreadable>, HistoryError> {
        let mut reading = self.reading().await?;
        for run in runs {
            let known = query::knows(&mut reading, *run).await;
            if !known.map_err(|fault| self.explain(fault))? {
                return Err(self.explain(Fault::NoRun(run.to_string())));
            }
        }
        put(out, &header(exported_at))?;
        let mut left_out = Vec::new();
        for (number, run) in runs.iter().enumerate() {
            let (mut run, extra) = query::whole(&mut reading, *run)
                .await
                .and_then(|found| found.ok_or_else(|| Fault::NoRun(run.to_string())))
                .map_err(|fault| self.explain(fault))?;
            left_out.append(&mut run.unreadable);
            put(out, if number == 0 { "\n" } else { ",\n" })?;
            put(out, &json(&ExportedRun::of(run, extra)))?;
        }
        put(out, "\n]}\n")?;
        out.flush().map_err(|error| not_written(&error))?;
        Ok(left_out)
    }
}

/// Everything before the first run. A run stands on a line of its own.
fn header(exported_at: Timestamp) -> String {
    format!(
        "{{\"format\":{},\"written_by\":{},\"exported_at\":{},\"runs\":[",
        json(FORMAT),
        json(concat!("twospeed ", env!("CARGO_PKG_VERSION"))),
        json(&exported_at)
    )
}

fn json(value: &(impl Serialize + ?Sized)) -> String {
    serde_json::to_string(value).expect("BUG: keys are strings, so this is always JSON")
}

fn put(out: &mut (dyn Write + Send), text: &str) -> Result<(), HistoryError> {
    out.write_all(text.as_bytes())
        .map_err(|error| not_written(&error))
}

fn not_written(error: &std::io::Error) -> HistoryError {
    HistoryError::ExportNotWritten {
        reason: error.to_string(),
    }
}

impl ExportedRun {
    fn of(whole: WholeRun, extra: Extra) -> Self {
        let run = whole.run;
        Self {
            id: run.id,
            origin: Some(run.origin)
                .filter(|origin| !matches!(origin, Origin::Measured | Origin::Imported)),
            started_at: run.started_at,
            ended_at: run.ended_at,
            status: run.status,
            app_version: run.app_version,
            preset: run.preset,
            machine: run.machine,
            note: run.note,
            tests: whole.tests.into_iter().map(ExportedTest::from).collect(),
            extra,
        }
    }
}

/// Every setting by its name.
fn settings_map(settings: &Settings) -> Map<String, Value> {
    match serde_json::to_value(settings) {
        Ok(Value::Object(map)) => map,
        _ => unreachable!("BUG: settings are a record"),
    }
}

impl From<Test> for ExportedTest {
    fn from(test: Test) -> Self {
        let TestRecord {
            id,
            run: _,
            position,
            model,
            spec,
            kind,
            settings,
            repetitions,
            warmup,
            started_at,
        } = test.record;
        let mut settings = settings_map(&settings);
        settings.retain(|name, _| !test.unknown.contains(name));
        Self {
            id,
            position,
            started_at,
            model,
            spec,
            kind,
            settings,
            unknown: test.unknown,
            repetitions,
            warmup,
            samples: (test.samples.into_iter())
                .map(
                    |SampleRecord {
                         test: _,
                         sample,
                         at,
                         conditions,
                     }| ExportedSample {
                        sample,
                        at,
                        conditions,
                    },
                )
                .collect(),
            reported: test.reported,
            told: test.told,
            suspect: test.suspect,
            end: test.end.map(ExportedEnd::from),
            extra: test.extra,
        }
    }
}

/// What may be unknown beside the settings: see [`Test::unknown`].
const MAY_BE_UNKNOWN: [&str; 8] = [
    "split_kv",
    "repetitions",
    "warmup",
    "started_at",
    "ended_at",
    "model_path",
    "file_bytes",
    "parameters",
];

impl ExportedTest {
    /// The test it was made from. A setting that the file does not hold is unknown.
    ///
    /// Errors: the setting that is not of its form, in serde's words.
    pub(crate) fn into_test(mut self, run: Uuid) -> Result<Test, serde_json::Error> {
        let test = self.id;
        self.settings.retain(|_, value| !value.is_null());
        let names = settings_map(&Settings::default());
        let is_left_out = |name: &String| !self.settings.contains_key(name);
        let mut unknown: Vec<String> = names
            .keys()
            .filter(|name| is_left_out(name))
            .cloned()
            .collect();
        unknown.extend(
            (self.unknown.into_iter()).filter(|name| MAY_BE_UNKNOWN.contains(&name.as_str())),
        );
        let record = TestRecord {
            id: test,
            run,
            position: self.position,
            model: self.model,
            spec: self.spec,
            kind: self.kind,
            settings: serde_json::from_value(Value::Object(self.settings))?,
            repetitions: self.repetitions,
            warmup: self.warmup,
            started_at: self.started_at,
        };
        let samples = (self.samples.into_iter())
            .map(
                |ExportedSample {
                     sample,
                     at,
                     conditions,
                 }| SampleRecord {
                    test,
                    sample,
                    at,
                    conditions,
                },
            )
            .collect();
        Ok(Test {
            record,
            end: self.end.map(|end| end.into_record(test)),
            samples,
            unknown,
            reported: self.reported,
            told: self.told,
            suspect: self.suspect,
            extra: self.extra,
        })
    }
}

impl From<TestEnd> for ExportedEnd {
    fn from(end: TestEnd) -> Self {
        let TestEnd {
            test: _,
            status,
            ended_at,
            worker,
            loaded,
            placement,
            anchor_before_ns,
            anchor_after_ns,
            state_before,
            state_after,
            peak_rss_bytes,
            warnings,
        } = end;
        Self {
            status,
            ended_at,
            worker,
            loaded,
            placement,
            anchor_before_ns,
            anchor_after_ns,
            state_before,
            state_after,
            peak_rss_bytes,
            warnings,
        }
    }
}

impl ExportedEnd {
    fn into_record(self, test: Uuid) -> TestEnd {
        TestEnd {
            test,
            status: self.status,
            ended_at: self.ended_at,
            worker: self.worker,
            loaded: self.loaded,
            placement: self.placement,
            anchor_before_ns: self.anchor_before_ns,
            anchor_after_ns: self.anchor_after_ns,
            state_before: self.state_before,
            state_after: self.state_after,
            peak_rss_bytes: self.peak_rss_bytes,
            warnings: self.warnings,
        }
    }
}
