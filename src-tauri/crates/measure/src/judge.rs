//! Judges a test by its samples and by what was around it, purely.
//!
//! Each threshold says why it is where it is. Thresholds are for telling a person, not for leaving
//! anything out: every sample stays.

use twospeed_engine::protocol::{DeviceKind, Hello, PageCache, Placement, Sample};
use twospeed_engine::{Settings, TestSpec};

use crate::figure::rates;
use crate::kind::Kind;
use crate::machine::MachineState;
use crate::plan::Until;
use crate::settle::{Settled, relative_half_width, settled};
use crate::stats::{line, median, spread, t_975};
use crate::warning::Warning;

/// A first repetition this much slower than the median of the others was still warming up.
/// On a quiet machine repetitions after a warm-up lie within 2 or 3 % of each other.
pub const SLOW_FIRST_FACTOR: f64 = 1.15;

/// Standard deviation / mean from which two quantizations next to each other (some 5 to 10 %
/// apart in speed) can no longer be told apart.
pub const HIGH_VARIANCE: f64 = 0.05;

/// Change over the repetitions that is worth a word: the size of [`HIGH_VARIANCE`], seen as a
/// direction.
pub const TREND: f64 = 0.05;

/// Fewest repetitions that can show a trend: with four, a line through noise is common.
pub const TREND_SAMPLES: usize = 5;

/// Swap in use below this is what a kernel moves out of the way of idle programs.
pub const SWAP_BYTES: u64 = 64 << 20;

/// Share of the usable cores that others may take before it shows in the result: one part in
/// twenty of the compute is a prefill 5 % slower.
pub const OTHER_LOAD_SHARE: f64 = 0.05;

/// Share of time the hypervisor may take before it shows.
pub const STEAL_SHARE: f64 = 0.01;

/// Throttling by the quota that counts: one tenth of the usual period of 100 ms.
pub const THROTTLED_NS: u64 = 10_000_000;

/// Change of the anchor that means a changed machine; it repeats within 1 or 2 % on a quiet one.
pub const DRIFT: f64 = 0.05;

/// Major faults of a test that are no more than code touched for the first time.
pub const PAGE_FAULTS: u64 = 16;

/// Everything a judgement rests on.
#[derive(Debug, Clone, Copy)]
pub struct Evidence<'a> {
    /// What was timed.
    pub spec: TestSpec,
    /// What of it was measured.
    pub kind: &'a Kind,
    /// How well the mean was to be known, and the fewest repetitions.
    pub until: Option<(Until, u32)>,
    /// Under which settings.
    pub settings: &'a Settings,
    /// The samples in their order.
    pub samples: &'a [Sample],
    /// The machine before.
    pub before: Option<&'a MachineState>,
    /// The machine after; its rates cover the test.
    pub after: Option<&'a MachineState>,
    /// Anchor before, nanoseconds.
    pub anchor_before_ns: Option<u64>,
    /// Anchor after, nanoseconds.
    pub anchor_after_ns: Option<u64>,
    /// What lay where.
    pub placement: Option<&'a Placement>,
    /// The worker.
    pub worker: Option<&'a Hello>,
    /// CPU variants that are set aside on this machine.
    pub set_aside: &'a [String],
}

