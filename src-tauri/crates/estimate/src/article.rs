//! The formulas of the article "Prefill vs decode" (Turing Pi): what a person can do by hand.
//!
//! They teach; the rest of this crate starts from them and says where they stop being true. Its
//! measured and published figures come with them ([`figures`]).

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use crate::public::PublishedTest;
use crate::units::{Bytes, BytesPerSecond, TokensPerSecond};

/// Where its figures were published.
pub const SOURCE: &str = "Turing Pi, \"Prefill vs decode\"";

/// The most a bandwidth allows: one read of `weights` for each decoded token.
///
/// decode tok/s = bandwidth / bytes read per token. With a file's size it is the article's
/// estimate; `None` where nothing is read.
pub fn decode_ceiling(bandwidth: BytesPerSecond, weights: Bytes) -> Option<TokensPerSecond> {
    bandwidth.reads_of(weights)
}

/// Keys and values of one token in a plain full-attention transformer.
///
/// 2 x layers x KV heads x head dimension x bytes per element.
pub fn kv_bytes_per_token(layers: u64, kv_heads: u64, head_dim: u64, element_bytes: u64) -> Bytes {
    let factors = [2, layers, kv_heads, head_dim, element_bytes];
    Bytes(factors.into_iter().fold(1, u64::saturating_mul))
}

/// Share of the ceiling that was reached, 0 to 1.
pub fn share_of_ceiling(measured: TokensPerSecond, ceiling: TokensPerSecond) -> f64 {
    measured.0 / ceiling.0
}

/// Time to read a prompt at a prefill speed, in seconds: the largest part of a long prompt's TTFT.
pub fn prompt_seconds(tokens: u64, prefill: TokensPerSecond) -> f64 {
    tokens as f64 / prefill.0
}

/// A figure of the article, with what it holds for.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Figure {
    /// Its line in `article.csv`, the header being line 1.
    pub line: usize,
    /// The device, the runtime, or what else it holds for.
    pub device: String,
    /// The model; empty where there is none.
    pub model: String,
    /// The quantization; empty where there is none.
    pub quantization: String,
    /// Size of the model's file, rounded to 10 MB.
    pub file: Option<Bytes>,
    /// Published peak bandwidth of the device.
    pub bandwidth: Option<BytesPerSecond>,
    /// Backend; empty where there is none.
    pub backend: String,
    /// Threads or layers on the GPU; empty where there are none.
    pub settings: String,
    /// What the figure is of, as the article names it.
    pub test: String,
    /// The figure.
    pub value: FigureValue,
    /// What was measured and how.
    pub note: String,
}

/// A figure of the article.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FigureValue {
    /// A measured speed.
    Speed(TokensPerSecond),
    /// Seconds that a prompt of a test took.
    PromptSeconds(f64),
    /// Memory of a KV cache for so many tokens.
    Cache {
        /// Tokens that it holds.
        tokens: u64,
        /// Its size.
        bytes: Bytes,
    },
    /// What a model's cache is computed from.
    CacheShape {
        /// Layers.
        layers: u64,
        /// Heads of keys and values.
        kv_heads: u64,
        /// Elements of a head.
        head: u64,
    },
    /// Parameters in billions.
    Parameters {
        /// All.
        total: f64,
        /// Those a token uses.
        active: f64,
    },
    /// Tokens of a repeated prompt that needed no second reading.
    Reused {
        /// So many.
        tokens: u64,
        /// Of so many.
        of: u64,
    },
    /// A published peak bandwidth.
    Bandwidth(BytesPerSecond),
}

impl Figure {
    /// The test and its speed, where the figure is measured.
    pub fn speed(&self) -> Option<(PublishedTest, TokensPerSecond)> {
        let test = PublishedTest::parse(&self.test)?;
        match self.value {
            FigureValue::Speed(speed) => Some((test, speed)),
            FigureValue::PromptSeconds(seconds) => {
                let tokens = test.tokens? as f64;
                Some((test, TokensPerSecond(tokens / seconds)))
            }
            _ => None,
        }
    }
}

/// Every measured or published figure of the article, in its order.
pub fn figures() -> &'static [Figure] {
    static FIGURES: LazyLock<Vec<Figure>> = LazyLock::new(|| {
        read(include_bytes!("../data/article.csv")).expect("BUG: the article's figures are sound")
    });
    &FIGURES
}

