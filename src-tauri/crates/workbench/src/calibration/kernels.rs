//! Which kernels are timed, and over how much memory.

use twospeed_estimate::{Kernel, KvType};
use twospeed_gguf::TensorType;
use twospeed_measure::machine::Machine;

/// The types of weights that are in common use.
const TYPES: [TensorType; 16] = [
    TensorType::F32,
    TensorType::F16,
    TensorType::Bf16,
    TensorType::Q4_0,
    TensorType::Q4_1,
    TensorType::Q5_0,
    TensorType::Q5_1,
    TensorType::Q8_0,
    TensorType::Q2K,
    TensorType::Q3K,
    TensorType::Q4K,
    TensorType::Q5K,
    TensorType::Q6K,
    TensorType::Iq4Nl,
    TensorType::Iq4Xs,
    TensorType::Mxfp4,
];

/// A matrix of a small model: large enough for the threads to share.
const INNER: u32 = 2048;
const ROWS: u32 = 1024;

/// Rows of the matrices that are multiplied with a micro-batch, by the length of a row: their
/// products are over in a moment.
const PRODUCTS: [(u32, u32); 2] = [(512, 1024), (INNER, 512)];

/// A matrix that takes hardly longer than to begin with it.
const TINY: (u32, u32) = (256, 32);

/// Elements of all heads of the queries together, and how many of them share keys and values.
const HEADS: u32 = 1024;
const SHARE_KV: u32 = 4;

/// Depths that a decoded token looks back: where heads are shared by the threads, and twice where
/// the cells are.
const NEAR: u32 = 256;
const SHALLOW: u32 = 1024;
const DEEP: u32 = 8192;

/// Depth before a prompt's tokens, and how many of them are looked at there: as many as the engine
/// takes together. More would cost the same for each.
const BEFORE: u32 = 4096;
const TILE: u32 = 64;

/// A set that no cache holds: this many times the last-level cache, within these bounds.
const BEYOND: u64 = 4;
const LEAST_BEYOND: u64 = 128 << 20;
const MOST_BEYOND: u64 = 1 << 30;

/// The part of the last-level cache that a set takes which is to stay in it, and the most.
const WITHIN: u64 = 4;
const MOST_WITHIN: u64 = 32 << 20;

/// A cache whose size is not known.
const USUAL_CACHE: u64 = 8 << 20;

/// How much memory kernels go through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SetSizes {
    /// Bytes that stay in the caches.
    pub within: u64,
    /// Bytes that come from memory.
    pub beyond: u64,
    /// What keeps `beyond` under four times the last-level cache; `None` where nothing does.
    pub held_down_by: Option<HeldDown>,
}

/// What keeps a set small.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeldDown {
    /// Filling more would take too long.
    Time,
    /// There is no more free memory.
    Memory,
}

/// How much memory is gone through on this machine, with so many bytes free.
pub fn set_sizes(machine: &Machine, available: Option<u64>) -> SetSizes {
    let cache = machine.last_level_cache_bytes.unwrap_or(USUAL_CACHE);
    let wanted = cache.saturating_mul(BEYOND).max(LEAST_BEYOND);
    let room = available.map_or(MOST_BEYOND, |free| free / 4);
    let beyond = wanted.min(MOST_BEYOND).min(room);
    SetSizes {
        within: (cache / WITHIN).min(MOST_WITHIN),
        beyond,
        held_down_by: (beyond < cache.saturating_mul(BEYOND)).then_some(if room < MOST_BEYOND {
            HeldDown::Memory
        } else {
            HeldDown::Time
        }),
    }
}

