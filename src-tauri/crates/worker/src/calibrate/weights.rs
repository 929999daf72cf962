//! Matrices, in the memory and in the order in which the engine's loader would keep them.

use std::ffi::CStr;

use llama_cpp_sys_2 as sys;
use twospeed_gguf::{Blocks, Rng, TensorType};

use super::cpu::Cpu;
use super::memory::{self, Buffer, Descriptions, Tensor};
use super::types;

/// Most different matrices, or caches, of one kernel.
const MOST: u64 = 1 << 16;
/// Weights are drawn for so many bytes, then they repeat: drawing takes longer than copying, and no
/// product depends on what it multiplies.
const DRAWN: usize = 1 << 20;
/// Their standard deviation: large enough that no scale of a block is subnormal.
const DEVIATION: f32 = 1.0;

/// Matrices of one type and shape.
#[derive(Debug)]
pub struct Weights {
    tensors: Vec<Tensor>,
    is_repacked: bool,
    // What the tensors point to.
    _descriptions: Descriptions,
    _buffer: Buffer,
}

/// What is asked for.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// ggml's name of the type.
    pub name: &'a str,
    /// Elements of a row, rows, and matrices of an expert tensor.
    pub shape: &'a [u64],
    /// Bytes of all together, at least.
    pub set_bytes: u64,
    /// Bytes of what else is needed beside them.
    pub beside: Option<u64>,
}

impl Weights {
    /// Matrices that reach so many bytes, at least one. `product` gives the operation in which the
    /// loader would try whether a kind of memory is of use.
    ///
    /// Errors: the sentence of a refusal.
    pub fn new(
        cpu: &Cpu,
        wanted: Wanted<'_>,
        product: impl FnOnce(&Descriptions, Tensor) -> Tensor,
    ) -> Result<Self, String> {
        let Wanted { name, shape, .. } = wanted;
        let tensor_type = types::named(name)
            .filter(|tensor_type| types::is_multiplied(*tensor_type))
            .ok_or_else(|| format!("The engine does not multiply with {name}."))?;
        check_shape(tensor_type, shape)?;
        let bytes = tensor_type
            .bytes(shape[0])
            .and_then(|row| memory::bytes_of(row, &shape[1..]));
        let count = wanted.set_bytes.div_ceil(bytes.unwrap_or(u64::MAX)).max(1);
        check_count(count, wanted.set_bytes)?;
        // Once more for what is drawn before it is written.
        let set = bytes.and_then(|bytes| bytes.checked_mul(count + 1));
        memory::check_room(memory::sum([set, wanted.beside]))?;

        let descriptions = Descriptions::new(count as usize, 0);
        let kind = types::number(tensor_type);
        let tensors: Vec<Tensor> = (0..count)
            .map(|_| descriptions.tensor(kind, shape))
            .collect();
        let memory_kind = place(cpu, tensors[0], product)
            .ok_or_else(|| format!("The CPU backend does not multiply with {name}."))?;
        let is_repacked = memory_kind != cpu.plain();
        let buffer = fill(tensor_type, &tensors, memory_kind, is_repacked)?;
        Ok(Self {
            tensors,
            is_repacked,
            _descriptions: descriptions,
            _buffer: buffer,
        })
    }

    /// Number `index` of an endless row that goes round them.
    pub fn get(&self, index: usize) -> Tensor {
        self.tensors[index % self.tensors.len()]
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.tensors.len()
    }

    /// Whether the engine keeps them in an order of its own.
    pub fn is_repacked(&self) -> bool {
        self.is_repacked
    }
}

/// Rows of whole blocks, and nothing empty or beyond the engine's numbers.
fn check_shape(tensor_type: TensorType, shape: &[u64]) -> Result<(), String> {
    if shape.contains(&0) {
        return Err("A matrix without rows or columns takes no time: give at least 1.".into());
    }
    if !shape[0].is_multiple_of(tensor_type.block_elements()) {
        return Err(format!(
            "Rows of {} are no whole blocks of {}: give a multiple of {}.",
            shape[0],
            tensor_type.name(),
            tensor_type.block_elements()
        ));
    }
    check_extents(shape)
}

/// Refuses a set of more pieces than can be gone through in turn.
pub fn check_count(count: u64, set_bytes: u64) -> Result<(), String> {
    if count <= MOST {
        return Ok(());
    }
    Err(format!(
        "{set_bytes} bytes are {count} pieces of this size: ask for {MOST} at most."
    ))
}

/// Refuses what the engine cannot count.
pub fn check_extents(extents: &[u64]) -> Result<(), String> {
    match extents.iter().find(|extent| **extent > i32::MAX as u64) {
        None => Ok(()),
        Some(extent) => Err(format!("{extent} is more than the engine counts to.")),
    }
}

