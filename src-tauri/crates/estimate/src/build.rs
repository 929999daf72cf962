//! Building a [`Shape`]: an architecture's rules applied to what a file says.

mod indexer;
mod state;
mod window;

use twospeed_gguf::Model;

use crate::architecture::{
    HeadLengths, Memory, NoCache, PLAIN, RecurrentLayers, Repeats, Rules, SharedLayers, Window,
    WindowLayers, WindowSize,
};
use crate::keys::Keys;
use crate::shape::{Layer, MAX_LAYERS, Shape, ShapeError, Store, StoreKind, Value};

/// The shape that `rules` make of a model.
pub(crate) fn shape(model: &Model, architecture: &str, rules: Rules) -> Result<Shape, ShapeError> {
    let keys = Keys {
        model,
        architecture,
    };
    let plan = Plan::new(keys, rules)?;
    let recurrent = plan.recurrent_layers()?;
    let (window, sliding) = plan.window(&recurrent)?;
    let mut layers = plan.layers(&recurrent, &sliding)?;
    plan.add_indexers(&mut layers, &recurrent, &sliding)?;
    plan.add_states(&mut layers, &recurrent)?;
    if rules.memory == Memory::Compressed {
        plan.add_compressed(&mut layers)?;
    }
    Ok(Shape {
        architecture: architecture.to_owned(),
        layers,
        trunk: plan.trunk,
        embedding: plan.embedding,
        vocabulary: vocabulary(keys)?,
        training_context: keys.get("context_length")?,
        window,
        no_cache: match rules.memory {
            Memory::None(why) => Some(why),
            _ => None,
        },
        latent: plan.latent || rules.memory == Memory::Compressed,
        separate_sequences: rules.memory == Memory::Compressed,
        without_flash_attention: rules.without_flash_attention,
    })
}

/// The rules of an unknown architecture at its most sparing: whatever its keys hint at, in every
/// layer.
pub(crate) fn least_rules(model: &Model, architecture: &str) -> Rules {
    let keys = Keys {
        model,
        architecture,
    };
    let says = |suffix| matches!(keys.get(suffix), Ok(Some(_)));
    let recurrent = [
        "ssm.state_size",
        "wkv.head_size",
        "kda.head_dim",
        "shortconv.l_cache",
    ];
    let memory = if recurrent.into_iter().any(says) {
        // Its state is unknown as well, so the least is nothing.
        Memory::None(NoCache::Encoder)
    } else {
        Memory::Attention
    };
    Rules {
        memory,
        window: Window {
            size: WindowSize::IfSet,
            layers: WindowLayers::AllThatAttend,
        },
        latent: true,
        shared: SharedLayers::LastAsSet,
        ..PLAIN
    }
}

/// Words of the vocabulary: the tokenizer's list, else what the architecture says.
fn vocabulary(keys: Keys<'_>) -> Result<Option<u64>, ShapeError> {
    match keys.model.metadata().array_len("tokenizer.ggml.tokens") {
        Some(length) => Ok(Some(length)),
        None => keys.get("vocab_size"),
    }
}

/// The plain facts that the layers are built from.
struct Plan<'a> {
    keys: Keys<'a>,
    rules: Rules,
    /// Layers that every token passes.
    trunk: usize,
    embedding: u64,
    /// By layer.
    heads: Vec<u64>,
    kv_heads: Vec<u64>,
    /// Elements of a head's key and value, without and with a sliding window.
    full: (u64, u64),
    sliding: (u64, u64),
    latent: bool,
}

