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
        let beside = [
            memory::bytes_of(4, &[rows, columns]),
            memory::bytes_of(2 * 4, &[inner, columns]),
        ];
        let wanted = Wanted {
            name,
            shape: &[inner, rows],
            set_bytes,
            beside: memory::sum(beside),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calibrate::{cpu, graph, types};

    /// What the product has to be, from ggml's own reading of the weights.
    fn expected(name: &str, inner: usize, rows: usize, columns: &[f32]) -> Vec<f64> {
        let tensor_type = types::named(name).unwrap();
        let bytes = tensor_type.bytes((inner * rows) as u64).unwrap() as usize;
        let drawn = weights::draw(tensor_type, bytes).unwrap();
        let mut matrix = vec![0_f32; inner * rows];
        // SAFETY: ggml's own table; whole rows, and room for as many floats.
        unsafe {
            let traits = sys::ggml_get_type_traits(types::number(tensor_type));
            match (*traits).to_float {
                Some(to_float) => to_float(
                    drawn.as_ptr().cast(),
                    matrix.as_mut_ptr(),
                    (inner * rows) as i64,
                ),
                None => panic!("{name} is not read"),
            }
        }
        let product = |row: &[f32], column: &[f32]| -> f64 {
            let products = row.iter().zip(column);
            products.map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
        };
        columns
            .chunks_exact(inner)
            .flat_map(|column| matrix.chunks_exact(inner).map(move |row| (row, column)))
            .map(|(row, column)| product(row, column))
            .collect()
    }

    #[test]
    fn every_matrix_of_a_set_gives_the_product_repacked_or_not() {
        let cpu = cpu::for_tests();
        let (inner, rows, columns) = (512, 16, 5);
        for name in [
            "f16", "q4_0", "q4_1", "q4_K", "q2_K", "q6_K", "q8_0", "iq4_nl",
        ] {
            let matrix = Matrix::new(&cpu, name, [inner, rows, columns], 40_000).unwrap();
            assert!(matrix.different() > 1, "{name}");
            let expected = expected(
                name,
                inner as usize,
                rows as usize,
                &memory::values(matrix.columns),
            );
            for number in 0..matrix.different() {
                let result = graph::result(&cpu, &matrix, number, 1);
                assert_eq!(result.len(), expected.len());
                for (got, wanted) in result.iter().zip(&expected) {
                    // 512 weights of deviation 1 times columns of deviation 0.58, which are brought
                    // to 8 bits (an error of 0.0023 each): sqrt(512) x 0.0023 = 0.05.
                    assert!(
                        (f64::from(*got) - wanted).abs() < 0.5,
                        "{name} {number}: {got} and {wanted}"
                    );
                }
            }
        }
    }

    #[test]
    fn the_set_reaches_what_is_asked() {
        let cpu = cpu::for_tests();
        // 2 x 16 rows of 34 bytes.
        let count = |set_bytes| {
            let matrix = Matrix::new(&cpu, "q8_0", [64, 16, 1], set_bytes).unwrap();
            matrix.different()
        };
        assert_eq!(
            [count(0), count(1088), count(1089), count(10_000)],
            [1, 1, 2, 10]
        );
    }
}
