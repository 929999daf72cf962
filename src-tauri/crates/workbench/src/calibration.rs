//! What this machine's engine can do: single operations timed in the worker, kept in the history.
//!
//! A calibration holds for one machine, backend, CPU variant, number of threads and build of the
//! engine, and is never taken for another.

mod current;
mod kernels;
mod rates;
mod step;

use jiff::Timestamp;
use twospeed_engine::protocol::{
    Calibrate, Event, Kernel as AskedKernel, KernelReading as Answer, Phase, ReadBandwidth, Request,
};
use twospeed_engine::variants::GiveUp;
use twospeed_engine::{Engine, How, Incoming, Session, WorkerEnd};
use twospeed_estimate::{
    BandwidthReading, Bytes, BytesPerSecond, Calibration, Kernel, KernelReading,
};
use twospeed_gguf::TensorType;
use twospeed_history::{History, HistoryError, ReadReading};
use twospeed_measure::machine::{Machine, Probe};
use twospeed_measure::platform::{self, Host};
use twospeed_measure::{Lease, NotStarted, Stop, Variants, Verdict};
use uuid::Uuid;

pub use current::{NotCalibrated, RunningEngine, current, engine_here};
pub use kernels::{HeldDown, SetSizes, kernels, set_sizes};
pub use rates::{AttentionRate, MatrixRate, Rates, kernel_name};

use crate::Problem;
use crate::read_speed::{ReadSpeed, calibration_sizes};

/// Micro-batch that is calibrated for when nobody says: llama-bench's.
pub const UBATCH: u32 = 512;

/// Time for each kernel: all of them take about eight seconds.
const KERNEL_NS: u64 = 80_000_000;

/// Time for all buffers whose reading is timed, and the most for each.
const READS_NS: u64 = 3_000_000_000;
const READ_NS: u64 = 250_000_000;

/// Kernels that may end the engine before calibrating is given up.
const MOST_LEFT_OUT: usize = 3;

/// What is to be calibrated, with what.
pub struct CalibrateRequest<'a> {
    /// Runs the kernels.
    pub engine: &'a dyn Engine,
    /// Keeps what is found.
    pub history: &'a History,
    /// The machine.
    pub machine: &'a Machine,
    /// Threads that compute.
    pub threads: u32,
    /// The micro-batch.
    pub ubatch: u32,
    /// Stops it; then nothing is kept but what was found of memory.
    pub stop: &'a Stop,
}

/// How far it is.
#[derive(Debug, Clone, PartialEq)]
pub enum CalibrateProgress {
    /// Reads memory.
    Memory,
    /// Times kernels.
    Kernels {
        /// Those that are done.
        done: u32,
        /// All of them.
        of: u32,
    },
    /// Something the person should know, one sentence: a CPU variant died and the next is
    /// calibrated, a kernel is left out.
    Said(String),
}

/// Measures anew what this machine's engine can do, and keeps it: about fifteen seconds.
///
/// The best CPU variant that lives is calibrated. A kernel that ends the engine is left out, and so
/// is one that the engine does not do.
///
/// Errors: `cancelled`; the worker's end or failure as a sentence with its own code; the history's,
/// before anything is measured where nothing can be kept.
pub async fn calibrate(
    request: &CalibrateRequest<'_>,
    _lease: &Lease,
    progress: &mut (dyn FnMut(CalibrateProgress) + Send),
) -> Result<Calibration, Problem> {
    let CalibrateRequest {
        engine,
        history,
        machine,
        threads,
        ubatch,
        stop,
    } = *request;
    let not_kept = |error: HistoryError| Problem::new(error.code(), &error);
    if history.is_read_only() {
        return Err(not_kept(HistoryError::ReadOnly {
            path: history.path().to_owned(),
        }));
    }
    let available = Host::new().state(None).memory_available_bytes;
    let known = ReadSpeed::load(history, machine).await.map_err(not_kept)?;
    let mut work = Work {
        request,
        sizes: calibration_sizes(&known, available),
        kernels: kernels(machine, ubatch, available),
        reads: None,
        progress,
    };
    let mut variants = Variants::new(history, machine);
    let mut left_out = 0;
    let (mut session, found) = loop {
        let session = tokio::select! {
            biased;
            () = stop.asked_now() => return Err(cancelled()),
            session = variants.start(engine, None) => session.map_err(not_started)?,
        };
        let mut session = session;
        match work.measure(&mut session).await {
            Ok(found) => break (session, found),
            Err(Trouble::Problem(problem)) => {
                session.stop().await;
                return Err(problem);
            }
            Err(Trouble::Died { end, kernel }) => {
                let verdict = variants.judge(session.hello(), &end).await;
                match verdict.map_err(|error| Problem::new("not_stored", error))? {
                    Verdict::TryNextVariant => (work.progress)(CalibrateProgress::Said(format!(
                        "The CPU variant {} dies on this machine of an instruction it does not have; the next best is calibrated instead.",
                        session.hello().variant.name
                    ))),
                    Verdict::GiveUp(reason) => match kernel.filter(|_| is_its_fault(&end.how)) {
                        Some(kernel) if left_out < MOST_LEFT_OUT => {
                            left_out += 1;
                            let kernel = work.kernels.remove(kernel);
                            (work.progress)(CalibrateProgress::Said(format!(
                                "Left out, since it ended the engine: {}.",
                                kernel_name(&kernel)
                            )));
                        }
                        _ => return Err(ended(&end, &reason)),
                    },
                }
            }
        }
    };
    let hello = session.hello().clone();
    for (kernel, answer) in work.kernels.iter().zip(&found) {
        if let Some(why) = &answer.refused {
            (work.progress)(CalibrateProgress::Said(format!(
                "Left out, {}: {why}",
                kernel_name(kernel)
            )));
        }
    }
    let mut calibration = Calibration {
        id: Uuid::now_v7().to_string(),
        at: Timestamp::now().to_string(),
        backend: hello.backends,
        variant: hello.variant.name,
        threads,
        build: hello.engine.build_number,
        ubatch,
        last_level_cache: machine.last_level_cache_bytes.map(Bytes),
        reads: work.reads.unwrap_or_default(),
        kernels: work.kernels.iter().zip(&found).filter_map(timed).collect(),
        step_ns: None,
    };
    calibration.step_ns = step::measure(&mut session, &calibration, stop).await;
    session.stop().await;
    if stop.is_now() {
        return Err(cancelled());
    }
    if calibration.kernels.is_empty() {
        return Err(Problem::new(
            "calibration_failed",
            "The engine timed none of its operations: nothing can be told from that. Measure again, and report this if it stays so.",
        ));
    }
    history
        .keep_calibration(machine, &calibration)
        .await
        .map_err(not_kept)?;
    Ok(calibration)
}

