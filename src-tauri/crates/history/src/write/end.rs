//! What a test's row gets at its end, and the engine's row.

use sqlx::SqliteConnection;
use twospeed_engine::protocol::{EngineBuild, Hello, Loaded, Placement};
use twospeed_measure::{TestEnd, TestStatus};

use crate::columns::{Columns, Existing};
use crate::error::Fault;
use crate::test::Told;

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
pub(super) async fn told_engine(
    connection: &mut SqliteConnection,
    told: &Told,
) -> Result<Option<i64>, Fault> {
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
