//! Memory of the engine's, and descriptions of tensors that lie in it.

use std::ffi::c_void;
use std::ptr::NonNull;

use llama_cpp_sys_2 as sys;
use twospeed_gguf::Rng;

use super::cpu::Cpu;
use crate::os;

/// A tensor of ggml: its shape, what it is computed from, and where it lies.
pub type Tensor = *mut sys::ggml_tensor;

/// Where descriptions of tensors are kept; what they describe lies in [`Buffer`]s.
#[derive(Debug)]
pub struct Descriptions(NonNull<sys::ggml_context>);

impl Descriptions {
    /// Room for that many tensors, and for graphs of `graph_bytes`.
    pub fn new(tensors: usize, graph_bytes: usize) -> Self {
        // SAFETY: functions without preconditions; ggml allocates the memory and keeps it.
        let raw = unsafe {
            sys::ggml_init(sys::ggml_init_params {
                mem_size: tensors * sys::ggml_tensor_overhead() + graph_bytes,
                mem_buffer: std::ptr::null_mut(),
                no_alloc: true,
            })
        };
        Self(NonNull::new(raw).expect("BUG: ggml ends the process where it has no memory"))
    }

    /// The engine's pointer; valid while `self` lives.
    pub fn raw(&self) -> *mut sys::ggml_context {
        self.0.as_ptr()
    }

    /// A tensor of that type and shape, without a place yet.
    pub fn tensor(&self, kind: sys::ggml_type, shape: &[u64]) -> Tensor {
        let extents: Vec<i64> = shape.iter().map(|extent| *extent as i64).collect();
        // SAFETY: a live context with room for it; one to four extents, read before this returns.
        unsafe { sys::ggml_new_tensor(self.raw(), kind, extents.len() as i32, extents.as_ptr()) }
    }
}

impl Drop for Descriptions {
    fn drop(&mut self) {
        // SAFETY: made by ggml, owned here, used no more.
        unsafe { sys::ggml_free(self.raw()) };
    }
}

/// Memory that the engine allocated as it does for a model.
#[derive(Debug)]
pub struct Buffer(NonNull<sys::ggml_backend_buffer>);

impl Buffer {
    /// `bytes` of that kind.
    pub fn new(kind: sys::ggml_backend_buffer_type_t, bytes: u64) -> Result<Self, String> {
        let refused = || format!("The engine could not get {bytes} bytes of memory.");
        // Room for the engine to align what lies in it.
        let size = usize::try_from(bytes + 256).map_err(|_| refused())?;
        // SAFETY: a kind of buffer of the CPU's device.
        let raw = unsafe { sys::ggml_backend_buft_alloc_buffer(kind, size) };
        NonNull::new(raw).map(Self).ok_or_else(refused)
    }

    /// The engine's pointer; valid while `self` lives.
    pub fn raw(&self) -> sys::ggml_backend_buffer_t {
        self.0.as_ptr()
    }

    /// Its pages are small, as those of a mapped file are. To be said before anything is written.
    pub fn keep_small_pages(&self) {
        // SAFETY: a live buffer.
        let (at, bytes) = unsafe {
            (
                sys::ggml_backend_buffer_get_base(self.raw()),
                sys::ggml_backend_buffer_get_size(self.raw()),
            )
        };
        os::keep_small_pages(at.cast(), bytes);
    }

    /// A tensor begins `offset` bytes after the start.
    pub fn hold(&self, tensor: Tensor, offset: u64) {
        // SAFETY: a live buffer with room for the tensor, which its maker reserved; ggml ends the
        // process where it does not fit.
        unsafe {
            let at = sys::ggml_backend_buffer_get_base(self.0.as_ptr())
                .cast::<u8>()
                .add(offset as usize);
            sys::ggml_backend_tensor_alloc(self.0.as_ptr(), tensor, at.cast());
        }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: made by the engine, owned here, used no more.
        unsafe { sys::ggml_backend_buffer_free(self.0.as_ptr()) };
    }
}

/// Tensors that operations read or write, each in memory of its own.
#[derive(Debug)]
pub struct Tensors {
    descriptions: Descriptions,
    // Freed with the descriptions.
    buffers: Vec<Buffer>,
}

impl Tensors {
    /// Room for that many.
    pub fn new(count: usize) -> Self {
        Self {
            descriptions: Descriptions::new(count, 0),
            buffers: Vec::new(),
        }
    }

    /// Floats between -1 and 1, at random.
    pub fn random(&mut self, cpu: &Cpu, shape: &[u64]) -> Result<Tensor, String> {
        let tensor = self.zeros(cpu, sys::GGML_TYPE_F32, shape)?;
        let mut rng = Rng::new(self.buffers.len() as u64);
        let count = shape.iter().product::<u64>();
        let values: Vec<f32> = (0..count).map(|_| number(&mut rng)).collect();
        fill(tensor, &values);
        Ok(tensor)
    }

