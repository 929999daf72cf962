//! Speed twins: a model's real shapes and tensor types with random weights, whole or with fewer
//! layers, so that its speed can be measured before it is there.

use twospeed_gguf::{Field, Model, TensorInfo};

use crate::header::{ModelHeader, RawField, picked};
use crate::synthetic::{SYNTHETIC, Synthetic, Tensor};

/// The key that says of which model a file is a twin.
const TWIN_OF: &str = "twospeed.twin_of";

/// The key whose text makes a header as long as another.
const PADDING: &str = "twospeed.padding";

/// Lists of the architecture that are not one entry for each layer, whatever their length.
const NOT_BY_LAYER: [&str; 4] = [
    "rope.dimension_sections",
    "target_layers",
    "adapter.",
    "ple.",
];

/// Seed of a twin's weights; they differ from those of any other model by their shapes alone.
const SEED: u64 = 3;

/// Why there is no twin.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TwinError {
    /// The header's keys cannot be told apart.
    #[error("The header of {0} cannot be copied: download it again.")]
    Unreadable(String),
    /// A list has no entry for a layer.
    #[error("The header of {model} says too little under {key} to build some of its layers.")]
    ShortList {
        /// The model.
        model: String,
        /// The list.
        key: String,
    },
    /// It has no layers to build.
    #[error("{0} has no layers that a twin could be built of: name a model that writes text.")]
    NoLayers(String),
}

/// A twin of a model with these of its layers in this order (a layer may be there twice), or with
/// everything as it is.
///
/// Keys that hold one entry for each layer are cut alike, and those that count layers follow.
/// Whether the engine's rules take the result for the same kind of layers is the caller's to ask
/// ([`twospeed_gguf::read_from`] of its header gives the model).
///
/// Errors: [`TwinError`].
pub fn twin(header: &ModelHeader, layers: Option<&[u32]>) -> Result<Synthetic, TwinError> {
    let model = &header.model;
    let fields = header
        .fields()
        .ok_or_else(|| TwinError::Unreadable(model.name.clone()))?;
    if model.tensors.is_empty() || layers.is_some_and(<[u32]>::is_empty) {
        return Err(TwinError::NoLayers(model.name.clone()));
    }
    let mut made = Vec::new();
    for field in &fields {
        let key = String::from_utf8_lossy(field.key);
        // Of a set one file is made, with data aligned as the writer does it.
        if key.starts_with("split.") || key == "general.alignment" || key == "general.name" {
            continue;
        }
        let value = match layers {
            Some(layers) => value(model, &key, field, layers)?,
            None => Some(field.field()),
        };
        made.extend(value.map(|value| (key.into_owned(), value)));
    }
    let name = name(model, layers);
    made.push(("general.name".to_owned(), name.as_str().into()));
    made.push((SYNTHETIC.to_owned(), true.into()));
    made.push((TWIN_OF.to_owned(), model.name.as_str().into()));
    Ok(Synthetic {
        fields: made,
        tensors: tensors(model, layers),
        seed: SEED,
        silent_tokens: 0,
    })
}

/// The same twin with a header as long as that of `other`, if its own is shorter: where both lay
/// their data out alike, the data of one is the beginning of the other's.
#[must_use]
pub fn padded(twin: &Synthetic, other: &Synthetic) -> Option<Synthetic> {
    let with = |length: usize| {
        let mut padded = twin.clone();
        let text = " ".repeat(length);
        padded
            .fields
            .push((PADDING.to_owned(), text.as_str().into()));
        padded
    };
    let bytes = |twin: &Synthetic| twin.header().ok().map(|header| header.len());
    let missing = bytes(other)?.checked_sub(bytes(&with(0))?)?;
    let starts_alike = other.tensors.len() >= twin.tensors.len()
        && twin.tensors.iter().zip(&other.tensors).all(|(a, b)| a == b);
    starts_alike.then(|| with(missing))
}

fn name(model: &Model, layers: Option<&[u32]>) -> String {
    let what = match layers {
        Some(layers) => format!("{} layers, ", layers.len()),
        None => String::new(),
    };
    format!("Twin of {} ({what}random weights)", model.name)
}

