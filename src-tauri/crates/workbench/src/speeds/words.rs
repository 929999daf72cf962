//! What the figure says in words: what sets rows apart, what was measured, where it comes from.

use jiff::ZonedDateTime;
use jiff::tz::TimeZone;
use twospeed_engine::{FlashAttention, Settings};
use twospeed_history::Test;
use twospeed_history::llama_bench::settings_fields;
use twospeed_measure::Warning;
use twospeed_measure::machine::Machine;
use twospeed_measure::model::MeasuredModel;

use super::{Bar, SpeedsOptions};

/// What sets a bar apart from the others, beyond model and quantization.
pub(super) fn detail(
    bar: &Bar<'_>,
    bars: &[Bar<'_>],
    usual: (Option<u32>, Option<u32>),
    zone: &TimeZone,
) -> Option<String> {
    let mut parts = Vec::new();
    let length = |test: Option<&Test>| test.map(|test| test.record.spec.tokens() as u32);
    if let Some(n) = length(bar.prefill).filter(|n| Some(*n) != usual.0) {
        parts.push(format!("prompt {}", grouped(n)));
    }
    if let Some(n) = length(bar.decode).filter(|n| Some(*n) != usual.1) {
        parts.push(format!("answer {}", grouped(n)));
    }
    if bar.depth > 0 {
        parts.push(format!("depth {}", grouped(bar.depth)));
    }
    parts.extend(conditions(bar, bars));
    // Equal in all of that: only the time tells them apart.
    let twins = bars.iter().filter(|other| {
        other.model.fingerprint == bar.model.fingerprint
            && other.settings == bar.settings
            && other.depth == bar.depth
            && other.variant == bar.variant
            && length(other.prefill) == length(bar.prefill)
            && length(other.decode) == length(bar.decode)
    });
    let moments: Vec<_> = twins.map(|twin| began(twin, zone)).collect();
    if moments.len() > 1 {
        let minute = |moment: &ZonedDateTime| moment.strftime("%Y-%m-%d %H:%M").to_string();
        let own = began(bar, zone);
        let same = moments
            .iter()
            .filter(|moment| minute(moment) == minute(&own));
        parts.push(match same.count() {
            1 => minute(&own),
            _ => own.strftime("%Y-%m-%d %H:%M:%S").to_string(),
        });
    }
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// What tells a result from others of the same model beside its quantization, for a list that says
/// the time anyway: `d4096`, `4 threads`, ...
pub fn differs(bar: &Bar<'_>, bars: &[Bar<'_>]) -> Vec<String> {
    let usual = super::usual(bars);
    let spec = |test: Option<&Test>| test.map(|test| test.record.spec);
    let mut parts = Vec::new();
    if let Some(spec) = spec(bar.prefill).filter(|spec| Some(spec.n_prompt) != usual.0) {
        parts.push(format!("pp{}", spec.n_prompt));
    }
    if let Some(spec) = spec(bar.decode).filter(|spec| Some(spec.n_gen) != usual.1) {
        parts.push(format!("tg{}", spec.n_gen));
    }
    if bar.depth > 0 {
        parts.push(format!("d{}", bar.depth));
    }
    parts.extend(conditions(bar, bars));
    parts
}

/// Settings and CPU variant, where they are not the same in all bars.
fn conditions(bar: &Bar<'_>, bars: &[Bar<'_>]) -> Vec<String> {
    let mut parts = settings_that_differ(bar, bars);
    if bars.iter().any(|other| other.variant != bar.variant) {
        parts.push(format!("CPU {}", bar.variant.unwrap_or("unknown")));
    }
    parts
}

/// Every setting that is not the same in all bars: two bars that differ in any are never named alike.
fn settings_that_differ(bar: &Bar<'_>, bars: &[Bar<'_>]) -> Vec<String> {
    let others: Vec<_> = bars
        .iter()
        .map(|bar| settings_fields(bar.settings))
        .collect();
    settings_fields(bar.settings)
        .into_iter()
        .enumerate()
        .filter(|(index, field)| others.iter().any(|other| other[*index] != *field))
        .map(|(_, (name, value))| setting(name, &value.plain(), bar.settings))
        .collect()
}

/// A setting in words; one that has none by llama-bench's name for it.
fn setting(name: &str, value: &str, settings: &Settings) -> String {
    match name {
        "n_threads" => threads(settings.n_threads),
        "n_ubatch" => format!("ubatch {value}"),
        "n_batch" => format!("batch {value}"),
        "type_k" => format!("K {value}"),
        "type_v" => format!("V {value}"),
        "flash_attn" => format!("fa {}", flash(settings)),
        "n_gpu_layers" => format!("GPU layers {value}"),
        _ => format!("{name} {value}"),
    }
}

