//! What a calibration's readings come to: rates, and kernels in words.

use twospeed_estimate::{BytesPerSecond, Calibration, Flops, Kernel, KernelReading, KvType};
use twospeed_gguf::TensorType;

/// Bytes of a matrix from which on a rate can be told.
const LEAST: u64 = 256 << 10;

/// Rates by type of weights and by kind of attention.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Rates {
    /// By type of weights, in the order they were timed.
    pub matrices: Vec<MatrixRate>,
    /// Each attention that was timed, in that order.
    pub attention: Vec<AttentionRate>,
}

/// What one type of weights is computed with.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MatrixRate {
    /// The type.
    pub tensor_type: TensorType,
    /// A matrix with one column, out of the caches.
    pub cached: Option<BytesPerSecond>,
    /// A matrix with one column, out of memory.
    pub memory: Option<BytesPerSecond>,
    /// A matrix with a micro-batch of columns, of the length of rows that it does best; operations
    /// a second.
    pub batch: Option<Flops>,
    /// The weights were repacked for this CPU.
    pub repacked: bool,
}

/// What one kind of attention is computed with.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AttentionRate {
    /// Elements of one head.
    pub head: u32,
    /// Type of the keys.
    pub type_k: KvType,
    /// Type of the values.
    pub type_v: KvType,
    /// Flash attention.
    pub flash: bool,
    /// Cells that were read.
    pub cells: u32,
    /// Tokens that attended.
    pub columns: u32,
    /// Keys and values that were read, where one token attends.
    pub reads: Option<BytesPerSecond>,
    /// Operations a second, where many do; of the cells that a token sees.
    pub computes: Option<Flops>,
}

impl Rates {
    /// Works them out.
    pub fn of(calibration: &Calibration) -> Self {
        let mut rates = Self::default();
        for reading in &calibration.kernels {
            match reading.kernel {
                Kernel::Matrix { tensor_type, .. } => {
                    if !rates
                        .matrices
                        .iter()
                        .any(|one| one.tensor_type == tensor_type)
                    {
                        rates.matrices.push(matrix(calibration, tensor_type));
                    }
                }
                Kernel::Attention {
                    heads,
                    kv_heads,
                    head,
                    type_k,
                    type_v,
                    flash,
                    cells,
                    columns,
                    ..
                } => {
                    let row = u64::from(kv_heads) * u64::from(head);
                    let cell = type_k
                        .row_bytes(row)
                        .zip(type_v.row_bytes(row))
                        .map(|(keys, values)| keys + values);
                    let bytes = cell.map(|cell| cell as f64 * f64::from(cells));
                    // Token i of the last n sees all cells but the n - i behind it.
                    let seen =
                        f64::from(columns) * (f64::from(cells) - (f64::from(columns) - 1.0) / 2.0);
                    let operations = 4.0 * f64::from(heads) * f64::from(head) * seen;
                    rates.attention.push(AttentionRate {
                        head,
                        type_k,
                        type_v,
                        flash,
                        cells,
                        columns,
                        reads: bytes
                            .filter(|_| columns == 1)
                            .and_then(|bytes| per_second(bytes, reading))
                            .map(BytesPerSecond),
                        computes: per_second(operations, reading)
                            .filter(|_| columns > 1)
                            .map(Flops),
                    });
                }
                Kernel::Experts { .. } | Kernel::Layer { .. } => {}
            }
        }
        rates
    }

    /// The rate of a type of weights.
    pub fn matrix(&self, tensor_type: TensorType) -> Option<&MatrixRate> {
        self.matrices
            .iter()
            .find(|rate| rate.tensor_type == tensor_type)
    }
}

/// The smallest set stays in the caches and the largest does not; where there is one size alone, the
/// cache decides.
fn matrix(calibration: &Calibration, wanted: TensorType) -> MatrixRate {
    let mut one_column = Vec::new();
    let mut batch = None;
    let mut is_repacked = false;
    for reading in &calibration.kernels {
        let Kernel::Matrix {
            tensor_type,
            inner,
            rows,
            columns,
            set_bytes,
        } = reading.kernel
        else {
            continue;
        };
        if tensor_type != wanted {
            continue;
        }
        is_repacked |= reading.repacked;
        let elements = u64::from(inner) * u64::from(rows);
        if columns == 1 {
            // What is smaller takes longer to begin with than to read.
            let bytes = tensor_type.bytes(elements).filter(|bytes| *bytes >= LEAST);
            let rate = bytes.and_then(|bytes| per_second(bytes as f64, reading));
            one_column.extend(rate.map(|rate| (set_bytes, BytesPerSecond(rate))));
        } else {
            let operations = 2.0 * elements as f64 * f64::from(columns);
            let rate = per_second(operations, reading).map(Flops);
            batch = batch.max(rate);
        }
    }
    one_column.sort_by_key(|(set_bytes, _)| *set_bytes);
    let (cached, memory) = match one_column[..] {
        [] => (None, None),
        [(set_bytes, rate)] => {
            let cache = calibration.last_level_cache.map_or(0, |cache| cache.0);
            match set_bytes <= cache {
                true => (Some(rate), None),
                false => (None, Some(rate)),
            }
        }
        [(_, smallest), .., (_, largest)] => (Some(smallest), Some(largest)),
    };
    MatrixRate {
        tensor_type: wanted,
        cached,
        memory,
        batch,
        repacked: is_repacked,
    }
}

/// So much in the time of a reading, for each second.
fn per_second(amount: f64, reading: &KernelReading) -> Option<u64> {
    let rate = (amount * 1e9 / reading.ns).round();
    (rate >= 1.0 && rate < u64::MAX as f64).then_some(rate as u64)
}

