//! What every figure says in words: what sets rows apart, what was measured, where it comes from.

use jiff::ZonedDateTime;
use jiff::tz::TimeZone;
use twospeed_engine::{FlashAttention, Settings};
use twospeed_history::llama_bench::settings_fields;
use twospeed_history::{Origin, Test};
use twospeed_measure::Warning;
use twospeed_measure::machine::Machine;

use super::Source;

/// Settings and CPU variant, where they are not the same in all.
pub(crate) fn conditions(one: &Source<'_>, all: &[Source<'_>]) -> Vec<String> {
    let mut parts = settings_that_differ(one, all);
    if all.iter().any(|other| other.variant() != one.variant()) {
        parts.push(format!("CPU {}", one.variant().unwrap_or("unknown")));
    }
    parts
}

/// Every setting that is not the same in all: two that differ in any are never named alike.
fn settings_that_differ(one: &Source<'_>, all: &[Source<'_>]) -> Vec<String> {
    // A setting that a file of another tool does not tell is unlike every value.
    let fields = |source: &Source<'_>| -> Vec<Option<String>> {
        settings_fields(source.settings())
            .into_iter()
            .map(|(name, value)| source.knows(name).then(|| value.plain()))
            .collect()
    };
    let others: Vec<_> = all.iter().map(fields).collect();
    settings_fields(one.settings())
        .into_iter()
        .zip(fields(one))
        .enumerate()
        .filter(|(index, (_, value))| others.iter().any(|other| other[*index] != *value))
        .map(|(_, ((name, _), value))| match value {
            Some(value) => setting(name, &value, one.settings()),
            None => format!("{name} unknown"),
        })
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

/// When the first test began.
pub(crate) fn began(source: &Source<'_>, zone: &TimeZone) -> ZonedDateTime {
    let times = source.tests.iter().filter(|test| test.knows("started_at"));
    times
        .map(|test| test.record.started_at)
        .min()
        .unwrap_or(source.run.run.started_at)
        .to_zoned_datetime(zone.clone())
}

