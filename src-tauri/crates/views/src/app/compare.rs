//! The view Compare.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use jiff::tz::TimeZone;
use twospeed_chart::{Figure, Frame, Measured, Overlays, Speeds};
use twospeed_estimate::Bytes;
use twospeed_history::{RunFilter, RunStatus, WholeRun};
use twospeed_library::display::{shown, shown_path};
use twospeed_workbench::{Bar, ReadSpeed, ResultId, SpeedsOptions, bars, measured, speeds_of};
use uuid::Uuid;

use super::explain::Expectations;
use super::{App, cautions, explain, export, figure, results, run_page};
use crate::Problem;
use crate::compare::*;
use crate::frame::AppEvent;

/// State of the comparing half: there is none, the history has it all.
#[derive(Default)]
pub(crate) struct Comparing {}

/// What is shown: the runs of the chosen results, and what is known of this machine.
pub(super) struct Chosen {
    runs: Vec<WholeRun>,
    ids: HashSet<ResultId>,
    read_speed: ReadSpeed,
    expectations: Expectations,
}

/// What is drawn beside what was measured.
#[derive(Debug, Clone, Copy)]
pub(super) struct Beside {
    pub(super) ceiling: bool,
    pub(super) expected: bool,
    pub(super) breakdown: bool,
}

/// A result of the figure.
pub(super) struct Entry<'a> {
    /// Its tests.
    pub(super) bar: Bar<'a>,
    /// What the figure calls it, to show.
    pub(super) name: String,
    /// Reading the prompt.
    pub(super) prefill: Option<Measured>,
    /// Writing the answer.
    pub(super) decode: Option<Measured>,
    /// What decode cannot exceed.
    pub(super) ceiling: Option<Ceiling>,
}

/// A decode ceiling with what it is made of.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Ceiling {
    /// Tokens per second.
    pub(super) speed: f64,
    /// Bytes of weights that one token reads.
    pub(super) weight_bytes: u64,
    /// Bytes per second.
    pub(super) read_bytes_s: u64,
}

impl Beside {
    /// What a figure on the screen was asked for.
    pub(super) fn of(request: &FigureRequest) -> Self {
        Self {
            ceiling: request.ceiling,
            expected: request.expected,
            breakdown: request.breakdown,
        }
    }

    /// What an exported one was.
    pub(super) fn of_export(request: &ExportRequest) -> Self {
        Self {
            ceiling: request.ceiling,
            expected: request.expected,
            breakdown: request.breakdown,
        }
    }
}

impl Chosen {
    /// The runs that a figure may look at.
    pub(super) fn runs(&self) -> &[WholeRun] {
        &self.runs
    }

    /// Whether it is one of the results that are shown.
    pub(super) fn is_chosen(&self, id: ResultId) -> bool {
        self.ids.contains(&id)
    }

    /// The bars of the results, in the figure's order.
    pub(super) fn bars(&self) -> Vec<Bar<'_>> {
        let mut bars = bars(&self.runs);
        bars.retain(|bar| bar.id().is_some_and(|id| self.ids.contains(&id)));
        bars
    }

    /// The figure's input.
    ///
    /// Errors: `nothing_to_draw`.
    pub(super) fn speeds(&self, bars: &[Bar<'_>], beside: Beside) -> Result<Speeds, Problem> {
        let options = SpeedsOptions {
            ceiling: &|machine, model| self.read_speed.decode_ceiling(machine, model),
            ceiling_source: &|models| self.read_speed.source(models),
            expected: &|source| self.expectations.drawn(source),
            expected_source: self.expectations.source(&zone()),
            overlays: Overlays {
                ceiling: beside.ceiling,
                expected: beside.expected,
                breakdown: beside.breakdown,
            },
            time_zone: zone(),
        };
        speeds_of(bars, &options).ok_or_else(|| nothing_to_draw(&twospeed_chart::Error::Empty))
    }

    /// What is expected of them.
    pub(super) fn expectations(&self) -> &Expectations {
        &self.expectations
    }

    /// The results with their numbers, in the order of the rows of `speeds`.
    pub(super) fn entries<'a>(&self, bars: &[Bar<'a>], speeds: &Speeds) -> Vec<Entry<'a>> {
        bars.iter()
            .zip(&speeds.rows)
            .map(|(bar, row)| Entry {
                bar: *bar,
                name: name(row),
                prefill: bar.prefill.and_then(measured),
                decode: bar.decode.and_then(measured),
                ceiling: self.ceiling(bar),
            })
            .collect()
    }

    fn ceiling(&self, bar: &Bar<'_>) -> Option<Ceiling> {
        let machine = &bar.run.run.machine;
        let weights = bar.model.weight_bytes_per_token?;
        let bandwidth = self.read_speed.for_working_set(Bytes(weights))?;
        Some(Ceiling {
            speed: self.read_speed.decode_ceiling(machine, bar.model)?,
            weight_bytes: weights,
            read_bytes_s: bandwidth.rate.0,
        })
    }

    /// The runs that are shown, each once, the oldest first.
    pub(super) fn run_ids(&self) -> Vec<Uuid> {
        let mut ids: Vec<_> = self.ids.iter().map(|id| id.run).collect();
        ids.retain(|id| self.runs.iter().any(|run| run.run.id == *id));
        ids.sort();
        ids.dedup();
        ids
    }
}

