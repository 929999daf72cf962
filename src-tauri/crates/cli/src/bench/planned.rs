//! The tests that the flags ask for.

use std::path::Path;

use twospeed_engine::protocol::PageCache;
use twospeed_engine::settings::ModelPath;
use twospeed_engine::{Settings, TestSpec};
use twospeed_measure::model::MeasuredModel;
use twospeed_measure::plan::presets;
use twospeed_measure::tune::Choice;
use twospeed_measure::{Kind, PlannedTest};
use twospeed_workbench::{Subject, needs};

use super::args::BenchArgs;
use super::grid::{Combination, combinations, numbers, or, positive};
use crate::Failure;

/// llama-bench's prompt and answer.
const PROMPT: u32 = 512;
const ANSWER: u32 = 128;

/// Tokens written where the wait for the first one is what counts: enough to see the second.
const SHORT_ANSWER: u32 = 8;

/// What the tests depend on beside the flags.
pub struct Circumstances<'a> {
    /// Threads where none are asked for.
    pub default_threads: u32,
    /// Memory that is free, in bytes; `None` = unknown.
    pub memory_available: Option<u64>,
    /// The file whose predictions a model's are compared with, where there is one.
    pub base: &'a dyn Fn(&Subject) -> Option<MeasuredModel>,
    /// The settings of the profile that was asked for; `None` = llama-bench's defaults.
    pub profile: &'a dyn Fn(&Subject) -> Option<Choice>,
}

/// Every test of every model, models outermost; of each choice of settings first llama-bench's
/// tests, then the others.
///
/// Errors: one sentence that names the flag at fault.
pub fn tests(
    args: &BenchArgs,
    subjects: &[Subject],
    circumstances: &Circumstances,
) -> Result<Vec<PlannedTest>, Failure> {
    let speeds = match wants_speeds(args) {
        true => specs(args)?,
        false => Vec::new(),
    };
    let mut tests = Vec::new();
    for subject in subjects {
        let base = (circumstances.base)(subject);
        let kinds = kinds(args, base)?;
        let start = (circumstances.profile)(subject).unwrap_or_else(|| Choice {
            variant: None,
            settings: Settings {
                n_threads: circumstances.default_threads,
                ..Settings::default()
            },
        });
        let variant = args.settings.variant.as_ref().or(start.variant.as_ref());
        for combination in &combinations(&args.settings, &start.settings)? {
            let mut add = |settings: Settings, spec: TestSpec, kind: Kind| {
                tests.push(PlannedTest {
                    model: subject.measured.clone(),
                    settings,
                    spec,
                    kind: kind.of(&subject.measured),
                    variant: variant.cloned(),
                });
            };
            for n_depth in depths(args, subject, combination, &speeds, circumstances)? {
                for settings in combination.polled() {
                    for spec in &speeds {
                        let spec = TestSpec { n_depth, ..*spec };
                        add(settings.clone(), spec, Kind::Speed);
                    }
                }
            }
            for settings in combination.polled() {
                for (spec, kind) in &kinds {
                    add(settings.clone(), *spec, kind.clone());
                }
            }
        }
    }
    Ok(tests)
}

/// Whether llama-bench's tests are among those that are asked for.
pub fn wants_speeds(args: &BenchArgs) -> bool {
    !args.kinds.any() || args.kinds.speeds || args.what.context_curve
}

/// Prefill tests, then decode tests, then both in one; a test of nothing is left out.
fn specs(args: &BenchArgs) -> Result<Vec<TestSpec>, Failure> {
    let prompts = or(numbers(&args.what.n_prompt, "-p")?, PROMPT);
    let generations = or(numbers(&args.what.n_gen, "-n")?, ANSWER);
    let both = args.what.prompt_gen.iter();
    let specs: Vec<_> = prompts
        .into_iter()
        .map(|n| spec(n, 0))
        .chain(generations.into_iter().map(|n| spec(0, n)))
        .chain(both.map(|pg| spec(pg.n_prompt, pg.n_gen)))
        .filter(|spec| spec.tokens() > 0)
        .collect();
    if specs.is_empty() {
        return Err(Failure::Usage(
            "There is nothing to measure: -p and -n are both 0.".into(),
        ));
    }
    Ok(specs)
}

