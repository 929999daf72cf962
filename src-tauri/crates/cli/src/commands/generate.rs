//! `twospeed generate`: one prompt answered, each part timed.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use twospeed_engine::process::WorkerProcess;
use twospeed_engine::protocol::{Event, Generate, Generated, Load, Loaded, PageCache, Request};
use twospeed_engine::settings::ModelPath;
use twospeed_engine::{Engine, Incoming, Session, Settings, Start};
use twospeed_measure::{Recorder, platform};
use twospeed_workbench::{Subject, Unsaved, hold_lease, lease_place, waiting_sentence};

use crate::Failure;
use crate::context::Context;

/// Arguments of `generate`.
#[derive(Debug, Args)]
pub struct GenerateArgs {
    /// Model file, or "builtin" for the built-in model (its text is noise)
    #[arg(short, long, value_name = "FILE")]
    model: PathBuf,
    /// The prompt
    #[arg(short, long, value_name = "TEXT")]
    prompt: String,
    /// Tokens to write at most
    #[arg(short = 'n', long, value_name = "N", default_value_t = 128)]
    n_predict: u32,
    /// Context in tokens [default: as much as prompt and answer need]
    #[arg(short, long, value_name = "N", default_value_t = 0)]
    ctx_size: u32,
    /// Threads [default: the physical cores this process may use]
    #[arg(short, long, value_name = "N")]
    threads: Option<u32>,
    /// 0 always takes the likeliest token
    #[arg(long, value_name = "T", default_value_t = 0.0)]
    temperature: f32,
    /// Seed of the sampler
    #[arg(long, value_name = "N", default_value_t = 42)]
    seed: u64,
    /// Drop the file from the page cache first: a cold load
    #[arg(long)]
    cold: bool,
    /// Times and text as JSON
    #[arg(long)]
    json: bool,
}

/// Answers the prompt.
pub fn run(context: &Context, args: &GenerateArgs) -> Result<(), Failure> {
    if args.threads == Some(0) {
        return Err(Failure::Usage(
            "-t 0 runs nothing: give 1 thread or more.".into(),
        ));
    }
    if args.n_predict == 0 {
        return Err(Failure::Usage(
            "-n 0 writes nothing: give 1 token or more.".into(),
        ));
    }
    let subject = Subject::read(&context.model_path(&args.model)?).map_err(Failure::of)?;
    subject.header.check_decodes().map_err(Failure::of)?;
    context.block_on(answer(context, args, &subject))
}

async fn answer(context: &Context, args: &GenerateArgs, subject: &Subject) -> Result<(), Failure> {
    let engine = WorkerProcess::find().map_err(Failure::of)?;
    // The history only says which CPU variants died here; without one the best is tried.
    let history = context.open_history().await.ok();
    let _lease = hold_lease(&lease_place(), "generate", |holder| {
        eprintln!("{}", waiting_sentence(holder.as_ref()));
    })
    .await
    .map_err(Failure::of)?;
    let recorder = Unsaved::new(history.as_ref());
    let mut session = start(&engine, &recorder).await?;
    let settings = Settings {
        n_threads: args.threads.unwrap_or_else(platform::default_threads),
        n_outputs: 1,
        ..Settings::default()
    };
    let name = subject.measured.name.clone();
    let load = Request::Load(Load {
        model: ModelPath(subject.header.path.clone()),
        settings: settings.clone(),
        page_cache: if args.cold {
            PageCache::Drop
        } else {
            PageCache::AsIs
        },
    });
    session.send(load).map_err(Failure::of)?;
    let loaded = loop {
        match next(&mut session, &name).await? {
            Event::Loaded(loaded) => break loaded,
            Event::Cancelled => return Err(Failure::Failed("Cancelled.".into())),
            _ => {}
        }
    };
    let request = Request::Generate(Generate {
        prompt: args.prompt.clone(),
        n_predict: args.n_predict,
        n_ctx: args.ctx_size,
        settings,
        reuse_prefix: false,
        temperature: args.temperature,
        seed: args.seed,
        ignore_eos: false,
    });
    session.send(request).map_err(Failure::of)?;
    let mut text = String::new();
    let mut interrupted = false;
    let generated = loop {
        let event = tokio::select! {
            event = next(&mut session, &name) => event?,
            _ = tokio::signal::ctrl_c(), if !interrupted => {
                interrupted = true;
                session.cancel();
                continue;
            }
        };
        match event {
            Event::Token(token) => {
                if !args.json {
                    let mut out = std::io::stdout().lock();
                    write!(out, "{}", token.text)
                        .and_then(|()| out.flush())
                        .map_err(|error| Failure::of_output(&error))?;
                }
                text.push_str(&token.text);
            }
            Event::Generated(generated) => break Some(generated),
            Event::Cancelled => break None,
            _ => {}
        }
    };
    session.stop().await;
    let Some(generated) = generated else {
        println!();
        return Err(Failure::Failed("Cancelled.".into()));
    };
    if args.json {
        let all = json!({ "text": text, "loaded": loaded, "generated": generated });
        println!("{all:#}");
    } else {
        println!();
        words(&loaded, &generated);
    }
    Ok(())
}

/// Starts the best CPU variant that does not die on the way to its hello.
async fn start(engine: &dyn Engine, recorder: &dyn Recorder) -> Result<Session, Failure> {
    let machine = platform::machine();
    let session = engine.start(&Start::default()).await.map_err(Failure::of)?;
    let dead = recorder
        .variants_set_aside(&machine, &session.hello().engine)
        .await
        .map_err(Failure::of)?;
    if !dead.contains(&session.hello().variant.name) {
        return Ok(session);
    }
    session.stop().await;
    let start = Start {
        variant: None,
        set_aside: dead,
    };
    engine.start(&start).await.map_err(Failure::of)
}

/// The next event; a failure or the worker's end as a sentence.
async fn next(session: &mut Session, model: &str) -> Result<Event, Failure> {
    match session.next().await {
        Incoming::Event(Event::Failed(failure)) => Err(Failure::Failed(failure.message)),
        Incoming::Event(event) => Ok(event),
        Incoming::Ended(end) => Err(Failure::Failed(end.sentence(Some(model)))),
    }
}

fn words(loaded: &Loaded, generated: &Generated) {
    let ms = |ns: u64| ns as f64 / 1e6;
    let rate = |tokens: u32, ns: u64| match twospeed_measure::stats::tokens_per_second(
        tokens.into(),
        ns,
    ) {
        Some(rate) => format!("{rate:.1} tok/s"),
        None => "not measured".to_owned(),
    };
    let cache = match loaded.resident_before {
        Some(share) => format!(" ({:.0} % of the file was in memory before)", share * 100.0),
        None => String::new(),
    };
    let computed = generated.n_prompt - generated.n_reused;
    eprintln!();
    eprintln!("load      {:>9.1} ms{cache}", ms(loaded.load_ns));
    eprintln!(
        "tokenize  {:>9.1} ms  {} tokens",
        ms(generated.tokenize_ns),
        generated.n_prompt
    );
    eprintln!(
        "prefill   {:>9.1} ms  {}",
        ms(generated.prefill_ns),
        rate(computed, generated.prefill_ns)
    );
    eprintln!(
        "TTFT      {:>9.1} ms  tokenize, prefill and the first token, without the load",
        ms(generated.ttft_ns)
    );
    let decoded = generated.n_generated.saturating_sub(1);
    eprintln!(
        "decode    {:>9.1} ms  {}, {decoded} tokens after the first",
        ms(generated.decode_ns),
        rate(decoded, generated.decode_ns)
    );
}
