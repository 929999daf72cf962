//! Rows into records.

use sqlx::sqlite::SqliteRow;
use twospeed_engine::protocol::{EngineBuild, Hello, Loaded, Placement, Sample, Variant};
use twospeed_engine::settings::ModelPath;
use twospeed_engine::{FlashAttention, Settings, TestSpec};
use twospeed_measure::machine::Machine;
use twospeed_measure::model::MeasuredModel;
use twospeed_measure::{Kind, Plan, RunRecord, SampleRecord, TestEnd, TestRecord, TestStatus};

use crate::columns::Cells;
use crate::error::Fault;
use crate::run::{Origin, Run};
use crate::test::{Reported, Suspect, Test, Told};

/// Fields of an import that this version does not know, kept for the next export.
pub(crate) type Extra = serde_json::Map<String, serde_json::Value>;

/// Every column a [`Run`] needs.
pub(crate) const RUN: &str = "SELECT run.*, machine.cpu, machine.physical_cores, \
     machine.logical_cores FROM run JOIN machine ON machine.id = run.machine";

/// Every column a test needs, and when its run was imported; names that two tables share are told apart.
pub(crate) const TEST: &str = "SELECT test.*, model.name, model.architecture, \
     model.quantization, model.file_bytes, model.parameters, model.active_parameters, \
     model.weight_bytes_per_token, model.ability, model.synthetic, \
     engine.build_number, engine.build_commit, engine.crate_version, engine.variant, \
     engine.backends, \
     (SELECT run.imported_at FROM run WHERE run.id = test.run) AS imported_at \
     FROM test JOIN model ON model.fingerprint = test.model \
     LEFT JOIN engine ON engine.id = test.engine";

pub(crate) fn run(row: &SqliteRow) -> Result<Run, Fault> {
    let cells = Cells(row);
    Ok(Run {
        id: cells.id("id")?,
        origin: origin(cells.get("origin")?),
        imported_at: cells.maybe_time("imported_at")?,
        started_at: match cells.maybe_time("started_at")? {
            Some(started_at) => started_at,
            None => cells.time("imported_at")?,
        },
        ended_at: cells.maybe_time("ended_at")?,
        status: cells.word("status")?,
        machine: machine(cells)?,
        app_version: cells.maybe("app_version")?.unwrap_or_default(),
        preset: cells.get("preset")?,
        note: cells.maybe("note")?,
        deleted_at: cells.maybe_time("deleted_at")?,
    })
}

/// The word that stands for an origin in the file.
pub(crate) fn origin_word(origin: Origin) -> &'static str {
    match origin {
        Origin::Measured => "measured",
        Origin::Imported => "imported",
        Origin::LlamaBench => "llama-bench",
        Origin::LlamaBatchedBench => "llama-batched-bench",
    }
}

fn origin(word: &str) -> Origin {
    [
        Origin::Measured,
        Origin::LlamaBench,
        Origin::LlamaBatchedBench,
    ]
    .into_iter()
    .find(|origin| origin_word(*origin) == word)
    .unwrap_or(Origin::Imported)
}

/// A run as its process announced it, without its plan: what only lists runs must not stumble over
/// the plan of a newer app.
pub(crate) fn run_record(row: &SqliteRow) -> Result<RunRecord, Fault> {
    let cells = Cells(row);
    Ok(RunRecord {
        id: cells.id("id")?,
        started_at: cells.time("started_at")?,
        machine: machine(cells)?,
        app_version: cells.get("app_version")?,
        preset: cells.get("preset")?,
        owner_pid: cells.get("owner_pid")?,
        owner_started: cells.maybe_count("owner_started")?,
        plan: None,
    })
}

fn machine(cells: Cells<'_>) -> Result<Machine, Fault> {
    Ok(Machine {
        id: cells.get("machine")?,
        name: cells.maybe("machine_name")?,
        cpu: cells.get("cpu")?,
        physical_cores: cells.maybe("physical_cores")?,
        logical_cores: cells.maybe("logical_cores")?,
        last_level_cache_bytes: cells.maybe_count("last_level_cache_bytes")?,
        memory_bytes: cells.maybe_count("memory_bytes")?,
        os: cells.maybe("os")?.unwrap_or_default(),
    })
}

pub(crate) fn plan(row: &SqliteRow) -> Result<Option<Plan>, Fault> {
    Cells(row).json("plan")
}