    /// A tensor of zeros.
    pub fn zeros(
        &mut self,
        cpu: &Cpu,
        kind: sys::ggml_type,
        shape: &[u64],
    ) -> Result<Tensor, String> {
        let tensor = self.descriptions.tensor(kind, shape);
        // SAFETY: a tensor of live descriptions.
        let bytes = unsafe { sys::ggml_nbytes(tensor) };
        let buffer = Buffer::new(cpu.plain(), bytes as u64)?;
        buffer.hold(tensor, 0);
        // SAFETY: the tensor has its place. Written once, so that it is no page shared by all zeros.
        unsafe { sys::ggml_backend_tensor_memset(tensor, 0, 0, bytes) };
        self.buffers.push(buffer);
        Ok(tensor)
    }

    /// A tensor of these values.
    pub fn of<T: Copy>(
        &mut self,
        cpu: &Cpu,
        kind: sys::ggml_type,
        shape: &[u64],
        values: &[T],
    ) -> Result<Tensor, String> {
        let tensor = self.zeros(cpu, kind, shape)?;
        fill(tensor, values);
        Ok(tensor)
    }

    /// Memory for results.
    pub fn room(&mut self, cpu: &Cpu, bytes: u64) -> Result<Room, String> {
        let buffer = Buffer::new(cpu.plain(), bytes)?;
        let raw = buffer.raw();
        self.buffers.push(buffer);
        // SAFETY: a live buffer.
        let at = unsafe { sys::ggml_backend_buffer_get_base(raw) };
        Ok(Room { buffer: raw, at })
    }
}

/// Where results go, one after the other at the same place. Valid while its [`Tensors`] live.
#[derive(Debug, Clone, Copy)]
pub struct Room {
    buffer: sys::ggml_backend_buffer_t,
    at: *mut c_void,
}

impl Room {
    /// The place of a tensor.
    pub fn of(tensor: Tensor) -> Self {
        // SAFETY: a tensor with a place.
        unsafe {
            Self {
                buffer: (*tensor).buffer,
                at: (*tensor).data,
            }
        }
    }

    /// A result lies here.
    pub fn hold(self, tensor: Tensor) {
        // SAFETY: a live buffer with room for the tensor, which its maker counted; ggml ends the
        // process where it does not fit.
        unsafe { sys::ggml_backend_tensor_alloc(self.buffer, tensor, self.at) };
    }
}

/// Writes all values of a tensor.
pub fn fill<T: Copy>(tensor: Tensor, values: &[T]) {
    // SAFETY: a tensor with a place; ggml ends the process if there are more values than it holds,
    // and plain numbers have no invalid bytes.
    unsafe {
        sys::ggml_backend_tensor_set(tensor, values.as_ptr().cast(), 0, size_of_val(values));
    }
}

/// A number between -1 and 1, of 24 random bits: never subnormal.
fn number(rng: &mut Rng) -> f32 {
    let bits = (rng.next_u64() >> 40) as f32;
    (bits + 0.5) / 8_388_608.0 - 1.0
}

/// Bytes of a tensor with rows of so many.
pub fn bytes_of(bytes_of_row: u64, rows: &[u64]) -> Option<u64> {
    rows.iter()
        .try_fold(bytes_of_row, |bytes, count| bytes.checked_mul(*count))
}

/// All of these bytes together.
pub fn sum(bytes: impl IntoIterator<Item = Option<u64>>) -> Option<u64> {
    bytes
        .into_iter()
        .try_fold(0_u64, |sum, bytes| sum.checked_add(bytes?))
}

/// Refuses what free memory has no room for: pushed out, the machine's memory would be measured
/// as its disk.
pub fn check_room(bytes: Option<u64>) -> Result<(), String> {
    let free = os::memory_available();
    match bytes {
        Some(bytes) if free.is_none_or(|free| bytes <= free - free / 8) => Ok(()),
        Some(bytes) => Err(format!(
            "{bytes} bytes do not fit the free memory: ask for less."
        )),
        None => Err("More bytes than any memory holds: ask for less.".into()),
    }
}

/// All values of a tensor.
#[cfg(test)]
pub fn values<T: Copy + Default>(tensor: Tensor) -> Vec<T> {
    // SAFETY: a tensor with a place, and room for all of it; its type is the caller's matter.
    unsafe {
        let bytes = sys::ggml_nbytes(tensor);
        let mut values = vec![T::default(); bytes / size_of::<T>()];
        sys::ggml_backend_tensor_get(tensor, values.as_mut_ptr().cast(), 0, bytes);
        values
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_lie_on_both_sides_of_zero_and_are_normal() {
        let mut rng = Rng::new(1);
        let numbers: Vec<f32> = (0..1000).map(|_| number(&mut rng)).collect();
        assert!(
            numbers
                .iter()
                .all(|number| number.is_normal() && number.abs() <= 1.0)
        );
        let above = numbers.iter().filter(|number| **number > 0.0).count();
        assert!((400..600).contains(&above), "{above}");
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        assert_eq!(check_room(Some(0)), Ok(()));
        assert!(
            check_room(Some(u64::MAX))
                .unwrap_err()
                .contains("free memory")
        );
        assert!(check_room(bytes_of(u64::MAX, &[2])).is_err());
    }
}
