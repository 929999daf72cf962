//! llama-bench's lists: `512,1024`, `0-4096+1024`, `1-64*2`.

use std::str::FromStr;

/// Why a value cannot be taken; what is typed is named.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadValue {
    /// Neither a number nor a range.
    #[error("\"{0}\" is no number and no range: write 512, 128-512, 0-4096+1024 or 1-64*2")]
    NoNumber(String),
    /// A range whose end lies below its beginning.
    #[error("\"{0}\" ends before it begins")]
    Backwards(String),
    /// A range of more values than anybody means.
    #[error("\"{0}\" asks for more than {MOST} values")]
    TooMany(String),
    /// A range whose step leads nowhere.
    #[error("\"{range}\" never reaches {last}: the step must lead upwards")]
    NoEnd {
        /// As it was typed.
        range: String,
        /// Its end.
        last: i64,
    },
    /// Neither 0 nor 1.
    #[error("\"{0}\" is neither 0 nor 1")]
    NoFlag(String),
    /// Not two numbers.
    #[error("\"{0}\" is no pair of numbers: write 512,128")]
    NoPair(String),
    /// No mode of flash attention.
    #[error("\"{0}\" is none of auto, on, off")]
    NoMode(String),
    /// No share of a hundred.
    #[error("\"{0}\" is no percentage above 0 and below 100: write 2%")]
    NoPercent(String),
    /// No span of time.
    #[error("\"{0}\" is no span of time: write 90s, 10m or 1h")]
    NoTime(String),
    /// No hexadecimal number.
    #[error("it takes hexadecimal digits such as 0x3")]
    NoMask,
}

/// A list or a range, given once; flags given several times are joined by the parser.
#[derive(Debug, Clone, PartialEq)]
pub struct List<T>(pub Vec<T>);

/// Whole numbers, possibly by ranges; `-1` where the setting allows it.
#[derive(Debug, Clone, PartialEq)]
pub struct Numbers(pub Vec<i64>);

/// More values than anybody means; a typo such as `0-1000000` asks for them.
const MOST: usize = 10_000;

impl FromStr for Numbers {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        let mut numbers = Vec::new();
        // A comma at the end is no mistake, as in llama-bench.
        let list = text.strip_suffix(',').unwrap_or(text);
        for part in list.split(',') {
            range(part, &mut numbers)?;
        }
        Ok(Self(numbers))
    }
}

/// `first`, `first-last`, `first-last+step` or `first-last*factor`.
fn range(text: &str, numbers: &mut Vec<i64>) -> Result<(), BadValue> {
    let number = |part: &str| {
        let parsed = part.parse::<i64>();
        parsed.map_err(|_| BadValue::NoNumber(text.to_owned()))
    };
    let negative = text.starts_with('-');
    let body = if negative { &text[1..] } else { text };
    let Some((first, rest)) = body.split_once('-') else {
        numbers.push(number(text)?);
        return Ok(());
    };
    let mut next = number(first)? * if negative { -1 } else { 1 };
    let (last, step, multiply) = match rest.split_once(['+', '*']) {
        Some((last, step)) => (number(last)?, number(step)?, rest.contains('*')),
        None => (number(rest)?, 1, false),
    };
    if next > last {
        return Err(BadValue::Backwards(text.to_owned()));
    }
    while next <= last {
        numbers.push(next);
        if numbers.len() > MOST {
            return Err(BadValue::TooMany(text.to_owned()));
        }
        let following = if multiply {
            next.checked_mul(step)
        } else {
            next.checked_add(step)
        };
        match following {
            Some(following) if following > next => next = following,
            _ => {
                return Err(BadValue::NoEnd {
                    range: text.to_owned(),
                    last,
                });
            }
        }
    }
    Ok(())
}

impl<T: FromStr<Err = BadValue>> FromStr for List<T> {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        text.split(',')
            .map(T::from_str)
            .collect::<Result<_, _>>()
            .map(List)
    }
}

/// 0 or 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Flag(pub bool);

impl FromStr for Flag {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        match text {
            "0" => Ok(Self(false)),
            "1" => Ok(Self(true)),
            other => Err(BadValue::NoFlag(other.to_owned())),
        }
    }
}

/// `prompt,generate`: both timed as one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PromptGen {
    /// Prompt tokens.
    pub n_prompt: u32,
    /// Generated tokens.
    pub n_gen: u32,
}