pub(crate) fn extra(row: &SqliteRow) -> Result<Extra, Fault> {
    Ok(Cells(row).json("extra")?.unwrap_or_default())
}

/// Cells of which some may be unknown: those get a value that says nothing, and are named.
struct Known<'r> {
    cells: Cells<'r>,
    unknown: Vec<String>,
}

impl<'r> Known<'r> {
    fn get<T>(&mut self, name: &str, filler: T) -> Result<T, Fault>
    where
        T: sqlx::Decode<'r, sqlx::Sqlite> + sqlx::Type<sqlx::Sqlite>,
    {
        let value = self.cells.maybe(name)?;
        Ok(self.or_filler(name, value, filler))
    }

    fn count(&mut self, name: &str, filler: u64) -> Result<u64, Fault> {
        let value = self.cells.maybe_count(name)?;
        Ok(self.or_filler(name, value, filler))
    }

    fn or_filler<T>(&mut self, name: &str, value: Option<T>, filler: T) -> T {
        value.unwrap_or_else(|| {
            self.unknown.push(name.to_owned());
            filler
        })
    }
}

/// A test without its samples.
pub(crate) fn test(row: &SqliteRow) -> Result<Test, Fault> {
    let cells = Cells(row);
    let mut known = Known {
        cells,
        unknown: Vec::new(),
    };
    let record = TestRecord {
        id: cells.id("id")?,
        run: cells.id("run")?,
        position: cells.get("position")?,
        model: model(&mut known)?,
        spec: TestSpec {
            n_prompt: cells.get("n_prompt")?,
            n_gen: cells.get("n_gen")?,
            n_depth: cells.get("n_depth")?,
        },
        kind: kind(&mut known)?,
        settings: settings(&mut known)?,
        repetitions: known.get("repetitions", 1)?,
        warmup: known.get("warmup", true)?,
        started_at: match cells.maybe_time("started_at")? {
            Some(started_at) => started_at,
            None => {
                let imported_at = cells.time("imported_at")?;
                known.or_filler("started_at", None, imported_at)
            }
        },
    };
    Ok(Test {
        end: test_end(&mut known, &record)?,
        record,
        samples: Vec::new(),
        unknown: known.unknown,
        reported: reported(cells)?,
        told: told(cells)?,
        suspect: suspect(cells)?,
        extra: extra(row)?,
    })
}

/// A kind of a newer app is not taken for one that is known.
fn kind(known: &mut Known<'_>) -> Result<Kind, Fault> {
    let key: &str = known.cells.get("kind")?;
    let Some(mut detail) = known.cells.json::<serde_json::Value>("kind_detail")? else {
        return match key {
            "speed" => Ok(Kind::Speed),
            other => Err(Fault::Unreadable(format!(
                "kind, {other} comes without its details"
            ))),
        };
    };
    if detail
        .get("split_kv")
        .is_some_and(serde_json::Value::is_null)
    {
        detail["split_kv"] = known.or_filler("split_kv", None, false).into();
    }
    serde_json::from_value(detail)
        .map_err(|error| Fault::Unreadable(format!("kind, {key} is not known here ({error})")))
}

fn reported(cells: Cells<'_>) -> Result<Option<Reported>, Fault> {
    let reported = Reported {
        avg_ns: cells.maybe("reported_avg_ns")?,
        stddev_ns: cells.maybe("reported_stddev_ns")?,
        avg_ts: cells.maybe("reported_avg_ts")?,
        stddev_ts: cells.maybe("reported_stddev_ts")?,
    };
    Ok(Some(reported).filter(|reported| *reported != Reported::default()))
}

/// What another tool told. What a worker said of itself stands in the test's end.
fn told(cells: Cells<'_>) -> Result<Option<Told>, Fault> {
    if cells.maybe::<i64>("worker_protocol")?.is_some() || cells.maybe::<i64>("load_ns")?.is_some()
    {
        return Ok(None);
    }
    let told = Told {
        build_commit: cells.maybe("build_commit")?,
        build_number: cells.maybe("build_number")?,
        cpu_info: cells.maybe("cpu_info")?,
        gpu_info: cells.maybe("gpu_info")?,
        backends: cells.maybe("backends")?,
        model_type: cells.maybe("model_type")?,
        model_size: cells.maybe_count("model_size")?,
        model_n_params: cells.maybe_count("model_n_params")?,
    };
    Ok(Some(told).filter(|told| *told != Told::default()))
}

