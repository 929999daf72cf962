//! Matrices of experts, of which each column uses a few.

use std::cell::RefCell;

use llama_cpp_sys_2 as sys;
use twospeed_engine::protocol::Kernel;
use twospeed_gguf::Rng;

use super::cpu::Cpu;
use super::graph::{Graph, Work};
use super::matrix::LOADERS_COLUMNS;
use super::memory::{self, Room, Tensor, Tensors};
use super::weights::{self, Wanted, Weights};

/// Choices of experts: operations of one graph do not all use the same. A prime, so that a tensor
/// meets all of them.
const CHOICES: usize = 61;

/// Tensors of experts, each multiplied with the same columns.
#[derive(Debug)]
pub struct Experts {
    weights: Weights,
    columns: Tensor,
    choices: Vec<Tensor>,
    chooser: RefCell<Chooser>,
    result: Room,
    // What the three above point to.
    _tensors: Tensors,
}

impl Experts {
    /// The experts of a [`Kernel::Experts`]. Errors: the sentence of a refusal.
    ///
    /// # Panics
    /// When it is another kernel.
    pub fn new(cpu: &Cpu, kernel: &Kernel) -> Result<Self, String> {
        let Kernel::Experts {
            tensor_type,
            inner,
            rows,
            experts,
            used,
            columns,
            set_bytes,
        } = kernel
        else {
            unreachable!("BUG: {kernel:?} has no experts")
        };
        let [inner, rows, columns] = [*inner, *rows, *columns].map(u64::from);
        let (experts, used) = (*experts, *used);
        if columns == 0 || used == 0 {
            return Err("A product with no columns takes no time: give at least 1.".into());
        }
        if used > experts {
            return Err(format!(
                "A column cannot use {used} of {experts} experts: give {experts} at most."
            ));
        }
        weights::check_extents(&[columns, u64::from(used) * columns])?;
        let beside = [
            memory::bytes_of(4, &[rows, used.into(), columns]),
            memory::bytes_of(2 * 4, &[inner, columns]),
            memory::bytes_of(4 * CHOICES as u64, &[used.into(), columns]),
        ];
        let wanted = Wanted {
            name: tensor_type,
            shape: &[inner, rows, experts.into()],
            set_bytes: *set_bytes,
            beside: memory::sum(beside),
        };
        let weights = Weights::new(cpu, wanted, |descriptions, matrix| {
            let many = LOADERS_COLUMNS;
            let other = descriptions.tensor(sys::GGML_TYPE_F32, &[inner, used.into(), many]);
            let choice = descriptions.tensor(sys::GGML_TYPE_I32, &[used.into(), many]);
            // SAFETY: live tensors with rows of the same length and a choice for each column.
            unsafe { sys::ggml_mul_mat_id(descriptions.raw(), matrix, other, choice) }
        })?;
        let mut tensors = Tensors::new(1 + CHOICES);
        // One column for all its experts, as the gate's and the up matrices have it (of three).
        let input = tensors.random(cpu, &[inner, 1, columns])?;
        let choices = (0..CHOICES)
            .map(|_| tensors.zeros(cpu, sys::GGML_TYPE_I32, &[used.into(), columns]))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            weights,
            columns: input,
            choices,
            chooser: RefCell::new(Chooser::new(experts, used, columns as usize)),
            result: tensors.room(cpu, rows * u64::from(used) * columns * 4)?,
            _tensors: tensors,
        })
    }

    /// Whether the engine keeps such matrices in an order of its own.
    pub fn is_repacked(&self) -> bool {
        self.weights.is_repacked()
    }
}

impl Work for Experts {
    fn different(&self) -> usize {
        self.weights.count()
    }

    fn tensors(&self) -> usize {
        4
    }

    fn append(&self, graph: &Graph<'_>, index: usize) {
        let choice = self.choices[index % CHOICES];
        // SAFETY: live tensors with rows of the same length and a choice for each column.
        let product = unsafe {
            sys::ggml_mul_mat_id(
                graph.context(),
                self.weights.get(index),
                self.columns,
                choice,
            )
        };
        graph.append(graph.put(product, self.result));
    }

    /// Chooses anew: the same experts would come from a cache that the whole tensors do not fit.
    fn prepare_run(&self) {
        let mut chooser = self.chooser.borrow_mut();
        for choice in &self.choices {
            memory::fill(*choice, chooser.choose());
        }
    }
}

/// Draws experts for each column.
#[derive(Debug)]
struct Chooser {
    rng: Rng,
    experts: Vec<i32>,
    used: usize,
    columns: usize,
    chosen: Vec<i32>,
}

impl Chooser {
    fn new(experts: u32, used: u32, columns: usize) -> Self {
        Self {
            rng: Rng::new(1),
            experts: (0..experts as i32).collect(),
            used: used as usize,
            columns,
            chosen: Vec::new(),
        }
    }

    /// Different experts for each column, column after column.
    fn choose(&mut self) -> &[i32] {
        self.chosen.clear();
        for _ in 0..self.columns {
            // The first cards of a deck that is shuffled only so far.
            for place in 0..self.used {
                let left = self.experts.len() - place;
                let other = place + self.rng.below(left as u64) as usize;
                self.experts.swap(place, other);
            }
            self.chosen.extend_from_slice(&self.experts[..self.used]);
        }
        &self.chosen
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calibrate::{cpu, graph};

    #[test]
    fn a_column_is_multiplied_with_the_experts_it_chose() {
        let cpu = cpu::for_tests();
        let wanted = |experts, used| Kernel::Experts {
            tensor_type: "f32".into(),
            inner: 64,
            rows: 8,
            experts,
            used,
            columns: 3,
            set_bytes: 0,
        };
        // Drawn from the first on, eight matrices begin as one does.
        let one = graph::result(&cpu, &Experts::new(&cpu, &wanted(1, 1)).unwrap(), 0, 1);
        let eight = Experts::new(&cpu, &wanted(8, 2)).unwrap();
        let mut met = 0;
        for index in 0..CHOICES {
            let result = graph::result(&cpu, &eight, index, 1);
            let choices: Vec<i32> = memory::values(eight.choices[index]);
            assert_eq!(result.len(), 3 * 2 * 8);
            for (place, expert) in choices.iter().enumerate() {
                let got = &result[8 * place..][..8];
                let first = &one[8 * (place / 2)..][..8];
                assert_eq!(got == first, *expert == 0, "{got:?}, {first:?}");
                met += usize::from(*expert == 0);
            }
        }
        assert!(met > 10, "each of eight is met now and then: {met}");
    }

    #[test]
    fn a_column_uses_different_experts_and_in_the_end_all() {
        let mut chooser = Chooser::new(8, 3, 40);
        let chosen = chooser.choose().to_vec();
        assert_eq!(chosen.len(), 120);
        let mut seen = [false; 8];
        for column in chosen.chunks_exact(3) {
            assert!(column[0] != column[1] && column[1] != column[2] && column[0] != column[2]);
            for expert in column {
                seen[usize::try_from(*expert).unwrap()] = true;
            }
        }
        assert_eq!(seen, [true; 8]);
        assert_ne!(chooser.choose(), chosen, "others the next time");
    }
}