#[derive(Deserialize)]
struct Row {
    device: String,
    model: String,
    quant: String,
    file_gb: Option<f64>,
    bandwidth_gb_s: Option<f64>,
    backend: String,
    threads_or_ngl: String,
    test: String,
    value: String,
    unit: String,
    note: String,
}

/// Reads the figures; `None` where a row is malformed or of a kind that is not known.
fn read(list: &[u8]) -> Option<Vec<Figure>> {
    let rows = csv::Reader::from_reader(list).into_deserialize();
    rows.zip(2..)
        .map(|(row, line): (Result<Row, _>, usize)| {
            let row = row.ok()?;
            let value = value(&row)?;
            let bandwidth = match row.bandwidth_gb_s {
                Some(gb_s) => Some(BytesPerSecond::from_gb_s(gb_s)?),
                None => None,
            };
            Some(Figure {
                line,
                device: row.device,
                model: row.model,
                quantization: row.quant,
                file: row.file_gb.map(|gb| Bytes((gb * 1e9).round() as u64)),
                bandwidth,
                backend: row.backend,
                settings: row.threads_or_ngl,
                test: row.test,
                value,
                note: row.note,
            })
        })
        .collect()
}

fn value(row: &Row) -> Option<FigureValue> {
    let numbers = || {
        let parts = row.value.split(|c: char| !(c.is_ascii_digit() || c == '.'));
        parts.filter_map(|part| part.parse::<f64>().ok())
    };
    let number = || row.value.parse::<f64>().ok();
    let words = |text: &str| text.split_whitespace().next_back()?.parse::<u64>().ok();
    Some(match (row.test.as_str(), row.unit.as_str()) {
        (_, "tok/s") => FigureValue::Speed(TokensPerSecond(number()?)),
        (_, "s") => FigureValue::PromptSeconds(number()?),
        (test, "MiB") => FigureValue::Cache {
            tokens: words(test)?,
            bytes: Bytes::mib(row.value.parse().ok()?),
        },
        ("KV shape", "") => {
            let [layers, kv_heads, head] = numbers().map(|n| n as u64).collect::<Vec<_>>()[..]
            else {
                return None;
            };
            FigureValue::CacheShape {
                layers,
                kv_heads,
                head,
            }
        }
        ("parameters", "billion") => {
            let [total, active] = numbers().collect::<Vec<_>>()[..] else {
                return None;
            };
            FigureValue::Parameters { total, active }
        }
        ("prefix cache", "tokens reused") => {
            let [tokens, of] = numbers().map(|n| n as u64).collect::<Vec<_>>()[..] else {
                return None;
            };
            FigureValue::Reused { tokens, of }
        }
        ("published bandwidth", "GB/s") => {
            FigureValue::Bandwidth(BytesPerSecond::from_gb_s(number()?)?)
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    //! Every figure that the article derives, from the inputs it states.

    use super::*;
    use crate::{device, public};

    const ORIN_NANO_SUPER: f64 = 102.0;

    fn ceiling(file_gb: f64) -> TokensPerSecond {
        let bandwidth = BytesPerSecond::from_gb_s(ORIN_NANO_SUPER).unwrap();
        decode_ceiling(bandwidth, Bytes((file_gb * 1e9).round() as u64)).unwrap()
    }

    #[test]
    fn decode_ceilings_of_the_three_qwen3_files() {
        // 102 / 1.11 = 91.89, 102 / 2.50 = 40.80, 102 / 5.03 = 20.28
        assert_eq!(ceiling(1.11).to_string(), "91.9 tok/s");
        assert_eq!(ceiling(2.50).to_string(), "40.8 tok/s");
        assert_eq!(ceiling(5.03).to_string(), "20.3 tok/s");
    }

    #[test]
    fn measured_decode_is_43_48_and_62_percent_of_the_ceiling() {
        // 39.42 / 91.89 = 0.429, 19.53 / 40.80 = 0.479, 12.64 / 20.28 = 0.623
        for (measured, file_gb, percent) in [
            (39.42, 1.11, "43"),
            (19.53, 2.50, "48"),
            (12.64, 5.03, "62"),
        ] {
            let share = share_of_ceiling(TokensPerSecond(measured), ceiling(file_gb));
            assert_eq!(format!("{:.0}", 100.0 * share), percent);
        }
    }

    #[test]
    fn qwen3_8b_caches_144_kib_per_token() {
        // 2 x 36 layers x 8 KV heads x 128 x 2 bytes
        let per_token = kv_bytes_per_token(36, 8, 128, 2);
        assert_eq!(per_token, Bytes(147_456));
        assert_eq!(per_token.to_string(), "144 KiB");
        assert_eq!(Bytes(per_token.0 * 4096), Bytes::mib(576));
        assert_eq!(Bytes(per_token.0 * 8192), Bytes::mib(1152));
    }

    #[test]
    fn the_long_prompt_takes_41_seconds_to_read() {
        // 32,585 / 787.2 = 41.39
        let seconds = prompt_seconds(32_585, TokensPerSecond(787.2));
        assert_eq!(format!("{seconds:.0}"), "41");
    }

    #[test]
    fn the_rk1_times_are_the_speeds_they_were_derived_from() {
        // 1,024 tokens in 18.77 s and in 12.39 s: Q8_0 reads a prompt 1.5 times as fast as Q4_K_M,
        // while Q4_K_M decodes 22.57 / 15.26 = 1.48 times as fast as Q8_0.
        let prefill = |seconds: f64| TokensPerSecond(1024.0 / seconds);
        assert_eq!(prefill(18.77).to_string(), "54.6 tok/s");
        assert_eq!(prefill(12.39).to_string(), "82.6 tok/s");
        assert_eq!(
            format!("{:.2}", prompt_seconds(1024, prefill(18.77))),
            "18.77"
        );
        assert_eq!(
            format!("{:.2}", prompt_seconds(1024, prefill(12.39))),
            "12.39"
        );
        assert_eq!(
            format!("{:.2}", prefill(12.39).0 / prefill(18.77).0),
            "1.51"
        );
        assert_eq!(format!("{:.2}", 22.57_f64 / 15.26), "1.48");
    }

    #[test]
    fn partial_offload_more_than_halves_decode() {
        // 12.23 tok/s with all layers on the GPU, 5.85 with 24 of 37.
        assert!(share_of_ceiling(TokensPerSecond(5.85), TokensPerSecond(12.23)) < 0.5);
    }

    /// What the article says of a row of its figures, by the row's line.
    ///
    /// The figures of its table of estimates, of its section on long prompts and of its RK1 table are
    /// worked out from the row; the others are set beside what this crate knows from elsewhere.
    fn said_of(figure: &Figure) -> String {
        let speed = |line: usize| figures()[line - 2].speed().unwrap().1;
        let preset = |name: &str| device::find(name).unwrap().bandwidth.to_string();
        match figure.line {
            2..=4 => {
                let ceiling = decode_ceiling(figure.bandwidth.unwrap(), figure.file.unwrap());
                let (measured, ceiling) = (speed(figure.line), ceiling.unwrap());
                let share = 100.0 * share_of_ceiling(measured, ceiling);
                format!("{ceiling}; {:.2} measured, {share:.0} %", measured.0)
            }
            5 => format!("{} beside {:.0}", speed(5), speed(2).0),
            6 => {
                let (test, speed) = figure.speed().unwrap();
                let seconds = prompt_seconds(test.tokens.unwrap(), speed);
                format!("{} tokens in {seconds:.0} s", test.tokens.unwrap())
            }
            // After a long prompt, beside the short test of the same model.
            7 | 8 => {
                let short = figures()[..3].iter().find(|f| f.model == figure.model);
                let (short, (test, long)) = (short.unwrap(), figure.speed().unwrap());
                let short = short.speed().unwrap().1;
                format!("{:.2} after {}, {:.2} short", long.0, test.depth, short.0)
            }
            9 => format!("{:.2}, all layers on the GPU", speed(9).0),
            10 => {
                let less_than_half = speed(10).0 < speed(9).0 / 2.0;
                format!(
                    "{:.2} with {}, {less_than_half}",
                    speed(10).0,
                    figure.settings
                )
            }
            11 | 12 => {
                let FigureValue::CacheShape {
                    layers,
                    kv_heads,
                    head,
                } = figures()[17 - 2].value
                else {
                    panic!("line 17 is the shape of the cache")
                };
                let FigureValue::Cache { tokens, bytes } = figure.value else {
                    panic!("line {} is a cache", figure.line)
                };
                let computed = kv_bytes_per_token(layers, kv_heads, head, 2).0 * tokens;
                format!("{} MiB, {} measured", computed >> 20, bytes.0 >> 20)
            }
            13 | 15 => {
                let (test, speed) = figure.speed().unwrap();
                let tokens = test.tokens.unwrap();
                format!("{tokens} tokens in {:.2} s", prompt_seconds(tokens, speed))
            }
            14 => format!("{:.2}, {}", speed(14).0, speed(14) > speed(16)),
            16 => format!("{:.2}, prompts {}", speed(16).0, speed(15) > speed(13)),
            17 => {
                let FigureValue::CacheShape {
                    layers,
                    kv_heads,
                    head,
                } = figure.value
                else {
                    panic!("line 17 is the shape of the cache")
                };
                let bytes = kv_bytes_per_token(layers, kv_heads, head, 2);
                format!("{} bytes, {bytes}", bytes.0)
            }
            18 => {
                let FigureValue::Parameters { total, active } = figure.value else {
                    panic!("line 18 is of parameters")
                };
                // Worked out of the published configuration.
                let model = public::shape_of("qwen3moe 30B.A3B (Coder-Instruct)").unwrap();
                let own = model.parameters() as f64 / 1e9;
                format!("{total} and {active} billion; {own:.1} computed")
            }
            19 => {
                let FigureValue::Reused { tokens, of } = figure.value else {
                    panic!("line 19 is of a prefix")
                };
                format!("all but {} of {of}", of - tokens)
            }
            20 => preset("Jetson Orin Nano Super 8GB"),
            21 => preset("AMD Ryzen AI Max+ 395 (Strix Halo)"),
            22 => preset("NVIDIA DGX Spark / GB10"),
            23 => preset("Apple M4 Pro"),
            24 => preset("Apple M4 Max (40-core GPU)"),
            line => panic!("nothing is worked out for line {line}"),
        }
    }

    #[test]
    fn every_row_of_the_articles_figures_is_reproduced() {
        let said = [
            "91.9 tok/s; 39.42 measured, 43 %",
            "40.8 tok/s; 19.53 measured, 48 %",
            "20.3 tok/s; 12.64 measured, 62 %",
            "1,408 tok/s beside 39",
            "32585 tokens in 41 s",
            "13.21 after 32585, 39.42 short",
            "10.50 after 8010, 12.64 short",
            "12.23, all layers on the GPU",
            "5.85 with 24 of 37 layers, true",
            "576 MiB, 576 measured",
            "1152 MiB, 1152 measured",
            "1024 tokens in 18.77 s",
            "22.57, true",
            "1024 tokens in 12.39 s",
            "15.26, prompts true",
            "147456 bytes, 144 KiB",
            "30.5 and 3.3 billion; 30.5 computed",
            "all but 1 of 512",
            "102 GB/s",
            "256 GB/s",
            "273 GB/s",
            "273 GB/s",
            "546 GB/s",
        ];
        assert_eq!(figures().len(), said.len(), "each row has its figure here");
        for (figure, said) in figures().iter().zip(said) {
            assert_eq!(
                said_of(figure),
                said,
                "line {}: {}",
                figure.line,
                figure.test
            );
        }
    }

    #[test]
    fn published_bandwidths_are_those_of_the_rows() {
        let mut published = 0;
        for figure in figures() {
            if let FigureValue::Bandwidth(rate) = figure.value {
                assert_eq!(figure.bandwidth, Some(rate), "line {}", figure.line);
                published += 1;
            }
        }
        assert_eq!(published, 5);
    }

    #[test]
    fn a_figure_of_an_unknown_kind_is_refused() {
        let header =
            "device,model,quant,file_gb,bandwidth_gb_s,backend,threads_or_ngl,test,value,unit,note";
        let read_row = |row: &str| read(format!("{header}\n{row}\n").as_bytes());
        let good = "any,model,Q4_0,,,CPU,,tg128,12.5,tok/s,";
        assert_eq!(read_row(good).map(|figures| figures.len()), Some(1));
        for row in [
            "any,model,Q4_0,,,CPU,,tg128,12.5,J,",
            "any,model,Q4_0,,,CPU,,tg128,fast,tok/s,",
            "any,model,,,,,,KV shape,36 layers,,",
            "any,model,Q4_0,,-1,CPU,,tg128,12.5,tok/s,",
        ] {
            assert_eq!(read_row(row), None, "{row}");
        }
    }
}
