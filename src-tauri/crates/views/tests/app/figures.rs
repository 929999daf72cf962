//! The figures of Compare beside speeds, over results of every kind.

use std::fs;

use jiff::Timestamp;
use twospeed_engine::protocol::{Ability, PageCache};
use twospeed_engine::settings::ModelPath;
use twospeed_engine::{FakeEngine, Settings, TestSpec};
use twospeed_measure::model::MeasuredModel;
use twospeed_measure::plan::Order;
use twospeed_measure::{Kind, Lease, Plan, PlannedTest, Stop};
use twospeed_views::compare::*;
use twospeed_views::frame::AppEvent;
use twospeed_workbench::RunRequest;

use crate::Window;
use crate::compare::{asked, export, history};

fn model(quantization: &str, file_bytes: u64) -> MeasuredModel {
    MeasuredModel {
        fingerprint: format!("content of {quantization}"),
        path: ModelPath(format!("/models/Small-{quantization}.gguf").into()),
        name: "Small".into(),
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

/// Runs tests of these kinds into the window's history.
async fn run(
    window: &Window,
    model: &MeasuredModel,
    tests: &[(Kind, (u32, u32, u32))],
    order: Order,
) {
    let tests = tests
        .iter()
        .map(|(kind, (n_prompt, n_gen, n_depth))| PlannedTest {
            model: model.clone(),
            settings: Settings {
                n_threads: 2,
                ..Settings::default()
            },
            spec: TestSpec {
                n_prompt: *n_prompt,
                n_gen: *n_gen,
                n_depth: *n_depth,
            },
            kind: kind.clone(),
            variant: None,
        });
    let plan = Plan {
        repetitions: 2,
        order,
        ..Plan::new("test", tests.collect())
    };
    let place = window.path("another lease");
    let lease = Lease::acquire(&place, "test", Timestamp::now, |_| {})
        .await
        .unwrap();
    let history = history(window).await;
    let request = RunRequest {
        plan: &plan,
        engine: &FakeEngine::new(),
        recorder: &history,
        needs: &|_| None,
        stop: &Stop::new(),
    };
    twospeed_workbench::run(request, &lease, &mut |_| {})
        .await
        .unwrap();
}

/// A window with something measured for every figure.
async fn measured() -> Window {
    let window = Window::new().await;
    let (small, large) = (model("Q4_0", 92_000_000), model("Q8_0", 145_000_000));
    let users = |users| Kind::Users {
        users,
        split_kv: false,
        shared_prompt: false,
    };
    let quality = Kind::Quality {
        n_ctx: 512,
        text: None,
        base: Some(Box::new(large.clone())),
    };
    let first = |page_cache| (Kind::FirstToken { page_cache }, (512, 16, 0));
    let speeds = [(Kind::Speed, (512, 0, 0)), (Kind::Speed, (0, 64, 0))];
    let deep = [(Kind::Speed, (512, 0, 1024)), (Kind::Speed, (0, 64, 1024))];
    let others = [
        (users(1), (128, 32, 0)),
        (users(4), (128, 32, 0)),
        first(PageCache::Drop),
        first(PageCache::Warm),
        (Kind::PrefixCache { changed: 32 }, (512, 16, 0)),
        (quality, (4096, 0, 0)),
    ];
    let all = [&speeds[..], &deep[..], &others[..]].concat();
    run(&window, &small, &all, Order::OneByOne).await;
    run(&window, &large, &speeds, Order::OneByOne).await;
    run(&window, &small, &speeds, Order::Sustained { seconds: 1 }).await;
    window
}

const OTHERS: [FigureName; 5] = [
    FigureName::Context,
    FigureName::Users,
    FigureName::FirstToken,
    FigureName::Quantization,
    FigureName::Sustained,
];

/// The results of a figure.
async fn results_of(window: &Window, figure: FigureName) -> Vec<ResultRow> {
    let view = window.app.results().await.unwrap();
    let other = view
        .others
        .into_iter()
        .find(|other| other.figure == figure)
        .unwrap();
    other
        .groups
        .into_iter()
        .flat_map(|group| group.rows)
        .collect()
}

fn ids(rows: &[ResultRow]) -> Vec<String> {
    rows.iter().map(|row| row.id.clone()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_results_every_other_figure_is_offered_empty() {
    let window = Window::new().await;
    let view = window.app.results().await.unwrap();
    let figures: Vec<_> = view.others.iter().map(|other| other.figure).collect();
    assert_eq!(figures, OTHERS);
    assert!(view.others.iter().all(|other| other.groups.is_empty()));
    for figure in OTHERS {
        let request = FigureRequest {
            figure,
            ..asked(&["nonsense".to_owned()], None)
        };
        let problem = window.app.figure(request).await.unwrap_err();
        assert_eq!(problem.code, "nothing_to_draw");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_figure_is_drawn_explained_and_saved_in_every_form() {
    let window = measured().await;
    for (figure, kind, rows) in [
        (FigureName::Context, "context", 1),
        (FigureName::Users, "users", 1),
        // Cold, warm, new, repeated, changed.
        (FigureName::FirstToken, "first_token", 5),
        (FigureName::Quantization, "quantization", 2),
        (FigureName::Sustained, "sustained", 1),
    ] {
        let results = ids(&results_of(&window, figure).await);
        let request = FigureRequest {
            figure,
            ..asked(&results, None)
        };
        let view = window.app.figure(request.clone()).await.unwrap();
        assert_eq!(view.data.kind, kind);
        assert!(
            view.row_results.len() >= rows,
            "{kind}: {:?}",
            view.row_results
        );
        assert_eq!(view.row_results.len(), view.data.rows.len(), "{kind}");
        assert!(
            view.row_results.iter().all(|id| results.contains(id)),
            "{kind}"
        );
        assert!(!view.statements.is_empty(), "{kind} is explained");
        assert!(!view.has_ceiling, "{kind}");
        let words = kind.replace('_', " ");
        assert!(view.save_as.ends_with(&words), "{}", view.save_as);
        for form in [
            Form::Svg,
            Form::Png,
            Form::Pdf,
            Form::Csv,
            Form::Markdown,
            Form::Json,
        ] {
            let export = ExportRequest {
                figure,
                ..export(&results, form, &window.path(kind))
            };
            let saved = window.app.export(export).await.unwrap();
            let bytes = fs::read(&saved.path).unwrap();
            let begins: &[u8] = match form {
                Form::Svg => b"<svg",
                Form::Png => b"\x89PNG",
                Form::Pdf => b"%PDF",
                Form::Markdown => b"|",
                Form::Json => b"{",
                Form::Csv => b"",
            };
            assert!(bytes.starts_with(begins), "{kind} as {form:?}");
            assert!(bytes.len() > 100, "{kind} as {form:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn numbers_of_a_figure_are_those_of_its_kind() {
    let window = measured().await;
    let saved = async |figure, form| {
        let results = ids(&results_of(&window, figure).await);
        let request = ExportRequest {
            figure,
            ..export(&results, form, &window.path("numbers"))
        };
        let path = window.app.export(request).await.unwrap().path;
        let text = fs::read_to_string(&path).unwrap();
        fs::remove_file(path).unwrap();
        text
    };
    let users = saved(FigureName::Users, Form::Csv).await;
    // A head and a line for each sample: two of one user, two of four.
    assert_eq!(
        users.lines().filter(|line| !line.is_empty()).count(),
        5,
        "{users}"
    );
    let context = saved(FigureName::Context, Form::Csv).await;
    assert!(
        context.starts_with("build_commit,"),
        "llama-bench's columns: {context}"
    );
    let quality = saved(FigureName::Quantization, Form::Markdown).await;
    assert!(
        quality.contains("tg64") && quality.contains("18.5"),
        "speeds and quality: {quality}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_focused_row_is_the_one_that_is_explained() {
    let window = measured().await;
    let results = ids(&results_of(&window, FigureName::Quantization).await);
    let figure = async |focus: Option<&str>| {
        let request = FigureRequest {
            figure: FigureName::Quantization,
            ..asked(&results, focus)
        };
        window.app.figure(request).await.unwrap()
    };
    let first = figure(None).await;
    // 18.5 against 17.9 of the base, the larger file.
    let cost = first
        .statements
        .iter()
        .find_map(|statement| match statement {
            Statement::QualityCost {
                perplexity_more, ..
            } => Some(*perplexity_more),
            _ => None,
        });
    assert!((cost.unwrap() - (18.5 / 17.9 - 1.0)).abs() < 1e-12);
    let last = figure(first.row_results.last().map(String::as_str)).await;
    assert_ne!(first.statements, last.statements);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_without_a_speed_is_a_result_of_its_own_figure() {
    let window = Window::new().await;
    let kind = Kind::PrefixCache { changed: 32 };
    run(
        &window,
        &model("Q4_0", 92_000_000),
        &[(kind, (512, 16, 0))],
        Order::OneByOne,
    )
    .await;
    let view = window.app.results().await.unwrap();
    assert!(view.groups.is_empty() && view.runs.is_empty());
    let rows = results_of(&window, FigureName::FirstToken).await;
    assert_eq!(rows[0].differs, "prompt 512");
    let page = window.app.run_page(rows[0].run.clone()).await.unwrap();
    let test = &page.tests[0];
    assert_eq!(
        (test.name.as_str(), test.phase, test.mean),
        ("prefix-cache pp512 tail32", None, None)
    );
    let reused = test
        .readings
        .iter()
        .find(|pair| pair.name == "Repeated: taken from the cache");
    assert_eq!(
        reused.unwrap().value.as_deref(),
        Some("511 of 512\u{a0}tokens")
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_result_that_cannot_be_right_is_shown_once_it_is_allowed() {
    let mut window = Window::new().await;
    // 10^6 tokens per second with 4.6 GB of weights would read 4.6 PB/s.
    let row = r#"[{"model_filename":"a.gguf","model_type":"llama 8B Q4_K","model_size":4600000000,
        "model_n_params":8000000000,"n_prompt":0,"n_gen":128,"n_depth":0,"avg_ts":1000000.0,
        "stddev_ts":1.0,"avg_ns":128000,"stddev_ns":1,"test_time":"2026-11-30T14:00:00Z"}]"#;
    let imported = history(&window)
        .await
        .import(row.into(), Timestamp::now())
        .await
        .unwrap();
    let flagged = &imported.flagged[0];
    assert!(window.app.results().await.unwrap().groups.is_empty());
    let page = window.app.run_page(flagged.run.to_string()).await.unwrap();
    let test = &page.tests[0];
    assert!(test.suspect.as_ref().unwrap().ends_with('.') && !test.allowed);
    window.app.allow_test(test.id.clone(), true).await.unwrap();
    window
        .hear(|event| matches!(event, AppEvent::ResultsChanged).then_some(()))
        .await;
    assert_eq!(window.app.results().await.unwrap().groups.len(), 1);
    assert!(window.app.run_page(page.id.clone()).await.unwrap().tests[0].allowed);
    window.app.allow_test(test.id.clone(), false).await.unwrap();
    assert!(window.app.results().await.unwrap().groups.is_empty());
    let problem = window
        .app
        .allow_test("nobody".into(), true)
        .await
        .unwrap_err();
    assert!(problem.message.ends_with('.'));
}
