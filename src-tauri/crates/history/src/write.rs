//! Records into rows. One function a table; the transaction around them is the caller's.

use jiff::Timestamp;
use sqlx::SqliteConnection;
use twospeed_engine::Settings;
use twospeed_engine::protocol::{EngineBuild, Hello, Loaded, Placement, Sample};
use twospeed_engine::settings::ModelPath;
use twospeed_measure::machine::Machine;
use twospeed_measure::model::MeasuredModel;
use twospeed_measure::{Kind, RunRecord, SampleRecord, TestEnd, TestRecord, TestStatus};

use crate::columns::{Columns, Existing};
use crate::error::Fault;
use crate::test::{Reported, Suspect, Test, Told};

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
    started_at: Option<Timestamp>,
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
        .set("os", known(os))
        .count("memory_bytes", *memory_bytes)
        .count("last_level_cache_bytes", *last_level_cache_bytes)
        .set("app_version", known(app_version))
        .set("preset", preset)
}

/// A text that is empty where it is not known.
fn known(text: &str) -> Option<&str> {
    Some(text).filter(|text| !text.is_empty())
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
    run_columns(*id, Some(*started_at), machine, app_version, preset)
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
    unknown: &[String],
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
        .not_knowing(unknown)
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

/// A test that begins; of its samples and its end nothing is written yet.
///
/// `false` when a test with this id is there already (for imports; `existing` says what then).
pub(crate) async fn test(
    connection: &mut SqliteConnection,
    test: &Test,
    facts: Facts,
    existing: Existing,
) -> Result<bool, Fault> {
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
    } = &test.record;
    self::model(connection, model, &test.unknown, facts).await?;
    let columns = Columns::default()
        .not_knowing(&test.unknown)
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
        .json("kind_detail", kind_detail(kind, &test.unknown)?.as_ref())
        .set("status", "running")
        .json("extra", Some(&test.extra).filter(|extra| !extra.is_empty()));
    let columns = settings_columns(path_column(columns, &model.path), settings);
    let columns = suspect_columns(columns, test.suspect.as_ref());
    let columns = test.reported.iter().fold(columns, reported_columns);
    let columns = match &test.told {
        Some(told) => told_columns(columns, told, told_engine(connection, told).await?),
        None => columns,
    };
    columns.insert(connection, "test", existing).await
}

/// A kind that is more than a speed, with null where another tool does not tell.
fn kind_detail(kind: &Kind, unknown: &[String]) -> Result<Option<serde_json::Value>, Fault> {
    if kind.is_speed() {
        return Ok(None);
    }
    let mut detail = serde_json::to_value(kind)
        .map_err(|error| Fault::Impossible(format!("kind cannot be written, {error}")))?;
    if let serde_json::Value::Object(fields) = &mut detail {
        for (name, value) in fields {
            if unknown.contains(name) {
                *value = serde_json::Value::Null;
            }
        }
    }
    Ok(Some(detail))
}

fn suspect_columns(columns: Columns, suspect: Option<&Suspect>) -> Columns {
    columns
        .set("suspect", suspect.map(|suspect| suspect.reason.as_str()))
        .time("allowed_at", suspect.and_then(|suspect| suspect.allowed_at))
}

fn reported_columns(columns: Columns, reported: &Reported) -> Columns {
    let Reported {
        avg_ns,
        stddev_ns,
        avg_ts,
        stddev_ts,
    } = reported;
    columns
        .set("reported_avg_ns", *avg_ns)
        .set("reported_stddev_ns", *stddev_ns)
        .set("reported_avg_ts", *avg_ts)
        .set("reported_stddev_ts", *stddev_ts)
}

fn told_columns(columns: Columns, told: &Told, engine: Option<i64>) -> Columns {
    let Told {
        build_commit: _,
        build_number: _,
        cpu_info,
        gpu_info,
        backends: _,
        model_type,
        model_size,
        model_n_params,
    } = told;
    columns
        .set("engine", engine)
        .set("cpu_info", cpu_info.as_deref())
        .set("gpu_info", gpu_info.as_deref())
        .set("model_type", model_type.as_deref())
        .count("model_size", *model_size)
        .count("model_n_params", *model_n_params)
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
    unknown: &[String],
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
    let columns = status_columns(Columns::default().not_knowing(unknown), status)
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

/// The row of a worker's engine.
async fn engine(connection: &mut SqliteConnection, hello: &Hello) -> Result<i64, Fault> {
    let EngineBuild {
        build_number,
        build_commit,
        crate_version,
    } = &hello.engine;
    engine_row(
        connection,
        Some(*build_number),
        Some(build_commit),
        Some(crate_version),
        Some(&hello.variant.name),
        Some(&hello.backends),
    )
    .await
}

/// The row of another tool's engine; `None` where nothing is told of it.
async fn told_engine(connection: &mut SqliteConnection, told: &Told) -> Result<Option<i64>, Fault> {
    let (number, commit, backends) = (
        told.build_number,
        told.build_commit.as_deref(),
        told.backends.as_deref(),
    );
    if number.is_none() && commit.is_none() && backends.is_none() {
        return Ok(None);
    }
    engine_row(connection, number, commit, None, None, backends)
        .await
        .map(Some)
}

/// The engine's row, made when this build, variant and set of backends is new.
async fn engine_row(
    connection: &mut SqliteConnection,
    build_number: Option<u32>,
    build_commit: Option<&str>,
    crate_version: Option<&str>,
    variant: Option<&str>,
    backends: Option<&str>,
) -> Result<i64, Fault> {
    Columns::default()
        .set("build_number", build_number)
        .set("build_commit", build_commit)
        .set("crate_version", crate_version)
        .set("variant", variant)
        .set("backends", backends)
        .insert(connection, "engine", Existing::Keep)
        .await?;
    // What is unknown of both is equal, as in the table's index.
    let id = sqlx::query_scalar(
        "SELECT id FROM engine
         WHERE ifnull(build_number, -1) = ifnull(?, -1) AND ifnull(build_commit, '') = ifnull(?, '')
           AND ifnull(crate_version, '') = ifnull(?, '') AND ifnull(variant, '') = ifnull(?, '')
           AND ifnull(backends, '') = ifnull(?, '')",
    )
    .bind(build_number)
    .bind(build_commit)
    .bind(crate_version)
    .bind(variant)
    .bind(backends)
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
