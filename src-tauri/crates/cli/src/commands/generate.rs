//! `twospeed generate`: one prompt answered, each part timed.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use twospeed_engine::process::WorkerProcess;
use twospeed_engine::protocol::{
    Event, Generate, Generated, Hello, Load, Loaded, PageCache, Request,
};
use twospeed_engine::settings::ModelPath;
use twospeed_engine::{Incoming, Session, Settings, WorkerEnd};
use twospeed_measure::{Variants, Verdict, platform};
use twospeed_workbench::{Subject, Unsaved, hold_lease, lease_place, waiting_sentence};

use crate::context::Context;
use crate::interrupt::Interrupts;
use crate::say::say;
use crate::{Failure, print};

/// Arguments of `generate`.
#[derive(Debug, Args)]
pub struct GenerateArgs {
    /// Model file, or "builtin" for the built-in model (its text is noise)
    #[arg(short, long, value_name = "FILE")]
    model: PathBuf,
    /// The prompt
    #[arg(short, long, value_name = "TEXT", allow_hyphen_values = true)]
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

/// Above this share of the file in memory a load is not cold.
const WARM: f32 = 0.05;

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
        say(waiting_sentence(holder.as_ref()));
    })
    .await
    .map_err(Failure::of)?;
    let recorder = Unsaved::new(history.as_ref());
    let machine = platform::machine();
    let mut variants = Variants::new(&recorder, &machine);
    let answer = loop {
        let session = variants.start(&engine, None).await.map_err(Failure::of)?;
        let hello = session.hello().clone();
        let mut attempt = Attempt {
            session,
            args,
            subject,
            text: String::new(),
        };
        match attempt.answer().await {
            Ok((loaded, generated)) => {
                attempt.session.stop().await;
                break Answer {
                    text: attempt.text,
                    hello,
                    loaded,
                    generated,
                };
            }
            Err(Trouble::Failed(failure)) => return Err(failure),
            Err(Trouble::Died(end)) => {
                let sentence = end.sentence(Some(&subject.measured.name));
                let verdict = variants.judge(&hello, &end).await.map_err(Failure::of)?;
                // What stands on the screen cannot be taken back for another try.
                if verdict != Verdict::TryNextVariant || !attempt.text.is_empty() {
                    return Err(Failure::Failed(sentence));
                }
                say(sentence);
            }
        }
    };
    answer.print(args)
}

/// One worker's try at the answer.
struct Attempt<'a> {
    session: Session,
    args: &'a GenerateArgs,
    subject: &'a Subject,
    text: String,
}

/// Why there is no answer.
enum Trouble {
    Failed(Failure),
    Died(WorkerEnd),
}

impl From<Failure> for Trouble {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

fn cancelled() -> Trouble {
    Trouble::Failed(Failure::Failed("Cancelled.".into()))
}

impl Attempt<'_> {
    async fn answer(&mut self) -> Result<(Loaded, Generated), Trouble> {
        let settings = Settings {
            n_threads: self.args.threads.unwrap_or_else(platform::default_threads),
            n_outputs: 1,
            ..Settings::default()
        };
        let loaded = self.load(&settings).await?;
        let generated = self.generate(settings).await?;
        Ok((loaded, generated))
    }

    async fn load(&mut self, settings: &Settings) -> Result<Loaded, Trouble> {
        let load = Request::Load(Load {
            model: ModelPath(self.subject.header.path.clone()),
            settings: settings.clone(),
            page_cache: if self.args.cold {
                PageCache::Drop
            } else {
                PageCache::AsIs
            },
        });
        self.session.send(load).map_err(Failure::of)?;
        loop {
            match self.next().await? {
                Event::Loaded(loaded) => return Ok(loaded),
                Event::Cancelled => return Err(cancelled()),
                _ => {}
            }
        }
    }

    async fn generate(&mut self, settings: Settings) -> Result<Generated, Trouble> {
        let request = Request::Generate(Generate {
            prompt: self.args.prompt.clone(),
            n_predict: self.args.n_predict,
            n_ctx: self.args.ctx_size,
            settings,
            reuse_prefix: false,
            temperature: self.args.temperature,
            seed: self.args.seed,
            ignore_eos: false,
        });
        let mut interrupts = Interrupts::new().map_err(Failure::of)?;
        self.session.send(request).map_err(Failure::of)?;
        loop {
            let event = tokio::select! {
                event = self.next() => event?,
                () = interrupts.next() => {
                    self.session.cancel();
                    continue;
                }
            };
            match event {
                Event::Token(token) => {
                    if !self.args.json {
                        print(token.text.as_bytes())?;
                    }
                    self.text.push_str(&token.text);
                }
                Event::Generated(generated) => return Ok(generated),
                Event::Cancelled => return Err(cancelled()),
                _ => {}
            }
        }
    }

    /// The next event; a failure is a sentence.
    async fn next(&mut self) -> Result<Event, Trouble> {
        match self.session.next().await {
            Incoming::Event(Event::Failed(failure)) => Err(Failure::Failed(failure.message).into()),
            Incoming::Event(event) => Ok(event),
            Incoming::Ended(end) => Err(Trouble::Died(end)),
        }
    }
}

/// `1 token`, `5 tokens`.
fn tokens(count: u32) -> String {
    match count {
        1 => "1 token".to_owned(),
        count => format!("{count} tokens"),
    }
}

/// An answer with its times.
struct Answer {
    text: String,
    hello: Hello,
    loaded: Loaded,
    generated: Generated,
}

impl Answer {
    fn print(&self, args: &GenerateArgs) -> Result<(), Failure> {
        if args.json {
            let all = json!({
                "text": self.text,
                "variant": self.hello.variant.name,
                "loaded": self.loaded,
                "generated": self.generated,
            });
            return print(format!("{all:#}\n").as_bytes());
        }
        print(b"\n")?;
        self.say_times(args.cold);
        Ok(())
    }

    fn say_times(&self, cold: bool) {
        let (loaded, generated) = (&self.loaded, &self.generated);
        let ms = |ns: u64| ns as f64 / 1e6;
        let rate = |tokens: u32, ns: u64| match twospeed_measure::stats::tokens_per_second(
            tokens.into(),
            ns,
        ) {
            Some(rate) => format!("{rate:.1} tok/s"),
            None => "not measured".to_owned(),
        };
        let part = |name: &str, ns: u64, what: String| {
            say(format!("{name:<9} {:>9.1} ms  {what}", ms(ns)));
        };
        let cache = match loaded.resident_before {
            Some(share) if cold && share > WARM => format!(
                "not a cold load: another program keeps {:.0} % of the file in memory",
                share * 100.0
            ),
            Some(share) => format!("{:.0} % of the file was in memory before", share * 100.0),
            None => String::new(),
        };
        say("");
        part("load", loaded.load_ns, cache);
        part(
            "tokenize",
            generated.tokenize_ns,
            tokens(generated.n_prompt),
        );
        let computed = generated.n_prompt.saturating_sub(generated.n_reused);
        part(
            "prefill",
            generated.prefill_ns,
            rate(computed, generated.prefill_ns),
        );
        part(
            "TTFT",
            generated.ttft_ns,
            "tokenize, prefill and the first token, without the load".to_owned(),
        );
        let decoded = generated.n_generated.saturating_sub(1);
        part(
            "decode",
            generated.decode_ns,
            format!(
                "{}, {} after the first",
                rate(decoded, generated.decode_ns),
                tokens(decoded)
            ),
        );
        say(format!(
            "engine    llama.cpp build {}, CPU variant {}",
            self.hello.engine.build_number, self.hello.variant.name
        ));
    }
}
