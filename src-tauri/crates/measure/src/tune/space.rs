//! What may be turned, and the choices that come of it.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use twospeed_engine::protocol::Variant;
use twospeed_engine::{FlashAttention, Settings};

use super::target::Target;
use crate::threads::{Topology, allowed, default_threads, usable_cores};

/// CPU variants that are tried at most, the best by the engine's own score.
pub const MOST_VARIANTS: usize = 4;

/// Micro-batches that are tried.
const MICRO_BATCHES: [u32; 5] = [128, 256, 512, 1024, 2048];

/// Settings and the CPU variant they run with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Choice {
    /// The CPU variant by name; `None` = the best that runs here.
    pub variant: Option<String>,
    /// Every setting.
    pub settings: Settings,
}

/// One thing that a choice has other than the defaults.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", content = "value", rename_all = "snake_case")]
pub enum Change {
    /// The CPU variant.
    Variant(String),
    /// Threads.
    Threads(u32),
    /// Flash attention; `auto` only where the defaults were others.
    FlashAttention(FlashAttention),
    /// Repacked weights.
    Repack(bool),
    /// The micro-batch.
    MicroBatch(u32),
}

impl Choice {
    /// What is other than in `defaults`, in the order it is found out.
    pub fn changes(&self, defaults: &Self) -> Vec<Change> {
        let (new, old) = (&self.settings, &defaults.settings);
        let variant = self
            .variant
            .clone()
            .filter(|_| self.variant != defaults.variant)
            .map(Change::Variant);
        let threads = (new.n_threads != old.n_threads).then_some(Change::Threads(new.n_threads));
        let flash =
            (new.flash_attn != old.flash_attn).then_some(Change::FlashAttention(new.flash_attn));
        let repack = (new.repack != old.repack).then_some(Change::Repack(new.repack));
        let ubatch = (new.n_ubatch != old.n_ubatch).then_some(Change::MicroBatch(new.n_ubatch));
        [variant, threads, flash, repack, ubatch]
            .into_iter()
            .flatten()
            .collect()
    }

    /// Whether the model that serves one serves the other.
    pub fn shares_load(&self, other: &Self) -> bool {
        self.variant == other.variant && self.settings.same_load(&other.settings)
    }

    fn with_micro_batch(&self, n_ubatch: u32) -> Self {
        let settings = Settings {
            n_ubatch,
            // Room for the logits of a whole micro-batch, as llama-bench has it.
            n_outputs: n_ubatch,
            ..self.settings.clone()
        };
        Self {
            settings,
            ..self.clone()
        }
    }
}

/// A part of the search: one thing is turned, the rest is as the stage before left it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// The CPU variant: all else depends on it.
    Variant,
    /// Threads.
    Threads,
    /// Flash attention and repacked weights, every combination.
    Attention,
    /// The micro-batch.
    MicroBatch,
}

impl Stage {
    /// In the order they are run.
    pub const ALL: [Self; 4] = [
        Self::Variant,
        Self::Threads,
        Self::Attention,
        Self::MicroBatch,
    ];

    /// Whether prompts must be whole here: what attention and micro-batches gain is in long ones.
    pub fn needs_whole_prompts(self) -> bool {
        matches!(self, Self::Attention | Self::MicroBatch)
    }
}

/// Everything that may be turned, the defaults' value first in each list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Space {
    /// CPU variants.
    pub variants: Vec<Option<String>>,
    /// Threads.
    pub threads: Vec<u32>,
    /// Flash attention.
    pub flash: Vec<FlashAttention>,
    /// Repacked weights.
    pub repack: Vec<bool>,
    /// Micro-batches; the default's alone where prefill does not matter.
    pub micro_batches: Vec<u32>,
}

impl Space {
    /// The space around `defaults`.
    ///
    /// `ran` is the CPU variant that the defaults came to, `variants` are those of the engine, best
    /// first, `set_aside` those that die here; `flash` is what flash attention `auto` came to.
    pub fn new(
        target: Target,
        defaults: &Choice,
        (ran, variants, set_aside): (&str, &[Variant], &[String]),
        threads: &[u32],
        flash: Option<bool>,
    ) -> Self {
        let others = variants
            .iter()
            .filter(|variant| variant.score > 0 && variant.name != ran)
            .filter(|variant| !set_aside.contains(&variant.name))
            .map(|variant| Some(variant.name.clone()));
        let first = std::iter::once(defaults.variant.clone());
        let settings = &defaults.settings;
        Self {
            variants: first.chain(others).take(MOST_VARIANTS).collect(),
            threads: first_of(settings.n_threads, threads.iter().copied()),
            flash: first_of(settings.flash_attn, other_attention(settings, flash)),
            repack: vec![settings.repack, !settings.repack],
            micro_batches: first_of(settings.n_ubatch, micro_batches(target, settings)),
        }
    }

