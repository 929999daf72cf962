use std::fs;
use std::path::Path;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use twospeed_chart::{Figure, Frame, Overlays, PngSize, Theme};
use twospeed_engine::FakeEngine;
use twospeed_history::llama_bench::{self, Row};
use twospeed_history::{History, WholeRun};
use twospeed_measure::platform;
use twospeed_views::Problem;
use twospeed_views::compare::*;
use twospeed_views::frame::AppEvent;
use twospeed_views::measure::{RunStep, TestEnd};
use twospeed_workbench::{ReadSpeed, SpeedsOptions};

use crate::Window;
use crate::measure::{quick, run, with_models};

/// A window in which both models were measured; their results, the smaller file first.
pub(crate) async fn measured() -> (Window, Vec<String>) {
    let (window, rows) = with_models(FakeEngine::new()).await;
    let steps = run(&window, quick(&rows)).await;
    let Some(RunStep::Ended { results, .. }) = steps.last() else {
        panic!("{steps:?}");
    };
    (window, results.clone())
}

pub(crate) fn asked(results: &[String], focus: Option<&str>) -> FigureRequest {
    FigureRequest {
        figure: FigureName::Speeds,
        results: results.to_vec(),
        focus: focus.map(str::to_owned),
        ceiling: true,
        expected: false,
        breakdown: false,
        width: 640.0,
        height: None,
        scale: 1.0,
    }
}

pub(crate) fn export(results: &[String], form: Form, path: &Path) -> ExportRequest {
    ExportRequest {
        figure: FigureName::Speeds,
        results: results.to_vec(),
        ceiling: true,
        expected: false,
        breakdown: false,
        form,
        dark: false,
        width: 640.0,
        scale: 1.0,
        pixels: 2.0,
        path: path.to_string_lossy().into_owned(),
        replace: false,
    }
}

pub(crate) async fn history(window: &Window) -> History {
    History::open(&window.path("data")).await.unwrap()
}

async fn whole(window: &Window) -> Vec<WholeRun> {
    let runs = history(window).await.whole_runs(&Default::default()).await;
    runs.unwrap()
}

/// The figure as `twospeed chart speeds --overlay ceiling --run ID` draws it.
async fn drawn_by_the_command_line(window: &Window) -> Figure {
    let history = history(window).await;
    let read_speed = ReadSpeed::load(&history, &platform::machine())
        .await
        .unwrap();
    let options = SpeedsOptions {
        ceiling: &|machine, model| read_speed.decode_ceiling(machine, model),
        ceiling_source: &|models| read_speed.source(models),
        expected: &|_| None,
        expected_source: None,
        overlays: Overlays {
            ceiling: true,
            expected: false,
            breakdown: false,
        },
        time_zone: TimeZone::system(),
    };
    let speeds = twospeed_workbench::speeds(&whole(window).await, &options).unwrap();
    let frame = Frame {
        width: 640.0,
        ..Frame::default()
    };
    twospeed_chart::speeds(&speeds, &frame).unwrap()
}