/// The zone of times in figures.
pub(super) fn zone() -> TimeZone {
    TimeZone::system()
}

/// `SmolLM2 135M Instruct Q4_1, 4 threads`, as far as the row says it.
fn name(row: &twospeed_chart::Row) -> String {
    let mut name = match &row.group {
        Some(group) => format!("{group} {}", row.label),
        None => row.label.clone(),
    };
    if let Some(detail) = &row.detail {
        name.push_str(", ");
        name.push_str(detail);
    }
    shown(&name)
}

pub(super) fn nothing_to_draw(error: &twospeed_chart::Error) -> Problem {
    Problem::new("nothing_to_draw", error)
}

/// Draws.
pub(super) fn draw(speeds: &Speeds, frame: &Frame) -> Result<Figure, Problem> {
    drawn(twospeed_chart::speeds(speeds, frame))
}

/// A figure, or why there is none.
pub(super) fn drawn(figure: Result<Figure, twospeed_chart::Error>) -> Result<Figure, Problem> {
    figure.map_err(|error| match error {
        twospeed_chart::Error::Empty => nothing_to_draw(&error),
        _ => Problem::new("not_drawn", error),
    })
}

pub(super) fn history_problem(error: twospeed_history::HistoryError) -> Problem {
    Problem::new(error.code(), shown(&error.to_string()))
}

/// The run that a page means.
fn run_id(text: &str) -> Result<Uuid, Problem> {
    text.parse().map_err(|_| unknown_run())
}

fn unknown_run() -> Problem {
    Problem::new("unknown_run", "This run is not in the history any more.")
}

impl App {
    /// The results that are still there of those that were chosen.
    ///
    /// With them come their runs; for quantizations all runs, since a quality may have been measured
    /// in any.
    pub(super) async fn chosen(
        &self,
        figure: FigureName,
        results: &[String],
    ) -> Result<Chosen, Problem> {
        let history = self.history().await?;
        // An id that no history gave stands for nothing.
        let ids: HashSet<ResultId> = results.iter().filter_map(|id| id.parse().ok()).collect();
        let mut of: Vec<Uuid> = ids.iter().map(|id| id.run).collect();
        of.sort();
        of.dedup();
        let filter = RunFilter {
            ids: (figure != FigureName::Quantization).then_some(of),
            ..RunFilter::default()
        };
        let mut chosen = Chosen {
            runs: history.whole_runs(&filter).await.map_err(history_problem)?,
            ids,
            read_speed: ReadSpeed::load(&history, &self.machine)
                .await
                .map_err(history_problem)?,
            expectations: Expectations::default(),
        };
        if figure == FigureName::Speeds || figure.is_expected() {
            self.find_moved(&mut chosen.runs);
            chosen.expectations = Expectations::of(self, &history, &chosen.bars()).await?;
        }
        Ok(chosen)
    }

    /// Says of models whose file is not where it was measured where it is now, as far as a file of
    /// the same content is in the list of models.
    fn find_moved(&self, runs: &mut [WholeRun]) {
        let entries = self.catalogue.entries();
        for test in runs.iter_mut().flat_map(|run| &mut run.tests) {
            let model = &mut test.record.model;
            if model.path.0.exists() {
                continue;
            }
            let is_it = |content: Option<&Option<String>>| {
                content.and_then(Option::as_ref) == Some(&model.fingerprint)
            };
            let moved = entries
                .iter()
                .find(|entry| !entry.is_unmade && is_it(entry.fingerprint.get()));
            if let Some(entry) = moved {
                model.path.0 = entry.item.path.clone();
            }
        }
    }

    /// Results to choose from.
    pub async fn results(&self) -> Result<ResultsView, Problem> {
        let Comparing {} = &self.comparing;
        let history = self.history().await?;
        let runs = history
            .whole_runs(&RunFilter::default())
            .await
            .map_err(history_problem)?;
        let mut view = results::results(&runs, &self.machine);
        view.calibrated = !history
            .calibrations(&self.machine.id)
            .await
            .map_err(history_problem)?
            .is_empty();
        Ok(view)
    }

