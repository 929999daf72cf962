//! `twospeed download`: a model fetched from Hugging Face.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use serde_json::json;
use twospeed_library::display::{shown, shown_path, size};
use twospeed_library::download::{
    Doing, DownloadError, Downloaded, Hub, Progress, Request, Wanted,
};
use twospeed_measure::Stop;
use twospeed_workbench::lease_place;

use crate::context::Context;
use crate::interrupt::Interrupts;
use crate::progress::ProgressLine;
use crate::say::say;
use crate::{Failure, print};

/// Arguments of `download`.
#[derive(Debug, Args)]
pub struct DownloadArgs {
    /// OWNER/NAME on Hugging Face (or HF_ENDPOINT), with a file or a quantization after a colon
    #[arg(value_name = "REPO[:FILE]")]
    wanted: String,
    /// Folder to put it in [default: models in the data folder]
    #[arg(long, value_name = "FOLDER")]
    to: Option<PathBuf>,
    /// Overwrite a file of that name with other content
    #[arg(long)]
    force: bool,
    /// What was fetched as JSON
    #[arg(long)]
    json: bool,
}

/// Pause before the second try.
const PAUSE: Duration = Duration::from_millis(500);

/// Fetches the model and says where it is.
pub fn run(context: &Context, args: &DownloadArgs) -> Result<(), Failure> {
    let request = Request {
        wanted: args.wanted.parse::<Wanted>().map_err(failure)?,
        hub: Hub::from_environment(|name| std::env::var_os(name)).map_err(failure)?,
        folder: match &args.to {
            Some(folder) => folder.clone(),
            None => context.data_folder()?.path().join("models"),
        },
        overwrite: args.force,
        pause: PAUSE,
    };
    let downloaded = context.block_on(work(request))?;
    tell(&downloaded, args.json)
}

fn failure(error: DownloadError) -> Failure {
    match error.is_usage() {
        true => Failure::Usage(error.to_string()),
        false => Failure::of(error),
    }
}

async fn work(request: Request) -> Result<Downloaded, Failure> {
    let stop = Stop::new();
    let mut interrupts = Interrupts::new().map_err(Failure::of)?;
    let mut line = ProgressLine::new();
    let mut paused = false;
    let mut tell = |step: Progress| {
        if step.doing == Doing::Paused && !paused {
            say("A measurement runs on this machine: the download waits until it ends.");
        }
        paused = step.doing == Doing::Paused;
        line.show(&words(&step));
    };
    let work = twospeed_workbench::download(request, lease_place(), &stop, &mut tell);
    tokio::pin!(work);
    let done = loop {
        tokio::select! {
            done = &mut work => break done,
            () = interrupts.next() => stop.now(),
        }
    };
    done.map_err(|problem| match problem.code.as_str() {
        "download_several" => Failure::Usage(problem.message),
        _ => Failure::of(problem),
    })
}

fn words(step: &Progress) -> String {
    let so_far = || format!("{} of {}", size(step.done), size(step.total));
    let file = shown(&step.file);
    match step.doing {
        Doing::Asking => "Asking what the repository has".to_owned(),
        Doing::Fetching => format!("{file}  {}", so_far()),
        Doing::Checking => format!("{file}  checking what is here, {}", so_far()),
        Doing::Paused => format!("{file}  {}, waiting", so_far()),
        Doing::Retrying => format!("{file}  {}, trying again", so_far()),
    }
}

fn tell(downloaded: &Downloaded, json: bool) -> Result<(), Failure> {
    if json {
        let files: Vec<_> = downloaded
            .files
            .iter()
            .map(|file| file.to_string_lossy())
            .collect();
        let all = json!({
            "path": downloaded.path.to_string_lossy(),
            "files": files,
            "bytes": downloaded.bytes,
            "verified": downloaded.verified,
            "was_there": downloaded.was_there,
        });
        return print(format!("{all:#}\n").as_bytes());
    }
    say(match (downloaded.was_there, downloaded.verified) {
        (true, _) => "It was there already, with the listed checksum.".to_owned(),
        (false, true) => format!("{}, checksum verified", size(downloaded.bytes)),
        (false, false) => format!(
            "{}, not verified: the repository lists no checksum",
            size(downloaded.bytes)
        ),
    });
    print(format!("{}\n", shown_path(&downloaded.path)).as_bytes())
}
