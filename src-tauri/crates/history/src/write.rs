//! Records into rows. One function a table; the transaction around them is the caller's.

use jiff::Timestamp;
use sqlx::SqliteConnection;
use twospeed_engine::Settings;
use twospeed_engine::protocol::{EngineBuild, Hello, Loaded, Placement, Sample};
use twospeed_engine::settings::ModelPath;
use twospeed_measure::machine::Machine;
use twospeed_measure::model::MeasuredModel;
use twospeed_measure::{RunRecord, SampleRecord, TestEnd, TestRecord, TestStatus};

use crate::columns::{Columns, Existing};
use crate::error::Fault;

/// The machine's identity; what an upgrade changes of it goes into the run.
pub(crate) async fn machine(
    connection: &mut SqliteConnection,
    machine: &Machine,
) -> Result<(), Fault> {
    Columns::default()
        .set("id", machine.id.as_str())
        .set("cpu", machine.cpu.as_str())
        .set("physical_cores", machine.physical_cores)
        .set("logical_cores", machine.logical_cores)
        .insert(connection, "machine", Existing::Keep)
        .await?;
    Ok(())
}

/// The columns of a run that both a measured and an imported one have.
pub(crate) fn run_columns(
    run: uuid::Uuid,
    started_at: Timestamp,
    machine: &Machine,
    app_version: &str,
    preset: &str,
) -> Columns {
    let Machine {
        id,
        name,
        cpu: _,
        physical_cores: _,
        logical_cores: _,
        last_level_cache_bytes,
        memory_bytes,
        os,
    } = machine;
    Columns::default()
        .id("id", run)
        .time("started_at", started_at)
        .set("machine", id.as_str())
        .set("machine_name", name.as_deref())
        .set("os", os.as_str())
        .count("memory_bytes", *memory_bytes)
        .count("last_level_cache_bytes", *last_level_cache_bytes)
        .set("app_version", app_version)
        .set("preset", preset)
}

/// A run that begins here.
pub(crate) async fn run(connection: &mut SqliteConnection, run: &RunRecord) -> Result<(), Fault> {
    machine(connection, &run.machine).await?;
    let RunRecord {
        id,
        started_at,
        machine,
        app_version,
        preset,
        owner_pid,
        owner_started,
        plan,
    } = run;
    run_columns(*id, *started_at, machine, app_version, preset)
        .set("origin", "measured")
        .set("status", "running")
        .set("owner_pid", *owner_pid)
        .count("owner_started", *owner_started)
        .json("plan", plan.as_ref())
        .insert(connection, "run", Existing::Refuse)
        .await?;
    Ok(())
}

/// A run that goes on under a new owner.
pub(crate) async fn resumed_run(
    connection: &mut SqliteConnection,
    run: &RunRecord,
) -> Result<(), Fault> {
    let known = Columns::default()
        .set("status", "running")
        .time("ended_at", None)
        .set("owner_pid", run.owner_pid)
        .count("owner_started", run.owner_started)
        .update(connection, "run", run.id)
        .await?;
    match known {
        true => Ok(()),
        false => Err(Fault::NoRun(run.id.to_string())),
    }
}

/// Whose word counts about a model that is known already.
#[derive(Clone, Copy)]
pub(crate) enum Facts {
    /// The file was read just now: what is derived from it is as good as it gets.
    Fresh,
    /// They come from elsewhere: what is stored stays.
    Secondhand,
}

async fn model(
    connection: &mut SqliteConnection,
    model: &MeasuredModel,
    facts: Facts,
) -> Result<(), Fault> {
    let MeasuredModel {
        fingerprint,
        path: _,
        name,
        architecture,
        quantization,
        file_bytes,
        parameters,
        active_parameters,
        weight_bytes_per_token,
        ability,
        synthetic,
    } = model;
    Columns::default()
        .set("fingerprint", fingerprint.as_str())
        .set("name", name.as_str())
        .set("architecture", architecture.as_deref())
        .set("quantization", quantization.as_deref())
        .count("file_bytes", *file_bytes)
        .count("parameters", *parameters)
        .count("active_parameters", *active_parameters)
        .count("weight_bytes_per_token", *weight_bytes_per_token)
        .word("ability", ability.as_ref())
        .set("synthetic", *synthetic)
        .insert(
            connection,
            "model",
            match facts {
                Facts::Fresh => Existing::Update("fingerprint"),
                Facts::Secondhand => Existing::Keep,
            },
        )
        .await?;
    Ok(())
}

