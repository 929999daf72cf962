//! What is asked of the engine for a test.

use twospeed_engine::protocol::{Measure, Quality, Request, Serve, ServeAsk, Users};

use crate::kind::Kind;
use crate::plan::{Plan, PlannedTest};

/// The request for so many repetitions of a test.
pub(super) fn request(plan: &Plan, test: &PlannedTest, repetitions: u32, warmup: bool) -> Request {
    let spec = test.spec;
    let settings = test.settings.clone();
    let serve = |changed: &[u32]| Serve {
        n_prompt: spec.n_prompt,
        n_gen: spec.n_gen,
        requests: changed
            .iter()
            .map(|&changed| ServeAsk { changed })
            .collect(),
        settings: test.settings.clone(),
        repetitions,
        warmup,
    };
    match &test.kind {
        Kind::Speed => Request::Measure(Measure {
            spec,
            settings,
            repetitions,
            warmup,
            seed: plan.seed,
        }),
        Kind::FirstToken { .. } => Request::Serve(serve(&[0])),
        // Cold, again, and with another tail.
        Kind::PrefixCache { changed } => Request::Serve(serve(&[0, 0, *changed])),
        Kind::Users {
            users,
            split_kv,
            shared_prompt,
        } => Request::Users(Users {
            users: *users,
            n_prompt: spec.n_prompt,
            n_gen: spec.n_gen,
            split_kv: *split_kv,
            shared_prompt: *shared_prompt,
            settings,
            repetitions,
            warmup,
            seed: plan.seed,
        }),
        Kind::Quality { n_ctx, text, base } => Request::Quality(Quality {
            n_ctx: *n_ctx,
            chunks: spec.n_prompt / n_ctx.max(&1),
            text: text.clone(),
            base: base.as_ref().map(|base| base.path.clone()),
            settings,
        }),
    }
}
