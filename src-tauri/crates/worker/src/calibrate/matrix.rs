//! A matrix times some columns.

use llama_cpp_sys_2 as sys;

use super::cpu::Cpu;
use super::graph::{Graph, Work};
use super::memory::{self, Room, Tensor, Tensors};
use super::weights::{self, Wanted, Weights};

/// Columns in the product by which the loader decides where weights lie.
pub const LOADERS_COLUMNS: u64 = 512;

/// Matrices, each multiplied with the same columns.
#[derive(Debug)]
pub struct Matrix {
    weights: Weights,
    columns: Tensor,
    result: Room,
    // What the two above point to.
    _tensors: Tensors,
}

impl Matrix {
    /// Matrices of `inner` elements a row and so many rows, for so many columns. Errors: the
    /// sentence of a refusal.
    pub fn new(
        cpu: &Cpu,
        name: &str,
        [inner, rows, columns]: [u32; 3],
        set_bytes: u64,
    ) -> Result<Self, String> {
        let [inner, rows, columns] = [inner, rows, columns].map(u64::from);
        if columns == 0 {
            return Err("A product with no columns takes no time: give at least 1.".into());
        }
        weights::check_extents(&[columns])?;
        let result_bytes = memory::bytes_of(4, &[rows, columns]);
        let input_bytes = memory::bytes_of(4, &[inner, columns]);
        let wanted = Wanted {
            name,
            shape: &[inner, rows],
            set_bytes,
            beside: result_bytes
                .zip(input_bytes)
                .and_then(|(a, b)| a.checked_add(b)),
        };
        let weights = Weights::new(cpu, wanted, |descriptions, matrix| {
            let other = descriptions.tensor(sys::GGML_TYPE_F32, &[inner, LOADERS_COLUMNS]);
            // SAFETY: live tensors with rows of the same length.
            unsafe { sys::ggml_mul_mat(descriptions.raw(), matrix, other) }
        })?;
        let mut tensors = Tensors::new(1);
        Ok(Self {
            columns: tensors.random(cpu, &[inner, columns])?,
            result: tensors.room(cpu, rows * columns * 4)?,
            weights,
            _tensors: tensors,
        })
    }

    /// Whether the engine keeps such matrices in an order of its own.
    pub fn is_repacked(&self) -> bool {
        self.weights.is_repacked()
    }
}

impl Work for Matrix {
    fn different(&self) -> usize {
        self.weights.count()
    }

    fn tensors(&self) -> usize {
        3
    }

    fn append(&self, graph: &Graph<'_>, index: usize) {
        // SAFETY: live tensors with rows of the same length.
        let product =
            unsafe { sys::ggml_mul_mat(graph.context(), self.weights.get(index), self.columns) };
        graph.append(graph.put(product, self.result));
    }
}