fn suspect(cells: Cells<'_>) -> Result<Option<Suspect>, Fault> {
    let reason: Option<String> = cells.maybe("suspect")?;
    let allowed_at = cells.maybe_time("allowed_at")?;
    Ok(reason.map(|reason| Suspect { reason, allowed_at }))
}

fn model(known: &mut Known<'_>) -> Result<MeasuredModel, Fault> {
    let cells = known.cells;
    Ok(MeasuredModel {
        fingerprint: cells.get("model")?,
        path: path(known)?,
        name: cells.get("name")?,
        architecture: cells.maybe("architecture")?,
        quantization: cells.maybe("quantization")?,
        file_bytes: known.count("file_bytes", 0)?,
        parameters: known.count("parameters", 0)?,
        active_parameters: cells.maybe_count("active_parameters")?,
        weight_bytes_per_token: cells.maybe_count("weight_bytes_per_token")?,
        ability: cells.maybe_word("ability")?,
        synthetic: cells.get("synthetic")?,
    })
}

fn path(known: &mut Known<'_>) -> Result<ModelPath, Fault> {
    let cells = known.cells;
    if !cells.is_blob("model_path")? {
        let text = known.get("model_path", String::new())?;
        return Ok(ModelPath(text.into()));
    }
    // The engine crate knows how bytes become a path on this system.
    let bytes: Vec<u8> = cells.get("model_path")?;
    serde_json::from_value(serde_json::json!({ "bytes": bytes }))
        .map_err(|error| Fault::Unreadable(format!("model_path, {error}")))
}

fn settings(known: &mut Known<'_>) -> Result<Settings, Fault> {
    let usual = Settings::default();
    Ok(Settings {
        n_batch: known.get("n_batch", usual.n_batch)?,
        n_ubatch: known.get("n_ubatch", usual.n_ubatch)?,
        n_threads: known.get("n_threads", usual.n_threads)?,
        cpu_mask: known.get("cpu_mask", usual.cpu_mask)?,
        cpu_strict: known.get("cpu_strict", usual.cpu_strict)?,
        poll: known.get("poll", usual.poll)?,
        type_k: known.get("type_k", usual.type_k)?,
        type_v: known.get("type_v", usual.type_v)?,
        n_gpu_layers: known.get("n_gpu_layers", usual.n_gpu_layers)?,
        n_cpu_moe: known.get("n_cpu_moe", usual.n_cpu_moe)?,
        split_mode: known.get("split_mode", usual.split_mode)?,
        main_gpu: known.get("main_gpu", usual.main_gpu)?,
        no_kv_offload: known.get("no_kv_offload", usual.no_kv_offload)?,
        flash_attn: match known.get("flash_attn", usual.flash_attn.number())? {
            0 => FlashAttention::Off,
            1 => FlashAttention::On,
            _ => FlashAttention::Auto,
        },
        devices: known.get("devices", usual.devices)?,
        tensor_split: known.get("tensor_split", usual.tensor_split)?,
        tensor_buft_overrides: known.get("tensor_buft_overrides", usual.tensor_buft_overrides)?,
        load_mode: known.get("load_mode", usual.load_mode)?,
        lazy_mode: known.get("lazy_mode", usual.lazy_mode)?,
        embeddings: known.get("embeddings", usual.embeddings)?,
        no_op_offload: known.get("no_op_offload", usual.no_op_offload)?,
        no_host: known.get("no_host", usual.no_host)?,
        repack: known.get("repack", usual.repack)?,
        fit_target: known.count("fit_target", usual.fit_target)?,
        fit_min_ctx: known.get("fit_min_ctx", usual.fit_min_ctx)?,
        n_outputs: known.get("n_outputs", usual.n_outputs)?,
        prio: known.get("prio", usual.prio)?,
        numa: known.get("numa", usual.numa)?,
    })
}

