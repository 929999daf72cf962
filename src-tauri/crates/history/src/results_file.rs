//! Reading a `twospeed.results/1` file as far as it goes.

use std::fmt;

use serde::Deserializer;
use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use crate::error::HistoryError;
use crate::export::FORMAT;
use crate::import::Rejected;

/// What the name of the format begins with, in every version.
const NAME: &[u8] = b"\"twospeed.results/";

/// The runs of a file, not yet looked at.
#[derive(Debug)]
pub(crate) struct ResultsFile {
    pub(crate) runs: Vec<Value>,
    /// Why the file ends where it ends, when that is before its end.
    pub(crate) cut_short: Option<Rejected>,
}

/// Whether the file says that it is one of ours, of whatever version.
pub(crate) fn is_one(file: &[u8]) -> bool {
    let file = file.strip_prefix(b"\xef\xbb\xbf").unwrap_or(file);
    let file = file.trim_ascii_start();
    // It stands among the first of what Twospeed writes.
    let start = &file[..file.len().min(1000)];
    file.starts_with(b"{") && start.windows(NAME.len()).any(|window| window == NAME)
}

/// Reads a whole file, or the runs before the place where it breaks off.
pub(crate) fn read(file: &[u8]) -> Result<ResultsFile, HistoryError> {
    let file = file.strip_prefix(b"\xef\xbb\xbf").unwrap_or(file);
    let mut parts = Parts::default();
    let mut json = serde_json::Deserializer::from_slice(file);
    let read = FileSeed(&mut parts)
        .deserialize(&mut json)
        .and_then(|()| json.end());
    match (parts.format.as_deref(), &read) {
        (Some(FORMAT), _) => {}
        (Some(other), _) if is_newer(other) => {
            return Err(HistoryError::NewerExport {
                format: other.to_owned(),
            });
        }
        (Some(other), _) => return Err(not_an_export(format!("its format is {other:?}"))),
        (None, Ok(())) => return Err(not_an_export("it names no format".into())),
        (None, Err(error)) => return Err(not_an_export(error.to_string())),
    }
    Ok(ResultsFile {
        runs: parts.runs,
        cut_short: read.err().map(|error| Rejected {
            run: None,
            line: Some(error.line()),
            reason: error.to_string(),
        }),
    })
}

/// Whether the format is one of ours with a number above this version's.
fn is_newer(format: &str) -> bool {
    let number = |format: &str| -> Option<u32> {
        let (name, number) = format.rsplit_once('/')?;
        (name == "twospeed.results").then(|| number.parse().ok())?
    };
    number(format) > number(FORMAT)
}

fn not_an_export(reason: String) -> HistoryError {
    HistoryError::NotAnExport { reason }
}

/// What was read; it stays when reading fails.
#[derive(Default)]
struct Parts {
    format: Option<String>,
    runs: Vec<Value>,
}

struct FileSeed<'p>(&'p mut Parts);

impl<'de> DeserializeSeed<'de> for FileSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for FileSeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an object with \"format\" and \"runs\"")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "format" => self.0.format = Some(map.next_value()?),
                "runs" => map.next_value_seed(RunsSeed(&mut self.0.runs))?,
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

struct RunsSeed<'p>(&'p mut Vec<Value>);

impl<'de> DeserializeSeed<'de> for RunsSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for RunsSeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a list of runs")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut runs: A) -> Result<(), A::Error> {
        while let Some(run) = runs.next_element()? {
            self.0.push(run);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_breaks_off_gives_the_runs_before() {
        let file =
            b"{\"format\":\"twospeed.results/1\",\"runs\":[\n{\"id\":1},\n{\"id\":2},\n{\"id\":";
        let read = read(file).unwrap();
        assert_eq!(read.runs.len(), 2);
        let cut = read.cut_short.unwrap();
        assert_eq!((cut.run, cut.line), (None, Some(4)), "{cut:?}");
    }

    #[test]
    fn a_file_of_a_newer_format_is_refused_by_name() {
        let error = read(b"{\"format\":\"twospeed.results/2\",\"runs\":[]}").unwrap_err();
        assert_eq!(error.code(), "newer_export");
        assert!(error.to_string().contains("twospeed.results/2"), "{error}");
    }

    #[test]
    fn what_is_no_export_is_refused() {
        let others: [&[u8]; 7] = [
            b"",
            b"\n",
            b"[]",
            b"{}",
            b"<html>",
            b"{\"format\":\"other/1\",\"runs\":[]}",
            b"[{\"build_commit\":\"unknown\"}]",
        ];
        for file in others {
            let error = read(file).unwrap_err();
            let text = String::from_utf8_lossy(file);
            assert_eq!(error.code(), "not_an_export", "{text}");
        }
    }

    #[test]
    fn a_byte_order_mark_does_no_harm() {
        let read = read(b"\xef\xbb\xbf{\"format\":\"twospeed.results/1\",\"runs\":[]}").unwrap();
        assert!(read.cut_short.is_none());
    }
}