    /// The choices of a stage around the best so far, which comes first.
    pub fn choices(&self, stage: Stage, best: &Choice) -> Vec<Choice> {
        let with = |settings| Choice {
            settings,
            ..best.clone()
        };
        let mut choices = vec![best.clone()];
        match stage {
            Stage::Variant => choices.extend(self.variants.iter().map(|variant| Choice {
                variant: variant.clone(),
                ..best.clone()
            })),
            Stage::Threads => choices.extend(self.threads.iter().map(|&n_threads| {
                with(Settings {
                    n_threads,
                    ..best.settings.clone()
                })
            })),
            // Those that share a load stand together.
            Stage::Attention => choices.extend(self.repack.iter().flat_map(|&repack| {
                self.flash.iter().map(move |&flash_attn| {
                    with(Settings {
                        flash_attn,
                        repack,
                        ..best.settings.clone()
                    })
                })
            })),
            Stage::MicroBatch => choices.extend(
                self.micro_batches
                    .iter()
                    .map(|&n_ubatch| best.with_micro_batch(n_ubatch)),
            ),
        }
        let mut seen: Vec<Choice> = Vec::with_capacity(choices.len());
        for choice in choices {
            if !seen.contains(&choice) {
                seen.push(choice);
            }
        }
        seen
    }
}

fn first_of<T: PartialEq + Copy>(first: T, all: impl IntoIterator<Item = T>) -> Vec<T> {
    let others = all.into_iter().filter(|value| *value != first);
    std::iter::once(first).chain(others).collect()
}

/// What flash attention can be beside the default; what `auto` comes to would be the same again.
fn other_attention(settings: &Settings, came_to: Option<bool>) -> Vec<FlashAttention> {
    match (settings.flash_attn, came_to) {
        (FlashAttention::Auto, Some(true)) => vec![FlashAttention::Off],
        (FlashAttention::Auto, Some(false)) => vec![FlashAttention::On],
        _ => vec![FlashAttention::Off, FlashAttention::On],
    }
}

/// Micro-batches that differ for this target: one that holds the whole prompt is like any larger.
fn micro_batches(target: Target, settings: &Settings) -> Vec<u32> {
    let Some(prefill) = target.prefill() else {
        return Vec::new();
    };
    let n_prompt = prefill.n_prompt;
    let holds_all = std::iter::once(settings.n_ubatch)
        .chain(MICRO_BATCHES)
        .find(|size| *size >= n_prompt);
    MICRO_BATCHES
        .into_iter()
        .filter(|size| *size <= settings.n_batch)
        .filter(|size| *size < n_prompt || Some(*size) == holds_all)
        .collect()
}

