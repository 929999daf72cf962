//! A row's fields by name. Taking one removes it, so that what is left is what nobody knew.

use serde_json::{Map, Value};

use super::number;
use super::text::without_lost_bytes;

#[derive(Debug)]
pub(super) struct Fields {
    pub(super) line: usize,
    /// The table of the file, counted from 0.
    pub(super) table: usize,
    map: Map<String, Value>,
}

impl Fields {
    pub(super) fn new(line: usize, table: usize, map: Map<String, Value>) -> Self {
        // An empty text tells nothing, but for this one: there is no GPU.
        let tells =
            |name: &str, value: &Value| !value.is_null() && (value != "" || name == "gpu_info");
        let map = map
            .into_iter()
            .filter(|(name, value)| tells(name, value))
            .collect();
        Self { line, table, map }
    }

    pub(super) fn of_text<'n>(
        line: usize,
        table: usize,
        cells: impl IntoIterator<Item = (&'n str, String)>,
    ) -> Self {
        let cells = cells
            .into_iter()
            .map(|(name, value)| (name.to_owned(), Value::String(value)))
            .collect();
        Self::new(line, table, cells)
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.map.contains_key(name)
    }

    /// What the whole row says, in one form whatever format it came in: `name=value` lines in
    /// order, without samples, which only JSON has.
    pub(super) fn said(&self) -> String {
        let mut lines: Vec<String> = self
            .map
            .iter()
            .filter(|(name, _)| !name.starts_with("samples_"))
            .map(|(name, value)| format!("{name}={}\n", plain(value)))
            .collect();
        lines.sort();
        lines.concat()
    }

    /// A text. Empty is as good as not there.
    pub(super) fn text(&mut self, name: &str) -> Option<String> {
        Some(match self.map.remove(name)? {
            Value::String(text) => without_lost_bytes(&text),
            other => other.to_string(),
        })
    }

    /// A finite number; an error names the field.
    pub(super) fn real(&mut self, name: &str) -> Result<Option<f64>, String> {
        self.text(name)
            .map(|text| number::real(&text).map_err(|reason| format!("{name} {reason}")))
            .transpose()
    }

    /// A whole number; an error names the field.
    pub(super) fn whole(&mut self, name: &str) -> Result<Option<i64>, String> {
        self.text(name)
            .map(|text| {
                number::whole(&text)
                    .ok_or_else(|| format!("{name} is {text}, which is no whole number"))
            })
            .transpose()
    }

    /// A count of what a test needs to be one; an error names the field.
    pub(super) fn count(&mut self, name: &str) -> Result<Option<u32>, String> {
        self.whole(name)?
            .map(|value| {
                u32::try_from(value).map_err(|_| format!("{name} is {value}, which cannot be"))
            })
            .transpose()
    }

    /// A setting that is a whole number. One of another form stays among the fields nobody knew.
    pub(super) fn number<T: TryFrom<i64>>(&mut self, name: &str) -> Option<T> {
        self.known(name, |text| T::try_from(number::whole(text)?).ok())
    }

    /// As [`Fields::number`], for one that 0 makes no sense for.
    pub(super) fn positive(&mut self, name: &str) -> Option<u32> {
        self.known(name, |text| {
            u32::try_from(number::whole(text)?)
                .ok()
                .filter(|value| *value > 0)
        })
    }

    /// A setting that is on or off.
    pub(super) fn flag(&mut self, name: &str) -> Option<bool> {
        self.known(name, number::flag)
    }

    /// A setting of a few words. Another word stays among the fields nobody knew.
    pub(super) fn word<T>(&mut self, name: &str, read: impl Fn(&str) -> Option<T>) -> Option<T> {
        self.known(name, read)
    }

    fn known<T>(&mut self, name: &str, read: impl Fn(&str) -> Option<T>) -> Option<T> {
        let value = self.map.get(name)?;
        let read = match value {
            Value::String(text) => read(text),
            other => read(&other.to_string()),
        };
        if read.is_some() {
            self.map.remove(name);
        }
        read
    }

    /// A list as JSON has it.
    pub(super) fn list(&mut self, name: &str) -> Option<Vec<Value>> {
        match self.map.remove(name)? {
            Value::Array(list) => Some(list),
            other => {
                self.map.insert(name.to_owned(), other);
                None
            }
        }
    }

    /// What is left.
    pub(super) fn rest(self) -> Map<String, Value> {
        self.map
    }
}

/// A value in the one form that all formats share: JSON's true is the others' 1, and a byte beyond ASCII
/// is a question mark, since llama-bench's JSON loses it.
fn plain(value: &Value) -> String {
    let text = match value {
        Value::String(text) => without_lost_bytes(text),
        Value::Bool(flag) => return u8::from(*flag).to_string(),
        other => other.to_string(),
    };
    if let Some(whole) = number::whole(&text) {
        return whole.to_string();
    }
    if let Ok(number) = text.parse::<f64>() {
        return number.to_string();
    }
    text.chars()
        .map(|c| match c {
            _ if c.is_ascii() => c.to_string(),
            super::text::LOST => "?".to_owned(),
            _ => "?".repeat(c.len_utf8()),
        })
        .collect()
}
