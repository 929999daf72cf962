//! A figure other than speeds: its results, its picture, what is said about it.

use twospeed_chart::Frame;
use twospeed_history::WholeRun;
use twospeed_library::display::shown;
use twospeed_workbench::{FigureInput, FigureKind, Source, figures};

use super::cautions::{Named, cautions_of};
use super::compare::{Chosen, drawn, nothing_to_draw, zone};
use super::explain;
use crate::Problem;
use crate::compare::*;

/// The figure that a name stands for.
pub(super) fn kind(name: FigureName) -> FigureKind {
    match name {
        FigureName::Speeds => FigureKind::Speeds,
        FigureName::Context => FigureKind::Context,
        FigureName::Users => FigureKind::Users,
        FigureName::FirstToken => FigureKind::FirstToken,
        FigureName::Quantization => FigureKind::Quantization,
        FigureName::Sustained => FigureKind::Sustained,
    }
}

impl Chosen {
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
        has_ceiling: false,
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
