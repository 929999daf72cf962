//! Whether a model can be used for what is asked, before the engine sees it.

use crate::error::{Error, Limit};
use crate::metadata::{Array, ElementType, Metadata, Value};
use crate::model::{Data, Kind, Model};
use crate::text::{quoted, shown};
use crate::warning::{Warning, few};

/// `LLAMA_MAX_LAYERS`: the engine aborts on more.
pub(crate) const MAX_LAYERS: u64 = 512;

/// `LLAMA_MAX_EXPERTS`: the engine aborts on more.
pub(crate) const MAX_EXPERTS: u64 = 1024;

/// Values of `rope.scaling.type`; the engine aborts on others.
const ROPE_SCALINGS: [&str; 4] = ["none", "linear", "yarn", "longrope"];

impl Model {
    /// Whether the file (set) is whole: `Err` for a truncated one and for a set with missing parts.
    /// A header without weights is sound, and so is a container that holds no model.
    pub fn check(&self) -> Result<(), Error> {
        let file = || shown(&self.path);
        if let Some(split) = self
            .split
            .as_ref()
            .filter(|split| !split.missing.is_empty())
        {
            return Err(Error::PartsMissing {
                file: file(),
                parts: split.parts,
                missing: few(&split.missing),
            });
        }
        if self.data == Data::Truncated {
            return Err(Error::Truncated {
                file: file(),
                expected: self.bytes_expected,
                found: self.bytes_found,
            });
        }
        Ok(())
    }

    /// Whether the engine can be asked to load it: [`Model::check`], and it is a model, its weights
    /// are there, and nothing in the header is known to make the engine refuse or abort.
    pub fn check_loads(&self) -> Result<(), Error> {
        let file = || shown(&self.path);
        self.check()?;
        if !self.kind.is_model() {
            return Err(Error::NotAModel {
                file: file(),
                kind: self.kind,
            });
        }
        if self.data == Data::Absent {
            return Err(Error::NoWeights {
                file: file(),
                expected: self.bytes_expected,
            });
        }
        match self.limit() {
            Some(limit) => Err(Error::Limit {
                file: file(),
                limit: limit.clone(),
            }),
            None => Ok(()),
        }
    }

    /// Whether it can be asked for a decode speed: [`Model::check_loads`], and it generates.
    pub fn check_decodes(&self) -> Result<(), Error> {
        self.check_loads()?;
        match self.kind {
            Kind::Generates => Ok(()),
            kind => Err(Error::NoDecode {
                file: shown(&self.path),
                kind,
            }),
        }
    }

    /// What the engine would refuse or abort on.
    #[must_use]
    pub fn limit(&self) -> Option<&Limit> {
        self.warnings.iter().find_map(|warning| match warning {
            Warning::CannotBeLoaded(limit) => Some(limit),
            _ => None,
        })
    }
}

/// What in these keys the engine refuses or aborts on.
pub(crate) fn engine_limit(metadata: &Metadata) -> Result<(), Limit> {
    let key = |suffix: &str| metadata.arch_u64(suffix);
    let Some(layers) = key("block_count") else {
        return Err(Limit::NoLayers(metadata.arch_key("block_count")));
    };
    if layers > MAX_LAYERS {
        return Err(Limit::Layers(layers));
    }
    if let Some(next) = key("nextn_predict_layers").filter(|next| *next > layers) {
        return Err(Limit::LayersAhead { next, layers });
    }
    let experts = key("expert_count").unwrap_or(0);
    if experts > MAX_EXPERTS {
        return Err(Limit::Experts(experts));
    }
    let used = metadata
        .per_layer_u64("expert_used_count")
        .and_then(|used| used.into_iter().max())
        .unwrap_or(0);
    // Files of dense models may say "one expert"; the engine then ignores both numbers in some
    // architectures and aborts in others, so only what always aborts is refused.
    if used > experts || (experts > 1 && used == 0) {
        return Err(Limit::ExpertsUsed { used, experts });
    }
    let scaling = metadata.str(&metadata.arch_key("rope.scaling.type"));
    if let Some(scaling) = scaling.filter(|name| !ROPE_SCALINGS.contains(&name.as_ref())) {
        return Err(Limit::RopeScaling(quoted(scaling.as_bytes())));
    }
    for (key, value) in metadata.iter() {
        if matches!(value, Value::Array(array) if array.element == ElementType::Array) {
            return Err(Limit::NestedArray(quoted(key.as_bytes())));
        }
    }
    let tokens = metadata.array_len("tokenizer.ggml.tokens").unwrap_or(0);
    for key in ["tokenizer.ggml.scores", "tokenizer.ggml.token_type"] {
        let fits = |table: &Array| table.element.bytes() == Some(4) && table.length >= tokens;
        if metadata.array(key).is_some_and(|table| !fits(table)) {
            return Err(Limit::TokenTable {
                key,
                expected: tokens,
            });
        }
    }
    Ok(())
}
