//! Named choices of tests.
//!
//! A preset says what is measured of one model; a [`Plan`](super::Plan) puts it before models and
//! settings. Those that depend on how much context a model can hold take a `limit` in tokens:
//! [`context_limit`] finds it.

use twospeed_engine::TestSpec;
use twospeed_engine::protocol::PageCache;

use super::{Order, PlannedTest};
use crate::kind::Kind;
use crate::model::MeasuredModel;

/// A named choice of tests.
#[derive(Debug, Clone, PartialEq)]
pub struct Preset {
    /// Its name, as stored with the run.
    pub name: &'static str,
    /// The tests for each model and settings, in the order that reloads and refills least.
    pub tests: Vec<(TestSpec, Kind)>,
    /// Timed repetitions.
    pub repetitions: u32,
    /// In which order repetitions follow each other.
    pub order: Order,
}

impl Preset {
    fn new(name: &'static str, tests: Vec<(TestSpec, Kind)>, repetitions: u32) -> Self {
        Self {
            name,
            tests,
            repetitions,
            order: Order::OneByOne,
        }
    }

    /// Its tests of one model with one choice of settings.
    pub fn tests_of(
        &self,
        model: &MeasuredModel,
        settings: &twospeed_engine::Settings,
    ) -> Vec<PlannedTest> {
        self.tests
            .iter()
            .map(|(spec, kind)| PlannedTest {
                model: model.clone(),
                settings: settings.clone(),
                spec: *spec,
                kind: kind.of(model),
                variant: None,
            })
            .collect()
    }
}

/// Tokens of a prompt by llama-bench's default.
pub const PROMPT: u32 = 512;
/// Tokens of an answer by llama-bench's default.
pub const ANSWER: u32 = 128;

/// Prefill of `n_prompt` tokens behind `n_depth` that are there already.
pub const fn prefill(n_prompt: u32, n_depth: u32) -> TestSpec {
    TestSpec {
        n_prompt,
        n_gen: 0,
        n_depth,
    }
}

/// Decode of `n_gen` tokens behind `n_depth`.
pub const fn decode(n_gen: u32, n_depth: u32) -> TestSpec {
    TestSpec {
        n_prompt: 0,
        n_gen,
        n_depth,
    }
}

fn speeds(specs: impl IntoIterator<Item = TestSpec>) -> Vec<(TestSpec, Kind)> {
    specs.into_iter().map(|spec| (spec, Kind::Speed)).collect()
}

fn both_speeds() -> Vec<(TestSpec, Kind)> {
    speeds([prefill(PROMPT, 0), decode(ANSWER, 0)])
}

/// Both speeds in little time: pp512 and tg128, three repetitions, the fewest that show a spread
/// and an outlier apart from it.
pub fn quick() -> Preset {
    Preset::new("quick", both_speeds(), 3)
}

/// The article's test and llama-bench's default: pp512 and tg128, five repetitions.
pub fn article() -> Preset {
    Preset::new("article", both_speeds(), 5)
}

/// How both speeds fall as the context fills: pp512 and tg128 at depths 0, 512, 1024, 2048, ..,
/// and at the deepest that `limit` tokens of context leave.
///
/// Depths rise, so that the engine goes on from the state it has kept and no depth is paid for
/// twice. Where not even one prompt fits, the tests at depth 0 are left, for the plan's checks and
/// the engine to judge.
pub fn context_curve(limit: u32) -> Preset {
    let specs = depths(limit.saturating_sub(PROMPT));
    let specs = specs
        .into_iter()
        .flat_map(|depth| [prefill(PROMPT, depth), decode(ANSWER, depth)]);
    Preset::new("context_curve", speeds(specs), 3)
}

/// 0, then doubling from one prompt on, and the deepest where it adds at least a quarter.
fn depths(deepest: u32) -> Vec<u32> {
    let mut depths = vec![0];
    let mut next = PROMPT;
    while next <= deepest {
        depths.push(next);
        let Some(doubled) = next.checked_mul(2) else {
            break;
        };
        next = doubled;
    }
    let last = depths.last().copied().unwrap_or_default();
    if last > 0 && u64::from(deepest) * 4 >= u64::from(last) * 5 {
        depths.push(deepest);
    }
    depths
}