/// Threads to try: powers of two, all physical cores, all logical ones, within what this process
/// may use; the default among them.
pub fn thread_counts(topology: &Topology) -> Vec<u32> {
    let logical = u32::try_from(allowed(topology).len()).unwrap_or(u32::MAX);
    let quota = topology
        .quota_cores
        .map_or(u32::MAX, |quota| quota.floor().max(1.0) as u32);
    let default = default_threads(topology);
    let most = logical.min(quota).max(default);
    let physical = usable_cores(topology).map(|cores| cores.floor() as u32);
    let powers = (0..u32::BITS)
        .map(|exponent| 1u32 << exponent)
        .take_while(|count| *count <= most);
    let counts: BTreeSet<u32> = powers
        .chain([default, most])
        .chain(physical)
        .filter(|count| (1..=most).contains(count))
        .collect();
    counts.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::threads::LogicalCpu;

    fn defaults() -> Choice {
        Choice {
            variant: None,
            settings: Settings {
                n_threads: 8,
                ..Settings::default()
            },
        }
    }

    fn variants(names: &[&str]) -> Vec<Variant> {
        names
            .iter()
            .map(|name| Variant {
                name: (*name).to_owned(),
                score: if *name == "amx" { 0 } else { 1 },
            })
            .collect()
    }

    fn space(target: Target, set_aside: &[String]) -> Space {
        let all = variants(&["dead", "zen4", "icelake", "amx", "haswell", "sse42", "x64"]);
        Space::new(
            target,
            &defaults(),
            ("zen4", &all, set_aside),
            &[1, 2, 4, 8, 16],
            Some(true),
        )
    }

    fn threads(cpus: u32, cores: u32, quota: Option<f64>) -> Vec<u32> {
        let cpu = |id| LogicalCpu {
            id,
            core: id % cores,
            kind: None,
            capacity: None,
        };
        thread_counts(&Topology {
            cpus: (0..cpus).map(cpu).collect(),
            allowed: None,
            quota_cores: quota,
        })
    }

    #[test]
    fn the_best_variants_that_run_here_are_tried_the_default_first() {
        let names: Vec<_> = space(Target::BENCH, &["dead".into()]).variants;
        let some = |name: &str| Some(name.to_owned());
        assert_eq!(
            names,
            [None, some("icelake"), some("haswell"), some("sse42")],
            "zen4 is what the defaults run; amx cannot run; four at most"
        );
    }

    #[test]
    fn threads_are_powers_cores_and_hyperthreads() {
        assert_eq!(threads(2, 2, None), [1, 2]);
        assert_eq!(threads(12, 6, None), [1, 2, 4, 6, 8, 12]);
        assert_eq!(threads(16, 8, None), [1, 2, 4, 8, 16]);
        assert_eq!(threads(16, 8, Some(3.5)), [1, 2, 3]);
        assert_eq!(thread_counts(&Topology::default()), [1]);
    }

    #[test]
    fn what_would_be_the_same_again_is_not_tried() {
        let bench = space(Target::BENCH, &[]);
        assert_eq!(bench.flash, [FlashAttention::Auto, FlashAttention::Off]);
        assert_eq!(
            bench.micro_batches,
            [512, 128, 256],
            "a prompt of 512 tokens fits one micro-batch of 512 as well as one of 1024"
        );
        assert_eq!(space(Target::Decode, &[]).micro_batches, [512]);
        let long = Target::Mix {
            prompt: 8192,
            generate: 8,
        };
        assert_eq!(space(long, &[]).micro_batches, [512, 128, 256, 1024, 2048]);
    }

    #[test]
    fn a_stage_turns_its_own_thing_around_the_best_so_far() {
        let space = space(Target::BENCH, &[]);
        let best = Choice {
            variant: Some("icelake".into()),
            ..defaults()
        };
        let choices = space.choices(Stage::Threads, &best);
        assert_eq!(choices[0], best);
        let counts: Vec<_> = choices.iter().map(|c| c.settings.n_threads).collect();
        assert_eq!(counts, [8, 1, 2, 4, 16]);
        assert!(choices.iter().all(|choice| choice.variant == best.variant));

        let choices = space.choices(Stage::Attention, &best);
        let turned: Vec<_> = choices
            .iter()
            .map(|c| (c.settings.repack, c.settings.flash_attn.number()))
            .collect();
        assert_eq!(turned, [(true, -1), (true, 0), (false, -1), (false, 0)]);

        let outputs: Vec<_> = space
            .choices(Stage::MicroBatch, &best)
            .iter()
            .map(|c| (c.settings.n_ubatch, c.settings.n_outputs))
            .collect();
        assert_eq!(outputs, [(512, 512), (128, 128), (256, 256)]);
    }

    #[test]
    fn changes_are_told_apart_from_the_defaults() {
        let mut tuned = defaults().with_micro_batch(256);
        tuned.variant = Some("haswell".into());
        tuned.settings.n_threads = 4;
        tuned.settings.repack = false;
        tuned.settings.flash_attn = FlashAttention::Off;
        assert_eq!(
            tuned.changes(&defaults()),
            [
                Change::Variant("haswell".into()),
                Change::Threads(4),
                Change::FlashAttention(FlashAttention::Off),
                Change::Repack(false),
                Change::MicroBatch(256),
            ]
        );
        assert_eq!(defaults().changes(&defaults()), []);
        assert!(!tuned.shares_load(&defaults()));
    }
}