impl<'a> Plan<'a> {
    fn new(keys: Keys<'a>, rules: Rules) -> Result<Self, ShapeError> {
        let claimed = keys.need("block_count")?;
        if claimed > MAX_LAYERS {
            return Err(ShapeError::TooManyLayers(claimed));
        }
        let blocks = claimed as usize;
        let trunk = blocks - next_token_blocks(keys, rules, blocks)?;
        let embedding = keys.need("embedding_length")?;

        let heads = keys.per_layer("attention.head_count", blocks)?;
        let attends = !matches!(rules.memory, Memory::Recurrent(_) | Memory::None(_));
        if heads.is_none() && attends {
            return Err(keys.missing("attention.head_count"));
        }
        let heads = heads.unwrap_or_else(|| vec![0; blocks]);
        let kv_heads = keys
            .per_layer("attention.head_count_kv", blocks)?
            .unwrap_or_else(|| heads.clone());

        let full = head_lengths(keys, rules.head_lengths, embedding, heads[0])?;
        let sliding = (
            keys.get("attention.key_length_swa")?.unwrap_or(full.0),
            keys.get("attention.value_length_swa")?.unwrap_or(full.1),
        );
        let latent = rules.latent
            && keys.get("attention.key_length_mla")?.is_some()
            && keys.get("attention.value_length_mla")?.is_some();
        let plan = Self {
            keys,
            rules,
            trunk,
            embedding,
            heads,
            kv_heads,
            full,
            sliding,
            latent,
        };
        plan.repeated()
    }

    /// With the layers that blocks run more than once stand for.
    fn repeated(mut self) -> Result<Self, ShapeError> {
        match self.rules.repeats {
            Repeats::None | Repeats::Cycles => {}
            Repeats::Loops => {
                let loops = self.keys.get("num_loops")?.unwrap_or(1);
                let layers = loops.saturating_mul(self.trunk as u64);
                if layers > MAX_LAYERS {
                    return Err(ShapeError::TooManyLayers(layers));
                }
                if loops == 1 {
                    return Ok(self);
                }
                let next_token_blocks = self.blocks() - self.trunk;
                for heads in [&mut self.heads, &mut self.kv_heads] {
                    *heads = heads[..self.trunk].repeat(loops as usize);
                }
                self.trunk = self.blocks().saturating_sub(next_token_blocks);
            }
            Repeats::ExtraRouterLayer => {
                for heads in [&mut self.heads, &mut self.kv_heads] {
                    heads.truncate(self.trunk);
                    heads.push(1);
                }
            }
        }
        Ok(self)
    }

    fn blocks(&self) -> usize {
        self.heads.len()
    }

    /// Whether a layer may have cache rows: not a next-token-prediction block.
    ///
    /// A file of nothing but such blocks is a draft model of its own and keeps them.
    fn may_cache(&self, layer: usize) -> bool {
        layer < self.trunk || self.trunk == 0 || self.rules.next_token_blocks_cache
    }

    fn recurrent_layers(&self) -> Result<Vec<bool>, ShapeError> {
        let blocks = self.blocks();
        let Memory::Hybrid(_, which) = self.rules.memory else {
            let all = matches!(self.rules.memory, Memory::Recurrent(_));
            return Ok(vec![all; blocks]);
        };
        let of_trunk = |recurrent: &dyn Fn(usize) -> bool| {
            (0..blocks)
                .map(|i| i < self.trunk && recurrent(i))
                .collect()
        };
        Ok(match which {
            RecurrentLayers::All => vec![true; blocks],
            RecurrentLayers::WithoutKvHeads => of_trunk(&|i| self.kv_heads[i] == 0),
            RecurrentLayers::WithoutKvHeadsAndFeedForward => {
                let feed_forward = self.feed_forward()?;
                of_trunk(&|i| self.kv_heads[i] == 0 && feed_forward[i] == 0)
            }
            RecurrentLayers::AllButEvery(default) => {
                match self.keys.per_layer("attention.recurrent_layers", blocks)? {
                    Some(listed) => of_trunk(&|i| listed[i] != 0),
                    None => {
                        let every = self.keys.get("full_attention_interval")?.unwrap_or(default);
                        of_trunk(&|i| !(i as u64 + 1).is_multiple_of(every))
                    }
                }
            }
        })
    }