/// A test that begins. `extra` holds what an import says beyond what is known here.
///
/// `false` when a test with this id is there already (for imports; `existing` says what then).
pub(crate) async fn test(
    connection: &mut SqliteConnection,
    test: &TestRecord,
    facts: Facts,
    extra: Option<&serde_json::Map<String, serde_json::Value>>,
    existing: Existing,
) -> Result<bool, Fault> {
    model(connection, &test.model, facts).await?;
    let TestRecord {
        id,
        run,
        position,
        model,
        spec,
        kind,
        settings,
        repetitions,
        warmup,
        started_at,
    } = test;
    let columns = Columns::default()
        .id("id", *id)
        .id("run", *run)
        .set("position", *position)
        .set("model", model.fingerprint.as_str())
        .time("started_at", *started_at)
        .set("repetitions", *repetitions)
        .set("warmup", *warmup)
        .set("n_prompt", spec.n_prompt)
        .set("n_gen", spec.n_gen)
        .set("n_depth", spec.n_depth)
        .set("kind", kind.key())
        .json("kind_detail", Some(kind).filter(|kind| !kind.is_speed()))
        .set("status", "running")
        .json("extra", extra.filter(|extra| !extra.is_empty()));
    settings_columns(path_column(columns, &model.path), settings)
        .insert(connection, "test", existing)
        .await
}

fn path_column(columns: Columns, ModelPath(path): &ModelPath) -> Columns {
    match path.to_str() {
        Some(text) => columns.set("model_path", text),
        None => columns.set("model_path", path.as_os_str().as_encoded_bytes()),
    }
}

fn settings_columns(columns: Columns, settings: &Settings) -> Columns {
    let Settings {
        n_batch,
        n_ubatch,
        n_threads,
        cpu_mask,
        cpu_strict,
        poll,
        type_k,
        type_v,
        n_gpu_layers,
        n_cpu_moe,
        split_mode,
        main_gpu,
        no_kv_offload,
        flash_attn,
        devices,
        tensor_split,
        tensor_buft_overrides,
        load_mode,
        lazy_mode,
        embeddings,
        no_op_offload,
        no_host,
        repack,
        fit_target,
        fit_min_ctx,
        n_outputs,
        prio,
        numa,
    } = settings;
    columns
        .set("n_batch", *n_batch)
        .set("n_ubatch", *n_ubatch)
        .set("n_threads", *n_threads)
        .set("cpu_mask", cpu_mask.as_str())
        .set("cpu_strict", *cpu_strict)
        .set("poll", *poll)
        .set("type_k", type_k.as_str())
        .set("type_v", type_v.as_str())
        .set("n_gpu_layers", *n_gpu_layers)
        .set("n_cpu_moe", *n_cpu_moe)
        .set("split_mode", split_mode.as_str())
        .set("main_gpu", *main_gpu)
        .set("no_kv_offload", *no_kv_offload)
        .set("flash_attn", flash_attn.number())
        .set("devices", devices.as_str())
        .set("tensor_split", tensor_split.as_str())
        .set("tensor_buft_overrides", tensor_buft_overrides.as_str())
        .set("load_mode", load_mode.as_str())
        .set("lazy_mode", lazy_mode.as_str())
        .set("embeddings", *embeddings)
        .set("no_op_offload", *no_op_offload)
        .set("no_host", *no_host)
        .set("repack", *repack)
        .count("fit_target", *fit_target)
        .set("fit_min_ctx", *fit_min_ctx)
        .set("n_outputs", *n_outputs)
        .set("prio", *prio)
        .set("numa", numa.as_str())
}

/// A sample; `false` when it is there already.
pub(crate) async fn sample(
    connection: &mut SqliteConnection,
    record: &SampleRecord,
    existing: Existing,
) -> Result<bool, Fault> {
    let SampleRecord {
        test,
        sample,
        at,
        conditions,
    } = record;
    let Sample {
        index,
        ns,
        involuntary_switches,
        major_faults,
        reading,
    } = sample;
    Columns::default()
        .id("test", *test)
        .set("sample_index", *index)
        .count("ns", *ns)
        .count("involuntary_switches", *involuntary_switches)
        .count("major_faults", *major_faults)
        .json("reading", reading.as_ref())
        .json(
            "conditions",
            Some(conditions).filter(|conditions| !conditions.is_unknown()),
        )
        .time("at", *at)
        .insert(connection, "sample", existing)
        .await
}

