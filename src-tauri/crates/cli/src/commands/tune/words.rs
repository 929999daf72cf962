//! What `tune` says: settings, steps and the result in words.

use twospeed_engine::FlashAttention;
use twospeed_measure::tune::{
    Change, Choice, Decision, Fate, Speeds, Stage, Target, TuneProgress, Verdict,
};
use twospeed_workbench::tune::TuneOutcome;

use crate::progress::ProgressLine;
use crate::say::say;
use crate::table::Table;

/// `CPU variant icelake, 4 threads`; "the defaults" where nothing is changed.
pub fn changes(changes: &[Change]) -> String {
    if changes.is_empty() {
        return "the defaults".into();
    }
    let words: Vec<String> = changes.iter().map(change).collect();
    words.join(", ")
}

fn change(change: &Change) -> String {
    match change {
        Change::Variant(name) => format!("CPU variant {name}"),
        Change::Threads(1) => "1 thread".into(),
        Change::Threads(count) => format!("{count} threads"),
        Change::FlashAttention(FlashAttention::Auto) => {
            "flash attention as the engine likes".into()
        }
        Change::FlashAttention(FlashAttention::On) => "flash attention on".into(),
        Change::FlashAttention(FlashAttention::Off) => "flash attention off".into(),
        Change::Repack(true) => "weights repacked".into(),
        Change::Repack(false) => "weights not repacked".into(),
        Change::MicroBatch(size) => format!("micro-batch {size}"),
    }
}

/// The same as flags of `bench`.
pub fn flags(changes: &[Change]) -> String {
    let flag = |change: &Change| match change {
        Change::Variant(name) => format!("--variant {name}"),
        Change::Threads(count) => format!("-t {count}"),
        Change::FlashAttention(mode) => format!("-fa {}", mode.number()),
        Change::Repack(on) => format!("--repack {}", i32::from(*on)),
        Change::MicroBatch(size) => format!("-ub {size}"),
    };
    let flags: Vec<String> = changes.iter().map(flag).collect();
    flags.join(" ")
}

/// What a stage turns.
fn stage(stage: Stage) -> &'static str {
    match stage {
        Stage::Variant => "CPU variant",
        Stage::Threads => "threads",
        Stage::Attention => "flash attention and repacking",
        Stage::MicroBatch => "micro-batch",
    }
}

/// `prefill 350.1 tok/s, decode 137.9 tok/s`.
fn speeds(speeds: Speeds) -> String {
    let part =
        |name: &str, speed: Option<f64>| speed.map(|speed| format!("{name} {speed:.1} tok/s"));
    let parts: Vec<String> = [
        part("prefill", speeds.prefill),
        part("decode", speeds.decode),
    ]
    .into_iter()
    .flatten()
    .collect();
    parts.join(", ")
}

/// `42 s`, `2 min 15 s`, `1 h 5 min`.
pub fn time(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    match (whole / 3600, whole / 60 % 60, whole % 60) {
        (0, 0, seconds) => format!("{seconds} s"),
        (0, minutes, seconds) => format!("{minutes} min {seconds} s"),
        (hours, minutes, _) => format!("{hours} h {minutes} min"),
    }
}

fn purpose(target: Target) -> String {
    match target {
        Target::Prefill => "reading prompts".into(),
        Target::Decode => "writing answers".into(),
        Target::Mix { prompt, generate } => {
            format!("reading {prompt} tokens and writing {generate}")
        }
    }
}

/// Says steps on standard error.
pub struct Teller {
    line: ProgressLine,
    defaults: Option<Choice>,
}

impl Teller {
    /// With a line for what is measured right now.
    pub fn new(line: ProgressLine) -> Self {
        Self {
            line,
            defaults: None,
        }
    }

    fn name(&self, choice: &Choice) -> String {
        match &self.defaults {
            Some(defaults) => changes(&choice.changes(defaults)),
            None => changes(&[]),
        }
    }

    /// Takes a step; nothing is written inside a timed section.
    pub fn tell(&mut self, step: &TuneProgress) {
        match step {
            TuneProgress::Started { defaults, .. } => self.defaults = Some(defaults.clone()),
            TuneProgress::Testing { choice, spec } => {
                let name = self.name(choice);
                self.line.show(&format!("{spec} with {name}"));
            }
            step => {
                if let Some(sentence) = self.sentence(step) {
                    self.line.show("");
                    say(sentence);
                }
            }
        }
    }

