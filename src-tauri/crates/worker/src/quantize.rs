//! [`Request::Quantize`]: a model file becomes another, tensor by tensor, by the engine's own
//! quantizer.
//!
//! [`Request::Quantize`]: twospeed_engine::protocol::Request::Quantize

use std::fs::File;
use std::path::Path;
use std::sync::mpsc;
use std::time::Instant;

use llama_cpp_sys_2 as sys;
use twospeed_engine::protocol::{Event, FailureCode, Quantize, Quantized};

use crate::failure::Stopped;
use crate::log::{self, Line};
use crate::serve::Worker;
use crate::{files, os};

/// Quantizes a file. Progress is read off the engine's log: it has no other word for it.
///
/// Nothing here cancels: the engine looks at nothing until it is done, so the one who wants no more
/// of it ends this process.
pub fn quantize(worker: &mut Worker, asked: &Quantize) -> Result<Event, Stopped> {
    worker.unload();
    let files = files::parts(&worker.resolve(&asked.input.0));
    files::check(&files)?;
    let input = files.first().expect("BUG: a model has at least one file");
    let output = worker.resolve(&asked.output.0);
    check_output(input, &output)?;
    let [from, to] = [input, &output].map(|path| {
        os::engine_path(path.as_os_str()).ok_or_else(|| {
            Stopped::because(
                FailureCode::FileUnreadable,
                format!(
                    "{} has a name the engine cannot open: rename it.",
                    path.display()
                ),
            )
        })
    });
    let (from, to) = (from?, to?);

    let start = Instant::now();
    let (sender, lines) = mpsc::channel();
    let (code, log) = std::thread::scope(|scope| {
        let engine = scope.spawn(move || {
            let params = params(asked);
            log::capture_aloud(sender, || {
                // SAFETY: the names are C strings and the parameters point to nothing; all three
                // outlive the call. The engine catches its own exceptions.
                unsafe { sys::llama_model_quantize(from.as_ptr(), to.as_ptr(), &raw const params) }
            })
        });
        // Ends with the engine: the log lets go of the sender.
        for line in lines {
            if let Some((number, tensors)) = tensor_begun(&line) {
                let progress = Event::QuantizeProgress {
                    done: number - 1,
                    tensors,
                };
                worker.wire.say_at_times(&progress, number == tensors);
            }
        }
        engine.join()
    })
    .map_err(|_| {
        Stopped::by_engine(
            FailureCode::Internal,
            "The worker stumbled over a fault of its own while quantizing.",
        )
    })?;
    if code != 0 {
        return Err(refused(input, &output, &log));
    }
    Ok(Event::Quantized(Quantized {
        ns: start.elapsed().as_nanos() as u64,
        fallbacks: log.iter().find_map(|line| fallbacks(&line.text)),
    }))
}

fn params(asked: &Quantize) -> sys::llama_model_quantize_params {
    // SAFETY: a function without preconditions.
    let mut params = unsafe { sys::llama_model_quantize_default_params() };
    params.ftype = asked.file_type as sys::llama_ftype;
    params.nthread = i32::try_from(asked.n_threads).unwrap_or(0);
    params.allow_requantize = asked.allow_requantize;
    params
}

/// The engine tells a file that it cannot write by no words that a person could use.
fn check_output(input: &Path, path: &Path) -> Result<(), Stopped> {
    let same = path.canonicalize().ok().zip(input.canonicalize().ok());
    if same.is_some_and(|(output, input)| output == input) {
        return Err(Stopped::because(
            FailureCode::OutputUnwritable,
            format!("{} is the file that is read: name another.", path.display()),
        ));
    }
    File::create(path).map(drop).map_err(|error| {
        Stopped::because(
            FailureCode::OutputUnwritable,
            format!("{} cannot be written: {error}.", path.display()),
        )
    })
}

fn refused(input: &Path, output: &Path, lines: &[Line]) -> Stopped {
    let why = log::first_error(lines).unwrap_or_else(|| "it gave no reason".into());
    if why.contains("iostream") {
        return Stopped::by_engine(
            FailureCode::OutputUnwritable,
            format!(
                "{} could not be written to its end. Check the disk and its free space.",
                output.display()
            ),
        );
    }
    let name = input.file_name().unwrap_or(input.as_os_str());
    let why = why.trim_start_matches("failed to quantize: ");
    Stopped::by_engine(
        FailureCode::QuantizeRefused,
        format!(
            "The engine does not quantize {}: {}.",
            name.to_string_lossy(),
            why.trim().trim_end_matches('.')
        ),
    )
}

/// `[  12/ 272] blk.0.attn_q.weight - [...]`: the engine begins with tensor 12 of 272.
fn tensor_begun(line: &str) -> Option<(u32, u32)> {
    let (number, rest) = line.strip_prefix('[')?.split_once('/')?;
    let (tensors, _) = rest.split_once(']')?;
    let (number, tensors) = (
        number.trim().parse::<u32>().ok()?,
        tensors.trim().parse::<u32>().ok()?,
    );
    (1..=tensors).contains(&number).then_some((number, tensors))
}

/// `...: WARNING: 211 of 272 tensor(s) required fallback quantization`.
fn fallbacks(line: &str) -> Option<u32> {
    let (before, _) = line.split_once(" tensor(s) required fallback")?;
    let (before, _) = before.rsplit_once(" of ")?;
    before.rsplit(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_read_off_the_engines_lines() {
        assert_eq!(
            tensor_begun(
                "[   1/ 272]                    token_embd.weight - [  576, 49152,     1,     1], type =   q4_1, "
            ),
            Some((1, 272))
        );
        assert_eq!(tensor_begun("[272/ 272] x"), Some((272, 272)));
        for line in [
            "[0/ 3] x",
            "[4/3] x",
            "[a/b] x",
            "converting to q8_0 .. ",
            "[",
        ] {
            assert_eq!(tensor_begun(line), None, "{line}");
        }
    }

    #[test]
    fn tensors_that_got_another_type_are_counted_by_the_engine() {
        assert_eq!(
            fallbacks(
                "llama_model_quantize_impl: WARNING: 211 of 272 tensor(s) required fallback quantization"
            ),
            Some(211)
        );
        assert_eq!(fallbacks("llama_model_quantize_impl: quant size = 1"), None);
    }
}