    fn attending_layers(&self, recurrent: &[bool]) -> Result<Vec<bool>, ShapeError> {
        Ok(match self.rules.memory {
            Memory::Attention | Memory::Hybrid(_, RecurrentLayers::All) => {
                vec![true; self.blocks()]
            }
            Memory::Hybrid(_, RecurrentLayers::WithoutKvHeadsAndFeedForward) => {
                let feed_forward = self.feed_forward()?;
                let neither = |i: usize| !recurrent[i] && feed_forward[i] == 0;
                (0..self.blocks()).map(neither).collect()
            }
            Memory::Hybrid(..) => recurrent.iter().map(|recurrent| !recurrent).collect(),
            Memory::None(_) | Memory::Recurrent(_) | Memory::Compressed => {
                vec![false; self.blocks()]
            }
        })
    }

    fn feed_forward(&self) -> Result<Vec<u64>, ShapeError> {
        Ok(self
            .keys
            .per_layer("feed_forward_length", self.blocks())?
            .unwrap_or_else(|| vec![0; self.blocks()]))
    }

    /// Elements of a head's key and value in a layer.
    fn head(&self, sliding: bool) -> (u64, u64) {
        if sliding { self.sliding } else { self.full }
    }

    /// The layers with their keys and values; without indexers and states.
    fn layers(&self, recurrent: &[bool], sliding: &[bool]) -> Result<Vec<Layer>, ShapeError> {
        let widest = (0..self.blocks())
            .map(|i| self.head(sliding[i]).1.saturating_mul(self.kv_heads[i]))
            .max()
            .unwrap_or(0);
        let attends = self.attending_layers(recurrent)?;
        let owners = match self.rules.shared {
            SharedLayers::None => self.blocks(),
            SharedLayers::From(layer) => layer,
            SharedLayers::LastAsSet => {
                let last = self.keys.get("attention.shared_kv_layers")?.unwrap_or(0);
                self.blocks().saturating_sub(last as usize)
            }
        };
        let layer = |i: usize| {
            let (head_key, head_value) = self.head(sliding[i]);
            let mut layer = Layer {
                heads: self.heads[i],
                head_key,
                head_value,
                ..Layer::default()
            };
            if !attends[i] || !self.may_cache(i) {
                return layer;
            }
            if i >= owners {
                // The last layer of its own kind among those that have a cache.
                layer.reads = owners.checked_sub(if sliding[i] { 2 } else { 1 });
                return layer;
            }
            // A layer without KV heads has a store all the same: without flash attention its
            // rows are padded like any other's.
            layer.stores.push(Store {
                kind: if sliding[i] {
                    StoreKind::Window
                } else {
                    StoreKind::Full
                },
                key: head_key.saturating_mul(self.kv_heads[i]),
                value: (!self.latent).then_some(Value {
                    row: head_value.saturating_mul(self.kv_heads[i]),
                    widest,
                }),
            });
            layer
        };
        Ok((0..self.blocks()).map(layer).collect())
    }
}

/// How many blocks at the end predict further tokens.
fn next_token_blocks(keys: Keys<'_>, rules: Rules, blocks: usize) -> Result<usize, ShapeError> {
    let claimed = keys.get("nextn_predict_layers")?.unwrap_or(0) as usize;
    if claimed > blocks {
        return Err(ShapeError::UnusableKey(keys.name("nextn_predict_layers")));
    }
    // DeepSeek V4's key stays when the blocks were left out of the file.
    let probe = format!("blk.{}.nextn.eh_proj.weight", blocks - claimed);
    let left_out = rules.memory == Memory::Compressed
        && !keys.model.tensors.iter().any(|tensor| tensor.name == probe);
    Ok(if left_out { 0 } else { claimed })
}

/// Elements of a head's key and value.
fn head_lengths(
    keys: Keys<'_>,
    rule: HeadLengths,
    embedding: u64,
    heads: u64,
) -> Result<(u64, u64), ShapeError> {
    if heads == 0 && rule != HeadLengths::WithoutHeadsToo {
        return Ok((0, 0));
    }
    let key = keys.get("attention.key_length")?;
    let value = keys.get(match rule {
        HeadLengths::LatentValue => "attention.kv_lora_rank",
        _ => "attention.value_length",
    })?;
    let share = embedding.checked_div(heads);
    Ok((key.or(share).unwrap_or(0), value.or(share).unwrap_or(0)))
}