    fn sentence(&self, step: &TuneProgress) -> Option<String> {
        Some(match step {
            TuneProgress::Searching(searched) => format!(
                "The defaults ({}): {}. All {} combinations would take at least {}; at most {} are used.",
                searched.variant,
                speeds(searched.speeds),
                searched.grid.combinations,
                time(searched.grid_seconds),
                time(searched.budget_seconds),
            ),
            TuneProgress::Stage {
                stage: its,
                choices,
            } => {
                format!("{} choices of {}", choices.len(), stage(*its))
            }
            TuneProgress::Measured {
                choice,
                speeds: its,
                share: Some(share),
            } => format!(
                "  {}: {}, {share:.3} of the first",
                self.name(choice),
                speeds(*its)
            ),
            TuneProgress::Dropped {
                choice,
                reason: Some(reason),
                ..
            } => {
                format!("  {} is out: {reason}", self.name(choice))
            }
            TuneProgress::Dropped {
                choice,
                fate: Fate::Slower { speed, at_most },
                ..
            } => format!(
                "  {} is out: {speed:.2} of the fastest, at most {at_most:.2}",
                self.name(choice)
            ),
            TuneProgress::Best {
                choice,
                out_of_time,
                ..
            } => {
                let late = if *out_of_time {
                    ", the time for it was up"
                } else {
                    ""
                };
                format!("  best so far: {}{late}", self.name(choice))
            }
            TuneProgress::Final {
                choice,
                tests,
                pairs,
            } => {
                let tests: Vec<String> = tests.iter().map(ToString::to_string).collect();
                format!(
                    "{pairs} alternating pairs of {}: the defaults against {}",
                    tests.join(" and "),
                    self.name(choice)
                )
            }
            _ => return None,
        })
    }
}

fn checked(verdict: Verdict) -> String {
    let bound = match verdict.lower {
        Some(lower) => format!("lower 95 % bound {lower:.3}"),
        None => "too few for a bound".into(),
    };
    format!(
        "{:.3} times, {} pairs, {bound}",
        verdict.median, verdict.pairs
    )
}

