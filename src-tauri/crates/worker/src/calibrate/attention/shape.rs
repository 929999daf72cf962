//! What attention is asked about, and what the engine refuses of it.

use twospeed_gguf::TensorType;

use crate::calibrate::{memory, weights};

/// Heads, tokens and what they attend to.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// Heads of the queries.
    pub heads: u64,
    /// Heads of keys and values.
    pub kv_heads: u64,
    /// Elements of a head.
    pub head: u64,
    /// Cells that are read.
    pub cells: u64,
    /// Tokens that attend.
    pub columns: u64,
}

/// Bytes of a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bytes {
    /// Keys of one cache.
    pub keys: u64,
    /// Keys and values of one cache.
    pub cache: u64,
    /// What is needed beside the caches.
    pub beside: u64,
}

impl Shape {
    /// Refuses what the engine refuses, and counts the bytes.
    pub fn check(
        &self,
        type_k: TensorType,
        type_v: TensorType,
        flash: bool,
    ) -> Result<Bytes, String> {
        let Self {
            heads,
            kv_heads,
            head,
            cells,
            columns,
        } = *self;
        if [heads, kv_heads, head, cells, columns].contains(&0) {
            return Err(
                "Attention without heads, cells or columns takes no time: give at least 1.".into(),
            );
        }
        if columns > cells {
            return Err(format!(
                "{columns} tokens are not among {cells} cells: give at least as many cells."
            ));
        }
        if !heads.is_multiple_of(kv_heads) {
            return Err(format!(
                "{heads} heads cannot share {kv_heads} heads of keys: give a divisor."
            ));
        }
        if !flash && type_v.block_elements() > 1 {
            return Err(format!(
                "Values of {} need flash attention: the engine keeps them transposed without.",
                type_v.name()
            ));
        }
        for tensor_type in [type_k, type_v] {
            if !head.is_multiple_of(tensor_type.block_elements()) {
                return Err(format!(
                    "A head of {head} is no whole blocks of {}: give a multiple of {}.",
                    tensor_type.name(),
                    tensor_type.block_elements()
                ));
            }
        }
        let too_much = || "More bytes than any memory holds: ask for less.".to_owned();
        let all = |extents: &[u64]| memory::bytes_of(1, extents).ok_or_else(too_much);
        let wide = all(&[kv_heads, head])?;
        weights::check_extents(&[wide, all(&[heads, head])?, all(&[heads, columns])?])?;
        let part = |tensor_type: TensorType| {
            let row = tensor_type.bytes(wide).unwrap_or(u64::MAX);
            memory::bytes_of(row, &[cells]).ok_or_else(too_much)
        };
        let keys = part(type_k)?;
        let cache = keys.checked_add(part(type_v)?).ok_or_else(too_much)?;
        let bytes = |extents: &[u64]| memory::bytes_of(1, extents);
        // Queries, results by head, results, rotated; scores; mask; a cache as f16.
        let beside = memory::sum([
            bytes(&[4 * 4, heads, head, columns]),
            bytes(&[if flash { 0 } else { 4 }, heads, cells, columns]),
            bytes(&[2 * 4, cells, columns]),
            bytes(&[4, wide, cells]),
        ])
        .ok_or_else(too_much)?;
        Ok(Bytes {
            keys,
            cache,
            beside,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: Shape = Shape {
        heads: 9,
        kv_heads: 3,
        head: 64,
        cells: 512,
        columns: 4,
    };

    #[test]
    fn the_bytes_of_a_cache_are_those_of_its_cells() {
        let bytes = SHAPE
            .check(TensorType::F16, TensorType::Q8_0, true)
            .unwrap();
        // 512 cells x 3 heads x 64 elements of 2 bytes; 6 blocks of 34 bytes a cell.
        assert_eq!(bytes.keys, 512 * 3 * 64 * 2);
        assert_eq!(bytes.cache, 512 * 3 * 64 * 2 + 512 * 6 * 34);
    }

    #[test]
    fn what_the_engine_refuses_is_refused_in_a_sentence() {
        let refusal = |change: &dyn Fn(&mut Shape), type_v, flash| {
            let mut shape = SHAPE;
            change(&mut shape);
            shape.check(TensorType::F16, type_v, flash).unwrap_err()
        };
        let f16 = TensorType::F16;
        assert!(refusal(&|s| s.columns = 513, f16, true).contains("512 cells"));
        assert!(refusal(&|s| s.kv_heads = 2, f16, true).contains("share"));
        assert!(refusal(&|s| s.head = 0, f16, true).contains("at least 1"));
        assert!(refusal(&|s| s.head = 40, TensorType::Q8_0, true).contains("multiple of 32"));
        assert!(refusal(&|_| {}, TensorType::Q8_0, false).contains("flash attention"));
        assert!(refusal(&|s| s.head = u64::MAX, f16, true).contains("memory"));
    }
}