/// A kernel in words: `Q4_K matrix, 512 columns`.
pub fn kernel_name(kernel: &Kernel) -> String {
    let columns = |columns: u32| match columns {
        1 => "1 column".to_owned(),
        columns => format!("{columns} columns"),
    };
    match *kernel {
        Kernel::Matrix {
            tensor_type,
            columns: wide,
            ..
        } => format!("{} matrix, {}", tensor_type.name(), columns(wide)),
        Kernel::Experts {
            tensor_type,
            columns: wide,
            ..
        } => format!("{} experts, {}", tensor_type.name(), columns(wide)),
        Kernel::Attention {
            head,
            type_k,
            flash,
            cells,
            columns: wide,
            ..
        } => format!(
            "{} attention, heads of {head}, {type_k}, {cells} cells, {}",
            if flash { "flash" } else { "plain" },
            columns(wide)
        ),
        Kernel::Layer {
            embedding,
            columns: wide,
            ..
        } => format!("rest of a layer of width {embedding}, {}", columns(wide)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::kernels::kernels;
    use super::super::kernels::tests::machine;
    use super::*;
    use twospeed_estimate::Bytes;

    fn calibration(kernels: Vec<KernelReading>) -> Calibration {
        Calibration {
            id: "i".into(),
            at: "2026-12-01T12:00:00Z".into(),
            backend: "CPU".into(),
            variant: "zen4".into(),
            threads: 2,
            build: 11434,
            ubatch: 512,
            last_level_cache: Some(Bytes::mib(96)),
            reads: Vec::new(),
            kernels,
            step_ns: None,
        }
    }

    fn matrix_of(columns: u32, set_bytes: u64, ns: f64) -> KernelReading {
        KernelReading {
            kernel: Kernel::Matrix {
                tensor_type: TensorType::Q4_0,
                inner: 2048,
                rows: 1024,
                columns,
                set_bytes,
            },
            ns,
            spread_ns: 0.0,
            repacked: true,
        }
    }

    #[test]
    fn a_matrix_is_read_for_one_column_and_computed_for_many() {
        // 2048 x 1024 / 32 blocks of 18 bytes are 1,179,648 bytes; 2 x 2048 x 1024 x 512 operations
        // are 2,147,483,648.
        let rates = Rates::of(&calibration(vec![
            matrix_of(1, 1 << 30, 117_964.8),
            matrix_of(1, 24 << 20, 29_491.2),
            matrix_of(512, 24 << 20, 10_737_418.24),
        ]));
        let rate = rates.matrix(TensorType::Q4_0).unwrap();
        assert_eq!(rate.memory, Some(BytesPerSecond(10_000_000_000)));
        assert_eq!(rate.cached, Some(BytesPerSecond(40_000_000_000)));
        assert_eq!(rate.batch, Some(Flops(200_000_000_000)));
        assert!(rate.repacked);
        assert_eq!(rates.matrices.len(), 1);
        assert_eq!(rates.matrix(TensorType::Q8_0), None);
    }

    #[test]
    fn a_single_set_is_told_by_the_cache() {
        let rate = |set_bytes| {
            let rates = Rates::of(&calibration(vec![matrix_of(1, set_bytes, 1e5)]));
            let rate = rates.matrices[0];
            (rate.cached.is_some(), rate.memory.is_some())
        };
        assert_eq!(rate(96 << 20), (true, false));
        assert_eq!(rate((96 << 20) + 1), (false, true));
    }

    #[test]
    fn attention_reads_for_one_token_and_computes_for_many() {
        let attention = |cells, columns, ns| KernelReading {
            kernel: Kernel::Attention {
                heads: 8,
                kv_heads: 2,
                head: 128,
                type_k: KvType::F16,
                type_v: KvType::F16,
                flash: true,
                cells,
                columns,
                set_bytes: 0,
            },
            ns,
            spread_ns: 0.0,
            repacked: false,
        };
        // 1,000 cells of 2 x 2 x 128 values of 2 bytes: 1,024,000 bytes. 3 tokens see 2, 3 and 4
        // of 4 cells: 9; 4 x 8 x 128 x 9 = 36,864 operations.
        let rates = Rates::of(&calibration(vec![
            attention(1000, 1, 102_400.0),
            attention(4, 3, 368.64),
        ]));
        assert_eq!(
            rates.attention[0].reads,
            Some(BytesPerSecond(10_000_000_000))
        );
        assert_eq!(rates.attention[0].computes, None);
        assert_eq!(rates.attention[1].reads, None);
        assert_eq!(rates.attention[1].computes, Some(Flops(100_000_000_000)));
    }

    #[test]
    fn every_type_that_is_timed_has_a_rate() {
        let readings = kernels(&machine(Some(96 << 20)), 512, None)
            .into_iter()
            .map(|kernel| KernelReading {
                kernel,
                ns: 1e6,
                spread_ns: 0.0,
                repacked: false,
            });
        let rates = Rates::of(&calibration(readings.collect()));
        assert_eq!(rates.matrices.len(), 16);
        for rate in &rates.matrices {
            assert!(
                rate.cached.is_some() && rate.memory.is_some() && rate.batch.is_some(),
                "{rate:?}"
            );
        }
    }

    #[test]
    fn kernels_have_names() {
        assert_eq!(
            kernel_name(&matrix_of(512, 0, 1.0).kernel),
            "Q4_0 matrix, 512 columns"
        );
    }
}