fn spec(n_prompt: u32, n_gen: u32) -> TestSpec {
    TestSpec {
        n_prompt,
        n_gen,
        n_depth: 0,
    }
}

/// The depths that were given, or those of the curve as far as model and memory go.
fn depths(
    args: &BenchArgs,
    subject: &Subject,
    combination: &Combination,
    speeds: &[TestSpec],
    circumstances: &Circumstances,
) -> Result<Vec<u32>, Failure> {
    if !args.what.context_curve {
        return Ok(or(numbers(&args.what.n_depth, "-d")?, 0));
    }
    let longest = speeds.iter().map(|spec| spec.n_prompt + spec.n_gen).max();
    let longest = longest.unwrap_or(0);
    let trained = subject
        .header
        .context_length
        .map(|tokens| tokens.min(u64::from(u32::MAX)) as u32);
    let wanted = args
        .what
        .max_depth
        .map(|depth| depth.saturating_add(longest));
    let Some(most) = trained.into_iter().chain(wanted).min() else {
        return Err(Failure::Usage(format!(
            "{} does not say how long a context it was trained for: say how deep --context-curve is to go with --max-depth.",
            super::output::short_name(&subject.measured)
        )));
    };
    let needs = |tokens: u32| {
        let test = PlannedTest {
            model: subject.measured.clone(),
            settings: combination.settings.clone(),
            spec: TestSpec {
                n_prompt: tokens,
                n_gen: 0,
                n_depth: 0,
            },
            kind: Kind::Speed,
            variant: None,
        };
        needs(&subject.header, &test).map(|need| need.bytes)
    };
    let limit = presets::context_limit(most, needs, circumstances.memory_available);
    // The preset's own tests are one prompt of llama-bench's long.
    let limit = limit.saturating_sub(longest).saturating_add(PROMPT);
    let curve = presets::context_curve(limit);
    let mut depths: Vec<u32> = curve.tests.iter().map(|(spec, _)| spec.n_depth).collect();
    depths.dedup();
    Ok(depths)
}

/// The tests that are more than one speed, of one model with one choice of settings.
fn kinds(args: &BenchArgs, base: Option<MeasuredModel>) -> Result<Vec<(TestSpec, Kind)>, Failure> {
    let asked = &args.kinds;
    if !asked.any() {
        return Ok(Vec::new());
    }
    let requests = |answer| {
        let prompts = some(or(numbers(&args.what.n_prompt, "-p")?, PROMPT), "-p")?;
        let answers = some(or(numbers(&args.what.n_gen, "-n")?, answer), "-n")?;
        Ok::<_, Failure>(every(&prompts, &answers))
    };
    let mut kinds = Vec::new();
    if asked.ttft {
        for page_cache in [PageCache::Drop, PageCache::Warm] {
            for spec in requests(SHORT_ANSWER)? {
                kinds.push((spec, Kind::FirstToken { page_cache }));
            }
        }
    }
    if asked.prefix_cache {
        for spec in requests(SHORT_ANSWER)? {
            let changed = (spec.n_prompt / 4).max(1);
            kinds.push((spec, Kind::PrefixCache { changed }));
        }
    }
    let users = positive(&asked.users, "--users")?;
    if !users.is_empty() {
        for spec in requests(ANSWER)? {
            kinds.extend(users.iter().map(|users| {
                let kind = Kind::Users {
                    users: *users,
                    split_kv: asked.split_kv,
                    shared_prompt: asked.shared_prompt,
                };
                (spec, kind)
            }));
        }
    }
    if asked.quality {
        let Some(tokens) = asked.chunks.checked_mul(asked.ctx) else {
            return Err(Failure::Usage(format!(
                "--chunks {} of {} tokens are more than any text has: take fewer.",
                asked.chunks, asked.ctx
            )));
        };
        let kind = Kind::Quality {
            n_ctx: asked.ctx,
            text: asked.text.as_deref().map(text).transpose()?,
            base: base.map(Box::new),
        };
        kinds.push((spec(tokens, 0), kind));
    }
    Ok(kinds)
}

