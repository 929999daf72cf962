//! The process that runs llama.cpp: the other side of `twospeed_engine::protocol`.
//!
//! It lives apart from the app, since an engine may abort, meet an illegal instruction or be ended
//! by the kernel for its memory, and the app must outlive all three.
//!
//! The one crate that links llama.cpp, and so the one with `unsafe`: each use says why it holds.
#![allow(unsafe_code)]

mod allocations;
mod anchor;
mod backend;
mod bandwidth;
mod breakdown;
mod calibrate;
mod context;
mod depth;
mod facts;
mod failure;
mod files;
mod foresee;
mod generate;
mod kernels;
mod load;
mod log;
mod measure;
mod model;
mod model_params;
mod os;
mod pieces;
mod placement;
mod prompts;
mod quality;
mod quantize;
mod random;
mod repeat;
mod requests;
mod sampler;
mod serve;
mod served;
mod settings;
mod team;
#[cfg(test)]
mod testing;
mod text;
mod threads;
mod users;
mod variants;
mod vocabulary;
mod wire;

use std::convert::Infallible;
use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

pub use facts::engine_build;
use twospeed_engine::protocol::Event;

use crate::backend::Backend;
use crate::serve::Worker;
use crate::wire::Wire;

/// Runs a worker on standard input and output, with the arguments after `twospeed worker`:
/// `--variant NAME` loads that CPU variant, `--set-aside NAME,NAME` (as often as needed) passes over
/// those that died here before.
///
/// The worker ends the process when its input ends. This returns only when it cannot start, after a
/// sentence on standard error.
#[must_use = "the process should end with this code"]
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let Err(message) = Options::read(arguments).and_then(|options| run(&options));
    // Standard error may be closed; the exit code tells as well.
    let _ = writeln!(std::io::stderr(), "{message}");
    ExitCode::FAILURE
}

/// How a worker is started.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Options {
    variant: Option<String>,
    set_aside: Vec<String>,
}

impl Options {
    fn read(arguments: impl IntoIterator<Item = OsString>) -> Result<Self, String> {
        let mut options = Self::default();
        let mut arguments = arguments
            .into_iter()
            .map(|argument| argument.to_string_lossy().into_owned());
        while let Some(argument) = arguments.next() {
            let value = arguments
                .next()
                .ok_or_else(|| format!("{argument} needs a value or is unknown to the worker."))?;
            match argument.as_str() {
                "--variant" => options.variant = Some(value),
                "--set-aside" => {
                    let names = value.split(',').filter(|name| !name.is_empty());
                    options.set_aside.extend(names.map(str::to_owned));
                }
                _ => return Err(format!("The worker does not know {argument}.")),
            }
        }
        Ok(options)
    }
}

fn run(options: &Options) -> Result<Infallible, String> {
    let out = os::private_stdout()
        .map_err(|error| format!("The worker has no standard output: {error}."))?;
    // ggml starts a debugger where it finds one when it aborts: that takes seconds, and it prints.
    // SAFETY: no other thread runs yet.
    unsafe { std::env::set_var("GGML_NO_BACKTRACE", "1") };
    let started_in = std::env::current_dir().ok();
    os::leave_current_directory()
        .map_err(|error| format!("The worker cannot leave its directory: {error}."))?;
    os::harden();
    log::install();
    let backend = Backend::load(options.variant.as_deref(), &options.set_aside)?;
    let mut wire = Wire::open(out).map_err(|error| format!("The worker cannot read: {error}."))?;
    wire.say(&Event::Hello(backend.hello()));
    Worker::new(wire, backend, started_in).serve()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(arguments: &[&str]) -> Result<Options, String> {
        Options::read(arguments.iter().map(OsString::from))
    }

    #[test]
    fn variants_are_named_and_set_aside_in_either_form() {
        let options = read(&[
            "--set-aside",
            "a,b",
            "--variant",
            "zen4",
            "--set-aside",
            "c",
        ])
        .unwrap();
        assert_eq!(options.variant.as_deref(), Some("zen4"));
        assert_eq!(options.set_aside, ["a", "b", "c"]);
        assert_eq!(read(&[]).unwrap(), Options::default());
    }

    #[test]
    fn an_argument_that_means_nothing_is_named() {
        assert!(read(&["--fast", "1"]).unwrap_err().contains("--fast"));
        assert!(read(&["--variant"]).unwrap_err().contains("--variant"));
    }
}