/// What a reader of the result should know, in the order of [`Warning`]'s variants.
pub fn judge(evidence: &Evidence<'_>) -> Vec<Warning> {
    let rates = rates(evidence.kind, evidence.spec, evidence.samples);
    [
        slow_first_sample(evidence.samples),
        high_variance(&rates),
        trend(&rates),
        swap_in_use(evidence.before, evidence.after),
        other_load(evidence.after),
        steal(evidence.after),
        cpu_quota(evidence.settings, evidence.after.or(evidence.before)),
        drift(evidence.anchor_before_ns, evidence.anchor_after_ns),
        on_battery(evidence.before, evidence.after),
        variant_set_aside(evidence.worker, evidence.set_aside),
        software_gpu(evidence.worker, evidence.placement),
        nothing_offloaded(evidence.settings, evidence.placement),
        page_faults(evidence.kind, evidence.samples),
        evidence
            .until
            .and_then(|(until, fewest)| not_settled(&rates, until, fewest)),
        evidence
            .until
            .and_then(|(until, fewest)| outliers(&rates, until, fewest)),
        throttled(evidence.after),
        power_saver(evidence.before, evidence.after),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The first repetition stands out from all others.
pub fn slow_first_sample(samples: &[Sample]) -> Option<Warning> {
    let (first, others) = samples.split_first()?;
    if others.len() < 2 {
        return None;
    }
    let others: Vec<f64> = others.iter().map(|sample| sample.ns as f64).collect();
    let slowest = others.iter().copied().fold(0.0, f64::max);
    let middle = median(&others).filter(|&ns| ns > 0.0)?;
    let first = first.ns as f64;
    let by = first / middle;
    (by >= SLOW_FIRST_FACTOR && first > slowest).then_some(Warning::SlowFirstSample { by })
}

/// The spread is large against the mean; `rates` are those of [`crate::figure`].
pub fn high_variance(rates: &[f64]) -> Option<Warning> {
    let speed = spread(rates)?;
    let relative = speed.standard_deviation? / speed.mean;
    (relative >= HIGH_VARIANCE).then_some(Warning::HighVariance { relative })
}

/// Speed rises or falls over the repetitions by more than noise does.
///
/// The slope must differ from zero by a two-sided t test at 5 %.
pub fn trend(rates: &[f64]) -> Option<Warning> {
    if rates.len() < TREND_SAMPLES {
        return None;
    }
    let fit = line(rates)?;
    let steps = rates.len() - 1;
    let relative = fit.slope * steps as f64 / spread(rates)?.mean;
    let degrees = u32::try_from(rates.len() - 2).ok()?;
    let sure = fit.slope.abs() > t_975(degrees) * fit.slope_error;
    (relative.abs() >= TREND && sure).then_some(Warning::Trend { relative })
}

/// More swap is in use than idle programs leave there.
pub fn swap_in_use(before: Option<&MachineState>, after: Option<&MachineState>) -> Option<Warning> {
    let bytes = [before, after]
        .into_iter()
        .filter_map(|state| state?.swap_used_bytes)
        .max()?;
    (bytes >= SWAP_BYTES).then_some(Warning::SwapInUse { bytes })
}

/// Others took a share of the cores while the test ran.
pub fn other_load(after: Option<&MachineState>) -> Option<Warning> {
    let state = after?;
    let cores = state.other_load_cores?;
    let usable = state.usable_cores.unwrap_or(1.0).max(1.0);
    (cores / usable >= OTHER_LOAD_SHARE).then_some(Warning::OtherLoad { cores })
}

/// The hypervisor took a share of the time while the test ran.
pub fn steal(after: Option<&MachineState>) -> Option<Warning> {
    let share = after?.steal?;
    (share >= STEAL_SHARE).then_some(Warning::Steal { share })
}

/// More threads than the quota pays for, or the quota was hit.
pub fn cpu_quota(settings: &Settings, state: Option<&MachineState>) -> Option<Warning> {
    let state = state?;
    let cores = state.cpu_quota_cores?;
    let threads = settings.n_threads;
    let throttled = state
        .quota_throttled_ns
        .is_some_and(|ns| ns >= THROTTLED_NS);
    (f64::from(threads) > cores || throttled).then_some(Warning::CpuQuota { cores, threads })
}

/// The anchor took another time after than before.
pub fn drift(before_ns: Option<u64>, after_ns: Option<u64>) -> Option<Warning> {
    let before = before_ns.filter(|&ns| ns > 0)? as f64;
    let relative = after_ns? as f64 / before - 1.0;
    (relative.abs() >= DRIFT).then_some(Warning::Drift { relative })
}

/// Ran on battery before or after.
pub fn on_battery(before: Option<&MachineState>, after: Option<&MachineState>) -> Option<Warning> {
    [before, after]
        .into_iter()
        .any(|state| state.and_then(|state| state.on_battery) == Some(true))
        .then_some(Warning::OnBattery)
}

/// A CPU variant that scores higher than the one that ran is set aside.
pub fn variant_set_aside(worker: Option<&Hello>, set_aside: &[String]) -> Option<Warning> {
    let hello = worker?;
    let died = hello
        .variants
        .iter()
        .take_while(|variant| variant.name != hello.variant.name)
        .find(|variant| set_aside.contains(&variant.name))?;
    Some(Warning::VariantSetAside {
        died: died.name.clone(),
        ran: hello.variant.name.clone(),
    })
}

/// Something lay on a device that only plays a GPU.
pub fn software_gpu(worker: Option<&Hello>, placement: Option<&Placement>) -> Option<Warning> {
    let placement = placement?;
    let device = worker?.devices.iter().find(|device| {
        device.kind == DeviceKind::SoftwareGpu
            && placement
                .buffers
                .iter()
                .any(|buffer| buffer.device == device.name && buffer.bytes > 0)
    })?;
    Some(Warning::SoftwareGpu {
        device: device.description.clone(),
    })
}

/// Layers were asked onto a GPU by number and none went there.
pub fn nothing_offloaded(settings: &Settings, placement: Option<&Placement>) -> Option<Warning> {
    let asked = settings.n_gpu_layers;
    let offloaded = placement?.offloaded_layers.unwrap_or(0);
    (asked > 0 && offloaded == 0).then_some(Warning::NothingOffloaded { asked })
}

/// The disk was read inside timed sections, though nobody asked for a cold file.
pub fn page_faults(kind: &Kind, samples: &[Sample]) -> Option<Warning> {
    const COLD: Kind = Kind::FirstToken {
        page_cache: PageCache::Drop,
    };
    if *kind == COLD {
        return None;
    }
    let faults: u64 = samples
        .iter()
        .filter_map(|sample| sample.major_faults)
        .sum();
    (faults >= PAGE_FAULTS).then_some(Warning::PageFaults { faults })
}

/// Repeated to the cap without knowing the mean.
pub fn not_settled(rates: &[f64], until: Until, fewest: u32) -> Option<Warning> {
    let at_the_cap = rates.len() >= until.at_most as usize;
    if !at_the_cap || settled(rates, until, fewest).is_some() {
        return None;
    }
    Some(Warning::NotSettled {
        relative: relative_half_width(rates)?,
        target: until.relative,
    })
}

/// Known as well as was asked only without some repetitions.
pub fn outliers(rates: &[f64], until: Until, fewest: u32) -> Option<Warning> {
    match settled(rates, until, fewest)? {
        Settled::WithoutOutliers { count, by } => Some(Warning::Outliers { count, by }),
        Settled::Mean => None,
    }
}

/// Processors were throttled by heat while the test ran.
pub fn throttled(after: Option<&MachineState>) -> Option<Warning> {
    let state = after?;
    let times = state.core_throttles.max(state.package_throttles)?;
    (times > 0).then_some(Warning::Throttled { times })
}

/// The power profile saves energy, before or after.
pub fn power_saver(before: Option<&MachineState>, after: Option<&MachineState>) -> Option<Warning> {
    let profiles = [after, before].into_iter().flatten();
    let mut profiles = profiles.filter_map(|state| state.power_profile.as_ref());
    let profile = profiles.find(|profile| saves_power(profile))?;
    Some(Warning::PowerSaver {
        profile: profile.clone(),
    })
}

/// Whether a power profile saves energy at the cost of speed: the words of Linux for platform
/// profiles, energy preferences and governors.
pub fn saves_power(profile: &str) -> bool {
    const SAVING: [&str; 6] = [
        "low-power",
        "quiet",
        "cool",
        "power",
        "balance_power",
        "powersave",
    ];
    SAVING.contains(&profile)
}

#[cfg(test)]
mod tests;