/// The value of a key in a twin of these layers; `None` where the twin has no such key.
fn value(
    model: &Model,
    key: &str,
    field: &RawField<'_>,
    layers: &[u32],
) -> Result<Option<Field>, TwinError> {
    let metadata = model.metadata();
    let Some(suffix) = metadata
        .architecture()
        .and_then(|name| key.strip_prefix(name)?.strip_prefix('.'))
    else {
        return Ok(Some(field.field()));
    };
    let count = layers.len() as u64;
    let number = |number: u64| {
        let number = u32::try_from(number).unwrap_or(u32::MAX);
        Ok(Some(Field::from(number)))
    };
    let own = metadata.u64(key);
    match suffix {
        "block_count" => return number(count),
        // No blocks that predict further tokens, and no layers that read the caches of others.
        "nextn_predict_layers" | "attention.shared_kv_layers" => return Ok(None),
        "leading_dense_block_count" => {
            let dense = own.unwrap_or(0);
            let kept = layers.iter().filter(|layer| u64::from(**layer) < dense);
            return number(kept.count() as u64);
        }
        _ => {}
    }
    let Some(list) = metadata.array(key) else {
        return Ok(Some(field.field()));
    };
    let blocks = metadata.arch_u64("block_count").unwrap_or(0);
    let next = metadata.arch_u64("nextn_predict_layers").unwrap_or(0);
    let by_layer = list.element.bytes().is_some()
        && list.length >= blocks.saturating_sub(next).max(1)
        && !NOT_BY_LAYER.iter().any(|start| suffix.starts_with(start));
    if !by_layer {
        return Ok(Some(field.field()));
    }
    match picked(list, field, layers) {
        Some(field) => Ok(Some(field)),
        None => Err(TwinError::ShortList {
            model: model.name.clone(),
            key: key.to_owned(),
        }),
    }
}

/// What belongs to no layer, then the layers one after the other.
fn tensors(model: &Model, layers: Option<&[u32]>) -> Vec<Tensor> {
    let as_it_is = |tensor: &TensorInfo| Tensor {
        name: tensor.name.clone(),
        dimensions: tensor.dimensions.to_vec(),
        tensor_type: tensor.tensor_type,
    };
    let Some(layers) = layers else {
        return model.tensors.iter().map(as_it_is).collect();
    };
    let outside = model.tensors.iter().filter(|t| t.layer().is_none());
    let mut tensors: Vec<Tensor> = outside.map(as_it_is).collect();
    // Tables with a row for each layer are as wide as there are layers.
    if let Some(width) = model
        .metadata()
        .arch_u64("embedding_length_per_layer_input")
    {
        for tensor in &mut tensors {
            let at = match tensor.name.as_str() {
                "per_layer_token_embd.weight" => 0,
                "per_layer_model_proj.weight" => 1,
                _ => continue,
            };
            if let Some(size) = tensor.dimensions.get_mut(at) {
                *size = width * layers.len() as u64;
            }
        }
    }
    for (place, from) in layers.iter().enumerate() {
        let of_layer = model.tensors.iter().filter(|t| t.layer() == Some(*from));
        tensors.extend(of_layer.map(|tensor| {
            let rest = tensor.name.strip_prefix(&format!("blk.{from}."));
            Tensor {
                name: format!("blk.{place}.{}", rest.unwrap_or(&tensor.name)),
                ..as_it_is(tensor)
            }
        }));
    }
    tensors
}

#[cfg(test)]
mod tests {
    use twospeed_gguf::{TensorType, Writer, read_from};

    use super::*;
    use crate::is_synthetic;

    /// Four layers, the first dense, and one more that predicts further tokens.
    fn header() -> ModelHeader {
        let mut writer = Writer::with_alignment(6);
        writer
            .set("general.architecture", "glm4moe")
            .set("general.name", "Real")
            .set("glm4moe.block_count", 5u32)
            .set("glm4moe.nextn_predict_layers", 1u32)
            .set("glm4moe.leading_dense_block_count", 1u32)
            .set("glm4moe.rope.dimension_sections", &[1i32, 2, 3, 4][..])
            .set("glm4moe.feed_forward_length", &[10u32, 11, 12, 13, 14][..])
            .set("glm4moe.attention.head_count", 2u32)
            .set(
                "tokenizer.ggml.tokens",
                Field::texts(["a", "b", "c", "d", "e"]),
            );
        let mut add = |name: &str, tensor_type, sizes: &[u64]| {
            writer.tensor(name, tensor_type, sizes).unwrap();
        };
        add("token_embd.weight", TensorType::Q8_0, &[32, 5]);
        for layer in 0..5 {
            let tensor_type = if layer % 2 == 0 {
                TensorType::Q4_0
            } else {
                TensorType::Q8_0
            };
            add(&format!("blk.{layer}.attn_q.weight"), tensor_type, &[32, 4]);
        }
        add("output_norm.weight", TensorType::F32, &[32]);
        let bytes = writer.header();
        let model = read_from(&bytes[..], "real.gguf", 1 << 20).unwrap();
        ModelHeader::new(model, bytes, 0)
    }

