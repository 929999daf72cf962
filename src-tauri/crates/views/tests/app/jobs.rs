use std::fs;
use std::sync::Arc;
use std::time::Duration;

use twospeed_engine::FakeEngine;
use twospeed_engine::fake::Script;
use twospeed_engine::protocol::{Event, Quantized, Request};
use twospeed_library::FileType;
use twospeed_measure::Lease;
use twospeed_measure::lease::Attempt;
use twospeed_views::frame::AppEvent;
use twospeed_views::jobs::{Job, JobKind, JobState};
use twospeed_views::models::Place;

use crate::{Window, row, write_model};

/// An engine that quantizes: it writes the small model anew in the type that was asked for.
fn quantizes(takes: Duration) -> Arc<FakeEngine> {
    let engine = FakeEngine::new().answers(move |asked| {
        let Request::Quantize(quantize) = asked.request else {
            return None;
        };
        let types = FileType::makeable();
        let file_type = types
            .into_iter()
            .find(|one| one.id() == quantize.file_type)
            .unwrap();
        write_model(&quantize.output.0, "Small One", file_type);
        let mut script = Script::new();
        for done in 0..12 {
            script = script
                .wait(takes / 12)
                .say(Event::QuantizeProgress { done, tensors: 12 });
        }
        Some(script.say(Event::Quantized(Quantized {
            ns: 1,
            fallbacks: Some(0),
        })))
    });
    Arc::new(engine)
}

async fn with_a_model(takes: Duration) -> (Window, String) {
    let window = Window::with(quantizes(takes), Arc::new(tempfile::tempdir().unwrap())).await;
    write_model(
        &window.path("models/small-Q8_0.gguf"),
        "Small One",
        FileType::Q8_0,
    );
    window.app.start().await.unwrap();
    let folder = window.path("models").to_string_lossy().into_owned();
    window.app.add_path(folder).await.unwrap();
    let view = window.scanned().await;
    let id = row(&view, "Small One", "Q4_K_M").id.clone();
    (window, id)
}

fn of_job(event: &AppEvent) -> Option<Job> {
    match event {
        AppEvent::Job { job } => Some(job.clone()),
        _ => None,
    }
}

fn is_ended(event: &AppEvent) -> Option<Job> {
    of_job(event).filter(|job| {
        !matches!(
            job.state,
            JobState::Waiting { .. } | JobState::Running { .. }
        )
    })
}

#[tokio::test]
async fn another_quantization_is_made_with_one_click() {
    let (mut window, id) = with_a_model(Duration::from_millis(600)).await;
    let job = window.app.make(id.clone()).await.unwrap();
    assert_eq!((job.title.as_str(), &job.row), ("Small One Q4_K_M", &id));
    let twice = window.app.make(id.clone()).await.unwrap();
    assert_eq!(twice.id, job.id, "it is not made twice");
    assert_eq!(window.app.start().await.unwrap().jobs.len(), 1);

    let ended = window.hear(is_ended).await;
    let JobState::Done { row: made } = &ended.state else {
        panic!("{:?}", ended.state);
    };
    let view = window.app.models().await.unwrap();
    let there = row(&view, "Small One", "Q4_K_M");
    assert_eq!((&there.id, &there.place), (made, &Place::OnDisk));
    assert_eq!(there.hindrance, None);
    assert_eq!(there.file.as_deref(), Some("small-Q4_K_M.gguf"));
    assert!(window.path("models/small-Q4_K_M.gguf").exists());
    assert!(window.app.start().await.unwrap().jobs.is_empty());

    // At most about ten a second while it went, the first and the last always.
    let fractions: Vec<f64> = window
        .heard
        .borrow()
        .iter()
        .filter_map(of_job)
        .filter_map(|job| match job.state {
            JobState::Running { fraction, .. } => fraction,
            _ => None,
        })
        .collect();
    assert_eq!(
        (fractions[0], fractions[fractions.len() - 1]),
        (0.0, 1.0),
        "{fractions:?}"
    );
    assert!(
        fractions.is_sorted() && fractions.len() <= 9,
        "{fractions:?}"
    );
    // The list had its row before the job was said to be done.
    let heard = window.heard.borrow().clone();
    let done = heard
        .iter()
        .position(|event| is_ended(event).is_some())
        .unwrap();
    assert!(heard[..done].contains(&AppEvent::ModelsChanged));
    // And the next scan finds it again.
    window.app.scan().await.unwrap();
    assert_eq!(
        row(&window.scanned().await, "Small One", "Q4_K_M").place,
        Place::OnDisk
    );
}

