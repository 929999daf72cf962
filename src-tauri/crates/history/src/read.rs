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

/// Fields of an import that this version does not know, kept for the next export.
pub(crate) type Extra = serde_json::Map<String, serde_json::Value>;

/// Every column a [`Run`] needs.
pub(crate) const RUN: &str = "SELECT run.*, machine.cpu, machine.physical_cores, \
     machine.logical_cores FROM run JOIN machine ON machine.id = run.machine";

/// Every column a test needs; names that two tables share are told apart.
pub(crate) const TEST: &str = "SELECT test.*, model.name, model.architecture, \
     model.quantization, model.file_bytes, model.parameters, model.active_parameters, \
     model.weight_bytes_per_token, model.ability, model.synthetic, \
     engine.build_number, engine.build_commit, engine.crate_version, engine.variant, \
     engine.backends \
     FROM test JOIN model ON model.fingerprint = test.model \
     LEFT JOIN engine ON engine.id = test.engine";

pub(crate) fn run(row: &SqliteRow) -> Result<Run, Fault> {
    let cells = Cells(row);
    Ok(Run {
        id: cells.id("id")?,
        origin: match cells.get::<&str>("origin")? {
            "measured" => Origin::Measured,
            _ => Origin::Imported,
        },
        imported_at: cells.maybe_time("imported_at")?,
        started_at: cells.time("started_at")?,
        ended_at: cells.maybe_time("ended_at")?,
        status: cells.word("status")?,
        machine: machine(cells)?,
        app_version: cells.get("app_version")?,
        preset: cells.get("preset")?,
        note: cells.maybe("note")?,
        deleted_at: cells.maybe_time("deleted_at")?,
    })
}

/// A run as its process announced it.
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
        plan: plan(row)?,
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
        os: cells.get("os")?,
    })
}

pub(crate) fn plan(row: &SqliteRow) -> Result<Option<Plan>, Fault> {
    Cells(row).json("plan")
}

pub(crate) fn extra(row: &SqliteRow) -> Result<Extra, Fault> {
    Ok(Cells(row).json("extra")?.unwrap_or_default())
}

pub(crate) fn test(row: &SqliteRow) -> Result<TestRecord, Fault> {
    let cells = Cells(row);
    Ok(TestRecord {
        id: cells.id("id")?,
        run: cells.id("run")?,
        position: cells.get("position")?,
        model: model(cells)?,
        spec: TestSpec {
            n_prompt: cells.get("n_prompt")?,
            n_gen: cells.get("n_gen")?,
            n_depth: cells.get("n_depth")?,
        },
        kind: kind(cells)?,
        settings: settings(cells)?,
        repetitions: cells.get("repetitions")?,
        warmup: cells.get("warmup")?,
        started_at: cells.time("started_at")?,
    })
}

/// A kind of a newer app is not taken for one that is known.
fn kind(cells: Cells<'_>) -> Result<Kind, Fault> {
    if let Some(kind) = cells.json("kind_detail")? {
        return Ok(kind);
    }
    match cells.get::<&str>("kind")? {
        "speed" => Ok(Kind::Speed),
        other => Err(Fault::Unreadable(format!(
            "kind, {other} comes without its details"
        ))),
    }
}

fn model(cells: Cells<'_>) -> Result<MeasuredModel, Fault> {
    Ok(MeasuredModel {
        fingerprint: cells.get("model")?,
        path: path(cells)?,
        name: cells.get("name")?,
        architecture: cells.maybe("architecture")?,
        quantization: cells.maybe("quantization")?,
        file_bytes: cells.count("file_bytes")?,
        parameters: cells.count("parameters")?,
        active_parameters: cells.maybe_count("active_parameters")?,
        weight_bytes_per_token: cells.maybe_count("weight_bytes_per_token")?,
        ability: cells.maybe_word("ability")?,
        synthetic: cells.get("synthetic")?,
    })
}

fn path(cells: Cells<'_>) -> Result<ModelPath, Fault> {
    if !cells.is_blob("model_path")? {
        return Ok(ModelPath(cells.get::<String>("model_path")?.into()));
    }
    // The engine crate knows how bytes become a path on this system.
    let bytes: Vec<u8> = cells.get("model_path")?;
    serde_json::from_value(serde_json::json!({ "bytes": bytes }))
        .map_err(|error| Fault::Unreadable(format!("model_path, {error}")))
}

fn settings(cells: Cells<'_>) -> Result<Settings, Fault> {
    Ok(Settings {
        n_batch: cells.get("n_batch")?,
        n_ubatch: cells.get("n_ubatch")?,
        n_threads: cells.get("n_threads")?,
        cpu_mask: cells.get("cpu_mask")?,
        cpu_strict: cells.get("cpu_strict")?,
        poll: cells.get("poll")?,
        type_k: cells.get("type_k")?,
        type_v: cells.get("type_v")?,
        n_gpu_layers: cells.get("n_gpu_layers")?,
        n_cpu_moe: cells.get("n_cpu_moe")?,
        split_mode: cells.get("split_mode")?,
        main_gpu: cells.get("main_gpu")?,
        no_kv_offload: cells.get("no_kv_offload")?,
        flash_attn: match cells.get::<i32>("flash_attn")? {
            0 => FlashAttention::Off,
            1 => FlashAttention::On,
            _ => FlashAttention::Auto,
        },
        devices: cells.get("devices")?,
        tensor_split: cells.get("tensor_split")?,
        tensor_buft_overrides: cells.get("tensor_buft_overrides")?,
        load_mode: cells.get("load_mode")?,
        lazy_mode: cells.get("lazy_mode")?,
        embeddings: cells.get("embeddings")?,
        no_op_offload: cells.get("no_op_offload")?,
        no_host: cells.get("no_host")?,
        repack: cells.get("repack")?,
        fit_target: cells.count("fit_target")?,
        fit_min_ctx: cells.get("fit_min_ctx")?,
        n_outputs: cells.get("n_outputs")?,
        prio: cells.get("prio")?,
        numa: cells.get("numa")?,
    })
}

/// How the test in `row` ended; `None` while it runs.
pub(crate) fn test_end(row: &SqliteRow) -> Result<Option<TestEnd>, Fault> {
    let cells = Cells(row);
    let Some(status) = status(cells)? else {
        return Ok(None);
    };
    Ok(Some(TestEnd {
        test: cells.id("id")?,
        status,
        ended_at: cells.time("ended_at")?,
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

fn status(cells: Cells<'_>) -> Result<Option<TestStatus>, Fault> {
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
