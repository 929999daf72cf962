//! Device presets: published memory bandwidths of machines that people run local models on.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use crate::units::{Bytes, BytesPerSecond};

/// A device with what its maker or others publish about it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Device {
    /// Its name: `Jetson Orin Nano Super 8GB`.
    pub name: String,
    /// Its family: `apple_soc`, `nvidia_gpu`, `dram`, ...
    pub kind: String,
    /// Peak memory bandwidth.
    pub bandwidth: BytesPerSecond,
    /// Peak half-precision matrix throughput in TFLOP/s, where it is known.
    pub peak_fp16_tflops: Option<f64>,
    /// Memory sizes it is sold with, smallest first; 1 GB here is what is sold as one, 2^30 bytes.
    pub capacities: Vec<Bytes>,
    /// Where the figures come from.
    pub source: String,
    /// How far they can be trusted.
    pub confidence: Confidence,
}

/// How far a published figure can be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Confidence {
    /// From one weak source, or differs between boards.
    Low,
    /// From one source, or computed for a typical machine.
    Medium,
    /// Seen in more than one source.
    High,
}

/// No preset has this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("No device preset is named {name:?}. {}", suggestion(.nearest))]
pub struct UnknownDevice {
    /// What was asked for.
    pub name: String,
    /// The presets whose names are nearest, best first.
    pub nearest: Vec<String>,
}

fn suggestion(nearest: &[String]) -> String {
    match nearest {
        [] => "Give its memory bandwidth in GB/s instead.".to_owned(),
        names => format!("Nearest are: {}.", names.join(", ")),
    }
}

/// Every preset.
pub fn devices() -> &'static [Device] {
    static DEVICES: LazyLock<Vec<Device>> = LazyLock::new(|| {
        read(include_bytes!("../data/devices.csv")).expect("BUG: the bundled device list is sound")
    });
    &DEVICES
}

/// The preset of this name; capitals, punctuation and the maker's name are not looked at, and words
/// may be left out where only one preset has those that are there.
///
/// Errors: [`UnknownDevice`] with the names that come nearest.
pub fn find(name: &str) -> Result<&'static Device, UnknownDevice> {
    let wanted = words(name);
    if let Some(device) = devices().iter().find(|d| words(&d.name) == wanted) {
        return Ok(device);
    }
    let has_all = |d: &&Device| {
        let words = words(&d.name);
        !wanted.is_empty() && wanted.iter().all(|word| words.contains(word))
    };
    let mut having_all = devices().iter().filter(has_all);
    if let (Some(device), None) = (having_all.next(), having_all.next()) {
        return Ok(device);
    }
    let mut scored: Vec<_> = devices()
        .iter()
        .map(|d| (likeness(&wanted, &words(&d.name)), &d.name))
        .filter(|(score, _)| *score >= 0.25)
        .collect();
    // Stable, so that equal ones keep the order of the list.
    scored.sort_by(|a, b| b.0.total_cmp(&a.0));
    Err(UnknownDevice {
        name: name.to_owned(),
        nearest: scored.into_iter().take(3).map(|(_, n)| n.clone()).collect(),
    })
}

const MAKERS: [&str; 6] = ["apple", "nvidia", "geforce", "amd", "radeon", "intel"];

/// The words of a name, lower case, without the maker's.
fn words(name: &str) -> Vec<String> {
    name.split(|c: char| !c.is_alphanumeric() && c != '.')
        .map(str::to_lowercase)
        .filter(|word| !word.is_empty() && !MAKERS.contains(&word.as_str()))
        .collect()
}

/// Likeness of two names, 0 to 1: Sørensen-Dice over pairs of neighbouring letters.
fn likeness(a: &[String], b: &[String]) -> f64 {
    let pairs = |words: &[String]| -> BTreeSet<(char, char)> {
        let letters: Vec<char> = words.concat().chars().collect();
        letters.windows(2).map(|w| (w[0], w[1])).collect()
    };
    let (a, b) = (pairs(a), pairs(b));
    if a.is_empty() || b.is_empty() {
        return 0.0;
    }
    2.0 * a.intersection(&b).count() as f64 / (a.len() + b.len()) as f64
}

