//! A figure other than speeds: its results, its picture, what is said about it.

use twospeed_chart::Frame;
use twospeed_history::{Test, WholeRun};
use twospeed_library::display::shown;
use twospeed_workbench::figures::{PredictedKind, PredictedOptions};
use twospeed_workbench::{Bar, FigureInput, FigureKind, ResultId, Source, figures};

use super::cautions::{Named, cautions, cautions_of};
use super::compare::{Beside, Chosen, drawn, nothing_to_draw, zone};
use super::explain;
use crate::Problem;
use crate::compare::*;

/// The figure that a name stands for; those that are made of expectations show the results of
/// speeds.
pub(super) fn kind(name: FigureName) -> FigureKind {
    match name {
        FigureName::Speeds
        | FigureName::Roofline
        | FigureName::Breakdown
        | FigureName::Estimate => FigureKind::Speeds,
        FigureName::Context => FigureKind::Context,
        FigureName::Users => FigureKind::Users,
        FigureName::FirstToken => FigureKind::FirstToken,
        FigureName::Quantization => FigureKind::Quantization,
        FigureName::Sustained => FigureKind::Sustained,
    }
}

/// The figure of expectations that a name stands for.
pub(super) fn predicted_kind(name: FigureName) -> Option<PredictedKind> {
    match name {
        FigureName::Roofline => Some(PredictedKind::Roofline),
        FigureName::Breakdown => Some(PredictedKind::Breakdown),
        FigureName::Estimate => Some(PredictedKind::Estimate),
        _ => None,
    }
}

impl Chosen {
    /// The input of a figure that is made of expectations, and the result of each of its rows.
    ///
    /// Errors: `nothing_to_draw`.
    pub(super) fn predicted(
        &self,
        kind: PredictedKind,
        breakdown: bool,
    ) -> Result<(FigureInput, Vec<ResultId>), Problem> {
        let bars = self.bars();
        // A line of a roofline has the tests of several results: it stands for the chosen one.
        let result = |source: &Source<'_>| {
            let mut ids = bars.iter().filter_map(Bar::id);
            ids.find(|id| {
                let has = |test: &&Test| test.record.id == id.test;
                source.run.run.id == id.run && source.tests.iter().any(has)
            })
        };
        let (ids, sources): (Vec<ResultId>, Vec<Source<'_>>) =
            figures::predicted_series(kind, self.runs())
                .into_iter()
                .filter_map(|source| Some((result(&source)?, source)))
                .unzip();
        let expectations = self.expectations();
        let zone = zone();
        let options = PredictedOptions {
            calibration: expectations.calibration(),
            breakdown,
            time_zone: &zone,
        };
        let rows = expectations.rows(kind, sources);
        let input = figures::predicted(kind, &rows, options)
            .ok_or_else(|| nothing_to_draw(&twospeed_chart::Error::Empty))?;
        Ok((input, ids))
    }

    /// The chosen results of a figure, in its order.
    pub(super) fn sources(&self, name: FigureName) -> Vec<Source<'_>> {
        let mut sources = figures::series(kind(name), self.runs());
        sources.retain(|source| self.is_chosen(source.id()));
        sources
    }

    /// The input of a figure other than speeds.
    ///
    /// Errors: `nothing_to_draw`.
    pub(super) fn input(
        &self,
        name: FigureName,
        sources: &[Source<'_>],
    ) -> Result<FigureInput, Problem> {
        figures::figure(kind(name), sources, self.runs(), &zone())
            .ok_or_else(|| nothing_to_draw(&twospeed_chart::Error::Empty))
    }
}

/// The view of a figure that is made of expectations.
pub(super) fn predicted_view(
    chosen: &Chosen,
    kind: PredictedKind,
    request: &FigureRequest,
    frame: &Frame,
    save_as: impl Fn(&str) -> String,
) -> Result<FigureView, Problem> {
    let (input, ids) = chosen.predicted(kind, request.breakdown)?;
    let figure = drawn(input.draw(frame))?;
    let row_results: Vec<String> = ids.iter().map(ResultId::to_string).collect();
    let focus = request
        .focus
        .as_ref()
        .and_then(|focus| row_results.iter().position(|result| result == focus))
        .unwrap_or(0);
    // What is said of a result does not depend on the figure: in the order of its bars.
    let bars = chosen.bars();
    let speeds = chosen.speeds(&bars, Beside::of(request))?;
    let entries = chosen.entries(&bars, &speeds);
    let focused = ids.get(focus).copied();
    let of_bars = bars.iter().position(|bar| bar.id() == focused);
    Ok(FigureView {
        svg: figure.for_screen(),
        width: figure.width(),
        height: figure.height(),
        statements: of_bars.map_or_else(Vec::new, |focus| {
            explain::statements(&entries, focus, chosen.expectations())
        }),
        unexpected: focused.and_then(|id| chosen.expectations().unexpected(id)),
        cautions: cautions(&entries),
        has_ceiling: true,
        has_expected: chosen.expectations().any(),
        save_as: save_as(input.subject()),
        data: figure.data,
        row_results,
    })
}

/// The view of a figure other than speeds.
pub(super) fn view(
    chosen: &Chosen,
    request: &FigureRequest,
    frame: &Frame,
    save_as: impl Fn(&str) -> String,
) -> Result<FigureView, Problem> {
    let sources = chosen.sources(request.figure);
    let input = chosen.input(request.figure, &sources)?;
    let figure = drawn(input.draw(frame))?;
    let rows: Vec<&Source<'_>> = figures::row_sources(kind(request.figure), &sources)
        .into_iter()
        .map(|index| &sources[index])
        .collect();
    let row_results: Vec<String> = rows.iter().map(|source| source.id().to_string()).collect();
    let focus = request
        .focus
        .as_ref()
        .and_then(|focus| row_results.iter().position(|result| result == focus))
        .unwrap_or(0);
    Ok(FigureView {
        svg: figure.for_screen(),
        width: figure.width(),
        height: figure.height(),
        statements: statements(&input, focus, rows.get(focus).copied(), chosen.runs()),
        cautions: cautions_of(&named(&sources)),
        unexpected: None,
        has_ceiling: false,
        has_expected: false,
        save_as: save_as(input.subject()),
        data: figure.data,
        row_results,
    })
}

fn statements(
    input: &FigureInput,
    focus: usize,
    source: Option<&Source<'_>>,
    runs: &[WholeRun],
) -> Vec<Statement> {
    let quality =
        source.and_then(|source| figures::newest_quality(runs, &source.model().fingerprint));
    explain::of_figure(input, focus, quality)
}

/// Each result with a name that tells it from the others.
fn named<'a>(sources: &[Source<'a>]) -> Vec<Named<'a>> {
    let several = sources
        .iter()
        .any(|source| source.name() != sources[0].name());
    sources
        .iter()
        .map(|source| {
            let label = source.quantization();
            let name = match several {
                true => format!("{} {label}", source.name()),
                false => label,
            };
            (source.clone(), shown(&name))
        })
        .collect()
}
