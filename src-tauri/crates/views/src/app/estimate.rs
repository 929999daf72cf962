//! What a model takes here and how fast it is expected to be: one answer for every screen.
//!
//! The closed forms answer at once, from headers that were read before; what the engine would
//! allocate is asked once for each model and choice of settings, and kept.

mod header;
mod show;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use twospeed_engine::Start;
use twospeed_estimate::{
    Allocation, Bytes, ContextSettings, Corrections, FlashAttention, KvType, Question, Shape,
    estimate, would_fit,
};
use twospeed_gguf::Model;
use twospeed_library::ModelHeader;
use twospeed_library::display::shown;
use twospeed_workbench::{Foreseer, Unforeseen, foresee_context};

use super::App;
use super::catalogue::{CONTEXT, Entry};
use super::folders::on_a_thread;
use super::measured::Known;
use crate::Problem;
use crate::desk::locked;
use crate::estimate::*;
use crate::frame::AppEvent;
use crate::models::ModelRow;

pub(super) use self::header::Header;

/// Most tokens of context that can be asked about: as many as the engine's own counts allow.
const MOST_CONTEXT: u32 = i32::MAX as u32;
/// Most people at once: as many sequences as the engine keeps apart.
const MOST_USERS: u32 = 256;
/// Tokens of the prompt and of the answer that speeds are told for.
pub(super) const PROMPT: u32 = 512;
pub(super) const ANSWER: u32 = 128;
/// Tokens whose logits are kept: one, as where a text is written.
const OUTPUTS: u64 = 1;

/// The engine's worker is kept so long for the next question.
const KEPT_FOR: Duration = Duration::from_secs(20);
/// Answers of the engine that are kept; then all are forgotten at once.
const MOST_ANSWERS: usize = 4096;

/// What was looked at, worked out and asked.
#[derive(Default)]
pub(crate) struct Estimating {
    /// Headers that are not in the list of models, by id.
    looked: Mutex<BTreeMap<String, Header>>,
    /// Headers from elsewhere with their bytes, by id.
    pub(super) headers: Mutex<BTreeMap<String, Arc<ModelHeader>>>,
    /// The header that was worked out last of a quantization that is not made yet.
    worked_out: Mutex<Option<(String, Arc<Model>)>>,
    /// What the engine said, by header and settings.
    engine_said: Mutex<HashMap<(String, EstimateAt), EngineSaid>>,
    /// Asks the engine, one question after the other.
    foreseer: tokio::sync::Mutex<Option<Foreseer>>,
    /// Questions so far: the worker ends when there are no more of them.
    asked: Mutex<u64>,
    /// What the list of models asks the engine in the background.
    asking_for_the_list: Mutex<bool>,
    /// What twins ran at, by model.
    pub(super) twins: Mutex<BTreeMap<String, TwinView>>,
}

/// The engine's answer to one choice of settings.
#[derive(Debug, Clone)]
enum EngineSaid {
    /// It would allocate this.
    Allocates(Allocation),
    /// It refuses, in one sentence.
    Refuses(String),
}

/// The speeds of a row, worked out once for each basis.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct RowExpected {
    /// Of reading 512 tokens.
    pub(super) prefill: Option<Predicted>,
    /// Of writing 128.
    pub(super) decode: Option<Predicted>,
}

impl App {
    /// What a model takes with these settings and how fast it is expected to be.
    ///
    /// Errors: `row_unknown`; `header_unknown` for what can be downloaded and was not looked at;
    /// `settings_impossible` with a sentence.
    pub async fn estimate(
        self: &Arc<Self>,
        request: EstimateRequest,
    ) -> Result<EstimateView, Problem> {
        let at = settings_of(&request.at)?;
        let app = self.clone();
        let of = request.of.clone();
        let header = on_a_thread(move || app.header(&of)).await?;
        let mut said = self.said_of(&header, &request.at);
        if said.is_none() && request.exact {
            said = self.ask_engine(&header, &request.at, &at).await;
        }
        let app = self.clone();
        on_a_thread(move || Ok(app.estimated(request, &header, at, said))).await
    }