/// A kernel with its time, where it has one.
fn timed((kernel, answer): (&Kernel, &Answer)) -> Option<KernelReading> {
    Some(KernelReading {
        kernel: *kernel,
        ns: answer.ns.filter(|ns| ns.is_finite() && *ns > 0.0)?,
        spread_ns: answer.spread_ns.filter(|ns| ns.is_finite()).unwrap_or(0.0),
        repacked: answer.repacked,
    })
}

/// Why there are no answers.
enum Trouble {
    /// The worker died, at this kernel of the list.
    Died {
        end: WorkerEnd,
        kernel: Option<usize>,
    },
    /// Anything else.
    Problem(Problem),
}

struct Work<'a> {
    request: &'a CalibrateRequest<'a>,
    sizes: Vec<u64>,
    kernels: Vec<Kernel>,
    reads: Option<Vec<BandwidthReading>>,
    progress: &'a mut (dyn FnMut(CalibrateProgress) + Send),
}

impl Work<'_> {
    /// Memory, unless it was read before, then the kernels.
    async fn measure(&mut self, session: &mut Session) -> Result<Vec<Answer>, Trouble> {
        if self.reads.is_none() {
            (self.progress)(CalibrateProgress::Memory);
            self.read_memory(session).await?;
        }
        let of = self.kernels.len() as u32;
        (self.progress)(CalibrateProgress::Kernels { done: 0, of });
        let asked = Request::Calibrate(Calibrate {
            n_threads: self.request.threads,
            duration_ns: KERNEL_NS,
            kernels: self.kernels.iter().map(in_the_engines_words).collect(),
        });
        let mut at = 0;
        let mut answers = None;
        let progress = &mut self.progress;
        ask(session, asked, self.request.stop, |event| match event {
            Event::CalibrateProgress { done, kernels } => {
                at = done as usize;
                progress(CalibrateProgress::Kernels { done, of: kernels });
            }
            Event::Calibrated { readings } => answers = Some(readings),
            _ => {}
        })
        .await
        .map_err(|trouble| match trouble {
            Trouble::Died { end, .. } => Trouble::Died {
                end,
                kernel: Some(at).filter(|at| *at < of as usize),
            },
            problem @ Trouble::Problem(_) => problem,
        })?;
        let answers = answers.unwrap_or_default();
        if answers.len() != self.kernels.len() {
            return Err(Trouble::Problem(Problem::new(
                "calibration_failed",
                "The engine did not answer what it was asked. Reinstall Twospeed.",
            )));
        }
        (self.progress)(CalibrateProgress::Kernels { done: of, of });
        Ok(answers)
    }

    /// Reads buffers with the threads that compute. Where those are the usual ones, the readings are
    /// what ceilings stand on from now on.
    async fn read_memory(&mut self, session: &mut Session) -> Result<(), Trouble> {
        let CalibrateRequest {
            history,
            machine,
            threads,
            stop,
            ..
        } = *self.request;
        let asked = Request::ReadBandwidth(ReadBandwidth {
            buffer_bytes: self.sizes.clone(),
            n_threads: threads,
            duration_ns: READ_NS.min(READS_NS / self.sizes.len().max(1) as u64),
        });
        let mut found = Vec::new();
        ask(session, asked, stop, |event| {
            if let Event::Bandwidth { readings } = event {
                found = readings;
            }
        })
        .await?;
        let at = Timestamp::now();
        let kept: Vec<_> = found
            .iter()
            .map(|reading| ReadReading {
                buffer_bytes: reading.buffer_bytes,
                bytes_per_second: reading.bytes_per_second.round() as u64,
                threads,
                at,
            })
            .collect();
        if threads == platform::default_threads() {
            history
                .keep_read_speeds(machine, &kept)
                .await
                .map_err(|error| Trouble::Problem(Problem::new(error.code(), &error)))?;
        }
        let reads = kept.iter().map(|reading| BandwidthReading {
            buffer: Bytes(reading.buffer_bytes),
            rate: BytesPerSecond(reading.bytes_per_second),
        });
        self.reads = Some(reads.collect());
        Ok(())
    }
}

