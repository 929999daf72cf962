//! "What would this run at here?": headers that a person asks about, and twins of their models.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use twospeed_engine::Settings;
use twospeed_estimate::TwinPrediction;
use twospeed_library::ModelHeader;
use twospeed_library::display::{shortened, shown, shown_path};
use twospeed_library::download::{GoOn, Hub, OFFER, Place, RemoteError, Wanted, remote_header};
use twospeed_library::names::without_quantization;
use twospeed_measure::Stop;
use twospeed_workbench::twin::{TwinOutcome, TwinProgress, TwinRequest, predict};
use twospeed_workbench::{measuring_now, waiting_sentence};

use super::App;
use super::catalogue::id_of;
use super::estimate::{ANSWER, Header, PROMPT};
use super::folders::on_a_thread;
use super::jobs::cancelled;
use super::models::offer_id;
use super::typed::typed_path;
use crate::Problem;
use crate::desk::locked;
use crate::estimate::{Looked, Predicted, TwinView};

/// Pause before the second try of a server.
const PAUSE: Duration = Duration::from_millis(500);

/// Timed repetitions of a twin: what differs between two of them is carried over to all layers.
const REPETITIONS: u32 = 3;

impl App {
    /// What a job about this is called.
    pub(super) async fn title_of(self: &Arc<Self>, of: &str) -> Result<String, Problem> {
        let (app, of) = (self.clone(), of.to_owned());
        on_a_thread(move || {
            if let Some(known) = app.known_row(&of) {
                return Ok(format!("{} {}", known.name, known.quantization));
            }
            app.header(&of).map(|header| header.title())
        })
        .await
    }

    /// Reads the header of what a person names: a file's path, an address, or a file of a repository.
    /// An address or a repository is asked over the network, since the person named it; a path never.
    ///
    /// Errors: a sentence for what cannot be read or is no model.
    pub async fn look(self: &Arc<Self>, source: String) -> Result<Looked, Problem> {
        let text = source.trim().to_owned();
        let place = Place::named(&text).map_err(from_elsewhere)?;
        let app = self.clone();
        match place {
            Some(place) => {
                let id = format!("there:{text}");
                let asked = id.clone();
                let header =
                    on_a_thread(move || app.look_there(&asked, &place, &Stop::new())).await?;
                let fetched = header.bytes_read;
                let model = Arc::new(header.model.clone());
                let kept = Header::Nowhere(id.clone(), model);
                Ok(looked(
                    id,
                    &kept,
                    shortened(&shown(&text), 200),
                    Some(fetched),
                ))
            }
            None => {
                if text.parse::<Wanted>().is_ok() {
                    return Err(Problem::new(
                        "bad_address",
                        format!(
                            "{} is a repository: name one of its files or quantizations too, as in {}:Q4_K_M.",
                            shown(&text),
                            shown(&text)
                        ),
                    ));
                }
                on_a_thread(move || app.look_on_disk(&text)).await
            }
        }
    }

    /// The header of a file on this disk; blocks.
    fn look_on_disk(&self, typed: &str) -> Result<Looked, Problem> {
        let path = typed_path(typed, self.environment.home.as_deref())?;
        let id = id_of(&path);
        let listed = self.catalogue.entry(&id);
        let header = match listed.filter(|entry| entry.item.model().is_some()) {
            Some(entry) => Header::Listed(entry),
            None => {
                let model = twospeed_gguf::read(&path).map_err(unusable)?;
                self.keep_header(&id, Header::OnDisk(id.clone(), Arc::new(model)))?
            }
        };
        Ok(looked(id, &header, shown_path(&path), None))
    }

    /// Reads the header of a file elsewhere and keeps it; blocks.
    fn look_there(
        &self,
        id: &str,
        place: &Place,
        stop: &Stop,
    ) -> Result<Arc<ModelHeader>, Problem> {
        if let Some(holder) = measuring_now(&self.environment.lease) {
            let said = waiting_sentence(Some(&holder));
            let who = said.split(": this one").next().unwrap_or(&said);
            return Err(Problem::new(
                "busy",
                format!("{who}: ask when it has ended."),
            ));
        }
        let hub = Hub::from_environment(|name| (self.environment.variable)(name))
            .map_err(|error| Problem::new(error.code(), &error))?;
        let go_on = || match stop.is_asked() {
            true => GoOn::No,
            false => GoOn::Yes,
        };
        let header = remote_header(&hub, place, PAUSE, &go_on).map_err(from_elsewhere)?;
        let header = Arc::new(header);
        let model = Arc::new(header.model.clone());
        self.keep_header(id, Header::Nowhere(id.to_owned(), model))?;
        locked(&self.estimating.headers).insert(id.to_owned(), header.clone());
        Ok(header)
    }

