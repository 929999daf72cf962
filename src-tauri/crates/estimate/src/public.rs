//! Published measurements: what others measured on their devices, each with its source.
//!
//! Two lists: measurements gathered from public places, and those of the article "Prefill vs
//! decode" (Turing Pi). They are reference results to put beside one's own, and what
//! [`elsewhere`](crate::elsewhere) learns from.

mod shapes;
mod test;

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use crate::article;
use crate::cache;
use crate::device::{self, Device};
use crate::question::Question;
use crate::shape::Shape;
use crate::units::{Bytes, BytesPerSecond, TokensPerSecond};
use crate::weights::Weights;

pub use shapes::{PublicShape, shape_of, shapes};
pub use test::{Phase, PublishedTest};

/// A published speed and what it was measured with, as far as its source says.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Published {
    /// Which list it is from.
    pub list: List,
    /// Its line there, the header being line 1.
    pub line: usize,
    /// The device, as the source names it.
    pub device: String,
    /// The preset that this device is, where it is one.
    pub preset: Option<&'static str>,
    /// Peak memory bandwidth of the device.
    pub bandwidth: Option<BytesPerSecond>,
    /// The model, as the source names it.
    pub model: String,
    /// The quantization, as the source names it.
    pub quantization: String,
    /// Size of the file.
    pub size: Option<Bytes>,
    /// Parameters in billions.
    pub parameters_b: Option<f64>,
    /// llama.cpp's backend.
    pub backend: String,
    /// Threads, layers on the GPU and other settings, as the source names them.
    pub settings: String,
    /// The test, as the source names it.
    pub test_name: String,
    /// The test.
    pub test: PublishedTest,
    /// The speed.
    pub speed: TokensPerSecond,
    /// Where it was published.
    pub source: String,
    /// The source leaves something open that decides the speed (device, quantization, power, length)
    /// or it was measured while memory was short: weak evidence.
    pub weak: bool,
}

/// A list of published figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum List {
    /// Gathered from public places: `measured_public.csv`.
    Measured,
    /// The article's: `article.csv`.
    Article,
}

/// Every published measurement, list by list and line by line.
pub fn rows() -> &'static [Published] {
    static ROWS: LazyLock<Vec<Published>> = LazyLock::new(|| {
        let measured = read(include_bytes!("../data/measured_public.csv"))
            .expect("BUG: the bundled list of measurements is sound");
        let article = article::figures().iter().filter_map(of_article);
        measured.into_iter().chain(article).collect()
    });
    &ROWS
}

impl Published {
    /// The device preset it was measured on.
    pub fn device(&self) -> Option<&'static Device> {
        device::devices()
            .iter()
            .find(|device| Some(device.name.as_str()) == self.preset)
    }

    /// Weights, layers and question that stand for this row; `None` where the shape of its model or
    /// the bits of its quantization are not known.
    pub(crate) fn work(&self) -> Option<(Weights, Shape, Question)> {
        let public = shape_of(&self.model)?;
        let weights = public.weights(&self.quantization, self.size)?;
        Some((weights, public.shape(), self.test.question(&self.settings)))
    }

    /// Bytes of weights, cache and state that decoding reads for one token, halfway through the
    /// test; `None` for a prefill test and where the model's shape is not known.
    pub fn bytes_per_token(&self) -> Option<Bytes> {
        if self.test.phase != Phase::Decode {
            return None;
        }
        let (weights, shape, question) = self.work()?;
        let depth = question.depth.saturating_add(question.generate / 2);
        let cache = cache::read_per_token(&shape, &question.context, depth).ok()?;
        Some(weights.bytes_per_token() + cache)
    }

    /// What bandwidth allows for this row: the device's peak / bytes that a token reads. `None` as
    /// for [`bytes_per_token`](Self::bytes_per_token), and where the bandwidth is not known.
    pub fn ceiling(&self) -> Option<TokensPerSecond> {
        self.bandwidth?.reads_of(self.bytes_per_token()?)
    }

    /// All layers ran on the device, nothing of it beside.
    pub fn whole_on_device(&self) -> bool {
        let settings = &self.settings;
        !(settings.contains(" of ") || settings.contains("ncmoe") || self.device.contains("+ host"))
    }
}

