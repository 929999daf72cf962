//! Whether a model can be used for what is asked, before the engine sees it.

use crate::error::{Error, Fault, Limit};
use crate::metadata::{Array, ElementType, Metadata, Value};
use crate::model::{Data, Kind, Model, TensorInfo};
use crate::text::{quoted, shown};
use crate::warning::{Warning, few};

/// `LLAMA_MAX_LAYERS`: the engine aborts on more.
pub(crate) const MAX_LAYERS: u64 = 512;

/// `LLAMA_MAX_EXPERTS`: the engine aborts on more.
pub(crate) const MAX_EXPERTS: u64 = 1024;

/// Values of `rope.scaling.type`; the engine aborts on others.
const ROPE_SCALINGS: [&str; 4] = ["none", "linear", "yarn", "longrope"];

impl Model {
    /// Whether the file (set) is whole and known: `Err` for a truncated one, for a set with missing
    /// parts, and where a tensor has a type that is newer than this program.
    /// A header without weights is sound, and so is a container that holds no model.
    pub fn check(&self) -> Result<(), Error> {
        self.check_whole()?;
        let new = |tensor: &TensorInfo| Some((quoted(tensor.name.as_bytes()), tensor.new_type?));
        match self.tensors.iter().find_map(new) {
            Some((name, id)) => Err(Error::Malformed {
                file: shown(&self.path),
                fault: Fault::TensorType { name, id },
            }),
            None => Ok(()),
        }
    }