/// When the first test of a bar began.
fn began(bar: &Bar<'_>, zone: &TimeZone) -> ZonedDateTime {
    let first = bar.tests().map(|test| test.record.started_at).min();
    first
        .unwrap_or(bar.run.run.started_at)
        .to_zoned_datetime(zone.clone())
}

fn threads(number: u32) -> String {
    format!(
        "{number} {}",
        if number == 1 { "thread" } else { "threads" }
    )
}

fn flash(settings: &Settings) -> &'static str {
    match settings.flash_attn {
        FlashAttention::Auto => "auto",
        FlashAttention::Off => "off",
        FlashAttention::On => "on",
    }
}

/// Values in the order they come, each once.
fn distinct<'a, T: PartialEq + 'a>(values: impl Iterator<Item = T>) -> Vec<T> {
    let mut seen = Vec::new();
    for value in values {
        if !seen.contains(&value) {
            seen.push(value);
        }
    }
    seen
}

pub(super) fn subject(bars: &[Bar<'_>]) -> String {
    let models = distinct(bars.iter().map(Bar::name));
    match &models[..] {
        [model] => model.clone(),
        _ => format!("{} models", models.len()),
    }
}

pub(super) fn subtitle(bars: &[Bar<'_>], usual: (Option<u32>, Option<u32>)) -> String {
    let models = distinct(bars.iter().map(Bar::name));
    let files = distinct(bars.iter().map(|bar| bar.model.fingerprint.as_str()));
    let what = match (models.len(), files.len()) {
        (1, 1) => match &bars[0].model.quantization {
            Some(quantization) => format!("{} {quantization}.", models[0]),
            None => format!("{}.", models[0]),
        },
        (1, n) => format!("{} in {n} quantizations, smallest file first.", models[0]),
        (n, _) => format!("{n} models, smallest first."),
    };
    let counts = distinct(
        bars.iter()
            .flat_map(Bar::tests)
            .map(|test| test.samples.len()),
    );
    let samples = match counts[..] {
        [1] => "One sample".to_owned(),
        [n] => format!("Mean of {n} samples"),
        _ => {
            let (least, most) = (counts.iter().min(), counts.iter().max());
            match (least, most) {
                (Some(least), Some(most)) => format!("Mean of {least} to {most} samples"),
                _ => "Mean".to_owned(),
            }
        }
    };
    let counts = distinct(bars.iter().map(|bar| bar.settings.n_threads));
    let threads = match counts[..] {
        [n] => format!(", {}", threads(n)),
        _ => String::new(),
    };
    let tests = match usual {
        (Some(p), Some(g)) => format!(" pp{p}, tg{g}."),
        (Some(p), None) => format!(" pp{p}."),
        (None, Some(g)) => format!(" tg{g}."),
        (None, None) => String::new(),
    };
    format!("{what} {samples}{threads}.{tests}")
}

/// What disturbed the measurements, so that a figure that stands alone does not say more than they do;
/// `None` where nothing did.
fn care(bars: &[Bar<'_>]) -> Option<String> {
    let troubles = |bar: &Bar<'_>| {
        let warnings = bar.tests().filter_map(|test| test.end.as_ref());
        distinct(warnings.flat_map(|end| end.warnings.iter().filter_map(trouble)))
    };
    let disturbed: Vec<_> = bars
        .iter()
        .map(troubles)
        .filter(|list| !list.is_empty())
        .collect();
    let all = distinct(disturbed.iter().flatten().copied()).join(", ");
    let rows = match (disturbed.len(), bars.len()) {
        (0, _) => return None,
        (some, of) if some == of => String::new(),
        (some, of) => format!(", {some} of {of} rows"),
    };
    Some(format!("To be read with care{rows}: {all}."))
}

/// What a warning says of the circumstances; `None` where they disturbed nothing.
fn trouble(warning: &Warning) -> Option<&'static str> {
    match warning {
        Warning::SlowFirstSample { .. } => Some("a slow first sample"),
        Warning::HighVariance { .. } => Some("samples far apart"),
        Warning::Trend { .. } => Some("a speed that drifted"),
        Warning::SwapInUse { .. } => Some("swap in use"),
        Warning::OtherLoad { .. } => Some("other programs at work"),
        Warning::Steal { .. } => Some("time taken by the host"),
        Warning::CpuQuota { .. } => Some("a quota of processor time"),
        Warning::Drift { .. } => Some("a machine that changed"),
        Warning::OnBattery => Some("on battery"),
        Warning::PageFaults { .. } => Some("reads from disk"),
        Warning::SoftwareGpu { .. } => Some("a GPU interface computed by the processor"),
        Warning::NothingOffloaded { .. } => Some("no layer on a GPU, though asked for"),
        Warning::NotSettled { .. } => Some("a mean that did not settle"),
        Warning::Outliers { .. } => Some("single samples far off"),
        Warning::Throttled { .. } => Some("a clock held down by heat"),
        Warning::PowerSaver { .. } => Some("a power profile that saves energy"),
        // Another variant ran undisturbed, and is named.
        Warning::VariantSetAside { .. } => None,
    }
}

/// The models that have a ceiling.
fn with_ceiling<'a>(bars: &[Bar<'a>], options: &SpeedsOptions<'_>) -> Vec<&'a MeasuredModel> {
    bars.iter()
        .filter(|bar| (options.ceiling)(&bar.run.run.machine, bar.model).is_some())
        .map(|bar| bar.model)
        .collect()
}