impl FromStr for PromptGen {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        let pair = text.split_once(',').and_then(|(prompt, generate)| {
            Some(Self {
                n_prompt: prompt.parse().ok()?,
                n_gen: generate.parse().ok()?,
            })
        });
        pair.ok_or_else(|| BadValue::NoPair(text.to_owned()))
    }
}

/// A share: `2%` and `2` are 0.02.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Percent(pub f64);

impl FromStr for Percent {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        let number = text.strip_suffix('%').unwrap_or(text).trim();
        let percent = number.parse::<f64>().ok();
        percent
            .filter(|percent| *percent > 0.0 && *percent < 100.0)
            .map(|percent| Self(percent / 100.0))
            .ok_or_else(|| BadValue::NoPercent(text.to_owned()))
    }
}

/// A span of time in whole seconds: `90`, `90s`, `10m`, `1h`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Seconds(pub u32);

impl FromStr for Seconds {
    type Err = BadValue;

    fn from_str(text: &str) -> Result<Self, BadValue> {
        let (number, unit) = match text.char_indices().last() {
            Some((at, 's')) => (&text[..at], 1),
            Some((at, 'm')) => (&text[..at], 60),
            Some((at, 'h')) => (&text[..at], 3600),
            _ => (text, 1),
        };
        let seconds = number.trim().parse::<u32>().ok();
        seconds
            .and_then(|seconds| seconds.checked_mul(unit))
            .filter(|seconds| *seconds > 0)
            .map(Self)
            .ok_or_else(|| BadValue::NoTime(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(text: &str) -> Vec<i64> {
        text.parse::<Numbers>().unwrap().0
    }

    #[test]
    fn lists_and_ranges_are_read_as_llama_bench_reads_them() {
        assert_eq!(numbers("512"), [512]);
        assert_eq!(numbers("512,128"), [512, 128]);
        assert_eq!(numbers("512,"), [512]);
        assert_eq!(numbers("1-4"), [1, 2, 3, 4]);
        assert_eq!(numbers("0-4096+1024"), [0, 1024, 2048, 3072, 4096]);
        assert_eq!(numbers("1-9*2,100"), [1, 2, 4, 8, 100]);
        assert_eq!(numbers("-1"), [-1]);
        assert_eq!(numbers("-1-2"), [-1, 0, 1, 2]);
    }

    #[test]
    fn a_range_that_never_ends_is_refused() {
        assert!("0-8*2".parse::<Numbers>().is_err(), "0 x 2 stays 0");
        assert!("1-8+0".parse::<Numbers>().is_err());
        assert!("1-8*1".parse::<Numbers>().is_err());
        assert!("0-100000000".parse::<Numbers>().is_err());
        assert!(
            "5-1".parse::<Numbers>().is_err(),
            "it ends before it begins"
        );
        assert!(
            "1-9223372036854775807*4000000000"
                .parse::<Numbers>()
                .is_err()
        );
    }

    #[test]
    fn what_is_no_number_is_named() {
        let error = "51 2".parse::<Numbers>().unwrap_err().to_string();
        assert!(error.contains("\"51 2\""), "{error}");
        assert!("".parse::<Numbers>().is_err());
        assert!("1,,2".parse::<Numbers>().is_err(), "a number is missing");
        assert!("9223372036854775808".parse::<Numbers>().is_err());
    }

    #[test]
    fn shares_and_times_are_read_with_their_units() {
        let percent = |text: &str| text.parse::<Percent>().ok().map(|percent| percent.0);
        assert_eq!(percent("2%"), Some(0.02));
        assert_eq!(percent("0.5 %"), Some(0.005));
        assert_eq!(percent("25"), Some(0.25));
        assert_eq!((percent("0%"), percent("100%")), (None, None));
        assert_eq!((percent("NaN"), percent("two")), (None, None));
        let seconds = |text: &str| text.parse::<Seconds>().ok().map(|seconds| seconds.0);
        assert_eq!(seconds("90"), Some(90));
        assert_eq!(seconds("90s"), Some(90));
        assert_eq!(seconds("10m"), Some(600));
        assert_eq!(seconds("1 h"), Some(3600));
        assert_eq!((seconds("0s"), seconds("m")), (None, None));
        assert_eq!(seconds("1200000h"), None, "beyond 32 bits");
    }
}