/// The result, for standard output.
pub fn result(outcome: &TuneOutcome) -> String {
    let what = purpose(outcome.target);
    let took = outcome.searched.as_ref().map(|searched| {
        format!(
            "It took {}; all combinations would have taken at least {}.\n",
            time(outcome.seconds),
            time(searched.grid_seconds)
        )
    });
    let mut took = took.unwrap_or_default();
    if !outcome.untried.is_empty() {
        let stages: Vec<_> = outcome.untried.iter().map(|its| stage(*its)).collect();
        took = format!(
            "{took}There was no time to try all choices of {}: tune when nothing else runs, or for longer tests.\n",
            stages.join(", ")
        );
    }
    match &outcome.decision {
        Decision::Stopped => String::new(),
        Decision::Defaults { nearest: None, .. } if !outcome.untried.is_empty() => {
            format!("The defaults stay for {what}: nothing faster was found.\n{took}")
        }
        Decision::Defaults { nearest: None, .. } => {
            format!("The defaults are the fastest here for {what}.\n{took}")
        }
        Decision::Defaults {
            nearest: Some(nearest),
            verdict,
        } => {
            let name = changes(&nearest.changes(&outcome.defaults));
            let shown = verdict.map_or("it could not be measured".into(), checked);
            format!(
                "The defaults stay for {what}: nothing is faster beyond doubt. Nearest came {name} ({shown}).\n{took}"
            )
        }
        Decision::Tuned {
            choice,
            verdict,
            default_speeds,
            speeds,
        } => {
            let its = choice.changes(&outcome.defaults);
            let mut table = Table::new(&["profile", ">prefill tok/s", ">decode tok/s", "settings"]);
            let cell =
                |speed: Option<f64>| speed.map_or(String::new(), |speed| format!("{speed:.1}"));
            for (name, speeds, its) in [
                ("default", default_speeds, &[][..]),
                ("tuned", speeds, &its[..]),
            ] {
                table.row(vec![
                    name.into(),
                    cell(speeds.prefill),
                    cell(speeds.decode),
                    changes(its),
                ]);
            }
            let mut text = Vec::new();
            let written = table.write(&mut text);
            debug_assert!(written.is_ok(), "BUG: memory takes every byte");
            format!(
                "{}\nFor {what} the tuned settings are {} as fast as the defaults ({}).\n{took}Use them: twospeed bench --profile tuned, or {}\n",
                String::from_utf8_lossy(&text),
                format_args!("{:.2} times", verdict.median),
                checked(*verdict),
                flags(&its),
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use twospeed_engine::Settings;
    use uuid::Uuid;

    use super::*;

    fn all() -> Vec<Change> {
        vec![
            Change::Variant("icelake".into()),
            Change::Threads(1),
            Change::FlashAttention(FlashAttention::Off),
            Change::Repack(false),
            Change::MicroBatch(256),
        ]
    }

    fn outcome(decision: Decision) -> TuneOutcome {
        TuneOutcome {
            run: Uuid::nil(),
            target: Target::BENCH,
            defaults: defaults(),
            searched: None,
            seconds: 42.0,
            untried: Vec::new(),
            decision,
        }
    }

    fn defaults() -> Choice {
        Choice {
            variant: None,
            settings: Settings::default(),
        }
    }

    #[test]
    fn settings_are_said_in_words_and_as_flags() {
        assert_eq!(
            changes(&all()),
            "CPU variant icelake, 1 thread, flash attention off, weights not repacked, micro-batch 256"
        );
        assert_eq!(
            flags(&all()),
            "--variant icelake -t 1 -fa 0 --repack 0 -ub 256"
        );
        assert_eq!(
            (changes(&[]), flags(&[])),
            ("the defaults".into(), String::new())
        );
    }

    #[test]
    fn a_time_is_said_in_its_two_largest_units() {
        for (seconds, text) in [
            (0.4, "0 s"),
            (59.4, "59 s"),
            (59.6, "1 min 0 s"),
            (135.0, "2 min 15 s"),
            (3599.6, "1 h 0 min"),
            (3900.0, "1 h 5 min"),
        ] {
            assert_eq!(time(seconds), text);
        }
    }

    #[test]
    fn what_was_found_stands_beside_the_defaults_with_its_gain() {
        let speeds = |prefill, decode| Speeds {
            prefill: Some(prefill),
            decode: Some(decode),
        };
        let choice = Choice {
            variant: Some("icelake".into()),
            ..defaults()
        };
        let text = result(&outcome(Decision::Tuned {
            choice,
            verdict: Verdict {
                pairs: 15,
                median: 1.143,
                lower: Some(1.101),
            },
            default_speeds: speeds(400.0, 100.0),
            speeds: speeds(440.04, 110.0),
        }));
        assert_eq!(
            text,
            "profile  prefill tok/s  decode tok/s  settings\n\
             default          400.0         100.0  the defaults\n\
             tuned            440.0         110.0  CPU variant icelake\n\
             \n\
             For reading 512 tokens and writing 128 the tuned settings are 1.14 times as fast as the defaults (1.143 times, 15 pairs, lower 95 % bound 1.101).\n\
             Use them: twospeed bench --profile tuned, or --variant icelake\n"
        );
    }

    #[test]
    fn defaults_that_stay_are_said_to_stay_and_why() {
        let text = result(&outcome(Decision::Defaults {
            nearest: None,
            verdict: None,
        }));
        assert_eq!(
            text,
            "The defaults are the fastest here for reading 512 tokens and writing 128.\n"
        );
        let mut hurried = outcome(Decision::Defaults {
            nearest: None,
            verdict: None,
        });
        hurried.untried = vec![Stage::Variant, Stage::MicroBatch];
        let text = result(&hurried);
        assert!(text.starts_with("The defaults stay for "), "{text}");
        assert!(
            text.contains("no time to try all choices of CPU variant, micro-batch"),
            "{text}"
        );
        let mut nearest = defaults();
        nearest.settings.n_threads = 4;
        let text = result(&outcome(Decision::Defaults {
            nearest: Some(nearest),
            verdict: Some(Verdict {
                pairs: 9,
                median: 1.012,
                lower: Some(0.991),
            }),
        }));
        assert_eq!(
            text,
            "The defaults stay for reading 512 tokens and writing 128: nothing is faster beyond doubt. Nearest came 4 threads (1.012 times, 9 pairs, lower 95 % bound 0.991).\n"
        );
    }
}