    /// Whether every part and every tensor is there, of whatever types they are.
    pub fn check_whole(&self) -> Result<(), Error> {
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
    check_experts(metadata)?;
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

/// The engine asserts each of these when it reads the header.
fn check_experts(metadata: &Metadata) -> Result<(), Limit> {
    let key = |suffix: &str| metadata.arch_u64(suffix).unwrap_or(0);
    let experts = key("expert_count");
    if experts > MAX_EXPERTS {
        return Err(Limit::Experts(experts));
    }
    let used = metadata.per_layer_u64("expert_used_count");
    let used = used.and_then(|used| used.into_iter().max()).unwrap_or(0);
    let fits = match experts {
        // The dense ones of this family declare one expert; the engine forgets both numbers.
        0 | 1
            if matches!(
                metadata.architecture(),
                Some("hunyuan_vl" | "hunyuan-dense")
            ) =>
        {
            true
        }
        0 => used == 0,
        _ => (1..=experts).contains(&used),
    };
    if !fits {
        return Err(Limit::ExpertsUsed { used, experts });
    }
    let (groups, groups_used) = (key("expert_group_count"), key("expert_group_used_count"));
    let divides = experts.checked_rem(groups) == Some(0) && (1..groups).contains(&groups_used);
    let groups_fit = match groups {
        0 => true,
        1 => experts > 1,
        _ => groups < experts && divides,
    };
    if !groups_fit {
        return Err(Limit::ExpertGroups {
            groups,
            groups_used,
            experts,
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::Field;
    use crate::read::read_from;
    use crate::testing::{read_back, two_layers, with};
    use crate::writer::Writer;

    fn refusal(writer: &Writer) -> String {
        read_back(writer).check_decodes().unwrap_err().to_string()
    }

    fn limit(key: &str, value: impl Into<Field>) -> Option<Limit> {
        let mut writer = two_layers("qwen3moe");
        writer
            .set("qwen3moe.expert_count", 8u32)
            .set("qwen3moe.expert_used_count", 2u32);
        writer.set(key, value);
        read_back(&writer).limit().cloned()
    }

    #[test]
    fn a_whole_model_that_generates_may_be_measured() {
        read_back(&two_layers("llama")).check_decodes().unwrap();
    }

    #[test]
    fn more_layers_than_the_engine_has_room_for_are_refused_before_it_aborts() {
        let writer = with(two_layers("llama"), "llama.block_count", 513u32);
        assert_eq!(
            refusal(&writer),
            "file-name.gguf cannot be loaded: it declares 513 layers, and the engine takes at most 512; \
             get the model from another source, or convert it again."
        );
        assert_eq!(
            read_back(&writer).layers,
            Some(513),
            "it is listed with what it declares"
        );
    }

    #[test]
    fn numbers_that_make_the_engine_abort_are_named() {
        assert_eq!(limit("general.name", "x"), None);
        let uncounted = with(two_layers("llama"), "llama.block_count", 0u32);
        let uncounted = with(uncounted, "tokenizer.ggml.tokens", Field::texts(["a"]));
        assert_eq!(
            read_back(&uncounted).limit(),
            Some(&Limit::NoLayers("llama.block_count".into()))
        );
        assert_eq!(
            limit("qwen3moe.nextn_predict_layers", 3u32),
            Some(Limit::LayersAhead { next: 3, layers: 2 })
        );
        assert_eq!(
            limit("qwen3moe.expert_count", 1025u32),
            Some(Limit::Experts(1025))
        );
        let used = |used| Some(Limit::ExpertsUsed { used, experts: 8 });
        assert_eq!(limit("qwen3moe.expert_used_count", 9u32), used(9));
        assert_eq!(
            limit("qwen3moe.expert_used_count", &[2u32, 10][..]),
            used(10)
        );
        assert_eq!(limit("qwen3moe.expert_used_count", 0u32), used(0));
        let groups = |groups, groups_used| {
            Some(Limit::ExpertGroups {
                groups,
                groups_used,
                experts: 8,
            })
        };
        assert_eq!(limit("qwen3moe.expert_group_count", 1u32), None);
        assert_eq!(limit("qwen3moe.expert_group_count", 8u32), groups(8, 0));
        assert_eq!(limit("qwen3moe.expert_group_count", 4u32), groups(4, 0));
        let scaling = Limit::RopeScaling("\"cubic\"".into());
        assert_eq!(limit("qwen3moe.rope.scaling.type", "cubic"), Some(scaling));
        assert_eq!(limit("qwen3moe.rope.scaling.type", "yarn"), None);
    }

    #[test]
    fn a_tokenizer_table_of_the_wrong_width_or_length_is_named() {
        let table = |value: Field| {
            let mut writer = two_layers("llama");
            writer.set("tokenizer.ggml.tokens", Field::texts(["a", "b", "c"]));
            writer.set("tokenizer.ggml.token_type", value);
            read_back(&writer).limit().cloned()
        };
        let refused = Some(Limit::TokenTable {
            key: "tokenizer.ggml.token_type",
            expected: 3,
        });
        assert_eq!(table((&[1i32, 1, 1][..]).into()), None);
        assert_eq!(table((&[1u32, 1, 1][..]).into()), None, "found in the wild");
        assert_eq!(
            table((&[1u8, 1, 1][..]).into()),
            refused,
            "read past its end by old engines"
        );
        assert_eq!(table((&[1i32, 1][..]).into()), refused);
    }

    #[test]
    fn what_has_no_decode_speed_says_so() {
        assert_eq!(
            refusal(&two_layers("bert")),
            "file-name.gguf is an embedding model: it reads its text in one pass and has no decode speed; \
             measure its prefill only (-n 0)."
        );
        assert!(refusal(&two_layers("dream")).contains("is a diffusion model"));
        read_back(&two_layers("bert")).check_loads().unwrap();
        assert_eq!(
            refusal(&two_layers("clip")),
            "file-name.gguf is a projector for images or sound, used beside a model; \
             name the model's own file."
        );
    }

    #[test]
    fn a_header_alone_is_sound_but_cannot_be_loaded() {
        let header = two_layers("llama").header();
        let model = read_from(&header[..], "x.gguf", header.len() as u64).unwrap();
        model.check().unwrap();
        assert!(
            model
                .check_loads()
                .unwrap_err()
                .to_string()
                .contains("only the header of a model")
        );
    }
}