/// The first kind of memory in which the backend multiplies with the matrix, as
/// `weight_buft_supported` of llama.cpp finds it.
fn place(
    cpu: &Cpu,
    matrix: Tensor,
    product: impl FnOnce(&Descriptions, Tensor) -> Tensor,
) -> Option<sys::ggml_backend_buffer_type_t> {
    let descriptions = Descriptions::new(8, 0);
    let operation = product(&descriptions, matrix);
    cpu.kinds().find(|kind| {
        // SAFETY: live tensors; the buffer is empty, and freed before anything else looks at it.
        unsafe {
            let empty = sys::ggml_backend_buft_alloc_buffer(*kind, 0);
            (*matrix).buffer = empty;
            let does = cpu.does(operation);
            (*matrix).buffer = std::ptr::null_mut();
            sys::ggml_backend_buffer_free(empty);
            does
        }
    })
}

/// Memory for the matrices, and random weights in it.
fn fill(
    tensor_type: TensorType,
    tensors: &[Tensor],
    kind: sys::ggml_backend_buffer_type_t,
    is_repacked: bool,
) -> Result<Buffer, String> {
    let first = tensors[0];
    // SAFETY: a kind of buffer of the CPU's device and a tensor of live descriptions; its name is a
    // constant C string.
    let (bytes, step, name) = unsafe {
        let alignment = sys::ggml_backend_buft_get_alignment(kind) as u64;
        let size = sys::ggml_backend_buft_get_alloc_size(kind, first) as u64;
        let name = CStr::from_ptr(sys::ggml_backend_buft_name(kind));
        (
            sys::ggml_nbytes(first),
            size.next_multiple_of(alignment),
            name,
        )
    };
    let buffer = Buffer::new(kind, step * tensors.len() as u64)?;
    // SAFETY: a live buffer; that is what the loader calls it.
    unsafe {
        sys::ggml_backend_buffer_set_usage(buffer.raw(), sys::GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
    }
    if !is_repacked {
        // The engine would read these from the model's file.
        buffer.keep_small_pages();
    }
    let weights = draw(tensor_type, bytes)?;
    // Repacking is slow. These kinds keep nothing of a tensor but its bytes, so that those of the
    // first serve for all.
    let copies = tensors.len() > 1 && (name == c"CPU_REPACK" || name == c"AMX");
    for (number, tensor) in (0..).zip(tensors) {
        buffer.hold(*tensor, number * step);
        if copies && number > 0 {
            // SAFETY: both lie in the buffer, `step` bytes apart, and a buffer of these kinds is
            // memory like any other.
            unsafe {
                std::ptr::copy_nonoverlapping(
                    (*first).data.cast::<u8>(),
                    (**tensor).data.cast::<u8>(),
                    step as usize,
                );
            }
        } else {
            memory::fill(*tensor, &weights);
        }
    }
    Ok(buffer)
}

/// Random weights, valid in their type.
pub fn draw(tensor_type: TensorType, bytes: usize) -> Result<Vec<u8>, String> {
    let refused = || format!("The engine could not get {bytes} bytes of memory.");
    let blocks = Blocks::new(tensor_type, DEVIATION)
        .ok_or_else(|| format!("{} holds no weights.", tensor_type.name()))?;
    let block = tensor_type.block_bytes() as usize;
    let drawn = bytes.min(DRAWN - DRAWN % block);
    let mut weights = Vec::new();
    weights.try_reserve_exact(bytes).map_err(|_| refused())?;
    weights.resize(drawn, 0);
    blocks.fill(&mut Rng::new(1), &mut weights);
    while weights.len() < bytes {
        let more = weights.len().min(bytes - weights.len());
        weights.extend_from_within(..more);
    }
    Ok(weights)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_repeat_by_whole_blocks_and_stay_finite() {
        for tensor_type in TensorType::ALL {
            if !types::is_multiplied(*tensor_type) {
                continue;
            }
            let elements = 1 << 23;
            let bytes = tensor_type.bytes(elements).unwrap() as usize;
            let weights = draw(*tensor_type, bytes).unwrap();
            assert_eq!(weights.len(), bytes);
            // SAFETY: constant tables of ggml; a row of whole blocks, a result of as many floats.
            let finite = unsafe {
                sys::ggml_validate_row_data(
                    types::number(*tensor_type),
                    weights.as_ptr().cast(),
                    bytes,
                )
            };
            assert!(finite, "{}", tensor_type.name());
        }
    }

    #[test]
    fn a_shape_is_of_whole_blocks_and_not_empty() {
        assert!(check_shape(TensorType::Q4K, &[512, 3]).is_ok());
        let sentence = check_shape(TensorType::Q4K, &[300, 3]).unwrap_err();
        assert!(sentence.contains("multiple of 256"), "{sentence}");
        assert!(check_shape(TensorType::Q4K, &[512, 0]).is_err());
        assert!(check_shape(TensorType::F16, &[1, 1 << 31]).is_err());
    }
}