    fn read(twin: &Synthetic) -> Model {
        let bytes = twin.header().unwrap();
        read_from(&bytes[..], "twin.gguf", twin.bytes().unwrap()).unwrap()
    }

    #[test]
    fn a_twin_of_some_layers_has_their_tensors_and_their_entries_of_every_list() {
        let made = read(&twin(&header(), Some(&[0, 2, 3])).unwrap());
        let metadata = made.metadata();
        assert_eq!(metadata.arch_u64("block_count"), Some(3));
        assert_eq!(metadata.arch_u64("nextn_predict_layers"), None);
        assert_eq!(metadata.arch_u64("leading_dense_block_count"), Some(1));
        assert_eq!(
            metadata.per_layer_u64("feed_forward_length"),
            Some(vec![10, 12, 13])
        );
        let sections = metadata.array("glm4moe.rope.dimension_sections");
        assert_eq!(sections.unwrap().length, 4, "no list of layers");
        assert_eq!(metadata.array_len("tokenizer.ggml.tokens"), Some(5));
        let types = |layer: u32| {
            let name = format!("blk.{layer}.attn_q.weight");
            made.tensor(&name).map(|tensor| tensor.tensor_type)
        };
        assert_eq!(types(0), Some(TensorType::Q4_0));
        assert_eq!(types(1), Some(TensorType::Q4_0), "the third layer's");
        assert_eq!(types(2), Some(TensorType::Q8_0), "the fourth layer's");
        assert_eq!(types(3), None);
        assert!(made.tensor("output_norm.weight").is_some());
    }

    #[test]
    fn a_whole_twin_is_the_model_but_for_its_name() {
        let header = header();
        let made = read(&twin(&header, None).unwrap());
        assert_eq!(made.tensors.len(), header.model.tensors.len());
        for (made, real) in made.tensors.iter().zip(&header.model.tensors) {
            assert_eq!((&made.name, made.bytes), (&real.name, real.bytes));
        }
        assert_eq!(made.metadata().arch_u64("nextn_predict_layers"), Some(1));
    }

    #[test]
    fn a_twin_never_looks_like_the_model() {
        for layers in [None, Some(&[0, 1][..])] {
            let made = read(&twin(&header(), layers).unwrap());
            assert!(is_synthetic(&made));
            assert!(made.name.starts_with("Twin of Real ("), "{}", made.name);
            assert!(made.name.ends_with("random weights)"), "{}", made.name);
        }
    }

    #[test]
    fn the_shallower_twin_can_lie_at_the_beginning_of_the_deeper_ones_data() {
        let header = header();
        let deep = twin(&header, Some(&[0, 1, 2, 3])).unwrap();
        let shallow = twin(&header, Some(&[0, 1])).unwrap();
        let padded = padded(&shallow, &deep).unwrap();
        let (small, large) = (read(&padded), read(&deep));
        assert_eq!(small.header_bytes, large.header_bytes);
        for (a, b) in small.tensors.iter().zip(&large.tensors) {
            assert_eq!((&a.name, a.offset, a.bytes), (&b.name, b.offset, b.bytes));
        }
        let other = twin(&header, Some(&[1, 0])).unwrap();
        assert_eq!(
            super::padded(&other, &deep).map(|_| ()),
            None,
            "other types"
        );
    }

    #[test]
    fn a_list_that_is_too_short_is_named() {
        let refused = twin(&header(), Some(&[0, 7])).unwrap_err();
        assert!(
            refused.to_string().contains("glm4moe.feed_forward_length"),
            "{refused}"
        );
        assert!(matches!(
            twin(&header(), Some(&[])),
            Err(TwinError::NoLayers(_))
        ));
    }
}
