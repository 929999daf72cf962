//! Settings that are measured side by side.

use twospeed_engine::{FlashAttention, Settings};
use twospeed_estimate::KvType;
use twospeed_measure::PlannedTest;

use super::check_threads;
use crate::Problem;
use crate::measure::{Setting, Sweep};

/// Largest batch: more than any engine takes at once, and its buffers would not fit.
const MOST_BATCH: u32 = 1 << 20;

/// llama-bench's spellings.
const FLASH: [(&str, FlashAttention); 3] = [
    ("auto", FlashAttention::Auto),
    ("off", FlashAttention::Off),
    ("on", FlashAttention::On),
];
const LOAD_MODES: [&str; 6] = ["auto", "none", "mmap", "mlock", "mmap+mlock", "dio"];

/// Refuses what the engine does not know.
pub(super) fn check(sweep: &Sweep) -> Result<(), Problem> {
    for threads in &sweep.threads {
        check_threads(*threads)?;
    }
    let sizes = sweep.batch.iter().chain(&sweep.micro_batch);
    if let Some(size) = sizes.copied().find(|size| !(1..=MOST_BATCH).contains(size)) {
        return Err(Problem::new(
            "batch_impossible",
            format!("A batch of {size} tokens cannot be computed: take 1 to {MOST_BATCH}."),
        ));
    }
    let unknown = |what: &str, value: &str| {
        Problem::new(
            "setting_unknown",
            format!("The engine knows no {what} \"{value}\": choose one of the list."),
        )
    };
    if let Some(value) = sweep
        .cache
        .iter()
        .find(|name| name.parse::<KvType>().is_err())
    {
        return Err(unknown("type of the cache", value));
    }
    if let Some(value) = sweep
        .flash_attention
        .iter()
        .find(|name| flash(name).is_none())
    {
        return Err(unknown("flash attention", value));
    }
    let mut modes = sweep.load_mode.iter();
    match modes.find(|mode| !LOAD_MODES.contains(&mode.as_str())) {
        Some(value) => Err(unknown("way to load", value)),
        None => Ok(()),
    }
}

fn flash(name: &str) -> Option<FlashAttention> {
    FLASH
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, flash)| *flash)
}

/// Each of the values, or the one that is there already.
fn each<T: Clone + PartialEq>(values: &[T], usual: T) -> Vec<T> {
    if values.is_empty() {
        return vec![usual];
    }
    let mut all: Vec<T> = Vec::with_capacity(values.len());
    for value in values {
        if !all.contains(value) {
            all.push(value.clone());
        }
    }
    all
}

/// Every combination. What shapes the load changes least often: variant, load, repacking; then what
/// shapes the context.
pub(super) fn settings(usual: &Settings, sweep: &Sweep) -> Vec<(Settings, Option<String>)> {
    let variants: Vec<Option<String>> = match sweep.variant.is_empty() {
        true => vec![None],
        false => each(&sweep.variant, String::new())
            .into_iter()
            .map(Some)
            .collect(),
    };
    let mut all: Vec<(Settings, Option<String>)> = variants
        .into_iter()
        .map(|variant| (usual.clone(), variant))
        .collect();
    let mut turn = |count: usize, change: &dyn Fn(&mut Settings, usize)| {
        all = all
            .iter()
            .flat_map(|(settings, variant)| {
                (0..count).map(|index| {
                    let mut settings = settings.clone();
                    change(&mut settings, index);
                    (settings, variant.clone())
                })
            })
            .collect();
    };
    let modes = each(&sweep.load_mode, usual.load_mode.clone());
    turn(modes.len(), &|it, at| it.load_mode.clone_from(&modes[at]));
    let repack = each(&sweep.repack, usual.repack);
    turn(repack.len(), &|it, at| it.repack = repack[at]);
    let caches = each(&sweep.cache, usual.type_k.clone());
    turn(caches.len(), &|it, at| {
        it.type_k.clone_from(&caches[at]);
        it.type_v.clone_from(&caches[at]);
    });
    let flashes: Vec<_> = sweep
        .flash_attention
        .iter()
        .filter_map(|name| flash(name))
        .collect();
    let flashes = each(&flashes, usual.flash_attn);
    turn(flashes.len(), &|it, at| it.flash_attn = flashes[at]);
    let batches = each(&sweep.batch, usual.n_batch);
    turn(batches.len(), &|it, at| it.n_batch = batches[at]);
    let micro = each(&sweep.micro_batch, usual.n_ubatch);
    turn(micro.len(), &|it, at| it.n_ubatch = micro[at]);
    let threads = each(&sweep.threads, usual.n_threads);
    turn(threads.len(), &|it, at| it.n_threads = threads[at]);
    all
}

/// None of the layers on the GPU, a quarter, half, three quarters, all; all and none where it is
/// not known how many there are.
pub(super) fn offload(usual: &Settings, layers: Option<u32>) -> Vec<(Settings, Option<String>)> {
    let counts = match layers {
        // The output counts as one more.
        Some(layers) => {
            let all = layers + 1;
            let mut counts = vec![0, all / 4, all / 2, all * 3 / 4, all];
            counts.dedup();
            counts
        }
        None => vec![0, 999],
    };
    let with = |layers: u32| Settings {
        n_gpu_layers: i32::try_from(layers).unwrap_or(i32::MAX),
        ..usual.clone()
    };
    counts
        .into_iter()
        .map(|layers| (with(layers), None))
        .collect()
}

/// Settings that a person turns, by llama-bench's names.
fn turned(test: &PlannedTest) -> [(&'static str, String); 9] {
    let settings = &test.settings;
    let cache = match settings.type_k == settings.type_v {
        true => settings.type_k.clone(),
        false => format!("{}/{}", settings.type_k, settings.type_v),
    };
    let flash = FLASH
        .iter()
        .find(|(_, flash)| *flash == settings.flash_attn);
    [
        (
            "variant",
            test.variant.clone().unwrap_or_else(|| "best".into()),
        ),
        ("load_mode", settings.load_mode.clone()),
        ("repack", settings.repack.to_string()),
        ("n_gpu_layers", settings.n_gpu_layers.to_string()),
        ("type_kv", cache),
        (
            "flash_attn",
            flash.map_or("auto", |(name, _)| name).to_owned(),
        ),
        ("n_batch", settings.n_batch.to_string()),
        ("n_ubatch", settings.n_ubatch.to_string()),
        ("n_threads", settings.n_threads.to_string()),
    ]
}

/// For each test the settings that differ among all of them.
pub(super) fn differing(tests: &[PlannedTest]) -> Vec<Vec<Setting>> {
    let all: Vec<_> = tests.iter().map(turned).collect();
    let Some(first) = all.first() else {
        return Vec::new();
    };
    let differs: Vec<bool> = (0..first.len())
        .map(|at| all.iter().any(|one| one[at].1 != first[at].1))
        .collect();
    all.iter()
        .map(|one| {
            let wanted = one.iter().zip(&differs).filter(|(_, differs)| **differs);
            wanted
                .map(|((key, value), _)| Setting {
                    key: (*key).to_owned(),
                    value: value.clone(),
                })
                .collect()
        })
        .collect()
}
