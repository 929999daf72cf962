//! [`Request::Calibrate`]: what single operations of the engine take.
//!
//! Each kernel becomes a graph of ggml, of operations that the engine's own graphs are made of, with
//! the shapes and the places in memory they have there, and is computed by the CPU backend with the
//! thread pool of a test. What the machine takes for it is what it takes in the middle of a model.
//!
//! [`Request::Calibrate`]: twospeed_engine::protocol::Request::Calibrate

mod attention;
mod cpu;
mod experts;
mod graph;
mod layer;
mod matrix;
mod memory;
mod timing;
mod types;
mod weights;

use std::time::Duration;

use twospeed_engine::Settings;
use twospeed_engine::protocol::{Calibrate, Event, Kernel, KernelReading};

use self::attention::Attention;
use self::cpu::Cpu;
use self::experts::Experts;
use self::graph::Work;
use self::layer::Layer;
use self::matrix::Matrix;
use crate::failure::Stopped;
use crate::serve::Worker;
use crate::threads::ThreadPool;
use crate::{settings, wire};

/// Times each kernel.
pub fn calibrate(worker: &mut Worker, asked: &Calibrate, request: u64) -> Result<Event, Stopped> {
    let settings = Settings {
        n_threads: asked.n_threads,
        ..Settings::default()
    };
    // A name that means nothing is found before the first second is spent.
    for kernel in &asked.kernels {
        check_names(kernel)?;
    }
    let threads = ThreadPool::new(&settings, worker.allowed_cpus())?;
    let cpu = Cpu::new(threads, settings::threads(&settings)?, request)?;
    let duration = Duration::from_nanos(asked.duration_ns);
    let kernels = asked.kernels.len() as u32;
    let mut readings = Vec::with_capacity(asked.kernels.len());
    for (done, kernel) in (1..).zip(&asked.kernels) {
        readings.push(read(&cpu, kernel, duration, request)?);
        if done < kernels {
            worker.wire.say(&Event::CalibrateProgress { done, kernels });
        }
    }
    Ok(Event::Calibrated { readings })
}

/// What one kernel took, or why it took nothing.
fn read(
    cpu: &Cpu,
    kernel: &Kernel,
    duration: Duration,
    request: u64,
) -> Result<KernelReading, Stopped> {
    if wire::is_cancelled(request) {
        return Err(Stopped::Cancelled);
    }
    let prepared = match prepare(cpu, kernel) {
        Ok(prepared) => prepared,
        Err(sentence) => {
            return Ok(KernelReading {
                ns: None,
                spread_ns: None,
                repacked: false,
                refused: Some(sentence),
            });
        }
    };
    let Prepared { work, repacked } = prepared;
    let timed = timing::time(cpu, work.as_ref(), duration, request)?;
    Ok(KernelReading {
        ns: Some(timed.ns),
        spread_ns: Some(timed.spread_ns),
        repacked,
        refused: None,
    })
}

/// A kernel with all it computes on.
struct Prepared {
    work: Box<dyn Work>,
    repacked: bool,
}

/// Makes a kernel ready. Errors: the sentence of a refusal.
fn prepare(cpu: &Cpu, kernel: &Kernel) -> Result<Prepared, String> {
    let (work, repacked): (Box<dyn Work>, bool) = match kernel {
        Kernel::Matrix {
            tensor_type,
            inner,
            rows,
            columns,
            set_bytes,
        } => {
            let matrix = Matrix::new(cpu, tensor_type, [*inner, *rows, *columns], *set_bytes)?;
            let repacked = matrix.is_repacked();
            (Box::new(matrix), repacked)
        }
        Kernel::Experts { .. } => {
            let experts = Experts::new(cpu, kernel)?;
            let repacked = experts.is_repacked();
            (Box::new(experts), repacked)
        }
        Kernel::Attention { .. } => (Box::new(Attention::new(cpu, kernel)?), false),
        Kernel::Layer { .. } => (Box::new(Layer::new(cpu, kernel)?), false),
    };
    if !graph::Graph::new(work.as_ref(), 0, 1).is_computable(cpu) {
        return Err("The CPU backend does not do this operation with these types.".into());
    }
    Ok(Prepared { work, repacked })
}

/// Refuses the names of types that do not exist.
fn check_names(kernel: &Kernel) -> Result<(), Stopped> {
    match kernel {
        Kernel::Matrix { tensor_type, .. } | Kernel::Experts { tensor_type, .. } => {
            types::named(tensor_type).map(drop).ok_or_else(|| {
                settings::unknown("tensor_type", tensor_type, "a name such as q4_K or f16")
            })
        }
        Kernel::Attention { type_k, type_v, .. } => {
            settings::cache_type("type_k", type_k)?;
            settings::cache_type("type_v", type_v).map(drop)
        }
        Kernel::Layer { .. } => Ok(()),
    }
}