    /// A figure with all that belongs to it.
    ///
    /// Errors: `nothing_to_draw` where none of the results is there.
    pub async fn figure(&self, request: FigureRequest) -> Result<FigureView, Problem> {
        let chosen = self.chosen(request.figure, &request.results).await?;
        let frame = Frame {
            width: request.width,
            height: request.height,
            scale: request.scale,
        };
        if let Some(kind) = figure::predicted_kind(request.figure) {
            return figure::predicted_view(&chosen, kind, &request, &frame, |subject| {
                self.save_as(subject, request.figure)
            });
        }
        if request.figure != FigureName::Speeds {
            return figure::view(&chosen, &request, &frame, |subject| {
                self.save_as(subject, request.figure)
            });
        }
        let bars = chosen.bars();
        let speeds = chosen.speeds(&bars, Beside::of(&request))?;
        let entries = chosen.entries(&bars, &speeds);
        let figure = draw(&speeds, &frame)?;
        let row_results: Vec<String> = bars
            .iter()
            .filter_map(Bar::id)
            .map(|id| id.to_string())
            .collect();
        let focus = request
            .focus
            .and_then(|focus| row_results.iter().position(|result| *result == focus))
            .unwrap_or(0);
        Ok(FigureView {
            svg: figure.for_screen(),
            width: figure.width(),
            height: figure.height(),
            statements: explain::statements(&entries, focus, &chosen.expectations),
            unexpected: bars
                .get(focus)
                .and_then(|bar| chosen.expectations.unexpected(bar.id()?)),
            cautions: cautions::cautions(&entries),
            has_ceiling: entries
                .iter()
                .any(|entry| entry.bar.decode.is_some() && entry.ceiling.is_some()),
            has_expected: chosen.expectations.any(),
            save_as: self.save_as(&speeds.subject, FigureName::Speeds),
            data: figure.data,
            row_results,
        })
    }

    /// Where a figure of a subject would go: whole path without the ending.
    fn save_as(&self, subject: &str, figure: FigureName) -> String {
        let folder = self.folder_to_save_in().unwrap_or_default();
        shown_path(&folder.join(export::file_name(subject, figure)))
    }

    /// The person's pictures or documents, or else their home.
    fn folder_to_save_in(&self) -> Option<PathBuf> {
        let home = self.environment.home.as_deref()?;
        let theirs = |folder: Option<PathBuf>, usual: &str| {
            // What the system says is of this process' home, which a test's is not.
            let folder = folder.filter(|folder| folder.starts_with(home) && folder != home);
            folder.unwrap_or_else(|| home.join(usual))
        };
        [
            theirs(dirs::picture_dir(), "Pictures"),
            theirs(dirs::document_dir(), "Documents"),
        ]
        .into_iter()
        .find(|folder| folder.is_dir())
        .or_else(|| Some(Path::to_path_buf(home)))
    }

    /// A run with everything.
    pub async fn run_page(&self, run: String) -> Result<RunPage, Problem> {
        let id = run_id(&run)?;
        let history = self.history().await?;
        let whole = history.run(id).await.map_err(history_problem)?;
        let whole = whole.filter(|whole| whole.run.deleted_at.is_none());
        Ok(run_page::run_page(&whole.ok_or_else(unknown_run)?))
    }

    /// Deletes runs; can be undone.
    ///
    /// Errors: `run_goes_on` for one that is being measured.
    pub async fn delete_runs(&self, runs: Vec<String>) -> Result<(), Problem> {
        let ids = runs
            .iter()
            .map(|run| run_id(run))
            .collect::<Result<Vec<_>, _>>()?;
        let history = self.history().await?;
        let filter = RunFilter {
            ids: Some(ids.clone()),
            ..RunFilter::default()
        };
        let there = history.runs(&filter).await.map_err(history_problem)?;
        if there
            .iter()
            .any(|overview| overview.run.status == RunStatus::Running)
        {
            return Err(Problem::new(
                "run_goes_on",
                "This run is being measured: stop it before you delete it.",
            ));
        }
        history
            .delete_runs(&ids, Timestamp::now())
            .await
            .map_err(history_problem)?;
        self.tell(AppEvent::ResultsChanged);
        Ok(())
    }

    /// Undoes deleting.
    pub async fn restore_runs(&self, runs: Vec<String>) -> Result<(), Problem> {
        let ids = runs
            .iter()
            .map(|run| run_id(run))
            .collect::<Result<Vec<_>, _>>()?;
        let history = self.history().await?;
        history.restore_runs(&ids).await.map_err(history_problem)?;
        self.tell(AppEvent::ResultsChanged);
        Ok(())
    }

    /// Lets a result that cannot be right stand in figures all the same, or takes that back.
    pub async fn allow_test(&self, test: String, allowed: bool) -> Result<(), Problem> {
        let id: Uuid = test.parse().map_err(|_| unknown_run())?;
        let history = self.history().await?;
        let at = allowed.then(Timestamp::now);
        history.allow(&[id], at).await.map_err(history_problem)?;
        self.tell(AppEvent::ResultsChanged);
        Ok(())
    }

    /// Sets the note on a run.
    pub async fn set_note(&self, run: String, note: String) -> Result<(), Problem> {
        let id = run_id(&run)?;
        let history = self.history().await?;
        history.set_note(id, &note).await.map_err(history_problem)?;
        self.tell(AppEvent::ResultsChanged);
        Ok(())
    }
}