#[derive(Deserialize)]
struct Row {
    device: String,
    bandwidth_gb_s: Option<f64>,
    bandwidth_source: String,
    model: String,
    quant: String,
    size_gib: Option<f64>,
    params_b: Option<f64>,
    backend: String,
    threads_or_ngl: String,
    test: String,
    tok_s: f64,
    source: String,
}

/// Reads the list of measurements; `None` where a row is malformed.
fn read(list: &[u8]) -> Option<Vec<Published>> {
    let rows = csv::Reader::from_reader(list).into_deserialize();
    rows.zip(2..)
        .map(|(row, line): (Result<Row, _>, usize)| {
            let row = row.ok()?;
            let bandwidth = match row.bandwidth_gb_s {
                Some(gb_s) => Some(BytesPerSecond::from_gb_s(gb_s)?),
                None => None,
            };
            let test = PublishedTest::parse(&row.test)?;
            let says = [&row.device, &row.bandwidth_source, &row.quant, &row.source];
            let weak = test.tokens.is_none()
                || says.iter().any(|words| leaves_open(words))
                // A fork of the engine with kernels of its own.
                || row.backend == "IPEX-LLM";
            Some(Published {
                list: List::Measured,
                line,
                preset: preset_of(&row.device),
                device: row.device,
                bandwidth,
                model: row.model,
                quantization: row.quant,
                size: row.size_gib.map(gib),
                parameters_b: row.params_b,
                backend: row.backend,
                settings: row.threads_or_ngl,
                test_name: row.test,
                test,
                speed: TokensPerSecond(row.tok_s),
                source: row.source,
                weak,
            })
        })
        .collect()
}

/// Words by which a source says that something is not known, or that it has it from elsewhere.
fn leaves_open(words: &str) -> bool {
    ["unstated", "inferred", "not in source", "as quoted", "fork"]
        .iter()
        .any(|word| words.contains(word))
}

fn gib(size: f64) -> Bytes {
    Bytes((size * (1_u64 << 30) as f64).round() as u64)
}

/// A measured speed of the article; `None` for its other figures.
fn of_article(figure: &article::Figure) -> Option<Published> {
    let (test, speed) = figure.speed()?;
    let preset = preset_of(&figure.device);
    Some(Published {
        list: List::Article,
        line: figure.line,
        preset,
        device: figure.device.clone(),
        // The article leaves out the bandwidth of the RK1; its preset has one.
        bandwidth: figure.bandwidth.or_else(|| {
            let known = device::devices().iter();
            let mut named = known.filter(|device| Some(device.name.as_str()) == preset);
            named.next().map(|device| device.bandwidth)
        }),
        model: figure.model.clone(),
        quantization: figure.quantization.clone(),
        size: figure.file,
        parameters_b: None,
        backend: figure.backend.clone(),
        settings: figure.settings.clone(),
        test_name: figure.test.clone(),
        test,
        speed,
        source: article::SOURCE.to_owned(),
        weak: test.tokens.is_none() || figure.note.contains("swap in use"),
    })
}

/// The preset that a published device is; `None` where its source leaves that open.
fn preset_of(device: &str) -> Option<&'static str> {
    PRESETS
        .iter()
        .find(|row| row.device == device)
        .and_then(|row| row.preset.as_deref())
}

#[derive(Deserialize)]
struct PresetRow {
    device: String,
    preset: Option<String>,
}

static PRESETS: LazyLock<Vec<PresetRow>> = LazyLock::new(|| {
    csv::Reader::from_reader(&include_bytes!("../data/published_devices.csv")[..])
        .deserialize()
        .collect::<Result<_, _>>()
        .expect("BUG: the bundled list of published devices is sound")
});