/// Prompts outermost, as llama-batched-bench has it.
fn every(prompts: &[u32], answers: &[u32]) -> Vec<TestSpec> {
    let with_each = |prompt: &u32| {
        answers
            .iter()
            .map(|answer| spec(*prompt, *answer))
            .collect()
    };
    prompts.iter().flat_map::<Vec<_>, _>(with_each).collect()
}

/// Those that are no 0: a request has a prompt and an answer.
fn some(mut values: Vec<u32>, flag: &str) -> Result<Vec<u32>, Failure> {
    values.retain(|value| *value > 0);
    match values.is_empty() {
        true => Err(Failure::Usage(format!(
            "{flag} 0 leaves no request to serve: give 1 or more."
        ))),
        false => Ok(values),
    }
}

/// A text file, named so that the engine finds it from its own folder.
fn text(path: &Path) -> Result<ModelPath, Failure> {
    let unusable = |error: std::io::Error| {
        Failure::Failed(format!(
            "The text {} cannot be read: {error}. Name another file with --text, or leave it out.",
            twospeed_library::display::shown_path(path)
        ))
    };
    std::fs::File::open(path).map_err(unusable)?;
    std::path::absolute(path).map(ModelPath).map_err(unusable)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use twospeed_gguf::{TensorInfo, TensorType, Writer};

    use super::*;
    use crate::bench::tests::args;

    /// A model as a header tells of it, trained for so long a context.
    fn subject(context: Option<u32>) -> Subject {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model.gguf");
        let mut writer = Writer::new();
        writer.set("general.architecture", "llama");
        writer.set("general.name", "Model");
        for (key, value) in [
            ("block_count", 2),
            ("embedding_length", 256),
            ("attention.head_count", 4),
            ("attention.head_count_kv", 4),
            ("feed_forward_length", 512),
        ] {
            writer.set(format!("llama.{key}"), value);
        }
        if let Some(context) = context {
            writer.set("llama.context_length", context);
        }
        let (rows, f32) = (&[256, 512], TensorType::F32);
        writer.tensor("token_embd.weight", f32, rows).unwrap();
        let mut file = std::fs::File::create(&path).unwrap();
        let zeros = |tensor: &TensorInfo, out: &mut dyn Write| {
            out.write_all(&vec![0; tensor.bytes as usize])
        };
        writer.write(&mut file, zeros).unwrap();
        let header = twospeed_gguf::read(&path).unwrap();
        let measured = MeasuredModel::of(&header, "a".into(), None, false).unwrap();
        Subject { header, measured }
    }

    fn tests_of(line: &str, subject: Subject) -> Result<Vec<PlannedTest>, String> {
        tests_with(None, line, subject)
    }

    fn tests_with(
        profile: Option<Choice>,
        line: &str,
        subject: Subject,
    ) -> Result<Vec<PlannedTest>, String> {
        let circumstances = Circumstances {
            default_threads: 2,
            memory_available: None,
            base: &|_| None,
            profile: &|_| profile.clone(),
        };
        tests(&args(line), &[subject], &circumstances)
            .map_err(|failure| failure.sentence().unwrap().to_owned())
    }

    fn names(line: &str) -> Vec<String> {
        let tests = tests_of(line, subject(Some(8192))).unwrap();
        let name = |test: &PlannedTest| test.kind.name(test.spec);
        tests.iter().map(name).collect()
    }

    #[test]
    fn a_profile_is_where_settings_start_and_flags_go_before_it() {
        let tuned = Choice {
            variant: Some("icelake".into()),
            settings: Settings {
                n_threads: 7,
                n_ubatch: 256,
                repack: false,
                ..Settings::default()
            },
        };
        let shape = |line: &str| {
            let tests = tests_with(Some(tuned.clone()), line, subject(None)).unwrap();
            let PlannedTest {
                variant, settings, ..
            } = &tests[0];
            let settings = (settings.n_threads, settings.n_ubatch, settings.n_outputs);
            (variant.clone().unwrap(), settings)
        };
        assert_eq!(shape(""), ("icelake".into(), (7, 256, 256)));
        assert_eq!(
            shape("-t 3 -ub 128 --variant zen4"),
            ("zen4".into(), (3, 128, 128))
        );
    }

    #[test]
    fn prompts_come_first_then_answers_then_both() {
        assert_eq!(names(""), ["pp512", "tg128"]);
        assert_eq!(
            names("-n 8,16 -pg 32,8 -p 64 -p 128 -pg 16,4"),
            ["pp64", "pp128", "tg8", "tg16", "pp32+tg8", "pp16+tg4"]
        );
        assert_eq!(names("-p 0 -n 8"), ["tg8"]);
    }

    #[test]
    fn depth_turns_faster_than_threads_and_slower_than_polling_and_tests() {
        assert_eq!(
            names("-p 8 -n 4 -d 0,16"),
            ["pp8", "tg4", "pp8 @ d16", "tg4 @ d16"]
        );
        let turns: Vec<_> = tests_of("-p 8 -n 0 -d 0,16 -t 1,2 --poll 0,50", subject(None))
            .unwrap()
            .iter()
            .map(|test| {
                (
                    test.settings.n_threads,
                    test.spec.n_depth,
                    test.settings.poll,
                )
            })
            .collect();
        assert_eq!(
            turns[..5],
            [(1, 0, 0), (1, 0, 50), (1, 16, 0), (1, 16, 50), (2, 0, 0)]
        );
    }

    #[test]
    fn other_kinds_take_the_place_of_the_two_speeds_unless_both_are_wanted() {
        assert_eq!(
            names("--ttft -p 256"),
            ["first-token pp256 cold", "first-token pp256 warm"]
        );
        assert_eq!(names("--prefix-cache"), ["prefix-cache pp512 tail128"]);
        assert_eq!(
            names("--users 1,2 -p 16 -n 4,8"),
            [
                "users1 pp16+tg4",
                "users2 pp16+tg4",
                "users1 pp16+tg8",
                "users2 pp16+tg8"
            ]
        );
        assert_eq!(
            names("--quality --chunks 4 --ctx 256 --speeds"),
            ["pp512", "tg128", "ppl1024 ctx256"]
        );
    }

    #[test]
    fn the_curve_ends_where_the_model_or_the_person_says() {
        // 8192 - 512 is the deepest that leaves room for the prompt.
        let depths = |line: &str| -> Vec<u32> {
            let tests = tests_of(line, subject(Some(8192))).unwrap();
            let prefills = tests.iter().filter(|test| test.spec.n_prompt > 0);
            prefills.map(|test| test.spec.n_depth).collect()
        };
        assert_eq!(depths("--context-curve"), [0, 512, 1024, 2048, 4096, 7680]);
        assert_eq!(
            depths("--context-curve --max-depth 2048"),
            [0, 512, 1024, 2048]
        );
        assert_eq!(
            depths("--context-curve --max-depth 1000000 -p 192 -n 64"),
            [0, 512, 1024, 2048, 4096, 8000]
        );
        let unknown = tests_of("--context-curve", subject(None)).unwrap_err();
        assert!(unknown.contains("--max-depth"), "{unknown}");
    }

    #[test]
    fn a_request_has_a_prompt_and_an_answer() {
        let refused = |line: &str| tests_of(line, subject(None)).unwrap_err();
        assert!(refused("--ttft -p 0").contains("-p 0"));
        assert!(refused("--users 2 -n 0").contains("-n 0"));
        assert!(refused("--users 0").contains("--users 0"));
        assert_eq!(names("--quality -p 0"), ["ppl8192 ctx512"]);
    }
}
