//! Reading the architecture's own keys the way the engine does.

use twospeed_gguf::{Model, Numbers, Value};

use crate::shape::{MAX_LAYERS, ShapeError};

/// The keys of one architecture: `attention.head_count` stands for `llama.attention.head_count`.
#[derive(Clone, Copy)]
pub(crate) struct Keys<'a> {
    pub model: &'a Model,
    pub architecture: &'a str,
}

impl Keys<'_> {
    /// The full key.
    pub fn name(&self, suffix: &str) -> String {
        format!("{}.{suffix}", self.architecture)
    }

    fn value(&self, suffix: &str) -> Option<&Value> {
        self.model.metadata().get(&self.name(suffix))
    }

    /// The number under a key, 0 included.
    pub fn raw(&self, suffix: &str) -> Result<Option<u64>, ShapeError> {
        match self.value(suffix) {
            Some(Value::Integer(value)) => self.in_range(suffix, *value).map(Some),
            Some(Value::Bool(value)) => Ok(Some(u64::from(*value))),
            _ => Ok(None),
        }
    }

    /// The number under a key; 0 counts as absent, since real files carry such zeros.
    pub fn get(&self, suffix: &str) -> Result<Option<u64>, ShapeError> {
        Ok(self.raw(suffix)?.filter(|value| *value > 0))
    }

    /// The number under a key that the engine requires.
    pub fn need(&self, suffix: &str) -> Result<u64, ShapeError> {
        self.get(suffix)?.ok_or_else(|| self.missing(suffix))
    }

    /// The list under a key, whatever its length.
    pub fn list(&self, suffix: &str) -> Result<Option<Vec<u64>>, ShapeError> {
        let Some(Value::Array(array)) = self.value(suffix) else {
            return Ok(None);
        };
        let Some(Numbers::Integers(numbers)) = &array.numbers else {
            return Err(self.unusable(suffix));
        };
        let values = numbers
            .iter()
            .map(|value| self.in_range(suffix, i128::from(*value)))
            .collect::<Result<_, _>>()?;
        Ok(Some(values))
    }

    /// One number for each of `layers`: the first entries of a list, or a single number for all.
    ///
    /// Lists may be longer than the layers are many. Inside a list and as a single number, 0 is 0.
    pub fn per_layer(&self, suffix: &str, layers: usize) -> Result<Option<Vec<u64>>, ShapeError> {
        if layers as u64 > MAX_LAYERS {
            return Err(ShapeError::TooManyLayers(layers as u64));
        }
        match self.list(suffix)? {
            Some(mut values) => {
                if values.len() < layers {
                    return Err(self.unusable(suffix));
                }
                values.truncate(layers);
                Ok(Some(values))
            }
            None => Ok(self.raw(suffix)?.map(|value| vec![value; layers])),
        }
    }

    pub fn missing(&self, suffix: &str) -> ShapeError {
        ShapeError::MissingKey(self.name(suffix))
    }

    fn unusable(&self, suffix: &str) -> ShapeError {
        ShapeError::UnusableKey(self.name(suffix))
    }

    /// The engine reads these as 32-bit numbers; a product of three then always fits 128 bits.
    fn in_range(&self, suffix: &str, value: i128) -> Result<u64, ShapeError> {
        u32::try_from(value)
            .map(u64::from)
            .map_err(|_| self.unusable(suffix))
    }
}