/// Documents that are read before an answer: prefill of all of 4096, 8192 and 16384 tokens, decode
/// behind them, and the time to the first token, as far as `limit` tokens of context hold
/// document and answer; where not even the shortest fits, the longest that does.
pub fn long_document(limit: u32) -> Preset {
    let room = limit.saturating_sub(ANSWER);
    let mut lengths: Vec<u32> = [4096, 8192, 16384]
        .into_iter()
        .filter(|&length| length <= room)
        .collect();
    if lengths.is_empty() {
        lengths.push(room.max(1));
    }
    let tests = lengths.into_iter().flat_map(|length| {
        let first = TestSpec {
            n_prompt: length,
            n_gen: FIRST_TOKENS,
            n_depth: 0,
        };
        let first_token = Kind::FirstToken {
            page_cache: PageCache::Warm,
        };
        [
            (prefill(length, 0), Kind::Speed),
            (decode(ANSWER, length), Kind::Speed),
            (first, first_token),
        ]
    });
    Preset::new("long_document", tests.collect(), 3)
}

/// Tokens that are written where the first is what counts: enough to see the second and how
/// decoding goes on, hardly longer than the first alone.
pub const FIRST_TOKENS: u32 = 8;

/// One user, two, four, .. up to `most`, each with a prompt of 128 tokens and an answer of 64, as
/// far as `limit` tokens of context hold all of them. The limit is that of the memory: each user
/// has a context of its own to itself, so what the model was trained for does not bound the sum.
pub fn users(most: u32, limit: u64) -> Preset {
    let spec = TestSpec {
        n_prompt: 128,
        n_gen: 64,
        n_depth: 0,
    };
    let tests = (0..32)
        .map(|power| 1 << power)
        .take_while(|&users| users <= most.max(1))
        .map(|users| Kind::Users {
            users,
            split_kv: false,
            shared_prompt: false,
        })
        .filter(|kind| kind.sequences() == 1 || kind.context(spec) <= limit)
        .map(|kind| (spec, kind));
    Preset::new("users", tests.collect(), 3)
}

/// What a quantization gains and what it costs: both speeds, and predictions against those of
/// `best`, the best source of the same model that is there.
///
/// [`QUALITY_TOKENS`] of the bundled text are read. `best` itself is not held against itself: its
/// perplexity alone is measured.
pub fn face_off(best: &MeasuredModel) -> Preset {
    let quality = Kind::Quality {
        n_ctx: QUALITY_CONTEXT,
        text: None,
        base: Some(Box::new(best.clone())),
    };
    let mut tests = both_speeds();
    tests.push((prefill(QUALITY_TOKENS, 0), quality));
    Preset::new("face_off", tests, 5)
}

/// Tokens of a chunk when quality is judged: llama-perplexity's default.
pub const QUALITY_CONTEXT: u32 = 512;

/// Tokens that are read when quality is judged: 16 chunks, of which 4,080 predictions are scored.
/// That tells Q4 from Q8 in well under a minute for a small model, and is two passes with a base.
pub const QUALITY_TOKENS: u32 = 16 * QUALITY_CONTEXT;

/// From reading weights to computing: one batch of 1, 2, 4, .. [`PROMPT`] tokens each, and decode
/// beside them. Each is within one micro-batch of the engine's default, so all its tokens share one
/// pass over the weights.
pub fn roofline() -> Preset {
    let batches = (0..=PROMPT.ilog2()).map(|power| prefill(1 << power, 0));
    let all = batches.chain([decode(ROOFLINE_ANSWER, 0)]);
    Preset::new("roofline", speeds(all), 3)
}

/// Tokens that are written for [`roofline`]: enough for a steady speed, and near the empty context
/// that its batches have.
pub const ROOFLINE_ANSWER: u32 = 32;

/// What the machine holds rather than what it peaks at: prefill and decode in turn for this long.
pub fn sustained(seconds: u32) -> Preset {
    Preset {
        order: Order::Sustained { seconds },
        ..Preset::new("sustained", both_speeds(), 1)
    }
}

/// Seconds of [`sustained`] unless another time is asked for: a laptop's cooling has settled by
/// then.
pub const SUSTAINED_SECONDS: u32 = 600;

