//! What tests of figures share: a model, and a plan run by the scripted engine.

use std::path::Path;

use twospeed_engine::fake::FakeEngine;
use twospeed_engine::protocol::Ability;
use twospeed_engine::settings::ModelPath;
use twospeed_history::History;
use twospeed_measure::model::MeasuredModel;
use twospeed_measure::{Lease, Plan, PlannedTest, Stop};
use twospeed_workbench::{RunRequest, run};

/// A small model of this name.
pub fn model(name: &str, quantization: &str, file_bytes: u64) -> MeasuredModel {
    MeasuredModel {
        fingerprint: format!("content of {name} {quantization}"),
        path: ModelPath(format!("/models/{name}-{quantization}.gguf").into()),
        name: name.into(),
        architecture: Some("llama".into()),
        quantization: Some(quantization.into()),
        file_bytes,
        parameters: 134_515_008,
        active_parameters: Some(134_515_008),
        weight_bytes_per_token: Some(file_bytes),
        ability: Some(Ability::Generates),
        synthetic: false,
    }
}

/// Measures each test three times into a history in this folder.
pub async fn measure(folder: &Path, tests: Vec<PlannedTest>) -> History {
    let history = History::open(folder).await.unwrap();
    let place = folder.join("lease");
    let lease = Lease::acquire(&place, "test", jiff::Timestamp::now, |_| {})
        .await
        .unwrap();
    let plan = Plan {
        repetitions: 3,
        ..Plan::new("test", tests)
    };
    let engine = FakeEngine::new();
    let request = RunRequest {
        plan: &plan,
        engine: &engine,
        recorder: &history,
        needs: &|_| None,
        stop: &Stop::new(),
    };
    run(request, &lease, &mut |_| {}).await.unwrap();
    history
}
