//! What to beware of when comparing results.

use twospeed_history::Test;
use twospeed_workbench::Source;

use super::compare::Entry;
use super::results::warnings;
use crate::compare::Caution;

/// Anchors of one machine repeat within 1 or 2 % while nothing changes.
const STEADY: f64 = 0.02;
/// Pairs of results that are named: the worst say enough.
const MOST_PAIRS: usize = 3;

/// In the order they are read.
pub(super) fn cautions(entries: &[Entry<'_>]) -> Vec<Caution> {
    let named: Vec<Named<'_>> = entries
        .iter()
        .map(|entry| (entry.bar.source(), entry.name.clone()))
        .collect();
    in_order(&named, drifts(entries))
}

/// A result with what the figure calls it.
pub(super) type Named<'a> = (Source<'a>, String);

/// Those of a figure whose results are no single speeds: of a change of the machine nothing is
/// said, since it would have to be held against each of their numbers.
pub(super) fn cautions_of(named: &[Named<'_>]) -> Vec<Caution> {
    in_order(named, Vec::new())
}

fn in_order(named: &[Named<'_>], drifts: Vec<Caution>) -> Vec<Caution> {
    let mut cautions = Vec::new();
    cautions.extend(machines(named));
    cautions.extend(drifts);
    cautions.extend(settings(named));
    cautions.extend(named.iter().filter_map(|(source, name)| {
        let warnings = warnings(source);
        (!warnings.is_empty()).then(|| Caution::Warned {
            result: name.clone(),
            warnings,
        })
    }));
    cautions
}

fn machines(named: &[Named<'_>]) -> Option<Caution> {
    let mut ids = named.iter().map(|(source, _)| &source.run.run.machine.id);
    let first = ids.next()?;
    ids.any(|id| id != first).then_some(Caution::Machines)
}

/// Pairs whose anchors differ by more than the speeds they show, the worst first.
fn drifts(entries: &[Entry<'_>]) -> Vec<Caution> {
    let mut found: Vec<(f64, Caution)> = Vec::new();
    for (index, one) in entries.iter().enumerate() {
        for other in &entries[index + 1..] {
            let Some(drift) = drift(one, other) else {
                continue;
            };
            let caution = Caution::Drift {
                one: one.name.clone(),
                other: other.name.clone(),
                relative: drift,
            };
            found.push((drift, caution));
        }
    }
    found.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    found
        .into_iter()
        .take(MOST_PAIRS)
        .map(|(_, caution)| caution)
        .collect()
}

/// How much the anchors of two results differ, where that is more than one of their speeds do.
fn drift(one: &Entry<'_>, other: &Entry<'_>) -> Option<f64> {
    let (a, b) = (&one.bar, &other.bar);
    let (run, run_of_other) = (&a.run.run, &b.run.run);
    // The kernel is the same only on the same machine, with as many threads, from one version.
    if run.machine.id != run_of_other.machine.id
        || run.app_version != run_of_other.app_version
        || a.settings.n_threads != b.settings.n_threads
    {
        return None;
    }
    let phases = [
        (a.prefill, b.prefill, &one.prefill, &other.prefill),
        (a.decode, b.decode, &one.decode, &other.decode),
    ];
    phases
        .into_iter()
        .filter_map(|(test, test_of_other, speed, speed_of_other)| {
            let drift = apart(anchor(test?)?, anchor(test_of_other?)?)?;
            let shown = apart(speed.as_ref()?.mean, speed_of_other.as_ref()?.mean)?;
            (drift > shown && drift > STEADY).then_some(drift)
        })
        .max_by(f64::total_cmp)
}

/// larger / smaller - 1.
fn apart(a: f64, b: f64) -> Option<f64> {
    let (small, large) = (a.min(b), a.max(b));
    (small > 0.0 && large.is_finite()).then(|| large / small - 1.0)
}

/// The mean of the anchors beside a test.
fn anchor(test: &Test) -> Option<f64> {
    let end = test.end.as_ref()?;
    let anchors: Vec<f64> = [end.anchor_before_ns, end.anchor_after_ns]
        .into_iter()
        .flatten()
        .map(|ns| ns as f64)
        .collect();
    (!anchors.is_empty()).then(|| anchors.iter().sum::<f64>() / anchors.len() as f64)
}

/// The value of a setting; nothing where it is not known, which rows say of themselves.
fn known(source: &Source<'_>, name: &str, value: String) -> Vec<String> {
    source.knows(name).then_some(value).into_iter().collect()
}

/// What rows do not say of themselves: a row names every setting that llama-bench has.
fn settings(named: &[Named<'_>]) -> Option<Caution> {
    type Of = fn(&Source<'_>) -> Vec<String>;
    let of_settings: [(&str, Of); 4] = [
        ("n_outputs", |source| {
            known(source, "n_outputs", source.settings().n_outputs.to_string())
        }),
        ("prio", |source| {
            known(source, "prio", source.settings().prio.to_string())
        }),
        ("numa", |source| {
            known(source, "numa", source.settings().numa.clone())
        }),
        ("warm-up", |source| {
            let mut warmed: Vec<_> = source
                .tests
                .iter()
                .filter(|test| test.knows("warmup"))
                .map(|test| test.record.warmup.to_string())
                .collect();
            warmed.dedup();
            warmed
        }),
    ];
    let build: (&str, Of) = ("llama.cpp build", |source| {
        let mut builds: Vec<_> = source
            .tests
            .iter()
            .filter_map(|test| {
                let worker = test.end.as_ref()?.worker.as_ref()?;
                Some(format!(
                    "{} {}",
                    worker.engine.build_number, worker.engine.build_commit
                ))
            })
            .collect();
        builds.dedup();
        builds
    });
    let names: Vec<String> = of_settings
        .into_iter()
        .chain([build])
        .filter(|(_, of)| {
            let mut values = named
                .iter()
                .map(|(source, _)| of(source))
                .filter(|values| !values.is_empty());
            let first = values.next();
            values.any(|values| Some(values) != first)
        })
        .map(|(name, _)| name.to_owned())
        .collect();
    (!names.is_empty()).then_some(Caution::Settings { names })
}

#[cfg(test)]
mod tests {
    use twospeed_history::WholeRun;
    use twospeed_measure::Warning;
    use twospeed_workbench::{bars, measured};

    use super::super::results_fixture::{both, machine, model};
    use super::*;

    fn said(runs: &[WholeRun]) -> Vec<Caution> {
        let bars = bars(runs);
        let entries: Vec<Entry<'_>> = bars
            .iter()
            .map(|bar| Entry {
                bar: *bar,
                name: bar.model.quantization.clone().unwrap(),
                prefill: bar.prefill.and_then(measured),
                decode: bar.decode.and_then(measured),
                ceiling: None,
            })
            .collect();
        cautions(&entries)
    }

    /// Two quantizations whose decode differs by 5 %, the second with this anchor.
    fn pair(anchor_ns: u64) -> [WholeRun; 2] {
        let mut runs = [
            both(0, &model("A", "Q4_0", 92_000_000), &[], &[105.0]),
            both(100, &model("A", "Q4_1", 98_000_000), &[], &[100.0]),
        ];
        for test in &mut runs[1].tests {
            let end = test.end.as_mut().unwrap();
            end.anchor_before_ns = Some(anchor_ns);
            end.anchor_after_ns = Some(anchor_ns);
        }
        runs
    }

    #[test]
    fn anchors_that_differ_more_than_the_speeds_are_drift() {
        // 300 against 330 ms: 10 %, where 5 % are shown.
        let said_of = said(&pair(330_000_000));
        let [
            Caution::Drift {
                one,
                other,
                relative,
            },
        ] = &said_of[..]
        else {
            panic!("{said_of:?}");
        };
        assert_eq!((one.as_str(), other.as_str()), ("Q4_0", "Q4_1"));
        assert!((relative - 0.1).abs() < 1e-9, "{relative}");
        // 300 against 312 ms: 4 %.
        assert_eq!(said(&pair(312_000_000)), []);
    }

    #[test]
    fn anchors_that_repeat_as_they_do_are_no_drift_however_near_the_speeds_are() {
        let mut runs = pair(303_000_000);
        runs[0] = both(0, &model("A", "Q4_0", 92_000_000), &[], &[100.0]);
        assert_eq!(said(&runs), [], "1 % is what anchors vary by");
    }

    #[test]
    fn anchors_are_compared_only_where_the_kernel_was_the_same() {
        let mut runs = pair(600_000_000);
        runs[1].tests[0].record.settings.n_threads = 1;
        assert_eq!(said(&runs), []);
        let mut runs = pair(600_000_000);
        runs[1].tests[0].end.as_mut().unwrap().anchor_before_ns = None;
        runs[1].tests[0].end.as_mut().unwrap().anchor_after_ns = None;
        assert_eq!(said(&runs), []);
        let mut runs = pair(600_000_000);
        runs[1].run.machine = machine("there");
        assert_eq!(said(&runs), [Caution::Machines]);
    }

    #[test]
    fn settings_that_no_row_names_are_named() {
        let mut runs = pair(300_000_000);
        runs[1].tests[0].record.settings.prio = 2;
        runs[1].tests[0].record.warmup = false;
        runs[1].tests[0].record.settings.type_k = "q8_0".into();
        let worker = runs[1].tests[0].end.as_mut().unwrap().worker.as_mut();
        worker.unwrap().engine.build_number = 1;
        let names = ["prio", "warm-up", "llama.cpp build"].map(str::to_owned);
        assert_eq!(
            said(&runs),
            [Caution::Settings {
                names: names.into()
            }],
            "the row itself says that the K cache differs"
        );
    }

    #[test]
    fn warnings_of_a_result_are_told_once() {
        let mut runs = [both(0, &model("A", "Q4_0", 92_000_000), &[400.0], &[100.0])];
        for test in &mut runs[0].tests {
            test.end.as_mut().unwrap().warnings = vec![Warning::OnBattery];
        }
        assert_eq!(
            said(&runs),
            [Caution::Warned {
                result: "Q4_0".into(),
                warnings: vec![Warning::OnBattery]
            }]
        );
        assert_eq!(said(&[]), []);
    }
}
