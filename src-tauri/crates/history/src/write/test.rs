//! A test's row as it begins.

use sqlx::SqliteConnection;
use twospeed_engine::Settings;
use twospeed_engine::settings::ModelPath;
use twospeed_measure::{Kind, TestRecord};

use super::Facts;
use super::end::told_engine;
use crate::columns::{Columns, Existing};
use crate::error::Fault;
use crate::test::{Reported, Suspect, Test, Told};

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
    super::model(connection, model, &test.unknown, facts).await?;
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