/// Tokens of context that a model can hold: what it was trained for, or less where memory ends
/// first.
///
/// `needs` says how many bytes a context of so many tokens takes and never falls as they grow;
/// `available` is what is free for it. Where one is unknown, what the model was trained for counts.
pub fn context_limit(
    trained: u32,
    needs: impl Fn(u32) -> Option<u64>,
    available: Option<u64>,
) -> u32 {
    let Some(available) = available else {
        return trained;
    };
    let fits = |tokens| needs(tokens).is_none_or(|bytes| bytes <= available);
    if fits(trained) {
        return trained;
    }
    let (mut low, mut high) = (0, trained);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if fits(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::tests::model;
    use twospeed_engine::Settings;

    fn names(preset: &Preset) -> Vec<String> {
        preset
            .tests
            .iter()
            .map(|(spec, kind)| kind.name(*spec))
            .collect()
    }

    #[test]
    fn the_curve_doubles_from_the_empty_context_to_the_limit() {
        let deep: Vec<_> = context_curve(8192)
            .tests
            .iter()
            .map(|(spec, _)| (spec.n_depth, spec.tokens()))
            .collect();
        let (p, t) = (512, 128);
        assert_eq!(
            deep,
            [
                (0, p),
                (0, t),
                (512, p),
                (512, t),
                (1024, p),
                (1024, t),
                (2048, p),
                (2048, t),
                (4096, p),
                (4096, t),
                // 8192 - 512: the last prompt ends where the context does.
                (7680, p),
                (7680, t)
            ]
        );
    }

    #[test]
    fn a_deepest_point_beside_the_last_doubling_is_left_out() {
        // 4096 + 512 + 100: the deepest, 4196, is hardly more than 4096.
        assert_eq!(depths(4196), [0, 512, 1024, 2048, 4096]);
        assert_eq!(depths(5120), [0, 512, 1024, 2048, 4096, 5120]);
        assert_eq!(depths(0), [0]);
        assert_eq!(depths(100), [0]);
        let most = depths(u32::MAX);
        assert_eq!(most[most.len() - 2..], [1 << 31, u32::MAX]);
    }

    #[test]
    fn documents_and_their_answers_stay_within_the_context() {
        assert_eq!(
            names(&long_document(8320)),
            [
                "pp4096",
                "tg128 @ d4096",
                "first-token pp4096 warm",
                "pp8192",
                "tg128 @ d8192",
                "first-token pp8192 warm"
            ]
        );
        assert_eq!(
            names(&long_document(8319)).len(),
            3,
            "8192 + 128 is one more"
        );
        assert_eq!(names(&long_document(2048))[0], "pp1920");
    }

    #[test]
    fn users_double_until_the_memory_or_the_most_is_reached() {
        // Each takes 192 tokens: four take 768, eight 1536.
        let counts = |most, limit| -> Vec<u32> {
            let preset = users(most, limit);
            preset.tests.iter().map(|(_, k)| k.sequences()).collect()
        };
        assert_eq!(counts(8, 1536), [1, 2, 4, 8]);
        assert_eq!(counts(8, 1535), [1, 2, 4]);
        assert_eq!(counts(6, 1 << 20), [1, 2, 4]);
        assert_eq!(counts(4, 0), [1], "one is always tried");
    }

    #[test]
    fn the_best_quantization_is_not_held_against_itself() {
        let best = model("Q8");
        let preset = face_off(&best);
        let last = |model| {
            let tests = preset.tests_of(model, &Settings::default());
            tests.last().map(PlannedTest::name).unwrap()
        };
        assert_eq!(last(&best), "ppl8192 ctx512 of Q8");
        assert_eq!(last(&model("Q4")), "kl8192 ctx512 of Q4");
    }

    #[test]
    fn the_roofline_doubles_one_batch_from_a_token_to_a_prompt() {
        assert_eq!(
            names(&roofline()),
            [
                "pp1", "pp2", "pp4", "pp8", "pp16", "pp32", "pp64", "pp128", "pp256", "pp512",
                "tg32"
            ]
        );
        assert!(PROMPT <= Settings::default().n_ubatch, "one pass each");
    }

    #[test]
    fn memory_ends_a_context_before_its_training_does() {
        // 1,000 bytes a token and 256 at the start.
        let needs = |tokens: u32| Some(256 + 1000 * u64::from(tokens));
        assert_eq!(context_limit(8192, needs, Some(4_000_255)), 3999);
        assert_eq!(context_limit(8192, needs, Some(4_000_256)), 4000);
        assert_eq!(context_limit(8192, needs, Some(u64::MAX)), 8192);
        assert_eq!(context_limit(8192, needs, None), 8192);
        assert_eq!(context_limit(8192, |_| None, Some(0)), 8192);
        assert_eq!(context_limit(8192, needs, Some(0)), 0);
    }
}
