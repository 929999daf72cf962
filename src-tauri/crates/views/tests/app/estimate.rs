use std::fs;
use std::sync::Arc;

use twospeed_engine::FakeEngine;
use twospeed_engine::protocol::Request;
use twospeed_library::FileType;
use twospeed_measure::Lease;
use twospeed_measure::lease::Attempt;
use twospeed_views::estimate::{
    CacheKind, EstimateAt, EstimateRequest, EstimateView, Instead, MemoryFrom,
};
use twospeed_views::frame::{AppEvent, SettingsChange};
use twospeed_views::jobs::{Job, JobKind, JobState};

use crate::{Window, row, write_model};

/// A window with one small model: one layer, 4 heads of 64, a vocabulary of 512; its row.
async fn with_a_model() -> (Window, Arc<FakeEngine>, String) {
    let engine = Arc::new(FakeEngine::new());
    let window = Window::with(engine.clone(), Arc::new(tempfile::tempdir().unwrap())).await;
    write_model(
        &window.path("models/small.gguf"),
        "Small One",
        FileType::Q8_0,
    );
    window.app.start().await.unwrap();
    let folder = window.path("models").to_string_lossy().into_owned();
    window.app.add_path(folder).await.unwrap();
    let view = window.scanned().await;
    let id = row(&view, "Small One", "Q8_0").id.clone();
    // The list asks the engine about it in the background.
    for _ in 0..500 {
        let view = window.app.models().await.unwrap();
        if row(&view, "Small One", "Q8_0").memory_source == MemoryFrom::Engine {
            return (window, engine, id);
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    panic!("the engine was never asked");
}

fn at(context: u32) -> EstimateAt {
    EstimateAt {
        context,
        users: 1,
        cache: "f16".into(),
        flash_attention: "auto".into(),
    }
}

async fn ask(window: &Window, of: &str, at: EstimateAt, exact: bool) -> EstimateView {
    let request = EstimateRequest {
        of: of.to_owned(),
        at,
        exact,
    };
    window.app.estimate(request).await.unwrap()
}

async fn code(window: &Window, of: &str, at: EstimateAt) -> String {
    let request = EstimateRequest {
        of: of.to_owned(),
        at,
        exact: false,
    };
    window.app.estimate(request).await.unwrap_err().code
}

fn foreseen(engine: &FakeEngine) -> usize {
    let requests = engine.requests();
    let asked = |request: &&Request| matches!(request, Request::Foresee(_));
    requests.iter().filter(asked).count()
}

#[tokio::test]
async fn the_engine_is_asked_once_for_each_settings_and_never_by_a_slider() {
    let (window, engine, id) = with_a_model().await;
    assert_eq!(foreseen(&engine), 1, "by the list");
    assert_eq!(
        ask(&window, &id, at(4096), false).await.memory.source,
        MemoryFrom::Engine,
        "the list's answer is everyone's"
    );
    // The header was read when the list was made: the file is not needed again.
    fs::rename(window.path("models/small.gguf"), window.path("away")).unwrap();
    for step in 17..80 {
        let said = ask(&window, &id, at(step * 256), false).await;
        assert_eq!(said.memory.source, MemoryFrom::Formula);
        // 2 x 256 values of 2 bytes a token.
        assert_eq!(said.memory.kv_bytes, Some(u64::from(step) * 256 * 1024));
        assert_eq!(said.memory.compute_bytes, None, "unknown is not zero");
        assert_eq!(said.memory.total_bytes, None);
    }
    assert_eq!(foreseen(&engine), 1);
    fs::rename(window.path("away"), window.path("models/small.gguf")).unwrap();

    let exact = ask(&window, &id, at(8192), true).await;
    assert_eq!(exact.memory.source, MemoryFrom::Engine);
    assert!(exact.memory.compute_bytes.is_some() && exact.memory.total_bytes.is_some());
    for exact in [true, false] {
        let again = ask(&window, &id, at(8192), exact).await;
        assert_eq!(again.memory.source, MemoryFrom::Engine);
    }
    assert_eq!(foreseen(&engine), 2);
}

#[tokio::test]
async fn nobody_is_asked_while_something_is_measured() {
    let (window, engine, id) = with_a_model().await;
    let now = jiff::Timestamp::now();
    let Ok(Attempt::Held(lease)) = Lease::try_acquire(&window.path("lease"), "bench", now) else {
        panic!("nobody else has it");
    };
    let said = ask(&window, &id, at(8192), true).await;
    assert_eq!(said.memory.source, MemoryFrom::Formula);
    assert_eq!(foreseen(&engine), 1);
    drop(lease);
    let said = ask(&window, &id, at(8192), true).await;
    assert_eq!(said.memory.source, MemoryFrom::Engine);
}

#[tokio::test]
async fn the_cache_comes_with_its_formula_and_speeds_with_their_depths() {
    let (window, _, id) = with_a_model().await;
    let said = ask(&window, &id, at(8192), false).await;
    let [part] = &said.cache[..] else {
        panic!("{:?}", said.cache);
    };
    assert_eq!(
        (part.kind, part.layers, part.cells),
        (CacheKind::Full, 1, 8192)
    );
    assert_eq!(part.kv_heads, Some(4));
    assert_eq!(
        (part.key_elements, part.value_elements),
        (Some(256), Some(256))
    );
    assert_eq!(part.cell_bytes, 1024.0);
    assert_eq!(Some(part.bytes), said.memory.kv_bytes);
    // 512 logits of 4 bytes.
    assert_eq!(said.memory.output_bytes, Some(2048));
    let depths = |said: &EstimateView| -> Vec<u32> {
        said.speeds.iter().map(|speeds| speeds.depth).collect()
    };
    // 8,192 without the 512 that are read behind it.
    assert_eq!(depths(&said), [0, 7680]);
    let four = EstimateAt {
        users: 4,
        cache: "q8_0".into(),
        ..at(8192)
    };
    let said = ask(&window, &id, four, false).await;
    assert_eq!(depths(&said), [0, 1536], "each of four has 2,048");
    // 256 values are 8 blocks of 34 bytes, for K and for V.
    assert_eq!(said.memory.kv_bytes, Some(8192 * 2 * 8 * 34));
    assert_eq!(said.memory.output_bytes, Some(4 * 2048));
    assert_eq!(depths(&ask(&window, &id, at(256), false).await), [0]);
    let speeds = &said.speeds[0];
    assert_eq!(
        (speeds.prefill, speeds.decode),
        (None, None),
        "not calibrated"
    );
    assert_eq!(said.basis.why_not.as_deref(), Some("not calibrated"));
}

#[tokio::test]
async fn settings_that_cannot_be_are_refused_in_a_sentence() {
    let (window, _, id) = with_a_model().await;
    let bad = [
        EstimateAt {
            users: 0,
            ..at(4096)
        },
        EstimateAt {
            users: 257,
            ..at(4096)
        },
        at(0),
        EstimateAt {
            cache: "q9".into(),
            ..at(4096)
        },
        EstimateAt {
            flash_attention: "perhaps".into(),
            ..at(4096)
        },
    ];
    for bad in bad {
        assert_eq!(code(&window, &id, bad).await, "settings_impossible");
    }
    assert_eq!(code(&window, "nobody", at(4096)).await, "row_unknown");
    // What the engine would refuse is no failure of asking.
    let refused = EstimateAt {
        cache: "q8_0".into(),
        flash_attention: "off".into(),
        ..at(4096)
    };
    let said = ask(&window, &id, refused, false).await;
    assert!(said.refused.unwrap().contains("needs flash attention"));
    assert_eq!((said.memory.kv_bytes, said.cache.len()), (None, 0));
}

#[tokio::test]
async fn what_does_not_fit_comes_with_what_would() {
    let (window, _, id) = with_a_model().await;
    // 2^31 - 1 tokens of 1,024 bytes each: 2 TiB.
    let said = ask(&window, &id, at(i32::MAX as u32), false).await;
    assert_eq!(said.memory.fits, Some(false));
    let free = said.memory.free_bytes.unwrap();
    let tokens = said
        .memory
        .instead
        .iter()
        .find_map(|instead| match instead {
            Instead::Context { tokens } => Some(*tokens),
            _ => None,
        });
    let tokens = u64::from(tokens.unwrap());
    assert!(
        tokens * 1024 < free && (tokens + 1024) * 1024 > free / 2,
        "{tokens} of {free}"
    );
}

#[tokio::test]
async fn a_quantization_that_is_not_made_yet_is_estimated_by_the_header_it_will_have() {
    let (window, engine, id) = with_a_model().await;
    let view = window.app.models().await.unwrap();
    let made = row(&view, "Small One", "Q4_K_M").clone();
    let source = ask(&window, &id, at(4096), false).await;
    let before = foreseen(&engine);
    let said = ask(&window, &made.id, at(4096), true).await;
    assert_eq!(
        said.memory.source,
        MemoryFrom::Formula,
        "there is no file to ask about"
    );
    assert_eq!(foreseen(&engine), before);
    assert!(said.memory.weights_bytes < source.memory.weights_bytes);
    assert!(said.weight_bytes_per_token < source.weight_bytes_per_token);
    let offer = view
        .groups
        .iter()
        .flat_map(|group| &group.rows)
        .find(|row| row.id.starts_with("get:"));
    let offer = offer.unwrap().id.clone();
    assert_eq!(code(&window, &offer, at(4096)).await, "header_unknown");
}

fn ended(event: &AppEvent, kind: JobKind) -> Option<Job> {
    match event {
        AppEvent::Job { job } if job.kind == kind => match job.state {
            JobState::Waiting { .. } | JobState::Running { .. } => None,
            _ => Some(job.clone()),
        },
        _ => None,
    }
}

#[tokio::test]
async fn after_a_calibration_speeds_are_predicted_until_threads_change() {
    let (mut window, _, id) = with_a_model().await;
    assert_eq!(window.app.calibration().await.unwrap(), None);
    let job = window.app.calibrate().await.unwrap();
    assert_eq!(
        window.app.calibrate().await.unwrap().id,
        job.id,
        "it is made once"
    );
    let done = window.hear(|event| ended(event, JobKind::Calibrate)).await;
    assert!(
        matches!(done.state, JobState::Done { .. }),
        "{:?}",
        done.state
    );

    let calibration = window.app.calibration().await.unwrap().unwrap();
    assert_eq!(calibration.does_not_hold, None);
    assert!(!calibration.reads.is_empty());
    assert!(calibration.reads.is_sorted_by_key(|read| read.buffer_bytes));
    let q8_0 = calibration
        .rates
        .iter()
        .find(|rate| rate.tensor_type == "Q8_0");
    assert!(q8_0.unwrap().far_bytes_s.is_some() && q8_0.unwrap().flops_s.is_some());
    let machine = window.app.start().await.unwrap().machine;
    assert_eq!(
        machine.calibrated_at.as_deref(),
        Some(calibration.at.as_str())
    );

    let said = ask(&window, &id, at(4096), false).await;
    assert_eq!(
        said.basis.calibrated.as_ref().unwrap().threads,
        calibration.threads
    );
    for speeds in &said.speeds {
        for speed in [speeds.prefill.unwrap(), speeds.decode.unwrap()] {
            assert!(0.0 < speed.low && speed.low <= speed.tok_s && speed.tok_s <= speed.high);
        }
    }
    let all: f64 = said.decode_parts.iter().map(|part| part.share).sum();
    assert!((all - 1.0).abs() < 1e-9, "{:?}", said.decode_parts);
    let view = window.app.models().await.unwrap();
    let listed = row(&view, "Small One", "Q8_0");
    assert_eq!(
        listed.decode_expected, said.speeds[0].decode,
        "one answer for every screen"
    );
    assert_eq!(
        (&listed.prefill, &listed.decode),
        (&None, &None),
        "it was not measured"
    );
    assert!(row(&view, "Small One", "Q4_K_M").prefill_expected.is_some());

    let settings = window.app.change_settings(SettingsChange::default());
    if settings.await.unwrap().most_threads < 2 {
        return;
    }
    let other = if calibration.threads == 1 { 2 } else { 1 };
    let change = SettingsChange {
        threads: Some(other),
        ..SettingsChange::default()
    };
    window.app.change_settings(change).await.unwrap();
    let calibration = window.app.calibration().await.unwrap().unwrap();
    assert!(
        calibration
            .does_not_hold
            .unwrap()
            .contains("not calibrated for")
    );
    let said = ask(&window, &id, at(4096), false).await;
    assert_eq!(said.basis.calibrated, None);
    assert_eq!(said.speeds[0].decode, None);
}

#[tokio::test]
async fn a_header_that_is_not_in_the_list_is_looked_at_and_its_twin_measured() {
    let (mut window, _, id) = with_a_model().await;
    let listed = window
        .path("models/small.gguf")
        .to_string_lossy()
        .into_owned();
    let looked = window.app.look(listed).await.unwrap();
    assert_eq!((looked.id, looked.is_row), (id, true));

    write_model(
        &window.path("other/large.gguf"),
        "Another One",
        FileType::F16,
    );
    let path = window
        .path("other/large.gguf")
        .to_string_lossy()
        .into_owned();
    let looked = window.app.look(format!("  {path} ")).await.unwrap();
    assert_eq!(
        (looked.name.as_str(), looked.quantization.as_str()),
        ("Another One", "F16")
    );
    assert_eq!((looked.layers, looked.fetched_bytes), (Some(1), None));
    assert!(!looked.is_row);
    let before = window.app.models().await.unwrap().groups.len();
    assert_eq!(ask(&window, &looked.id, at(4096), false).await.twin, None);

    window.app.twin(looked.id.clone()).await.unwrap();
    let done = window.hear(|event| ended(event, JobKind::Twin)).await;
    assert_eq!(
        done.state,
        JobState::Done {
            row: looked.id.clone()
        }
    );
    assert_eq!(done.title, "Another One F16");
    let twin = ask(&window, &looked.id, at(4096), false)
        .await
        .twin
        .unwrap();
    assert_eq!(
        (&twin.layers[..], twin.of_layers),
        (&[1][..], 1),
        "the whole of a small model"
    );
    assert!(twin.prefill.is_some() && twin.decode.is_some());
    let after = window.app.models().await.unwrap();
    assert_eq!(after.groups.len(), before, "nothing came into the list");
    assert!(
        after
            .groups
            .iter()
            .flat_map(|group| &group.rows)
            .all(|row| row.decode.is_none())
    );
}

#[tokio::test]
async fn a_twin_waits_for_a_measurement_and_can_be_cancelled_meanwhile() {
    let (mut window, _, id) = with_a_model().await;
    let now = jiff::Timestamp::now();
    let Ok(Attempt::Held(lease)) = Lease::try_acquire(&window.path("lease"), "bench", now) else {
        panic!("nobody else has it");
    };
    let job = window.app.twin(id.clone()).await.unwrap();
    let waits = window.hear(|event| match event {
        AppEvent::Job { job } => match &job.state {
            JobState::Waiting { why } => why.contains("bench").then(|| why.clone()),
            _ => None,
        },
        _ => None,
    });
    assert!(waits.await.contains("measurement"));
    window.app.cancel_job(job.id).await.unwrap();
    let ended = window.hear(|event| ended(event, JobKind::Twin)).await;
    assert_eq!(ended.state, JobState::Cancelled);
    drop(lease);
    assert_eq!(ask(&window, &id, at(4096), false).await.twin, None);
}

#[tokio::test]
async fn what_cannot_be_looked_at_is_said_in_a_sentence() {
    let window = Window::new().await;
    window.app.start().await.unwrap();
    fs::write(window.path("page.gguf"), "<html>").unwrap();
    let page = window.path("page.gguf").to_string_lossy().into_owned();
    for (source, code) in [
        ("", "path_unusable"),
        ("model.gguf", "path_unusable"),
        ("/nowhere/model.gguf", "file_unusable"),
        (page.as_str(), "file_unusable"),
        ("owner/name", "bad_address"),
        ("https://", "bad_address"),
    ] {
        let problem = window.app.look(source.into()).await.unwrap_err();
        assert_eq!(problem.code, code, "{source}: {}", problem.message);
        assert!(problem.message.ends_with('.'), "{}", problem.message);
    }
    assert_eq!(
        window.app.twin("nobody".into()).await.unwrap_err().code,
        "row_unknown"
    );
}
