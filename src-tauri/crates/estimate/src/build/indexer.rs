//! Which layers keep keys for choosing what to attend to (sparse attention).

use super::Plan;
use crate::architecture::Indexer;
use crate::shape::{Layer, ShapeError, Store, StoreKind, Value};

impl Plan<'_> {
    /// Adds the keys that choose what to attend to.
    pub(super) fn add_indexers(
        &self,
        layers: &mut [Layer],
        recurrent: &[bool],
        sliding: &[bool],
    ) -> Result<(), ShapeError> {
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
        let pooled = [Indexer::TypesPooled, Indexer::AttentionPooled];
        let keys_only = self.latent || pooled.contains(&self.rules.indexer);
        let widest = layers
            .iter()
            .map(|layer| layer.head_value)
            .max()
            .unwrap_or(0);
        for (i, layer) in layers.iter_mut().enumerate().filter(|(i, _)| marked[*i]) {
            layer.stores.push(Store {
                kind: StoreKind::Indexer,
                // The engine overwrites the key's length without a window only.
                key: if sliding[i] {
                    layer.head_key
                } else {
                    key.saturating_mul(rows_per_key)
                },
                // One head; the value's length stays the model's.
                value: (!keys_only).then_some(Value {
                    row: layer.head_value,
                    widest,
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
}

fn marked(types: &[u64]) -> Vec<bool> {
    types.iter().map(|full| *full != 0).collect()
}
