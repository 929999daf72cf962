//! The threads the engine computes with.
//!
//! With OpenMP, ggml's thread pool carries the CPU mask and the priority of each thread; the threads
//! themselves are OpenMP's and outlive it. So a mask would stay on them after its test: once one was
//! given, every later pool sets a mask, that of all CPUs where none is asked for.

use std::ffi::{CStr, c_int, c_void};
use std::ptr::NonNull;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use llama_cpp_sys_2 as sys;
use twospeed_engine::Settings;
use twospeed_engine::protocol::FailureCode;

use crate::failure::Stopped;
use crate::{os, settings};

static MASKED: AtomicBool = AtomicBool::new(false);
static PRIORITY: OnceLock<i32> = OnceLock::new();

type New = unsafe extern "C" fn(*mut sys::ggml_threadpool_params) -> sys::ggml_threadpool_t;
type Free = unsafe extern "C" fn(sys::ggml_threadpool_t);

/// A thread pool of the loaded CPU variant.
#[derive(Debug)]
pub struct ThreadPool {
    raw: NonNull<sys::ggml_threadpool>,
    free: Free,
}

impl ThreadPool {
    /// A pool as llama-bench makes it for a test. `allowed` are the CPUs this process had at first.
    pub fn new(settings: &Settings, allowed: Option<&[usize]>) -> Result<Self, Stopped> {
        let threads = settings::threads(settings)?;
        let mut mask = settings::cpu_mask(&settings.cpu_mask)?;
        let priority = settings::priority(settings.prio)?;
        if settings.poll > 100 {
            return Err(Stopped::bad_setting(format!(
                "poll is {}: give 0 to 100.",
                settings.poll
            )));
        }
        if mask.contains(&true) {
            MASKED.store(true, Ordering::Relaxed);
        } else if MASKED.load(Ordering::Relaxed) {
            for cpu in allowed.into_iter().flatten() {
                if let Some(on) = mask.get_mut(*cpu) {
                    *on = true;
                }
            }
        }
        // What ggml and the system made of a priority stays with the threads.
        let first = *PRIORITY.get_or_init(|| settings.prio);
        if first != settings.prio {
            return Err(Stopped::bad_setting(format!(
                "prio is {} after {first}: the engine takes one priority in its life, start it anew.",
                settings.prio
            )));
        }
        os::set_priority(settings.prio).map_err(|error| {
            Stopped::bad_setting(format!(
                "prio {} is not allowed to this user: {error}.",
                settings.prio
            ))
        })?;
        // SAFETY: a function without preconditions.
        let mut params = unsafe { sys::ggml_threadpool_params_default(threads as c_int) };
        params.cpumask = mask;
        params.strict_cpu = settings.cpu_strict;
        params.poll = settings.poll;
        params.prio = priority;
        let (new, free) = functions().ok_or_else(|| {
            Stopped::by_engine(FailureCode::Internal, "The CPU variant has no thread pool.")
        })?;
        // SAFETY: the variant's own function with parameters of its own type.
        NonNull::new(unsafe { new(&raw mut params) })
            .map(|raw| Self { raw, free })
            .ok_or_else(|| {
                Stopped::by_engine(
                    FailureCode::Internal,
                    format!("{threads} threads could not be made."),
                )
            })
    }

    /// The engine's pointer; valid while `self` lives.
    pub fn raw(&self) -> sys::ggml_threadpool_t {
        self.raw.as_ptr()
    }
}

impl Drop for ThreadPool {
    fn drop(&mut self) {
        // SAFETY: made by the same variant, and no context computes with it any more.
        unsafe { (self.free)(self.raw.as_ptr()) };
    }
}

/// The functions live in the CPU variant, which is loaded at run time: asked for by name.
fn functions() -> Option<(New, Free)> {
    // SAFETY: the registry lives as long as the process; the functions have the types that ggml
    // declares under these names.
    unsafe {
        let cpu = sys::ggml_backend_dev_by_type(sys::GGML_BACKEND_DEVICE_TYPE_CPU);
        if cpu.is_null() {
            return None;
        }
        let registry = sys::ggml_backend_dev_backend_reg(cpu);
        let find = |name: &CStr| {
            let function = sys::ggml_backend_reg_get_proc_address(registry, name.as_ptr());
            (!function.is_null()).then_some(function)
        };
        Some((
            std::mem::transmute::<*mut c_void, New>(find(c"ggml_threadpool_new")?),
            std::mem::transmute::<*mut c_void, Free>(find(c"ggml_threadpool_free")?),
        ))
    }
}