/// How the test ended; `None` while it runs.
fn test_end(known: &mut Known<'_>, record: &TestRecord) -> Result<Option<TestEnd>, Fault> {
    let cells = known.cells;
    let Some(status) = status(cells)? else {
        return Ok(None);
    };
    Ok(Some(TestEnd {
        test: record.id,
        status,
        // Other tools say at most when a test began.
        ended_at: known.or_filler("ended_at", cells.maybe_time("ended_at")?, record.started_at),
        worker: worker(cells)?,
        loaded: loaded(cells)?,
        placement: placement(cells)?,
        anchor_before_ns: cells.maybe_count("anchor_before_ns")?,
        anchor_after_ns: cells.maybe_count("anchor_after_ns")?,
        state_before: cells.json("state_before")?,
        state_after: cells.json("state_after")?,
        peak_rss_bytes: cells.maybe_count("peak_rss_bytes")?,
        warnings: cells.json("warnings")?.unwrap_or_default(),
    }))
}

pub(crate) fn status(cells: Cells<'_>) -> Result<Option<TestStatus>, Fault> {
    Ok(Some(match cells.get::<&str>("status")? {
        "running" => return Ok(None),
        "done" => TestStatus::Done,
        "failed" => TestStatus::Failed {
            code: cells.get("failure_code")?,
            message: cells.get("message")?,
            log: cells.json("log")?.unwrap_or_default(),
        },
        "cancelled" => TestStatus::Cancelled,
        "interrupted" => TestStatus::Interrupted,
        "skipped" => TestStatus::Skipped {
            reason: cells.get("message")?,
        },
        other => return Err(Fault::Unreadable(format!("status, {other}"))),
    }))
}

fn worker(cells: Cells<'_>) -> Result<Option<Hello>, Fault> {
    let Some(protocol) = cells.maybe("worker_protocol")? else {
        return Ok(None);
    };
    Ok(Some(Hello {
        protocol,
        engine: EngineBuild {
            build_number: cells.get("build_number")?,
            build_commit: cells.get("build_commit")?,
            crate_version: cells.get("crate_version")?,
        },
        variant: Variant {
            name: cells.get("variant")?,
            score: cells.get("worker_variant_score")?,
        },
        variants: cells.json("worker_variants")?.unwrap_or_default(),
        devices: cells.json("worker_devices")?.unwrap_or_default(),
        cpu_info: cells.get("cpu_info")?,
        gpu_info: cells.get("gpu_info")?,
        backends: cells.get("backends")?,
        system_info: cells.get("system_info")?,
    }))
}

fn loaded(cells: Cells<'_>) -> Result<Option<Loaded>, Fault> {
    let Some(load_ns) = cells.maybe_count("load_ns")? else {
        return Ok(None);
    };
    Ok(Some(Loaded {
        load_ns,
        // It was an f32 when it was stored.
        resident_before: cells
            .maybe::<f64>("load_resident_before")?
            .map(|share| share as f32),
        page_cache: cells.word("load_page_cache")?,
        model_type: cells.get("model_type")?,
        model_size: cells.count("model_size")?,
        model_n_params: cells.count("model_n_params")?,
        n_layer: cells.get("loaded_layers")?,
        n_ctx_train: cells.get("loaded_n_ctx_train")?,
        n_vocab: cells.get("loaded_n_vocab")?,
        ability: cells.word("loaded_ability")?,
        recurrent: cells.get("loaded_recurrent")?,
    }))
}

fn placement(cells: Cells<'_>) -> Result<Option<Placement>, Fault> {
    let Some(n_ctx) = cells.maybe("n_ctx")? else {
        return Ok(None);
    };
    Ok(Some(Placement {
        context_ns: cells.count("context_ns")?,
        n_ctx,
        offloaded_layers: cells.maybe("offloaded_layers")?,
        total_layers: cells.maybe("total_layers")?,
        flash_attention: cells.maybe("flash_attn_used")?,
        buffers: cells.json("buffers")?.unwrap_or_default(),
    }))
}

pub(crate) fn sample(row: &SqliteRow) -> Result<SampleRecord, Fault> {
    let cells = Cells(row);
    Ok(SampleRecord {
        test: cells.id("test")?,
        sample: Sample {
            index: cells.get("sample_index")?,
            ns: cells.count("ns")?,
            involuntary_switches: cells.maybe_count("involuntary_switches")?,
            major_faults: cells.maybe_count("major_faults")?,
            reading: cells.json("reading")?,
        },
        at: cells.time("at")?,
        conditions: cells.json("conditions")?.unwrap_or_default(),
    })
}