/// What is known once a test has ended.
pub(crate) async fn test_end(
    connection: &mut SqliteConnection,
    end: &TestEnd,
) -> Result<(), Fault> {
    let TestEnd {
        test,
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
    let columns = status_columns(Columns::default(), status)
        .time("ended_at", *ended_at)
        .count("anchor_before_ns", *anchor_before_ns)
        .count("anchor_after_ns", *anchor_after_ns)
        .json("state_before", state_before.as_ref())
        .json("state_after", state_after.as_ref())
        .count("peak_rss_bytes", *peak_rss_bytes)
        .json("warnings", Some(warnings));
    let columns = match worker {
        Some(hello) => worker_columns(columns, hello, engine(connection, hello).await?),
        None => columns,
    };
    let columns = loaded.iter().fold(columns, loaded_columns);
    let columns = placement.iter().fold(columns, placement_columns);
    if columns.update(connection, "test", *test).await? {
        Ok(())
    } else {
        Err(Fault::NoTest(*test))
    }
}

fn status_columns(columns: Columns, status: &TestStatus) -> Columns {
    let (word, code, message, log) = match status {
        TestStatus::Done => ("done", None, None, None),
        TestStatus::Failed { code, message, log } => (
            "failed",
            Some(code.as_str()),
            Some(message.as_str()),
            Some(log),
        ),
        TestStatus::Cancelled => ("cancelled", None, None, None),
        TestStatus::Interrupted => ("interrupted", None, None, None),
        TestStatus::Skipped { reason } => ("skipped", None, Some(reason.as_str()), None),
    };
    columns
        .set("status", word)
        .set("failure_code", code)
        .set("message", message)
        .json("log", log)
}

/// The engine's row, made when this build, variant and set of backends is new.
async fn engine(connection: &mut SqliteConnection, hello: &Hello) -> Result<i64, Fault> {
    let EngineBuild {
        build_number,
        build_commit,
        crate_version,
    } = &hello.engine;
    Columns::default()
        .set("build_number", *build_number)
        .set("build_commit", build_commit.as_str())
        .set("crate_version", crate_version.as_str())
        .set("variant", hello.variant.name.as_str())
        .set("backends", hello.backends.as_str())
        .insert(connection, "engine", Existing::Keep)
        .await?;
    let id = sqlx::query_scalar(
        "SELECT id FROM engine
         WHERE build_number = ? AND build_commit = ? AND crate_version = ?
           AND variant = ? AND backends = ?",
    )
    .bind(*build_number)
    .bind(build_commit.as_str())
    .bind(crate_version.as_str())
    .bind(hello.variant.name.as_str())
    .bind(hello.backends.as_str())
    .fetch_one(connection)
    .await?;
    Ok(id)
}

fn worker_columns(columns: Columns, hello: &Hello, engine: i64) -> Columns {
    let Hello {
        protocol,
        engine: _,
        variant,
        variants,
        devices,
        cpu_info,
        gpu_info,
        backends: _,
        system_info,
    } = hello;
    columns
        .set("engine", engine)
        .set("worker_protocol", *protocol)
        .set("worker_variant_score", variant.score)
        .json("worker_variants", Some(variants))
        .json("worker_devices", Some(devices))
        .set("cpu_info", cpu_info.as_str())
        .set("gpu_info", gpu_info.as_str())
        .set("system_info", system_info.as_str())
}

fn loaded_columns(columns: Columns, loaded: &Loaded) -> Columns {
    let Loaded {
        load_ns,
        resident_before,
        page_cache,
        model_type,
        model_size,
        model_n_params,
        n_layer,
        n_ctx_train,
        n_vocab,
        ability,
        recurrent,
    } = loaded;
    columns
        .count("load_ns", *load_ns)
        .set("load_resident_before", resident_before.map(f64::from))
        .word("load_page_cache", Some(page_cache))
        .set("model_type", model_type.as_str())
        .count("model_size", *model_size)
        .count("model_n_params", *model_n_params)
        .set("loaded_layers", *n_layer)
        .set("loaded_n_ctx_train", *n_ctx_train)
        .set("loaded_n_vocab", *n_vocab)
        .word("loaded_ability", Some(ability))
        .set("loaded_recurrent", *recurrent)
}

fn placement_columns(columns: Columns, placement: &Placement) -> Columns {
    let Placement {
        context_ns,
        n_ctx,
        offloaded_layers,
        total_layers,
        flash_attention,
        buffers,
    } = placement;
    columns
        .count("context_ns", *context_ns)
        .set("n_ctx", *n_ctx)
        .set("offloaded_layers", *offloaded_layers)
        .set("total_layers", *total_layers)
        .set("flash_attn_used", *flash_attention)
        .json("buffers", Some(buffers))
}