/// The minute in which a source was measured, or the second where another began in the same one:
/// what tells those apart that are equal in everything else. `None` where none of `all` is `alike`.
pub(crate) fn moment(
    one: &Source<'_>,
    all: &[Source<'_>],
    zone: &TimeZone,
    alike: impl Fn(&Source<'_>) -> bool,
) -> Option<String> {
    let moments: Vec<_> = all
        .iter()
        .filter(|other| alike(other))
        .map(|twin| began(twin, zone))
        .collect();
    if moments.len() < 2 {
        return None;
    }
    let minute = |moment: &ZonedDateTime| moment.strftime("%Y-%m-%d %H:%M").to_string();
    let own = began(one, zone);
    let same = moments
        .iter()
        .filter(|moment| minute(moment) == minute(&own));
    Some(match same.count() {
        1 => minute(&own),
        _ => own.strftime("%Y-%m-%d %H:%M:%S").to_string(),
    })
}

pub(crate) fn threads(number: u32) -> String {
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
pub(crate) fn distinct<'a, T: PartialEq + 'a>(values: impl Iterator<Item = T>) -> Vec<T> {
    let mut seen = Vec::new();
    for value in values {
        if !seen.contains(&value) {
            seen.push(value);
        }
    }
    seen
}

/// The models, to name a figure.
pub(crate) fn subject(sources: &[Source<'_>]) -> String {
    let models = distinct(sources.iter().map(Source::name));
    match &models[..] {
        [model] => model.clone(),
        _ => format!("{} models", models.len()),
    }
}

/// The models and in how many quantizations, as a sentence.
pub(crate) fn models(sources: &[Source<'_>]) -> String {
    let models = distinct(sources.iter().map(Source::name));
    let files = distinct(
        sources
            .iter()
            .map(|source| source.model().fingerprint.as_str()),
    );
    match (models.len(), files.len()) {
        (1, 1) => match &sources[0].model().quantization {
            Some(quantization) => format!("{} {quantization}.", models[0]),
            None => format!("{}.", models[0]),
        },
        (1, n) => format!("{} in {n} quantizations, smallest file first.", models[0]),
        (n, _) => format!("{n} models, smallest first."),
    }
}

/// How many samples a mean was made of, and by how many threads: `Mean of 5 samples, 2 threads.`
pub(crate) fn samples(sources: &[Source<'_>]) -> String {
    let counts = distinct(
        sources
            .iter()
            .flat_map(|source| &source.tests)
            .map(|test| test.samples.len())
            .filter(|count| *count > 0),
    );
    let samples = match counts[..] {
        // Another tool told the means alone.
        [] => "Means as reported".to_owned(),
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
    format!("{samples}{}.", with_threads(sources))
}

/// `, 2 threads` where it is the same in all.
pub(crate) fn with_threads(sources: &[Source<'_>]) -> String {
    let counts = distinct(sources.iter().map(|source| {
        let settings = source.settings();
        source.knows("n_threads").then_some(settings.n_threads)
    }));
    match counts[..] {
        [Some(n)] => format!(", {}", threads(n)),
        _ => String::new(),
    }
}

/// What disturbed the measurements, so that a figure that stands alone does not say more than they do;
/// `None` where nothing did.
fn care(sources: &[Source<'_>]) -> Option<String> {
    let troubles = |source: &Source<'_>| {
        let warnings = source.tests.iter().filter_map(|test| test.end.as_ref());
        distinct(warnings.flat_map(|end| end.warnings.iter().filter_map(trouble)))
    };
    let disturbed: Vec<_> = sources
        .iter()
        .map(troubles)
        .filter(|list| !list.is_empty())
        .collect();
    let all = distinct(disturbed.iter().flatten().copied()).join(", ");
    let rows = match (disturbed.len(), sources.len()) {
        (0, _) => return None,
        (some, of) if some == of => String::new(),
        (some, of) => format!(", {some} of {of} results"),
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

/// Provenance: files and engine; what else is to be said; machine, time and version.
pub(crate) fn footer(sources: &[Source<'_>], more: Option<String>, zone: &TimeZone) -> Vec<String> {
    let mut statements = Vec::new();
    let files = distinct(sources.iter().filter_map(|source| {
        let name = source.model().path.0.file_name()?;
        Some(name.to_string_lossy().into_owned())
    }));
    let engines = distinct(sources.iter().filter_map(|source| engine(source.first())));
    let files = match files.len() {
        0 => None,
        1..=4 => Some(format!("{}.", files.join(", "))),
        n => Some(format!("{n} model files.")),
    };
    let engines = (!engines.is_empty()).then(|| format!("{}.", engines.join("; ")));
    let made: Vec<String> = files.into_iter().chain(engines).collect();
    statements.push(made.join(" "));
    if sources.iter().any(|source| source.model().synthetic) {
        statements.push(
            "The built-in model has random weights: its speed is real, its text is noise."
                .to_owned(),
        );
    }
    statements.extend(more);
    statements.extend(care(sources));
    let machines = distinct(
        sources
            .iter()
            .map(|source| machine(&source.run.run.machine)),
    );
    let versions = distinct(
        sources
            .iter()
            .filter(|source| ours(source.run.run.origin))
            .map(|source| source.run.run.app_version.as_str()),
    );
    let version = match versions.is_empty() {
        true => String::new(),
        false => format!(" Twospeed {}.", versions.join(", ")),
    };
    statements.push(format!(
        "{}. {}{version}",
        machines.join("; "),
        when(sources, zone),
    ));
    statements
}

/// Whether Twospeed measured it.
fn ours(origin: Origin) -> bool {
    matches!(origin, Origin::Measured | Origin::Imported)
}

/// `llama.cpp build 11434, CPU zen4`, as far as it is known.
fn engine(test: &Test) -> Option<String> {
    if let Some(worker) = test.end.as_ref().and_then(|end| end.worker.as_ref()) {
        return Some(format!(
            "llama.cpp build {}, {} {}",
            worker.engine.build_number, worker.backends, worker.variant.name
        ));
    }
    let told = test.told.as_ref()?;
    // Builds without a number of their own say 0.
    let build = told.build_number.filter(|build| *build > 0);
    let build = build.map(|build| format!(" build {build}"));
    let backends = told
        .backends
        .as_deref()
        .filter(|backends| !backends.is_empty())
        .map(|backends| format!(", {backends}"));
    Some(format!(
        "llama.cpp{}{}",
        build.unwrap_or_default(),
        backends.unwrap_or_default()
    ))
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
fn when(sources: &[Source<'_>], zone: &TimeZone) -> String {
    let moments = || {
        sources
            .iter()
            .flat_map(|source| &source.tests)
            .flat_map(|test| {
                let ended = test.end.as_ref().map(|end| end.ended_at);
                [
                    test.knows("started_at").then_some(test.record.started_at),
                    ended.filter(|_| test.knows("ended_at")),
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
