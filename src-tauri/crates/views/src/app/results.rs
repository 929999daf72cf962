//! The list of results.

use jiff::Timestamp;
use twospeed_history::{RunStatus, Test, WholeRun};
use twospeed_library::display::{shortened, shown};
use twospeed_measure::TestStatus;
use twospeed_measure::machine::Machine;
use twospeed_measure::warning::Warning;
use twospeed_workbench::{Bar, FigureKind, Source, bars, differs, figures, measured};

use super::plan::{base_name, quantization};
use crate::compare::*;
use crate::models::Speed;

/// Longest line that names a run's models.
const MODELS: usize = 120;

/// Everything there is to choose from.
pub(super) fn results(runs: &[WholeRun], here: &Machine) -> ResultsView {
    let all = bars(runs);
    let mut groups: Vec<(String, Vec<Bar<'_>>)> = Vec::new();
    for bar in &all {
        let name = bar.name();
        match groups.iter_mut().find(|(other, _)| *other == name) {
            Some((_, group)) => group.push(*bar),
            None => groups.push((name, vec![*bar])),
        }
    }
    let mut groups: Vec<ResultGroup> = groups
        .into_iter()
        .map(|(name, bars)| group(&name, &bars, here))
        .collect();
    in_order(&mut groups);
    let has_result = |run: &WholeRun| all.iter().any(|bar| bar.run.run.id == run.run.id);
    let others: Vec<OtherResults> = others(runs, here);
    let in_others = |run: &WholeRun| {
        let id = run.run.id.to_string();
        let rows = others.iter().flat_map(|other| &other.groups);
        rows.flat_map(|group| &group.rows).any(|row| row.run == id)
    };
    ResultsView {
        groups,
        runs: runs
            .iter()
            .filter(|run| !has_result(run) && !in_others(run))
            .map(line)
            .collect(),
        others,
        // The history knows, and whoever asks it.
        calibrated: false,
    }
}

/// The results of every figure but speeds.
fn others(runs: &[WholeRun], here: &Machine) -> Vec<OtherResults> {
    FigureKind::ALL
        .into_iter()
        .filter_map(|kind| {
            let figure = match kind {
                FigureKind::Speeds => return None,
                FigureKind::Context => FigureName::Context,
                FigureKind::Users => FigureName::Users,
                FigureKind::FirstToken => FigureName::FirstToken,
                FigureKind::Quantization => FigureName::Quantization,
                FigureKind::Sustained => FigureName::Sustained,
            };
            let sources = figures::series(kind, runs);
            let mut groups: Vec<ResultGroup> = Vec::new();
            for source in &sources {
                let row = other_row(kind, source, &sources, here);
                let name = shown(&source.name());
                match groups.iter_mut().find(|group| group.name == name) {
                    Some(group) => group.rows.push(row),
                    None => groups.push(ResultGroup {
                        name,
                        rows: vec![row],
                    }),
                }
            }
            in_order(&mut groups);
            Some(OtherResults { figure, groups })
        })
        .collect()
}

/// The newest first: models by their newest result, then each model's results.
fn in_order(groups: &mut [ResultGroup]) {
    for group in groups.iter_mut() {
        group.rows.sort_by(|a, b| b.at.cmp(&a.at));
    }
    // Times of one zone and one number of digits: the later text is the later time.
    let newest = |group: &ResultGroup| group.rows.iter().map(|row| row.at.clone()).max();
    groups.sort_by_cached_key(|group| std::cmp::Reverse(newest(group)));
}

fn other_row(
    kind: FigureKind,
    source: &Source<'_>,
    all: &[Source<'_>],
    here: &Machine,
) -> ResultRow {
    let run = &source.run.run;
    let began = source.tests.iter().map(|test| test.record.started_at).min();
    ResultRow {
        id: source.id().to_string(),
        run: run.id.to_string(),
        quantization: quantization(source.model()),
        differs: shown(&figures::differs(kind, source, all).join(", ")),
        at: time(began.unwrap_or(run.started_at)),
        elsewhere: elsewhere(&run.machine, here),
        prefill: None,
        decode: None,
        warnings: warnings(source),
        noted: run.note.is_some(),
    }
}

fn elsewhere(machine: &Machine, here: &Machine) -> Option<String> {
    (machine.id != here.id).then(|| shown(machine.name.as_deref().unwrap_or(&machine.cpu)))
}

fn group(name: &str, bars: &[Bar<'_>], here: &Machine) -> ResultGroup {
    ResultGroup {
        name: shown(name),
        rows: bars.iter().filter_map(|bar| row(bar, bars, here)).collect(),
    }
}

fn row(bar: &Bar<'_>, group: &[Bar<'_>], here: &Machine) -> Option<ResultRow> {
    let run = &bar.run.run;
    let began = bar.tests().map(|test| test.record.started_at).min()?;
    Some(ResultRow {
        id: bar.id()?.to_string(),
        run: run.id.to_string(),
        quantization: quantization(bar.model),
        differs: shown(&differs(bar, group).join(", ")),
        at: time(began),
        elsewhere: elsewhere(&run.machine, here),
        prefill: bar.prefill.and_then(speed),
        decode: bar.decode.and_then(speed),
        warnings: warnings(&bar.source()),
        noted: run.note.is_some(),
    })
}

/// RFC 3339 in UTC with as many digits each, so that later is larger.
pub(super) fn time(at: Timestamp) -> String {
    format!("{at:.3}")
}

/// A test's speed, as figures show it.
pub(super) fn speed(test: &Test) -> Option<Speed> {
    let measured = measured(test)?;
    let spec = test.record.spec;
    Some(Speed {
        mean: measured.mean,
        deviation: measured.deviation,
        samples: measured.samples,
        tokens: u32::try_from(spec.tokens()).ok()?,
        depth: spec.n_depth,
        at: time(test.record.started_at),
    })
}

/// What readers of a result should know, each once.
pub(super) fn warnings(source: &Source<'_>) -> Vec<Warning> {
    let mut warnings = Vec::new();
    for warning in source
        .tests
        .iter()
        .filter_map(|test| test.end.as_ref())
        .flat_map(|end| &end.warnings)
    {
        if !warnings.contains(warning) {
            warnings.push(warning.clone());
        }
    }
    warnings
}

/// A run without a result.
fn line(run: &WholeRun) -> RunLine {
    RunLine {
        id: run.run.id.to_string(),
        at: time(run.run.started_at),
        models: models(run),
        sentence: why(run),
    }
}

/// `SmolLM2 135M Instruct Q4_1, Q8_0; Qwen3 0.6B Q8_0`.
fn models(run: &WholeRun) -> String {
    let mut models: Vec<(String, Vec<String>)> = Vec::new();
    for test in &run.tests {
        let name = base_name(&test.record.model);
        let quantization = quantization(&test.record.model);
        let index = match models.iter().position(|(other, _)| *other == name) {
            Some(index) => index,
            None => {
                models.push((name, Vec::new()));
                models.len() - 1
            }
        };
        if !models[index].1.contains(&quantization) {
            models[index].1.push(quantization);
        }
    }
    let models: Vec<String> = models
        .into_iter()
        .map(|(name, quantizations)| format!("{name} {}", quantizations.join(", ")))
        .collect();
    match models.is_empty() {
        true => "No test".to_owned(),
        false => shortened(&models.join("; "), MODELS),
    }
}

/// Why a run has no result.
fn why(run: &WholeRun) -> String {
    let failure = run
        .tests
        .iter()
        .find_map(|test| match &test.end.as_ref()?.status {
            TestStatus::Failed { message, .. } => Some(shown(message)),
            _ => None,
        });
    let is_done = |test: &Test| {
        let end = test.end.as_ref();
        end.is_some_and(|end| end.status == TestStatus::Done)
    };
    match run.run.status {
        RunStatus::Running => "It is being measured.".to_owned(),
        _ if failure.is_some() => failure.unwrap_or_default(),
        RunStatus::Interrupted => {
            "Its program ended before a test was done; the samples until then are kept.".to_owned()
        }
        RunStatus::Stopped => "It was stopped before a test was done.".to_owned(),
        RunStatus::Complete if run.tests.iter().any(is_done) => {
            "Prompt and answer were timed as one, which this figure has no place for.".to_owned()
        }
        RunStatus::Complete => "No test was done.".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::results_fixture::{both, machine, model, run, test};
    use super::*;

    #[test]
    fn results_are_grouped_by_base_model_the_newest_first() {
        let (small, large) = (
            model("SmolLM2-135M.Q4_1", "Q4_1", 98_000_000),
            model("SmolLM2 135M", "Q8_0", 145_000_000),
        );
        let mut imported = both(
            50,
            &model("Qwen3 0.6B", "Q8_0", 600_000_000),
            &[100.0],
            &[20.0],
        );
        imported.run.machine = machine("jetson");
        imported.run.note = Some("on the train".into());
        let runs = [
            both(0, &small, &[300.0], &[100.0]),
            both(100, &large, &[400.0], &[80.0]),
            imported,
        ];
        let view = results(&runs, &machine("here"));
        let names: Vec<_> = view
            .groups
            .iter()
            .map(|group| group.name.as_str())
            .collect();
        assert_eq!(names, ["SmolLM2 135M", "Qwen3 0.6B"]);
        let rows = &view.groups[0].rows;
        let labels: Vec<_> = rows.iter().map(|row| row.quantization.as_str()).collect();
        assert_eq!(labels, ["Q8_0", "Q4_1"]);
        assert!(rows.iter().all(|row| row.differs.is_empty() && !row.noted));
        let there = &view.groups[1].rows[0];
        assert_eq!(there.elsewhere.as_deref(), Some("desk jetson"));
        assert!(there.noted);
        assert!(view.runs.is_empty());
        let nothing = results(&[], &machine("here"));
        assert!(nothing.groups.is_empty() && nothing.runs.is_empty());
        assert!(nothing.others.iter().all(|other| other.groups.is_empty()));
    }

    #[test]
    fn what_tells_results_of_a_model_apart_is_said_short() {
        let small = model("A", "Q4_0", 92_000_000);
        let mut deep = run(100);
        for spec in [(512, 0, 4096), (0, 128, 4096), (1024, 0, 0)] {
            let test = test(&deep, &small, spec, &[50.0]);
            deep.tests.push(test);
        }
        let mut one = both(200, &small, &[30.0], &[10.0]);
        for test in &mut one.tests {
            test.record.settings.n_threads = 1;
        }
        let runs = [both(0, &small, &[300.0], &[100.0]), deep, one];
        let view = results(&runs, &machine("here"));
        let mut differs: Vec<_> = view.groups[0]
            .rows
            .iter()
            .map(|row| row.differs.as_str())
            .collect();
        differs.sort_unstable();
        assert_eq!(
            differs,
            [
                "1 thread",
                "2 threads",
                "d4096, 2 threads",
                "pp1024, 2 threads"
            ]
        );
    }

    #[test]
    fn a_run_without_a_result_says_why() {
        let small = model("A", "Q4_0", 92_000_000);
        let of = |status: RunStatus, ended: Option<TestStatus>| {
            let mut whole = both(0, &small, &[300.0], &[]);
            whole.run.status = status;
            whole.tests[0].end = whole.tests[0]
                .end
                .take()
                .zip(ended)
                .map(|(mut end, status)| {
                    end.status = status;
                    end
                });
            let view = results(&[whole], &machine("here"));
            assert!(view.groups.is_empty());
            assert_eq!(view.runs[0].models, "A Q4_0");
            view.runs[0].sentence.clone()
        };
        let failed = TestStatus::Failed {
            code: "killed".into(),
            message: "The engine was\u{1b}[2J killed.".into(),
            log: Vec::new(),
        };
        assert_eq!(
            of(RunStatus::Complete, Some(failed)),
            "The engine was␛[2J killed."
        );
        for status in [
            RunStatus::Running,
            RunStatus::Stopped,
            RunStatus::Interrupted,
            RunStatus::Complete,
        ] {
            let sentence = of(status, None);
            assert!(sentence.ends_with('.'), "{sentence}");
        }
        let mut as_one = run(0);
        let test = test(&as_one, &small, (512, 128, 0), &[50.0]);
        as_one.tests.push(test);
        let view = results(&[as_one, run(5)], &machine("here"));
        assert!(view.runs[0].sentence.contains("timed as one"));
        assert_eq!(view.runs[1].models, "No test");
    }

    #[test]
    fn hostile_and_long_names_are_shown_as_text() {
        let long = "x".repeat(300);
        for (name, shown) in [
            (
                "<img src=x onerror=alert(1)>",
                "<img src=x onerror=alert(1)>",
            ),
            ("a\u{202e}b", "a<U+202E>b"),
            (long.as_str(), long.as_str()),
        ] {
            let runs = [both(
                0,
                &model(name, "Q4_0\n", 92_000_000),
                &[300.0],
                &[100.0],
            )];
            let view = results(&runs, &machine("here"));
            assert_eq!(view.groups[0].name, shown);
            assert_eq!(view.groups[0].rows[0].quantization, "Q4_0␊");
        }
    }
}