#[derive(Deserialize)]
struct Row {
    name: String,
    kind: String,
    bandwidth_gb_s: f64,
    peak_fp16_tflops_or_blank: Option<f64>,
    capacity_gb_options: String,
    source: String,
    confidence: Confidence,
}

/// Reads the list; `None` where a row is malformed.
fn read(list: &[u8]) -> Option<Vec<Device>> {
    csv::Reader::from_reader(list)
        .deserialize()
        .map(|row: Result<Row, _>| {
            let row = row.ok()?;
            let capacities = row
                .capacity_gb_options
                .split(';')
                .map(|gb| gb.trim().parse().ok().map(Bytes::gib))
                .collect::<Option<Vec<_>>>()?;
            Some(Device {
                name: row.name,
                kind: row.kind,
                bandwidth: BytesPerSecond::from_gb_s(row.bandwidth_gb_s)?,
                peak_fp16_tflops: row.peak_fp16_tflops_or_blank,
                capacities,
                source: row.source,
                confidence: row.confidence,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_is_sound_and_named_once() {
        assert_eq!(devices().len(), 131);
        let mut names = BTreeSet::new();
        for device in devices() {
            assert!(
                names.insert(words(&device.name)),
                "{} comes twice",
                device.name
            );
            assert!(!device.source.is_empty(), "{} has no source", device.name);
            assert!(device.capacities.is_sorted(), "{}", device.name);
            // The slowest is a Raspberry Pi 4, the fastest an H200.
            let gb_s = device.bandwidth.gb_s();
            assert!((12.0..=5_000.0).contains(&gb_s), "{}: {gb_s}", device.name);
        }
    }

    #[test]
    fn the_articles_devices_have_the_articles_bandwidths() {
        for (name, gb_s) in [
            ("Jetson Orin Nano Super 8GB", 102.0),
            ("AMD Ryzen AI Max+ 395 (Strix Halo)", 256.0),
            ("NVIDIA DGX Spark / GB10", 273.0),
            ("Apple M4 Pro", 273.0),
            ("Apple M4 Max (40-core GPU)", 546.0),
        ] {
            assert_eq!(find(name).unwrap().bandwidth.gb_s(), gb_s, "{name}");
        }
    }

    #[test]
    fn a_name_is_found_without_capitals_punctuation_and_maker() {
        for name in ["GeForce RTX 4090", "rtx 4090", "NVIDIA RTX-4090"] {
            assert_eq!(find(name).unwrap().name, "GeForce RTX 4090");
        }
        assert_eq!(find("m1").unwrap().name, "Apple M1");
    }

    #[test]
    fn words_may_be_left_out_where_one_preset_has_the_rest() {
        assert_eq!(
            find("Orin Nano Super").unwrap().name,
            "Jetson Orin Nano Super 8GB"
        );
        assert_eq!(find("strix halo").unwrap().bandwidth.gb_s(), 256.0);
        let error = find("Orin Nano").unwrap_err();
        assert!(error.nearest.len() > 1, "several have these: {error}");
        assert_eq!(find("M4").unwrap().name, "Apple M4", "a whole name counts");
    }

    #[test]
    fn a_mistyped_name_is_answered_with_the_nearest() {
        let error = find("jetson orin nano supr").unwrap_err();
        assert_eq!(error.nearest[0], "Jetson Orin Nano Super 8GB");
        assert_eq!(error.nearest.len(), 3);
        let sentence = error.to_string();
        assert!(
            sentence
                .starts_with("No device preset is named \"jetson orin nano supr\". Nearest are:"),
            "{sentence}"
        );
    }

    #[test]
    fn a_name_like_no_preset_gets_no_random_suggestion() {
        let error = find("quartz").unwrap_err();
        assert_eq!(error.nearest, Vec::<String>::new());
        assert!(
            error
                .to_string()
                .ends_with("Give its memory bandwidth in GB/s instead.")
        );
        assert!(find("").unwrap_err().nearest.is_empty());
    }

    #[test]
    fn what_is_not_published_is_unknown() {
        let m1 = find("Apple M1").unwrap();
        assert_eq!(m1.peak_fp16_tflops, None);
        assert_eq!(m1.capacities, [Bytes::gib(8), Bytes::gib(16)]);
        assert_eq!(m1.confidence, Confidence::High);
    }
}
