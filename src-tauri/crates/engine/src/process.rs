//! The engine as a process of its own: `twospeed worker`.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use async_trait::async_trait;
use tokio::process::{Child, Command};

use crate::end::How;
use crate::engine::{Engine, Session, Start, StartError};
use crate::link::{Patience, Pipes, connect};
use crate::os;
use crate::supervise::Body;

/// What a window sets for itself and for its kind: nothing the engine needs.
const WINDOW_VARIABLES: [&str; 8] = [
    "WEBKIT_",
    "__NV_DISABLE_EXPLICIT_SYNC",
    "GTK_",
    "GDK_",
    "GIO_",
    "GSETTINGS_",
    "QT_",
    "TAURI_",
];

/// Starts `twospeed worker` for each session.
///
/// The worker gets the variables of this process without those made for windows and without those
/// that would load somebody's library into it. Its working directory is its program's own folder:
/// the engine loads libraries it finds in the current one, so it must be one that is trusted, and
/// this one needs no making and no cleaning up. It has a process group of its own, so that Ctrl-C
/// in a terminal is for us to answer. It is ended with its session; when this process dies, its input
/// ends and it leaves by itself.
#[derive(Debug, Clone)]
pub struct WorkerProcess {
    program: PathBuf,
    patience: Patience,
    log_told: bool,
}

impl WorkerProcess {
    /// The worker at this path.
    pub fn at(program: impl Into<PathBuf>) -> Self {
        let program = program.into();
        Self {
            // It is started in another directory than ours.
            program: std::path::absolute(&program).unwrap_or(program),
            patience: Patience::default(),
            log_told: false,
        }
    }

    /// The worker that belongs to the running program.
    ///
    /// Errors: [`StartError::NotFound`] says where it was looked for.
    pub fn find() -> Result<Self, StartError> {
        let program = std::env::current_exe().map_err(|source| StartError::CannotRun {
            program: PathBuf::from(os::PROGRAM),
            source,
        })?;
        Self::beside(&program)
    }

    /// The worker that belongs to this program: the program itself where it is the command line,
    /// else beside it, else in the engine's folder of a package. Links are resolved first, since
    /// the engine's libraries lie beside the real file.
    pub fn beside(program: &Path) -> Result<Self, StartError> {
        let program = program
            .canonicalize()
            .unwrap_or_else(|_| program.to_path_buf());
        let looked_at: Vec<PathBuf> = match program.parent() {
            Some(folder) => [
                "",
                "engine",
                "../lib/twospeed/engine",
                "../Resources/engine",
            ]
            .iter()
            .map(|inside| folder.join(inside).join(os::PROGRAM))
            .collect(),
            None => Vec::new(),
        };
        match looked_at.iter().find(|path| path.is_file()) {
            Some(found) => Ok(Self::at(
                found.canonicalize().unwrap_or_else(|_| found.clone()),
            )),
            None => Err(StartError::NotFound { looked_at }),
        }
    }

    /// With other limits of patience.
    pub fn with_patience(self, patience: Patience) -> Self {
        Self { patience, ..self }
    }

    /// Repeating on our standard error what the worker prints, when `told`: the engine's log.
    pub fn with_log_told(self, told: bool) -> Self {
        Self {
            log_told: told,
            ..self
        }
    }

    /// The worker's program.
    pub fn program(&self) -> &Path {
        &self.program
    }