/// Asks the worker and hears it to the closing event.
async fn ask(
    session: &mut Session,
    request: Request,
    stop: &Stop,
    mut hear: impl FnMut(Event),
) -> Result<(), Trouble> {
    session
        .send(request)
        .map_err(|error| Trouble::Problem(Problem::new("engine", error)))?;
    let mut is_cancelled = false;
    loop {
        let incoming = tokio::select! {
            biased;
            () = stop.asked_now(), if !is_cancelled => {
                is_cancelled = true;
                session.cancel();
                continue;
            }
            incoming = session.next() => incoming,
        };
        match incoming {
            Incoming::Event(event) if is_cancelled && event.is_closing() => {
                return Err(Trouble::Problem(cancelled()));
            }
            Incoming::Event(Event::Failed(failure)) => {
                return Err(Trouble::Problem(Problem::new(
                    "calibration_failed",
                    failure.message,
                )));
            }
            Incoming::Event(Event::Phase(Phase::Repetition { .. })) => {
                let _ = session.send(Request::Go);
            }
            Incoming::Event(event) => {
                let closes = event.is_closing();
                hear(event);
                if closes {
                    return Ok(());
                }
            }
            Incoming::Ended(_) if is_cancelled => return Err(Trouble::Problem(cancelled())),
            Incoming::Ended(end) => return Err(Trouble::Died { end, kernel: None }),
        }
    }
}

/// Whether the kernel that ran would end the engine again: a failed check or a crash does, want of
/// memory or a kill from outside may not.
fn is_its_fault(how: &How) -> bool {
    matches!(how, How::Signal { name, .. } if name != "SIGKILL" && name != "SIGTERM")
}

fn ended(end: &WorkerEnd, reason: &GiveUp) -> Problem {
    let sentence = match reason {
        GiveUp::NotTheVariant => end.sentence(None),
        GiveUp::Unnamed | GiveUp::NoneLeft { .. } => reason.to_string(),
    };
    Problem::new(end.code(), sentence)
}

fn not_started(error: NotStarted) -> Problem {
    match &error {
        NotStarted::NoEngine(reason) => Problem::new(reason.code(), &error),
        NotStarted::NotKept(_) => Problem::new("not_stored", &error),
    }
}

fn cancelled() -> Problem {
    Problem::new(
        "cancelled",
        "Calibrating was stopped: what was known before still holds.",
    )
}

/// ggml's name of a type: `q4_K`, `f16`.
fn name_of(tensor_type: TensorType) -> String {
    tensor_type.name().to_lowercase().replace("_k", "_K")
}

fn in_the_engines_words(kernel: &Kernel) -> AskedKernel {
    match *kernel {
        Kernel::Matrix {
            tensor_type,
            inner,
            rows,
            columns,
            set_bytes,
        } => AskedKernel::Matrix {
            tensor_type: name_of(tensor_type),
            inner,
            rows,
            columns,
            set_bytes,
        },
        Kernel::Experts {
            tensor_type,
            inner,
            rows,
            experts,
            used,
            columns,
            set_bytes,
        } => AskedKernel::Experts {
            tensor_type: name_of(tensor_type),
            inner,
            rows,
            experts,
            used,
            columns,
            set_bytes,
        },
        Kernel::Attention {
            heads,
            kv_heads,
            head,
            type_k,
            type_v,
            flash,
            cells,
            columns,
            set_bytes,
        } => AskedKernel::Attention {
            heads,
            kv_heads,
            head,
            type_k: type_k.to_string(),
            type_v: type_v.to_string(),
            flash,
            cells,
            columns,
            set_bytes,
        },
        Kernel::Layer {
            embedding,
            feed_forward,
            heads,
            kv_heads,
            head,
            columns,
        } => AskedKernel::Layer {
            embedding,
            feed_forward,
            heads,
            kv_heads,
            head,
            columns,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_named_as_ggml_names_them() {
        let names = [
            (TensorType::F32, "f32"),
            (TensorType::Bf16, "bf16"),
            (TensorType::Q4K, "q4_K"),
            (TensorType::Q8_0, "q8_0"),
            (TensorType::Iq4Xs, "iq4_xs"),
            (TensorType::Mxfp4, "mxfp4"),
        ];
        for (tensor_type, name) in names {
            assert_eq!(name_of(tensor_type), name);
        }
    }
}