/// The kernels that a calibration times, in this order.
///
/// Each type of weights: one column out of the caches and out of memory, and a micro-batch of
/// columns for two lengths of a row. A matrix that takes only its beginning. Attention by the size of
/// a head and the type of the cache, at three depths for one token and at two for a prompt; without
/// flash attention for one size alone. The rest of a layer at two widths. Experts of one type.
pub fn kernels(machine: &Machine, ubatch: u32, available: Option<u64>) -> Vec<Kernel> {
    let sizes = set_sizes(machine, available);
    let mut kernels = Vec::new();
    let matrix = |tensor_type, (inner, rows), columns, set_bytes| Kernel::Matrix {
        tensor_type,
        inner,
        rows,
        columns,
        set_bytes,
    };
    for tensor_type in TYPES {
        for set_bytes in [sizes.within, sizes.beyond] {
            kernels.push(matrix(tensor_type, (INNER, ROWS), 1, set_bytes));
        }
        // Arithmetic binds: where the weights come from hardly matters.
        kernels.extend(PRODUCTS.map(|shape| matrix(tensor_type, shape, ubatch, 0)));
    }
    kernels.push(matrix(TensorType::Q8_0, TINY, 1, 0));
    for head in [64, 128, 256] {
        for kv_type in [KvType::F16, KvType::Q8_0] {
            kernels.extend(attention(head, kv_type, true, ubatch, sizes));
        }
    }
    kernels.extend(attention(128, KvType::F16, false, ubatch, sizes));
    for columns in [1, ubatch] {
        kernels.extend([(1024, 2816, 64), (4096, 14_336, 128)].map(
            |(embedding, feed_forward, head)| Kernel::Layer {
                embedding,
                feed_forward,
                heads: embedding / head,
                kv_heads: embedding / head / SHARE_KV,
                head,
                columns,
            },
        ));
        kernels.push(Kernel::Experts {
            tensor_type: TensorType::Q4K,
            inner: INNER,
            rows: ROWS / 2,
            experts: 32,
            used: 4,
            columns,
            set_bytes: sizes.beyond,
        });
    }
    kernels
}

/// One token and a prompt's, at several depths each.
fn attention(head: u32, kv_type: KvType, flash: bool, ubatch: u32, sizes: SetSizes) -> [Kernel; 5] {
    let heads = HEADS / head;
    let tile = ubatch.min(TILE);
    [
        (1, NEAR, sizes.within),
        (1, SHALLOW, sizes.beyond / 2),
        (1, DEEP, sizes.beyond / 2),
        (ubatch, ubatch, 0),
        (tile, tile.saturating_add(BEFORE), 0),
    ]
    .map(|(columns, cells, set_bytes)| Kernel::Attention {
        heads,
        kv_heads: (heads / SHARE_KV).max(1),
        head,
        type_k: kv_type,
        type_v: kv_type,
        flash,
        cells,
        columns,
        set_bytes,
    })
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::HashSet;

    use super::*;

    pub(crate) fn machine(last_level_cache_bytes: Option<u64>) -> Machine {
        Machine {
            id: "m".into(),
            name: None,
            cpu: "c".into(),
            physical_cores: Some(2),
            logical_cores: Some(2),
            last_level_cache_bytes,
            memory_bytes: None,
            os: String::new(),
        }
    }

    const GIB: u64 = 1 << 30;

    #[test]
    fn a_set_from_memory_is_four_times_the_cache_unless_time_or_memory_hold_it_down() {
        let sizes = |cache: u64, free| set_sizes(&machine(Some(cache << 20)), free);
        let usual = sizes(96, Some(16 * GIB));
        assert_eq!((usual.beyond, usual.held_down_by), (384 << 20, None));
        assert_eq!(usual.within, 24 << 20);
        let small = sizes(6, Some(16 * GIB));
        assert_eq!((small.beyond, small.held_down_by), (128 << 20, None));
        let large = sizes(300, Some(16 * GIB));
        assert_eq!(
            (large.beyond, large.held_down_by),
            (GIB, Some(HeldDown::Time))
        );
        assert_eq!(large.within, 32 << 20);
        let narrow = sizes(300, Some(2 * GIB));
        assert_eq!(
            (narrow.beyond, narrow.held_down_by),
            (GIB / 2, Some(HeldDown::Memory))
        );
        assert_eq!(set_sizes(&machine(None), None).beyond, 128 << 20);
    }

    #[test]
    fn every_kernel_is_asked_once_and_can_be_computed() {
        let kernels = kernels(&machine(Some(96 << 20)), 512, None);
        assert!((100..=110).contains(&kernels.len()), "{}", kernels.len());
        let once: HashSet<_> = kernels.iter().collect();
        assert_eq!(once.len(), kernels.len());
        for kernel in &kernels {
            match *kernel {
                Kernel::Matrix {
                    tensor_type, inner, ..
                }
                | Kernel::Experts {
                    tensor_type, inner, ..
                } => assert!(tensor_type.bytes(inner.into()).is_some(), "{kernel:?}"),
                Kernel::Attention {
                    heads,
                    kv_heads,
                    cells,
                    columns,
                    ..
                } => assert!(
                    heads.is_multiple_of(kv_heads) && columns <= cells,
                    "{kernel:?}"
                ),
                Kernel::Layer {
                    embedding,
                    heads,
                    kv_heads,
                    head,
                    ..
                } => assert!(
                    heads * head == embedding && heads.is_multiple_of(kv_heads),
                    "{kernel:?}"
                ),
            }
        }
    }
}