pub(super) fn footer(bars: &[Bar<'_>], options: &SpeedsOptions<'_>) -> Vec<String> {
    let mut statements = Vec::new();
    let files = distinct(bars.iter().filter_map(|bar| {
        let name = bar.model.path.0.file_name()?;
        Some(name.to_string_lossy().into_owned())
    }));
    let engines = distinct(bars.iter().filter_map(|bar| {
        let worker = bar.tests().next()?.end.as_ref()?.worker.as_ref()?;
        Some(format!(
            "llama.cpp build {}, {} {}",
            worker.engine.build_number, worker.backends, worker.variant.name
        ))
    }));
    let files = match files.len() {
        0..=4 => files.join(", "),
        n => format!("{n} model files"),
    };
    statements.push(format!("{files}. {}.", engines.join("; ")));
    if bars.iter().any(|bar| bar.model.synthetic) {
        statements.push(
            "The built-in model has random weights: its speed is real, its text is noise."
                .to_owned(),
        );
    }
    if options.overlays.ceiling
        && let Some(source) = (options.ceiling_source)(&with_ceiling(bars, options))
    {
        statements.push(source);
    }
    statements.extend(care(bars));
    let machines = distinct(bars.iter().map(|bar| machine(&bar.run.run.machine)));
    let versions = distinct(bars.iter().map(|bar| bar.run.run.app_version.as_str()));
    statements.push(format!(
        "{}. {} Twospeed {}.",
        machines.join("; "),
        when(bars, &options.time_zone),
        versions.join(", ")
    ));
    statements
}

fn machine(machine: &Machine) -> String {
    let mut parts = vec![machine.cpu.clone()];
    if let Some(cores) = machine.physical_cores {
        parts.push(format!(
            "{cores} {}",
            if cores == 1 { "core" } else { "cores" }
        ));
    }
    if let Some(bytes) = machine.memory_bytes {
        parts.push(format!("{:.0} GB", bytes as f64 / 1e9));
    }
    parts.join(", ")
}

/// `Measured 30 November 2026, 14:02 to 14:09.`
fn when(bars: &[Bar<'_>], zone: &TimeZone) -> String {
    let moments = || {
        bars.iter()
            .flat_map(Bar::tests)
            .flat_map(|test| {
                [
                    Some(test.record.started_at),
                    test.end.as_ref().map(|end| end.ended_at),
                ]
            })
            .flatten()
            .map(|moment| moment.to_zoned_datetime(zone.clone()))
    };
    let (Some(first), Some(last)) = (moments().min(), moments().max()) else {
        return "Measured at an unknown time.".to_owned();
    };
    let day = |moment: &ZonedDateTime| moment.strftime("%-d %B %Y").to_string();
    let time = |moment: &ZonedDateTime| moment.strftime("%H:%M").to_string();
    let text = if day(&first) != day(&last) {
        format!("{} to {}", day(&first), day(&last))
    } else if time(&first) == time(&last) {
        format!("{}, {}", day(&first), time(&first))
    } else {
        format!("{}, {} to {}", day(&first), time(&first), time(&last))
    };
    format!("Measured {text}.")
}

/// A whole number with its thousands apart: `4,096`.
pub fn grouped(number: impl Into<u64>) -> String {
    let digits = number.into().to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