    /// The header of a row or of what was looked at, with its bytes; blocks. What can be downloaded
    /// is looked at first.
    fn whole_header(&self, of: &str, stop: &Stop) -> Result<Arc<ModelHeader>, Problem> {
        if let Some(header) = locked(&self.estimating.headers).get(of) {
            return Ok(header.clone());
        }
        if of == offer_id() {
            let named = format!("{}:{}", OFFER.repo, OFFER.file);
            if let Some(place) = Place::named(&named).map_err(from_elsewhere)? {
                return self.look_there(of, &place, stop);
            }
        }
        let header = self.header(of)?;
        let Some(model) = header.on_disk() else {
            return Err(Problem::new(
                "row_not_there",
                format!(
                    "{} is not there yet: make it, then measure it.",
                    header.title()
                ),
            ));
        };
        let header = ModelHeader::open(&model.path).map_err(unusable)?;
        Ok(Arc::new(header))
    }

    /// Tries a twin of the model that a job is about, and keeps what it ran at.
    pub(super) async fn try_twin(
        self: &Arc<Self>,
        id: &str,
        stop: &Stop,
    ) -> Result<String, Problem> {
        let of = self.row_of_job(id).ok_or_else(cancelled)?;
        let (app, asked, stopped) = (self.clone(), of.clone(), stop.clone());
        let header = on_a_thread(move || app.whole_header(&asked, &stopped)).await?;
        let history = self.history().await.ok();
        let request = TwinRequest {
            header: &header,
            folder: &self.data_folder,
            prompt: PROMPT,
            generate: ANSWER,
            depth: 0,
            repetitions: REPETITIONS,
            settings: Settings {
                n_threads: self.threads(),
                ..Settings::default()
            },
            engine: self.engine.as_ref(),
            history: history.as_ref(),
            lease: &self.environment.lease,
            stop,
        };
        let mut told = |progress: TwinProgress| match progress {
            TwinProgress::Waiting(why) => self.wait_for(id, why),
            TwinProgress::Building { done, total } => {
                let fraction = done as f64 / total.max(1) as f64;
                self.progress(id, Some(fraction), Some((done, total)));
            }
            TwinProgress::Measuring { .. } => self.progress(id, None, None),
        };
        let outcome = predict(&request, &mut told).await?;
        locked(&self.estimating.twins).insert(of.clone(), view(&outcome));
        Ok(of)
    }
}

/// What came of a twin, as the page shows it.
fn view(outcome: &TwinOutcome) -> TwinView {
    let predicted = |speed: &TwinPrediction| Predicted {
        tok_s: speed.tokens_per_second,
        low: speed.low,
        high: speed.high,
    };
    let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let mut notes = Vec::new();
    if outcome.prefill.is_some() && outcome.measured_prompt < PROMPT {
        notes.push(format!(
            "Prefill was measured with {} tokens: more would take long.",
            outcome.measured_prompt
        ));
    }
    if outcome.experts {
        notes.push(
            "It chooses among experts: the twin's choose evenly, as trained ones about do.".into(),
        );
    }
    TwinView {
        prefill: outcome.prefill.as_ref().map(predicted),
        decode: outcome.decode.as_ref().map(predicted),
        layers: outcome
            .twins
            .iter()
            .map(|twin| count(twin.layers))
            .collect(),
        of_layers: count(outcome.layers),
        bytes: outcome.twins.iter().map(|twin| twin.bytes).collect(),
        seconds: outcome.seconds,
        at: Timestamp::now().to_string(),
        notes,
    }
}

fn unusable(error: twospeed_gguf::Error) -> Problem {
    Problem::new("file_unusable", shown(&error.to_string()))
}

fn from_elsewhere(error: RemoteError) -> Problem {
    Problem::new(error.code(), shown(&error.to_string()))
}

/// A header as the page shows what was looked at.
fn looked(id: String, header: &Header, from: String, fetched_bytes: Option<u64>) -> Looked {
    let model = header.model();
    let active = model.active_parameters;
    Looked {
        id,
        name: shown(&without_quantization(&model.name)),
        quantization: model
            .quantization
            .as_deref()
            .map_or_else(|| "unknown".to_owned(), shown),
        from,
        is_row: matches!(header, Header::Listed(_)),
        parameters: Some(model.parameters).filter(|parameters| *parameters > 0),
        active_parameters: active.filter(|active| *active < model.parameters),
        file_bytes: Some(model.bytes_expected.max(model.file_bytes)).filter(|bytes| *bytes > 0),
        fetched_bytes,
        layers: model.layers,
        context_length: model.context_length,
        notes: model
            .warnings
            .iter()
            .map(|warning| shown(&warning.to_string()))
            .collect(),
    }
}
