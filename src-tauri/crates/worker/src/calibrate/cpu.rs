//! The CPU backend, set up as a context of the engine sets it up.

use std::ffi::{CStr, c_int, c_void};
use std::ptr::NonNull;

use llama_cpp_sys_2 as sys;
use twospeed_engine::protocol::FailureCode;

use super::graph::Graph;
use crate::context;
use crate::failure::Stopped;
use crate::threads::ThreadPool;

type SetThreads = unsafe extern "C" fn(sys::ggml_backend_t, c_int);
type SetPool = unsafe extern "C" fn(sys::ggml_backend_t, sys::ggml_threadpool_t);
type SetAbort = unsafe extern "C" fn(sys::ggml_backend_t, sys::ggml_abort_callback, *mut c_void);
type ExtraKinds =
    unsafe extern "C" fn(sys::ggml_backend_dev_t) -> *mut sys::ggml_backend_buffer_type_t;

/// A CPU backend with its threads.
#[derive(Debug)]
pub struct Cpu {
    raw: NonNull<sys::ggml_backend>,
    device: sys::ggml_backend_dev_t,
    /// Kinds of memory for weights that are brought into another order, in the loader's order.
    repacking: Vec<sys::ggml_backend_buffer_type_t>,
    plain: sys::ggml_backend_buffer_type_t,
    // Freed after the backend.
    _threads: ThreadPool,
}

impl Cpu {
    /// A backend that computes with `threads`, `n_threads` of them, and stops when request number
    /// `request` is cancelled.
    pub fn new(threads: ThreadPool, n_threads: c_int, request: u64) -> Result<Self, Stopped> {
        let missing =
            || Stopped::by_engine(FailureCode::Internal, "The CPU backend could not be made.");
        // SAFETY: the registry and its devices live as long as the process; the functions have the
        // types that ggml declares under these names; the backend is alive and of this variant, as
        // is the pool, which outlives it; the callback never unwinds and reads its number only.
        unsafe {
            let device = sys::ggml_backend_dev_by_type(sys::GGML_BACKEND_DEVICE_TYPE_CPU);
            if device.is_null() {
                return Err(missing());
            }
            let registry = sys::ggml_backend_dev_backend_reg(device);
            let find = |name: &CStr| {
                let function = sys::ggml_backend_reg_get_proc_address(registry, name.as_ptr());
                NonNull::new(function).ok_or_else(missing)
            };
            let set_threads: SetThreads = std::mem::transmute(find(c"ggml_backend_set_n_threads")?);
            let set_pool: SetPool = std::mem::transmute(find(c"ggml_backend_cpu_set_threadpool")?);
            let set_abort: SetAbort =
                std::mem::transmute(find(c"ggml_backend_set_abort_callback")?);
            let extra: ExtraKinds = std::mem::transmute(find(c"ggml_backend_dev_get_extra_bufts")?);

            let raw = NonNull::new(sys::ggml_backend_dev_init(device, std::ptr::null()))
                .ok_or_else(missing)?;
            set_pool(raw.as_ptr(), threads.raw());
            set_threads(raw.as_ptr(), n_threads);
            set_abort(
                raw.as_ptr(),
                Some(context::stop),
                context::stop_data(request),
            );
            let mut repacking = Vec::new();
            // An array that ends with a null, or none at all.
            let mut kind = extra(device);
            while !kind.is_null() && !(*kind).is_null() {
                repacking.push(*kind);
                kind = kind.add(1);
            }
            Ok(Self {
                raw,
                device,
                repacking,
                plain: sys::ggml_backend_dev_buffer_type(device),
                _threads: threads,
            })
        }
    }

    /// The kind of memory that anything can lie in.
    pub fn plain(&self) -> sys::ggml_backend_buffer_type_t {
        self.plain
    }

    /// Kinds of memory for weights, in the order in which the engine's loader tries them.
    pub fn kinds(&self) -> impl Iterator<Item = sys::ggml_backend_buffer_type_t> {
        self.repacking.iter().copied().chain([self.plain])
    }

    /// Whether the backend does an operation.
    ///
    /// # Safety
    /// `operation` is a live tensor of ggml, and so are its sources.
    pub unsafe fn does(&self, operation: *const sys::ggml_tensor) -> bool {
        // SAFETY: a device of the registry, a tensor by this function's contract.
        unsafe { sys::ggml_backend_dev_supports_op(self.device, operation) }
    }

    /// Computes a graph.
    pub fn compute(&self, graph: &Graph<'_>) -> Result<(), Stopped> {
        // SAFETY: a live backend, a graph of which every tensor has its place in memory.
        match unsafe { sys::ggml_backend_graph_compute(self.raw.as_ptr(), graph.raw()) } {
            sys::GGML_STATUS_SUCCESS => Ok(()),
            sys::GGML_STATUS_ABORTED => Err(Stopped::Cancelled),
            status => Err(Stopped::by_engine(
                FailureCode::Internal,
                format!("The engine could not compute an operation (status {status})."),
            )),
        }
    }
}

impl Drop for Cpu {
    fn drop(&mut self) {
        // SAFETY: made by the engine, owned here, used no more; the pool outlives it.
        unsafe { sys::ggml_backend_free(self.raw.as_ptr()) };
    }
}

/// A backend of one thread (tests run side by side), which no request stops.
#[cfg(test)]
pub fn for_tests() -> Cpu {
    crate::backend::for_tests();
    let threads = ThreadPool::new(
        &crate::testing::with(|settings| settings.n_threads = 1),
        None,
    )
    .unwrap();
    Cpu::new(threads, 1, u64::MAX).unwrap()
}
