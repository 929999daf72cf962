//! The engine's memory to the byte, by the shim in `breakdown.cpp`.

use std::ffi::{c_char, c_void};

use crate::context::Context;

/// Bytes in one kind of buffer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// The engine's name: `CPU`, `CPU_Mapped`, `CPU_REPACK`, `Vulkan0`.
    pub device: String,
    /// Whether it is the machine's own memory.
    pub host: bool,
    /// Weights.
    pub model: u64,
    /// Cache and recurrent state.
    pub context: u64,
    /// Working memory of the graph.
    pub compute: u64,
}

type Each = unsafe extern "C" fn(*mut c_void, *const c_char, bool, usize, usize, usize);

unsafe extern "C" {
    fn twospeed_memory_breakdown(
        context: *const llama_cpp_sys_2::llama_context,
        each: Each,
        data: *mut c_void,
    ) -> bool;
}

unsafe extern "C" fn push(
    parts: *mut c_void,
    name: *const c_char,
    host: bool,
    model: usize,
    context: usize,
    compute: usize,
) {
    // No panic may cross into C++.
    let _ = std::panic::catch_unwind(|| {
        // SAFETY: the vector that `of` hands through, and a constant C string of the engine.
        unsafe {
            (*parts.cast::<Vec<Part>>()).push(Part {
                device: crate::backend::text(name),
                host,
                model: model as u64,
                context: context as u64,
                compute: compute as u64,
            });
        }
    });
}

/// What a context and its model hold; empty when the engine could not say.
pub fn of(context: &Context) -> Vec<Part> {
    let mut parts = Vec::<Part>::new();
    // SAFETY: a live context; `push` is called within this call only, with the vector above.
    let told = unsafe { twospeed_memory_breakdown(context.raw(), push, (&raw mut parts).cast()) };
    if told { parts } else { Vec::new() }
}