    fn estimated(
        &self,
        request: EstimateRequest,
        header: &Header,
        context: ContextSettings,
        said: Option<EngineSaid>,
    ) -> EstimateView {
        let known = self.known();
        let allocation = match &said {
            Some(EngineSaid::Allocates(allocation)) => Some(*allocation),
            _ => None,
        };
        let asked = |depth: u32| {
            let question = Question {
                prompt: PROMPT.into(),
                generate: ANSWER.into(),
                depth: depth.into(),
                context,
                outputs: OUTPUTS,
                available: self.free_memory().map(Bytes),
                allocation,
                ..Question::default()
            };
            let question = known.grounds.ask(header.model(), question);
            estimate(header.model(), &question)
        };
        let empty = asked(0);
        let room = request.at.context / request.at.users;
        let deep = room.saturating_sub(PROMPT);
        let full = (deep > 0).then(|| (deep, asked(deep)));
        let shape = Shape::from_model(header.model()).ok();
        let mut view = show::view(request, &empty, full.as_ref(), shape.as_ref(), &context);
        if let Some(EngineSaid::Refuses(sentence)) = said {
            view.refused.get_or_insert(sentence);
        }
        match known.grounds.calibration() {
            Ok(calibration) => view.basis.calibrated = Some(show::calibrated_at(calibration)),
            Err(why) => view.basis.why_not = Some(why.to_string()),
        }
        view.twin = locked(&self.estimating.twins).get(&view.of).cloned();
        if view.memory.fits == Some(false) {
            view.memory.instead = self.instead(&view, shape.as_ref(), &context);
        }
        view
    }

    /// What a row takes by the engine's word at the context of the list, where it was asked.
    pub(super) fn engines_total(&self, entry: &Entry) -> Option<u64> {
        let key = (header::key(&entry.id, entry.item.model()?), usual());
        match locked(&self.estimating.engine_said).get(&key)? {
            EngineSaid::Allocates(all) => {
                let parts = [all.weights, all.kv, all.state, all.compute, all.output];
                Some(parts.into_iter().sum::<Bytes>().0)
            }
            EngineSaid::Refuses(_) => None,
        }
    }

    /// What would fit instead: a change of one thing each.
    fn instead(
        &self,
        view: &EstimateView,
        shape: Option<&Shape>,
        context: &ContextSettings,
    ) -> Vec<Instead> {
        let mut instead = Vec::new();
        let Some(free) = view.memory.free_bytes else {
            return instead;
        };
        let beside = [view.memory.weights_bytes, view.memory.compute_bytes];
        let beside = beside.into_iter().flatten().sum::<u64>();
        if let Some((shape, room)) = shape.zip(free.checked_sub(beside))
            && let Ok(ways) = would_fit(shape, context, Bytes(room))
        {
            instead.extend(show::instead(&ways));
        }
        let list = self.view(Some(free));
        let group = list
            .groups
            .iter()
            .find(|group| group.rows.iter().any(|row| row.id == view.of));
        let fitting = group
            .into_iter()
            .flat_map(|group| &group.rows)
            .filter(|row| row.id != view.of && row.memory_bytes.is_some_and(|bytes| bytes <= free));
        // The least is lost with the most bits.
        let best = fitting.max_by(|a, b| {
            let bits = |row: &ModelRow| row.bits_per_weight.unwrap_or(0.0);
            bits(a).total_cmp(&bits(b))
        });
        instead.extend(best.map(|row| Instead::Quantization {
            row: row.id.clone(),
            quantization: row.quantization.clone(),
            bytes: row.memory_bytes.unwrap_or_default(),
        }));
        instead
    }

    /// What the engine said before of these settings.
    fn said_of(&self, header: &Header, at: &EstimateAt) -> Option<EngineSaid> {
        let key = (header.key(), at.clone());
        locked(&self.estimating.engine_said).get(&key).cloned()
    }

    /// What the engine would allocate; `None` where it cannot be asked: there is no such file, or
    /// something is being measured.
    async fn ask_engine(
        self: &Arc<Self>,
        header: &Header,
        at: &EstimateAt,
        context: &ContextSettings,
    ) -> Option<EngineSaid> {
        let file = header.on_disk()?;
        let question = Question {
            context: *context,
            outputs: OUTPUTS,
            ..Question::default()
        };
        let mut kept = self.estimating.foreseer.lock().await;
        // It may have been answered while this one waited.
        if let Some(said) = self.said_of(header, at) {
            return Some(said);
        }
        let foreseer = kept.get_or_insert_with(|| {
            Foreseer::new(Start::default()).yielding_to(self.environment.lease.clone())
        });
        let contexts = [foresee_context(&question)];
        let answers = foreseer.ask(self.engine.as_ref(), file, &contexts).await;
        drop(kept);
        self.end_worker_later();
        let said = match answers.into_iter().next()? {
            Ok(allocated) => EngineSaid::Allocates(allocated.sum()),
            Err(Unforeseen::Refused(sentence)) => EngineSaid::Refuses(shown(&sentence)),
            Err(Unforeseen::NoModel | Unforeseen::NotAsked(_)) => return None,
        };
        let mut all = locked(&self.estimating.engine_said);
        if all.len() >= MOST_ANSWERS {
            all.clear();
        }
        all.insert((header.key(), at.clone()), said.clone());
        Some(said)
    }

