//! Building a [`Shape`]: an architecture's rules applied to what a file says.

use twospeed_gguf::Model;

use crate::architecture::{
    HeadLengths, Indexer, Memory, NoCache, PLAIN, RecurrentLayers, Repeats, Rules, SharedLayers, State, Window, WindowLayers,
    WindowSize,
};
use crate::keys::Keys;
use crate::shape::{Layer, MAX_LAYERS, Shape, ShapeError, Store, StoreKind, Value};

/// The shape that `rules` make of a model.
pub(crate) fn shape(
    model: &Model,
    architecture: &str,
    rules: Rules,
) -> Result<Shape, ShapeError> {
    let keys = Keys {
        model,
        architecture,
    };
    let plan = Plan::new(keys, rules)?;
    let recurrent = plan.recurrent_layers()?;
    let (window, sliding) = plan.window(&recurrent)?;
    let mut layers = plan.layers(&recurrent, &sliding)?;
    plan.add_indexers(&mut layers, &recurrent)?;
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
    let recurrent = ["ssm.state_size", "wkv.head_size", "kda.head_dim", "shortconv.l_cache"];
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
                let loops = self.keys.get("num_loops")?.unwrap_or(1) as usize;
                let layers = self.trunk.saturating_mul(loops);
                if layers as u64 > MAX_LAYERS {
                    return Err(ShapeError::TooManyLayers(layers as u64));
                }
                self.heads = self.heads[..self.trunk].repeat(loops);
                self.kv_heads = self.kv_heads[..self.trunk].repeat(loops);
                self.trunk = layers;
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
            (0..blocks).map(|i| i < self.trunk && recurrent(i)).collect()
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

    fn feed_forward(&self) -> Result<Vec<u64>, ShapeError> {
        Ok(self
            .keys
            .per_layer("feed_forward_length", self.blocks())?
            .unwrap_or_else(|| vec![0; self.blocks()]))
    }

    /// The window's size, and which layers have it.
    fn window(&self, recurrent: &[bool]) -> Result<(Option<u64>, Vec<bool>), ShapeError> {
        const SIZE: &str = "attention.sliding_window";
        let set = self.keys.get(SIZE)?;
        let size = match self.rules.window.size {
            WindowSize::None => None,
            WindowSize::IfSet => set,
            WindowSize::Required => Some(self.keys.need(SIZE)?),
            WindowSize::Or(default) => Some(set.unwrap_or(default)),
            WindowSize::IfSetFixed(fixed) => set.map(|_| fixed),
            WindowSize::UnlessZeroFixed(fixed) => {
                (self.keys.raw(SIZE)? != Some(0)).then_some(fixed)
            }
            WindowSize::OnlyWithLayers { layers, or } => {
                (self.trunk == layers).then(|| set.unwrap_or(or))
            }
        };
        let sliding = match size {
            Some(_) => self.sliding_layers(recurrent)?,
            None => vec![false; self.blocks()],
        };
        Ok((size, sliding))
    }

    fn sliding_layers(&self, recurrent: &[bool]) -> Result<Vec<bool>, ShapeError> {
        const PATTERN: &str = "attention.sliding_window_pattern";
        let blocks = self.blocks();
        let rule = self.rules.window.layers;
        match rule {
            WindowLayers::All => return Ok(vec![true; blocks]),
            WindowLayers::AllThatAttend => {
                return Ok((0..blocks).map(|i| i < self.trunk && !recurrent[i]).collect());
            }
            _ => {}
        }
        if let Some(listed) = self.keys.list(PATTERN)? {
            if listed.len() < self.trunk {
                return Err(ShapeError::UnusableKey(self.keys.name(PATTERN)));
            }
            let slides = |i: usize| listed.get(i).is_some_and(|slides| *slides != 0);
            return Ok((0..blocks).map(slides).collect());
        }
        let period = self.keys.raw(PATTERN)?;
        let (period, full) = match rule {
            WindowLayers::LastOfEachFull(default) => {
                let period = period.unwrap_or(default);
                (period, period.saturating_sub(1))
            }
            WindowLayers::FirstOfEachFull(default) => (period.unwrap_or(default), 0),
            _ => {
                let period = period.ok_or_else(|| self.keys.missing(PATTERN))?;
                (period, period.saturating_sub(1))
            }
        };
        // A period of 0 makes every layer slide.
        let slides = |i: usize| i < self.trunk && (period == 0 || i as u64 % period != full);
        Ok((0..blocks).map(slides).collect())
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
        let feed_forward = self.feed_forward()?;
        let attends = |i: usize| match self.rules.memory {
            Memory::Attention => true,
            Memory::Hybrid(_, RecurrentLayers::All) => true,
            Memory::Hybrid(_, RecurrentLayers::WithoutKvHeadsAndFeedForward) => {
                !recurrent[i] && feed_forward[i] == 0
            }
            Memory::Hybrid(..) => !recurrent[i],
            Memory::None(_) | Memory::Recurrent(_) | Memory::Compressed => false,
        };
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
            if !attends(i) || !self.may_cache(i) {
                return layer;
            }
            if i >= owners {
                // The last layer of its own kind among those that have a cache.
                layer.reads = owners.checked_sub(if sliding[i] { 2 } else { 1 });
                return layer;
            }
            let key = head_key.saturating_mul(self.kv_heads[i]);
            let row = head_value.saturating_mul(self.kv_heads[i]);
            if key > 0 || row > 0 {
                layer.stores.push(Store {
                    kind: if sliding[i] { StoreKind::Window } else { StoreKind::Full },
                    key,
                    value: (!self.latent).then_some(Value { row, widest }),
                });
            }
            layer
        };
        Ok((0..self.blocks()).map(layer).collect())
    }

    /// Adds the keys that choose what to attend to.
    fn add_indexers(&self, layers: &mut [Layer], recurrent: &[bool]) -> Result<(), ShapeError> {
        if self.rules.indexer == Indexer::None {
            return Ok(());
        }
        if self.rules.indexer == Indexer::TypesIfTopK
            && self.keys.get("attention.indexer.top_k")?.is_none()
        {
            return Ok(());
        }
        let key = self.keys.need("attention.indexer.key_length")?;
        let marked = self.indexed_layers(recurrent)?;
        let rows_per_key = match self.rules.indexer {
            Indexer::TypesPooled => 3,
            Indexer::AttentionPooled if self.compression()?.iter().any(|r| *r > 0) => 2,
            _ => 1,
        };
        let keys_only = self.latent || self.rules.indexer == Indexer::AttentionPooled;
        for (layer, _) in layers.iter_mut().zip(marked).filter(|(_, marked)| *marked) {
            layer.stores.push(Store {
                kind: StoreKind::Indexer,
                key: key.saturating_mul(rows_per_key),
                // One head; the value's length stays the model's.
                value: (!keys_only).then_some(Value {
                    row: layer.head_value,
                    widest: self.full.1.max(self.sliding.1),
                }),
            });
        }
        Ok(())
    }

    fn indexed_layers(&self, recurrent: &[bool]) -> Result<Vec<bool>, ShapeError> {
        const TYPES: &str = "attention.indexer.types";
        let trunk = self.trunk;
        let types = || self.keys.per_layer(TYPES, trunk);
        let required = || types()?.ok_or_else(|| self.keys.missing(TYPES));
        let marks: Vec<bool> = match self.rules.indexer {
            Indexer::None => vec![false; trunk],
            Indexer::Trunk => vec![true; trunk],
            Indexer::Types | Indexer::TypesIfTopK => marked(&required()?),
            Indexer::GlmTypes => match types()? {
                Some(types) => marked(&types),
                None => self.glm_types()?,
            },
            Indexer::AfterLeadingDense => {
                let dense = self.keys.get("leading_dense_block_count")?.unwrap_or(0);
                // Next-token-prediction blocks too.
                return Ok((0..self.blocks()).map(|i| i as u64 >= dense).collect());
            }
            Indexer::TypesPooled => match types()? {
                Some(types) => marked(&types),
                None => vec![true; trunk],
            },
            Indexer::AttentionPooled => vec![true; trunk],
        };
        let attends = |i: usize| marks.get(i).is_some_and(|marked| *marked) && !recurrent[i];
        Ok((0..self.blocks()).map(attends).collect())
    }

    /// Files of GLM 5 and 5.1 index every layer; those of 5.2 (a million tokens of context) the
    /// first two of 78 and then one in four.
    fn glm_types(&self) -> Result<Vec<bool>, ShapeError> {
        let older = self.keys.get("context_length")?.unwrap_or(0) < 1_048_576;
        let of_5_2 = |i: usize| i < 2 || (i < 78 && (i - 2).is_multiple_of(4));
        Ok((0..self.trunk).map(|i| older || of_5_2(i)).collect())
    }

    fn compression(&self) -> Result<Vec<u64>, ShapeError> {
        Ok(self
            .keys
            .per_layer("attention.compress_ratios", self.blocks())?
            .unwrap_or_else(|| vec![0; self.blocks()]))
    }

    /// Adds what recurrent layers keep for each sequence.
    fn add_states(&self, layers: &mut [Layer], recurrent: &[bool]) -> Result<(), ShapeError> {
        let (Memory::Recurrent(state) | Memory::Hybrid(state, _)) = self.rules.memory else {
            return Ok(());
        };
        let elements = self.state_elements(state)?;
        let trunk = layers.iter_mut().take(self.trunk).enumerate();
        for (_, layer) in trunk.filter(|(i, _)| recurrent[*i]) {
            layer.state = elements;
        }
        if state == State::MambaWithHistory {
            let listed = self.keys.list("ple.layers")?.unwrap_or_default();
            let history = self.history_elements()?;
            for i in listed.into_iter().filter_map(|i| usize::try_from(i).ok()) {
                if let Some(layer) = layers.get_mut(i).filter(|layer| layer.state > 0) {
                    layer.state = layer.state.saturating_add(history);
                }
            }
        }
        Ok(())
    }

    /// Elements of one layer's state for one sequence: `n_embd_r` + `n_embd_s` of
    /// `llama-hparams.cpp`.
    fn state_elements(&self, state: State) -> Result<u64, ShapeError> {
        let keys = self.keys;
        let product = |factors: &[u64]| factors.iter().copied().fold(1, u64::saturating_mul);
        Ok(match state {
            State::Mamba { .. } | State::MambaWithHistory => {
                let conv = keys.need("ssm.conv_kernel")? - 1;
                let inner = keys.need("ssm.inner_size")?;
                let size = keys.need("ssm.state_size")?;
                let groups = match state {
                    State::Mamba { grouped: false } => 0,
                    _ => keys.need("ssm.group_count")?,
                };
                let columns = inner.saturating_add(product(&[2, groups, size]));
                product(&[conv, columns]).saturating_add(product(&[size, inner]))
            }
            State::Rwkv => {
                let shifts = keys.get("token_shift_count")?.unwrap_or(2);
                let head = keys.need("wkv.head_size")?;
                product(&[shifts, self.embedding]).saturating_add(product(&[self.embedding, head]))
            }
            State::ShortConv => product(&[self.embedding, keys.need("shortconv.l_cache")? - 1]),
            State::Kda => {
                let head = keys.need("kda.head_dim")?;
                let conv = keys.get("ssm.conv_kernel")?.map_or(3, |kernel| kernel - 1);
                product(&[3, conv, self.heads[0], head])
                    .saturating_add(product(&[head, head, self.heads[0]]))
            }
            State::Lightning => product(&[self.full.0, self.full.0, self.heads[0]]),
        })
    }

    /// Elements of the n-gram history beside a per-layer embedding.
    fn history_elements(&self) -> Result<u64, ShapeError> {
        let Some(kernel) = self.keys.get("ple.conv_kernel")? else {
            return Ok(0);
        };
        let factors = [
            kernel - 1,
            self.keys.need("ple.ngram_size")?,
            self.keys.need("hyper_connection.count")?,
            self.embedding,
        ];
        Ok(factors.into_iter().fold(1, u64::saturating_mul))
    }

    /// DeepSeek V4: every layer keeps a window of keys; where a layer compresses, one further key
    /// for every 4 or 128 tokens, the same for its indexer, and a state for the key being made.
    fn add_compressed(&self, layers: &mut [Layer]) -> Result<(), ShapeError> {
        let indexer = self.keys.need("attention.indexer.key_length")?;
        let ratios = self
            .keys
            .per_layer("attention.compress_ratios", self.blocks())?
            .ok_or_else(|| self.keys.missing("attention.compress_ratios"))?;
        for (i, layer) in layers.iter_mut().enumerate() {
            let (head, _) = self.sliding;
            let key = head.saturating_mul(self.kv_heads[i]);
            let mut keep = |kind, key| {
                layer.stores.push(Store {
                    kind,
                    key,
                    value: None,
                });
            };
            keep(StoreKind::Window, key);
            // Of keys and scores, each of twice the ratio's rows when keys overlap (ratio 4).
            let state = match ratios[i] {
                4 => {
                    keep(StoreKind::Compressed(4), key);
                    keep(StoreKind::CompressedIndexer(4), indexer);
                    2 * 8 * 2 * (head + indexer)
                }
                128 => {
                    keep(StoreKind::Compressed(128), key);
                    2 * 128 * head
                }
                _ => 0,
            };
            if i < self.trunk {
                layer.state = state;
            }
        }
        Ok(())
    }
}

fn marked(types: &[u64]) -> Vec<bool> {
    types.iter().map(|full| *full != 0).collect()
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