fn code<T: std::fmt::Debug>(result: Result<T, Problem>) -> String {
    let problem = result.unwrap_err();
    assert!(problem.message.ends_with('.'), "{}", problem.message);
    problem.code
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_results_there_is_nothing_to_draw_and_that_is_said() {
    let window = Window::new().await;
    let view = window.app.results().await.unwrap();
    assert!(view.groups.is_empty() && view.runs.is_empty());
    for results in [vec![], vec!["nonsense".to_owned()]] {
        let figure = window.app.figure(asked(&results, None)).await;
        assert_eq!(code(figure), "nothing_to_draw");
        let request = export(&results, Form::Csv, &window.path("a.csv"));
        assert_eq!(code(window.app.export(request).await), "nothing_to_draw");
    }
    assert_eq!(code(window.app.run_page("x".into()).await), "unknown_run");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_figure_is_the_command_lines_and_its_rows_are_the_results() {
    let (window, results) = measured().await;
    let focus = results[1].as_str();
    let view = window
        .app
        .figure(asked(&results, Some(focus)))
        .await
        .unwrap();
    let theirs = drawn_by_the_command_line(&window).await;
    assert_eq!(view.svg, theirs.for_screen());
    assert_eq!(view.data, theirs.data);
    assert_eq!((view.width, view.height), (theirs.width(), theirs.height()));
    assert!(view.has_ceiling);
    assert_eq!(
        view.row_results, results,
        "the smaller file was measured first"
    );
    assert!(view.statements.len() >= 3, "more stand behind them");
    let listed = window.app.results().await.unwrap();
    let rows = &listed.groups[0].rows;
    let of_focus = rows.iter().find(|row| row.id == focus).unwrap();
    let (prefill, decode) = (
        of_focus.prefill.as_ref().unwrap(),
        of_focus.decode.as_ref().unwrap(),
    );
    assert!(
        matches!(view.statements[0], Statement::Ratio { prefill: p, decode: d, .. }
            if p == prefill.mean && d == decode.mean),
        "the numbers are the same in every place: {:?}",
        view.statements[0]
    );

    let plain = FigureRequest {
        ceiling: false,
        height: Some(900.0),
        scale: 1.5,
        ..asked(&results, None)
    };
    let without = window.app.figure(plain).await.unwrap();
    assert!(without.has_ceiling, "it could be drawn");
    assert!(!without.svg.contains("ceiling"));
    assert_ne!(
        without.statements, view.statements,
        "the first row is explained"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_result_of_a_run_shows_exactly_its_tests() {
    let (window, results) = measured().await;
    let view = window.app.figure(asked(&results[1..], None)).await.unwrap();
    assert_eq!(view.data.rows.len(), 1);
    assert_eq!(view.row_results, results[1..]);
    let path = window.path("one.csv");
    let request = export(&results[1..], Form::Csv, &path);
    window.app.export(request).await.unwrap();
    let text = fs::read_to_string(&path).unwrap();
    assert_eq!(
        text.lines().count(),
        3,
        "a heading, prefill, decode: {text}"
    );
    assert!(text.contains("a.F16.gguf") && !text.contains("a.Q8_0.gguf"));
}

/// Rows of the whole run as `twospeed export --run ID` writes them.
async fn exported_by_the_command_line(window: &Window, format: &str) -> String {
    let runs = whole(window).await;
    let rows: Vec<Row> = runs[0]
        .tests
        .iter()
        .filter_map(|test| {
            let samples: Vec<_> = test
                .samples
                .iter()
                .map(|record| record.sample.clone())
                .collect();
            Row::of(&test.record, test.end.as_ref()?, &samples)
        })
        .collect();
    let mut text = Vec::new();
    let mut format = llama_bench::format(format).unwrap();
    llama_bench::write(format.as_mut(), &rows, &mut text).unwrap();
    String::from_utf8(text).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_form_is_what_the_command_line_writes() {
    let (window, results) = measured().await;
    let figure = drawn_by_the_command_line(&window).await;
    let saved = async |form: Form, name: &str, dark: bool| {
        let request = ExportRequest {
            dark,
            ..export(&results, form, &window.path(name))
        };
        let exported = window.app.export(request).await.unwrap();
        let bytes = fs::read(&exported.path).unwrap();
        assert_eq!(exported.bytes, bytes.len() as u64);
        window.app.reveal(exported.path).await.unwrap();
        bytes
    };
    let svg = saved(Form::Svg, "light", false).await;
    assert_eq!(svg, figure.svg_for(Theme::Light).into_bytes());
    let svg = saved(Form::Svg, "dark.svg", true).await;
    assert_eq!(svg, figure.svg_for(Theme::Dark).into_bytes());
    let png = saved(Form::Png, "light", false).await;
    assert_eq!(
        png,
        figure.to_png(Theme::Light, PngSize::Scale(2.0)).unwrap()
    );
    assert!(saved(Form::Pdf, "page", false).await.starts_with(b"%PDF"));
    let csv = saved(Form::Csv, "numbers", false).await;
    assert_eq!(
        String::from_utf8(csv).unwrap(),
        exported_by_the_command_line(&window, "csv").await
    );
    let table = saved(Form::Markdown, "numbers", false).await;
    let table = String::from_utf8(table).unwrap();
    assert_eq!(table, exported_by_the_command_line(&window, "md").await);
    let json = saved(Form::Json, "numbers", false).await;
    let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
    assert_eq!(json["format"], "twospeed.results/1");
    let mut theirs = Vec::new();
    let ids = [whole(&window).await[0].run.id];
    let at: Timestamp = json["exported_at"].as_str().unwrap().parse().unwrap();
    history(&window)
        .await
        .export(&ids, at, &mut theirs)
        .await
        .unwrap();
    let theirs: serde_json::Value = serde_json::from_slice(&theirs).unwrap();
    assert_eq!(json, theirs);

    let request = || export(&results, Form::Svg, Path::new(""));
    window.app.copy(request(), CopyWhat::Table).await.unwrap();
    assert_eq!(
        window.desk.text.lock().unwrap().as_deref(),
        Some(table.as_str())
    );
    window.app.copy(request(), CopyWhat::Picture).await.unwrap();
    assert_eq!(
        window.desk.picture.lock().unwrap().as_deref(),
        Some(&png[..])
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_saved_is_said_and_what_was_there_stays() {
    let (window, results) = measured().await;
    let path = window.path("figure.svg");
    fs::write(&path, "mine").unwrap();
    let save = async |request: ExportRequest| window.app.export(request).await;
    let request = || export(&results, Form::Svg, &path);
    assert_eq!(code(save(request()).await), "file_exists");
    assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
    let replace = ExportRequest {
        replace: true,
        ..request()
    };
    save(replace).await.unwrap();
    assert!(fs::read_to_string(&path).unwrap().starts_with("<svg"));
    let missing = export(&results, Form::Svg, &window.path("no/such/a.svg"));
    assert_eq!(code(save(missing).await), "folder_missing");
    let nowhere = export(&results, Form::Svg, Path::new("figure"));
    assert_eq!(code(save(nowhere).await), "path_unusable");
    let huge = ExportRequest {
        pixels: 1000.0,
        ..export(&results, Form::Png, &window.path("huge.png"))
    };
    assert_eq!(code(save(huge).await), "picture_size");
    assert!(!window.path("huge.png").exists());
    let long = export(&results, Form::Svg, &window.path(&"x".repeat(300)));
    assert_eq!(code(save(long).await), "not_written");
    fs::create_dir_all(window.path("home")).unwrap();
    let at_home = export(&results, Form::Csv, Path::new("~/numbers"));
    save(at_home).await.unwrap();
    assert!(window.path("home/numbers.csv").exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_figure_is_suggested_a_place_among_the_persons_pictures() {
    let (window, results) = measured().await;
    let suggested = async || {
        let view = window.app.figure(asked(&results, None)).await.unwrap();
        view.save_as
    };
    let home = window.path("home");
    let at = |folder: &Path| {
        folder
            .join("Small One speeds")
            .to_string_lossy()
            .into_owned()
    };
    fs::create_dir_all(&home).unwrap();
    assert_eq!(suggested().await, at(&home));
    fs::create_dir(home.join("Documents")).unwrap();
    assert_eq!(suggested().await, at(&home.join("Documents")));
    fs::create_dir(home.join("Pictures")).unwrap();
    assert_eq!(suggested().await, at(&home.join("Pictures")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deleted_run_leaves_the_figure_and_comes_back_under_the_same_names() {
    let (mut window, results) = measured().await;
    let (_, second) = {
        let view = window.app.results().await.unwrap();
        let request = quick(&rows_of(&window).await[..1]);
        let steps = run(&window, request).await;
        let Some(RunStep::Ended { results, .. }) = steps.last() else {
            panic!("{steps:?}");
        };
        (view, results.clone())
    };
    let all: Vec<String> = results.iter().chain(&second).cloned().collect();
    let figure = window.app.figure(asked(&all, None)).await.unwrap();
    assert_eq!(figure.data.rows.len(), 3);
    let first_run = results[0].split('.').next().unwrap().to_owned();
    window
        .app
        .delete_runs(vec![first_run.clone()])
        .await
        .unwrap();
    window
        .hear(|event| matches!(event, AppEvent::ResultsChanged).then_some(()))
        .await;
    let figure = window.app.figure(asked(&all, Some(&all[0]))).await.unwrap();
    assert_eq!(figure.row_results, second, "the others stay");
    assert_eq!(
        code(window.app.figure(asked(&results, None)).await),
        "nothing_to_draw"
    );
    assert_eq!(
        code(window.app.run_page(first_run.clone()).await),
        "unknown_run"
    );
    window
        .app
        .restore_runs(vec![first_run.clone()])
        .await
        .unwrap();
    let figure = window.app.figure(asked(&results, None)).await.unwrap();
    assert_eq!(figure.row_results, results);
    let nobody = uuid::Uuid::now_v7().to_string();
    assert_eq!(
        code(window.app.delete_runs(vec![nobody]).await),
        "unknown_run"
    );

    window
        .app
        .set_note(first_run.clone(), " <b>quiet</b> evening ".into())
        .await
        .unwrap();
    let page = window.app.run_page(first_run).await.unwrap();
    assert_eq!(page.note, "<b>quiet</b> evening");
    let listed = window.app.results().await.unwrap();
    let noted = listed.groups[0].rows.iter().filter(|row| row.noted).count();
    assert_eq!(noted, 2);
}

async fn rows_of(window: &Window) -> Vec<String> {
    let view = window.scanned().await;
    let label = ["Q8_0", "F16"];
    label
        .map(|label| crate::row(&view, "Small One", label).id.clone())
        .into()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_runs_page_has_everything_that_is_known() {
    let (window, results) = measured().await;
    let id = results[0].split('.').next().unwrap().to_owned();
    let page = window.app.run_page(id).await.unwrap();
    assert_eq!(
        (page.origin.as_str(), page.preset.as_str()),
        ("Measured here", "Quick")
    );
    assert_eq!(page.status, "complete");
    assert_eq!(page.tests.len(), 4);
    let test = &page.tests[1];
    assert_eq!(
        (test.model.as_str(), test.name.as_str()),
        ("Small One Q8_0", "tg128")
    );
    assert_eq!(test.end, Some(TestEnd::Done));
    assert_eq!(test.samples.len(), 3);
    // By hand from the durations.
    for sample in &test.samples {
        let speed = 128.0 / (sample.ms / 1e3);
        assert!((sample.tokens_per_second.unwrap() - speed).abs() < 1e-6 * speed);
    }
    let value = |pairs: &[Pair], name: &str| {
        let pair = pairs.iter().find(|pair| pair.name == name);
        pair.unwrap_or_else(|| panic!("{name} is not there"))
            .value
            .clone()
    };
    assert_eq!(value(&test.settings, "n_threads").as_deref(), Some("2"));
    assert_eq!(value(&test.settings, "flash_attn").as_deref(), Some("auto"));
    assert_eq!(
        value(&test.environment, "Engine").as_deref(),
        Some("llama.cpp 11434")
    );
    assert_eq!(
        value(&test.environment, "Anchor before").as_deref(),
        Some("300\u{a0}ms")
    );
    assert_eq!(
        value(&test.environment, "Layers on a GPU"),
        None,
        "unknown is not 0"
    );
    assert_eq!(test.placement[0].name, "CPU_Mapped, weights");
    assert!(
        page.machine
            .iter()
            .any(|pair| pair.name == "CPU" && pair.value.is_some())
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_of_any_kind_are_drawn_listed_and_saved_as_text() {
    let window = Window::new().await;
    let long = "x".repeat(300);
    for (file, name) in [("1", "<img src=x onerror=alert(1)>"), ("2", long.as_str())] {
        let path = window.path("models").join(format!("{file}.gguf"));
        crate::write_model(&path, name, twospeed_library::FileType::Q8_0);
    }
    window.app.start().await.unwrap();
    let folder = window.path("models").to_string_lossy().into_owned();
    window.app.add_path(folder).await.unwrap();
    let view = window.scanned().await;
    let rows: Vec<String> = view
        .groups
        .iter()
        .flat_map(|group| &group.rows)
        .filter(|row| row.file.is_some() && row.quantization == "Q8_0")
        .map(|row| row.id.clone())
        .collect();
    assert_eq!(rows.len(), 2);
    let steps = run(&window, quick(&rows)).await;
    let Some(RunStep::Ended { results, .. }) = steps.last() else {
        panic!("{steps:?}");
    };
    let figure = window.app.figure(asked(results, None)).await.unwrap();
    assert!(!figure.svg.contains("<img"), "it is only a name");
    assert!(figure.svg.contains("&lt;img"));
    let one = window.app.figure(asked(&results[..1], None)).await.unwrap();
    for (index, results) in [results, &results[..1]].into_iter().enumerate() {
        for form in [Form::Svg, Form::Pdf, Form::Csv, Form::Markdown, Form::Json] {
            let path = window.path(&format!("saved {index}"));
            window
                .app
                .export(export(results, form, &path))
                .await
                .unwrap();
        }
    }
    let name = Path::new(&one.save_as).file_name().unwrap().len();
    assert!(name < 120, "{}", one.save_as);
}
