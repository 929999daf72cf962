use std::sync::Arc;

use twospeed_library::FileType;
use twospeed_views::frame::AppEvent;
use twospeed_views::measure::{PlanRequest, RunStep, Tests};
use twospeed_views::models::Place;

use crate::{Window, row, write_model};

async fn measure(window: &Window, model: &str) {
    let request = PlanRequest {
        models: vec![model.to_owned()],
        tests: Tests::Quick,
        threads: None,
    };
    window.app.start_run(request).await.unwrap();
    let (say, mut heard) = tokio::sync::watch::channel(false);
    let tell = Arc::new(move |event: twospeed_views::measure::RunEvent| {
        if let RunStep::Ended { .. } = event.step {
            say.send_replace(true);
        }
    });
    let app = window.app.clone();
    tokio::spawn(async move { app.follow_run(tell).await });
    heard.wait_for(|ended| *ended).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_measured_stands_with_its_file_wherever_that_is_moved() {
    let mut window = Window::new().await;
    write_model(
        &window.path("models/small.gguf"),
        "Small One",
        FileType::Q8_0,
    );
    window.app.start().await.unwrap();
    let folder = window.path("models").to_string_lossy().into_owned();
    window.app.add_path(folder).await.unwrap();
    let id = row(&window.scanned().await, "Small One", "Q8_0").id.clone();
    measure(&window, &id).await;

    let engine = window.hear(|event| match event {
        AppEvent::Machine { machine } => machine.engine.clone(),
        _ => None,
    });
    assert!(engine.await.contains("llama.cpp "));
    let mut view = window.app.models().await.unwrap();
    for _ in 0..500 {
        if row(&view, "Small One", "Q8_0").decode.is_some() {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        view = window.app.models().await.unwrap();
    }
    let found = row(&view, "Small One", "Q8_0");
    let (prefill, decode) = (
        found.prefill.as_ref().unwrap(),
        found.decode.as_ref().unwrap(),
    );
    assert_eq!(
        (prefill.tokens, prefill.samples.len(), prefill.depth),
        (512, 3, 0)
    );
    assert_eq!((decode.tokens, decode.samples.len()), (128, 3));
    assert!(prefill.mean > decode.mean);

    // Under another name: the content is the same.
    std::fs::rename(
        window.path("models/small.gguf"),
        window.path("models/moved.gguf"),
    )
    .unwrap();
    window.app.scan().await.unwrap();
    window.scanned().await;
    window
        .hear(|event| matches!(event, AppEvent::ModelsChanged).then_some(()))
        .await;
    for _ in 0..500 {
        let view = window.app.models().await.unwrap();
        let found = row(&view, "Small One", "Q8_0");
        if found.id != id && found.decode.is_some() {
            assert_eq!(found.decode.as_ref(), Some(decode));
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    panic!("the speed was lost with the name");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_built_in_model_is_made_when_a_plan_with_it_is_asked_for() {
    let mut window = Window::new().await;
    window.app.start().await.unwrap();
    let view = window.scanned().await;
    let id = view
        .groups
        .iter()
        .find(|group| group.synthetic)
        .unwrap()
        .rows[0]
        .id
        .clone();
    let request = PlanRequest {
        models: vec![id.clone()],
        tests: Tests::Quick,
        threads: Some(1),
    };
    let plan = window.app.plan(request).await.unwrap();
    assert_eq!((plan.rows.len(), plan.hindrances.len()), (2, 0), "{plan:?}");
    window
        .hear(|event| matches!(event, AppEvent::Job { job } if job.row == id).then_some(()))
        .await;
    let view = window.app.models().await.unwrap();
    let mut rows = view.groups.iter().flat_map(|group| &group.rows);
    assert_eq!(rows.find(|row| row.id == id).unwrap().place, Place::OnDisk);
}
