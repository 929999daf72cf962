//! What layers keep for each sequence, whatever its length.

use super::Plan;
use crate::architecture::{Memory, State};
use crate::shape::{Layer, ShapeError, Store, StoreKind};

impl Plan<'_> {
    /// Adds what recurrent layers keep for each sequence.
    pub(super) fn add_states(
        &self,
        layers: &mut [Layer],
        recurrent: &[bool],
    ) -> Result<(), ShapeError> {
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
                    // Required, and 0 in PLaMo 2's files.
                    _ => keys
                        .raw("ssm.group_count")?
                        .ok_or_else(|| keys.missing("ssm.group_count"))?,
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
                product(&[3, conv, self.heads[0], head]).saturating_add(product(&[
                    head,
                    head,
                    self.heads[0],
                ]))
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
    pub(super) fn add_compressed(&self, layers: &mut [Layer]) -> Result<(), ShapeError> {
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