#[tokio::test]
async fn a_job_waits_for_a_measurement_and_can_be_cancelled_meanwhile() {
    let (mut window, id) = with_a_model(Duration::ZERO).await;
    let now = jiff::Timestamp::now();
    let Ok(Attempt::Held(lease)) = Lease::try_acquire(&window.path("lease"), "bench", now) else {
        panic!("nobody else has it");
    };
    let job = window.app.make(id.clone()).await.unwrap();
    let why = window.hear(|event| match of_job(event)?.state {
        JobState::Waiting { why } => why.contains("measurement").then_some(why),
        _ => None,
    });
    assert!(why.await.contains("bench"));
    window.app.cancel_job(job.id.clone()).await.unwrap();
    let ended = window.hear(is_ended).await;
    assert_eq!(ended.state, JobState::Cancelled);
    drop(lease);
    let names: Vec<_> = fs::read_dir(window.path("models")).unwrap().collect();
    assert_eq!(names.len(), 1, "nothing is left of it");
    window.app.cancel_job(job.id).await.unwrap();

    // Again, and now it has its turn.
    window.app.make(id).await.unwrap();
    window
        .hear(|event| is_ended(event).filter(|job| matches!(job.state, JobState::Done { .. })))
        .await;
}

#[tokio::test]
async fn cancelling_at_work_leaves_nothing_behind() {
    let (mut window, id) = with_a_model(Duration::from_secs(60)).await;
    let job = window.app.make(id).await.unwrap();
    window
        .hear(|event| matches!(of_job(event)?.state, JobState::Running { .. }).then_some(()))
        .await;
    window.app.cancel_job(job.id).await.unwrap();
    assert_eq!(window.hear(is_ended).await.state, JobState::Cancelled);
    assert_eq!(fs::read_dir(window.path("models")).unwrap().count(), 1);
}

#[tokio::test]
async fn jobs_take_turns_and_a_worker_that_dies_is_said() {
    let engine = FakeEngine::new().answers(|asked| {
        let dies = matches!(asked.request, Request::Quantize(_));
        dies.then(|| Script::new().die(twospeed_engine::How::OutOfMemory))
    });
    let mut window = Window::with(Arc::new(engine), Arc::new(tempfile::tempdir().unwrap())).await;
    write_model(
        &window.path("models/small-Q8_0.gguf"),
        "Small One",
        FileType::Q8_0,
    );
    window.app.start().await.unwrap();
    let folder = window.path("models").to_string_lossy().into_owned();
    window.app.add_path(folder).await.unwrap();
    let view = window.scanned().await;
    for label in ["Q4_K_M", "Q4_0"] {
        let id = row(&view, "Small One", label).id.clone();
        window.app.make(id).await.unwrap();
    }
    let mut seen = window.heard.clone();
    let both = seen.wait_for(|heard| heard.iter().filter_map(is_ended).count() == 2);
    let heard = tokio::time::timeout(Duration::from_secs(30), both)
        .await
        .unwrap()
        .unwrap()
        .clone();
    for job in heard.iter().filter_map(is_ended) {
        let JobState::Failed { problem } = job.state else {
            panic!("{:?}", job.state);
        };
        assert_eq!(problem.code, "engine_out_of_memory");
    }
    window.hear(is_ended).await;
    assert!(window.app.start().await.unwrap().jobs.is_empty());
}

#[tokio::test]
async fn the_built_in_model_is_made_in_its_place() {
    let mut window = Window::new().await;
    window.app.start().await.unwrap();
    let view = window.scanned().await;
    let before = view
        .groups
        .iter()
        .find(|group| group.synthetic)
        .unwrap()
        .rows[0]
        .id
        .clone();
    window.app.make(before.clone()).await.unwrap();
    let ended = window.hear(is_ended).await;
    assert_eq!(
        ended.state,
        JobState::Done {
            row: before.clone()
        },
        "a plan with it stays true"
    );
    let view = window.app.models().await.unwrap();
    let rows = &view
        .groups
        .iter()
        .find(|group| group.synthetic)
        .unwrap()
        .rows;
    let there = rows.iter().find(|row| row.id == before).unwrap();
    assert_eq!(there.place, Place::OnDisk);
    assert!(rows.len() > 1, "others can be made of it now");
}

#[tokio::test]
async fn a_row_that_is_gone_or_there_is_not_made() {
    let (window, id) = with_a_model(Duration::ZERO).await;
    for (row, code) in [
        ("make:0000000000000000:Q4_0", "row_unknown"),
        ("nonsense", "row_unknown"),
        ("make:", "row_unknown"),
        (&id.replace("Q4_K_M", "Q8_0"), "row_unknown"),
        (id.split(':').nth(1).unwrap(), "row_is_there"),
    ] {
        assert_eq!(
            window.app.make(row.into()).await.unwrap_err().code,
            code,
            "{row}"
        );
    }
}

#[tokio::test]
async fn the_read_speed_is_measured_on_request_and_the_chip_knows() {
    let mut window = Window::new().await;
    window.app.start().await.unwrap();
    let job = window.app.calibrate().await.unwrap();
    assert_eq!(job.kind, JobKind::Calibrate);
    let ended = window.hear(is_ended).await;
    assert!(matches!(ended.state, JobState::Done { .. }), "{ended:?}");
    let card = window.app.start().await.unwrap().machine;
    assert!(card.read_bytes_s.is_some() && card.read_at.is_some());
    assert!(card.calibrated_at.is_some());
    let view = window.scanned().await;
    let builtin = &view
        .groups
        .iter()
        .find(|group| group.synthetic)
        .unwrap()
        .rows[0];
    assert!(builtin.decode_ceiling.is_some() && builtin.decode_expected.is_some());
}
