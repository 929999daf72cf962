//! Records into rows. One function a table; the transaction around them is the caller's.

mod end;
mod test;

use jiff::Timestamp;
use sqlx::SqliteConnection;
use twospeed_engine::protocol::Sample;
use twospeed_measure::machine::Machine;
use twospeed_measure::model::MeasuredModel;
use twospeed_measure::{RunRecord, SampleRecord};

use crate::columns::{Columns, Existing};
use crate::error::Fault;

pub(crate) use end::test_end;
pub(crate) use test::test;

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