    /// Ends the worker that answers, unless another question comes soon.
    fn end_worker_later(self: &Arc<Self>) {
        let mine = {
            let mut asked = locked(&self.estimating.asked);
            *asked += 1;
            *asked
        };
        let app = Arc::downgrade(self);
        self.runtime.spawn(async move {
            tokio::time::sleep(KEPT_FOR).await;
            let Some(app) = app.upgrade() else { return };
            let mut kept = app.estimating.foreseer.lock().await;
            if *locked(&app.estimating.asked) == mine
                && let Some(foreseer) = kept.take()
            {
                foreseer.close().await;
            }
        });
    }

    /// Asks the engine what the models of the list take, in the background, one after the other; the
    /// page hears of it when all is known. Does nothing while it is at it or a run goes on.
    pub(super) fn ask_for_the_list(self: &Arc<Self>) {
        if std::mem::replace(&mut *locked(&self.estimating.asking_for_the_list), true) {
            return;
        }
        let app = self.clone();
        self.runtime.spawn(async move {
            let mut asked: HashSet<String> = HashSet::new();
            let mut is_new = false;
            let at = usual();
            loop {
                let next = app.catalogue.entries().into_iter().find(|entry| {
                    let is_model = entry
                        .item
                        .model()
                        .is_some_and(|model| model.kind.is_model());
                    let is_there = is_model && entry.hindrance.is_none() && !entry.is_unmade;
                    let header = Header::Listed(entry.clone());
                    is_there && !asked.contains(&entry.id) && app.said_of(&header, &at).is_none()
                });
                let Some(entry) = next.filter(|_| !app.is_measuring()) else {
                    break;
                };
                asked.insert(entry.id.clone());
                if let Ok(context) = settings_of(&at) {
                    let header = Header::Listed(entry);
                    is_new |= app.ask_engine(&header, &at, &context).await.is_some();
                }
            }
            *locked(&app.estimating.asking_for_the_list) = false;
            if is_new {
                app.tell(AppEvent::ModelsChanged);
            }
        });
    }
}

impl Known {
    /// What expected speeds of a model rest on: the calibration's id, and what own runs teach.
    pub(super) fn resting(&self, model: &Model) -> Option<(String, Corrections)> {
        let calibration = self.grounds.calibration().ok()?;
        let asked = self.grounds.ask(model, in_the_list());
        Some((calibration.id.clone(), asked.corrections))
    }

    /// The speeds that are expected of a model in the list; nothing without a calibration.
    pub(super) fn expected(&self, model: &Model) -> RowExpected {
        let question = self.grounds.ask(model, in_the_list());
        if question.calibration.is_none() {
            return RowExpected::default();
        }
        let said = estimate(model, &question);
        RowExpected {
            prefill: show::predicted_prefill(&said),
            decode: show::predicted_decode(&said),
        }
    }
}

/// The question of the list of models.
fn in_the_list() -> Question {
    Question {
        prompt: PROMPT.into(),
        generate: ANSWER.into(),
        context: ContextSettings {
            context: CONTEXT.into(),
            ..ContextSettings::default()
        },
        outputs: OUTPUTS,
        ..Question::default()
    }
}

/// The settings that the list of models is about.
fn usual() -> EstimateAt {
    EstimateAt {
        context: CONTEXT,
        users: 1,
        cache: "f16".to_owned(),
        flash_attention: "auto".to_owned(),
    }
}

/// The estimator's words for what the page asks.
///
/// Errors: `settings_impossible`, a sentence.
fn settings_of(at: &EstimateAt) -> Result<ContextSettings, Problem> {
    let refuse = |sentence: String| Err(Problem::new("settings_impossible", sentence));
    if !(1..=MOST_USERS).contains(&at.users) {
        return refuse(format!(
            "{} users cannot be served side by side: take 1 to {MOST_USERS}.",
            at.users
        ));
    }
    if !(1..=MOST_CONTEXT).contains(&at.context) {
        return refuse(format!(
            "A context of {} tokens is none: take 1 to {MOST_CONTEXT}.",
            at.context
        ));
    }
    let cache: KvType = match at.cache.parse() {
        Ok(cache) => cache,
        Err(_) => {
            return refuse(format!(
                "{} is no type of the cache: take f16, q8_0 or q4_0.",
                shown(&at.cache)
            ));
        }
    };
    let flash_attention = match at.flash_attention.as_str() {
        "auto" => FlashAttention::Auto,
        "on" => FlashAttention::On,
        "off" => FlashAttention::Off,
        other => {
            return refuse(format!(
                "Flash attention is auto, on or off, and not {}.",
                shown(other)
            ));
        }
    };
    Ok(ContextSettings {
        context: at.context.into(),
        sequences: at.users.into(),
        type_k: cache,
        type_v: cache,
        flash_attention,
        ..ContextSettings::default()
    })
}