    fn command(&self, start: &Start) -> Command {
        let mut command = Command::new(&self.program);
        command.arg("worker");
        if let Some(variant) = &start.variant {
            command.args(["--variant", variant]);
        }
        for variant in &start.set_aside {
            command.args(["--set-aside", variant]);
        }
        for (name, _) in std::env::vars_os().filter(|(name, _)| is_unwanted(name)) {
            command.env_remove(name);
        }
        if let Some(folder) = self.program.parent() {
            command.current_dir(folder);
        }
        command
            .env("GGML_NO_BACKTRACE", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // For a runtime that is shut down while a session lives.
            .kill_on_drop(true);
        os::prepare(&mut command);
        command
    }
}

#[async_trait]
impl Engine for WorkerProcess {
    async fn start(&self, start: &Start) -> Result<Session, StartError> {
        let cannot_run = |source| StartError::CannotRun {
            program: self.program.clone(),
            source,
        };
        if !self.program.is_file() {
            return Err(StartError::NotFound {
                looked_at: vec![self.program.clone()],
            });
        }
        let mut child = self.command(start).spawn().map_err(cannot_run)?;
        let pid = child
            .id()
            .expect("BUG: a child not yet waited for has an id");
        os::settle(pid);
        let (Some(input), Some(output), Some(log)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            unreachable!("BUG: all three streams were asked for as pipes");
        };
        let body = Process {
            oom: os::OomCounters::of(pid),
            child,
            pid,
        };
        let pipes = Pipes {
            input,
            output,
            log,
            log_told: self.log_told,
        };
        connect(body, Some(pid), pipes, self.patience, start.variant.clone()).await
    }
}

fn is_unwanted(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    os::UNWANTED_VARIABLES.contains(&name.as_ref())
        || WINDOW_VARIABLES.iter().any(|start| name.starts_with(start))
}

/// A worker's process.
struct Process {
    child: Child,
    pid: u32,
    oom: os::OomCounters,
}

impl Body for Process {
    async fn ended(&mut self) -> How {
        let Ok(status) = self.child.wait().await else {
            return How::Unknown;
        };
        os::end_group(self.pid);
        match os::how(status) {
            How::Signal { name, .. } if name == "SIGKILL" && self.oom.rose() => How::OutOfMemory,
            how => how,
        }
    }

    fn kill(&mut self) {
        // Fails where it is dead already.
        let _ = self.child.start_kill();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn touch(path: &Path) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "").unwrap();
    }

    #[test]
    fn the_command_line_is_its_own_worker() {
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join(os::PROGRAM);
        touch(&program);
        let found = WorkerProcess::beside(&program).unwrap();
        assert_eq!(found.program(), program.canonicalize().unwrap());
    }

    #[cfg(unix)]
    #[test]
    fn a_packaged_command_line_is_found_through_its_link() {
        let dir = tempfile::tempdir().unwrap();
        let real = dir.path().join("lib/twospeed/engine").join(os::PROGRAM);
        let link = dir.path().join("bin").join(os::PROGRAM);
        touch(&real);
        std::fs::create_dir(dir.path().join("bin")).unwrap();
        std::os::unix::fs::symlink("../lib/twospeed/engine/twospeed", &link).unwrap();
        let found = WorkerProcess::beside(&link).unwrap();
        assert_eq!(found.program(), real.canonicalize().unwrap());
    }

    #[test]
    fn a_packaged_window_finds_the_engines_folder() {
        let dir = tempfile::tempdir().unwrap();
        let window = dir.path().join("bin/twospeed-window");
        let real = dir.path().join("lib/twospeed/engine").join(os::PROGRAM);
        touch(&window);
        touch(&real);
        let found = WorkerProcess::beside(&window).unwrap();
        assert_eq!(found.program(), real.canonicalize().unwrap());
    }

    #[test]
    fn a_missing_worker_is_missed_by_its_places() {
        let dir = tempfile::tempdir().unwrap();
        let error = WorkerProcess::beside(&dir.path().join("window")).unwrap_err();
        assert_eq!(error.code(), "engine_missing");
        let sentence = error.to_string();
        let beside = dir.path().join(os::PROGRAM);
        assert!(sentence.contains(beside.to_str().unwrap()), "{sentence}");
    }

    #[test]
    fn the_worker_inherits_what_an_engine_needs_and_nothing_of_a_window() {
        let unwanted = |name: &str| is_unwanted(OsStr::new(name));
        for name in [
            "WEBKIT_DISABLE_DMABUF_RENDERER",
            "__NV_DISABLE_EXPLICIT_SYNC",
            "GTK_PATH",
            "GDK_BACKEND",
        ] {
            assert!(unwanted(name), "{name}");
        }
        for name in [
            "PATH",
            "HOME",
            "LD_LIBRARY_PATH",
            "OMP_NUM_THREADS",
            "CUDA_VISIBLE_DEVICES",
        ] {
            assert!(!unwanted(name), "{name}");
        }
    }
}
