//! What explains a result of a figure other than speeds: three statements each, from the figure's
//! own numbers.

use twospeed_chart::{
    At, Context, FirstToken, Measured, Name, Part, QuantizationRow, Quantizations, Request,
    Sustained, SustainedSeries, Users, Wait, clearly, ends_of,
};
use twospeed_engine::protocol::{AgainstBase, Reading};
use twospeed_history::Test;
use twospeed_library::display::shown;
use twospeed_workbench::FigureInput;

use crate::compare::{Statement, WaitPart, WaitPartName};
use crate::measure::PhaseName;

/// The statements about the row that is explained.
pub(in crate::app) fn of_figure(
    input: &FigureInput,
    row: usize,
    quality: Option<&Test>,
) -> Vec<Statement> {
    match input {
        // What is said of single speeds takes more than the figure has.
        FigureInput::Speeds(_)
        | FigureInput::Roofline(_)
        | FigureInput::Breakdown(_)
        | FigureInput::Estimate(_) => Vec::new(),
        FigureInput::Context(input) => context(input, row),
        FigureInput::Users(input) => users(input, row),
        FigureInput::FirstToken(input) => first_token(input, row),
        FigureInput::Quantization(input) => quantization(input, row, quality),
        FigureInput::Sustained(input) => sustained(input, row),
    }
}

/// The measured points, in their order.
fn measured(points: &[At]) -> Vec<(f64, &Measured)> {
    let mut points: Vec<(f64, &Measured)> = points
        .iter()
        .filter_map(|point| Some((point.place, point.value.as_ref()?)))
        .filter(|(_, value)| value.mean.is_finite() && value.mean > 0.0)
        .collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    points
}

/// The first and the last point, where there are two.
fn ends(points: &[At]) -> Option<[(f64, &Measured); 2]> {
    let points = measured(points);
    match points[..] {
        [first, .., last] => Some([first, last]),
        _ => None,
    }
}

fn context(input: &Context, row: usize) -> Vec<Statement> {
    let Some(series) = input.series.get(row) else {
        return Vec::new();
    };
    let loss = |phase, points: &[At]| {
        let [(_, first), (depth, last)] = ends(points)?;
        Some(Statement::DepthLoss {
            phase,
            depth: depth as u32,
            first: first.mean,
            last: last.mean,
            lost: 1.0 - last.mean / first.mean,
            within_noise: clearly(first, last).is_none(),
        })
    };
    let cost = || {
        let [(from, first), (to, last)] = ends(&series.decode)?;
        let more_ms = 1e3 / last.mean - 1e3 / first.mean;
        clearly(first, last)?;
        (more_ms > 0.0).then(|| Statement::DepthCost {
            ms_per_thousand: more_ms / (to - from) * 1e3,
            token_ms: 1e3 / first.mean,
        })
    };
    let found = [
        loss(PhaseName::Decode, &series.decode),
        loss(PhaseName::Prefill, &series.prefill),
        cost(),
    ];
    found.into_iter().flatten().collect()
}

fn users(input: &Users, row: usize) -> Vec<Statement> {
    let Some(series) = input.series.get(row) else {
        return Vec::new();
    };
    let together = || {
        let [(fewest, before), (users, together)] = ends(&series.together)?;
        Some(Statement::UsersTogether {
            users: users as u32,
            fewest: fewest as u32,
            together: together.mean,
            before: before.mean,
            ratio: together.mean / before.mean,
        })
    };
    let each = || {
        let [(_, before), (users, each)] = ends(&series.each)?;
        Some(Statement::UsersEach {
            users: users as u32,
            each: each.mean,
            before: before.mean,
            share: each.mean / before.mean,
        })
    };
    let wait = || {
        let (users, worst) = measured(&series.worst_wait_ms).pop()?;
        let (_, median) = measured(&series.median_wait_ms).pop()?;
        Some(Statement::UsersWait {
            users: users as u32,
            median_ms: median.mean,
            worst_ms: worst.mean,
        })
    };
    [together(), each(), wait()].into_iter().flatten().collect()
}

/// The waits as the figure has them: those that load first.
fn in_rows(input: &FirstToken) -> Vec<&Wait> {
    let mut waits: Vec<&Wait> = input.waits.iter().collect();
    waits.sort_by_key(|wait| !wait.request.loads());
    waits
}

fn first_token(input: &FirstToken, row: usize) -> Vec<Statement> {
    let waits = in_rows(input);
    let Some(wait) = waits.get(row) else {
        return Vec::new();
    };
    let found = [
        parts(wait),
        reuse(input, &wait.name),
        cold_start(input, &wait.name),
    ];
    found.into_iter().flatten().collect()
}

/// The mean of the wait of a model for a request.
fn total<'a>(input: &'a FirstToken, name: &Name, request: Request) -> Option<(&'a Wait, f64)> {
    let of = |wait: &&Wait| wait.name == *name && wait.request == request;
    let wait = input.waits.iter().find(of)?;
    Some((wait, wait.total_ms.as_ref()?.mean))
}

fn parts(wait: &Wait) -> Option<Statement> {
    let name = |part: Part| match part {
        Part::Load => Some(WaitPartName::Load),
        Part::Context => Some(WaitPartName::Context),
        Part::Tokenize => Some(WaitPartName::Tokenize),
        Part::Prefill => Some(WaitPartName::Prefill),
        Part::FirstSample => Some(WaitPartName::FirstSample),
        Part::FirstDecode => None,
    };
    Some(Statement::WaitParts {
        total_ms: wait.total_ms.as_ref()?.mean,
        parts: wait
            .parts
            .iter()
            .filter_map(|(part, ms)| {
                Some(WaitPart {
                    part: name(*part)?,
                    ms: *ms,
                })
            })
            .collect(),
    })
}

fn reuse(input: &FirstToken, name: &Name) -> Option<Statement> {
    let (_, new_ms) = total(input, name, Request::New)?;
    let (again, again_ms) = total(input, name, Request::Repeated)?;
    Some(Statement::Reuse {
        reused: u32::try_from(again.reused_tokens).ok()?,
        prompt: u32::try_from(again.prompt_tokens).ok()?,
        new_ms,
        again_ms,
    })
}

fn cold_start(input: &FirstToken, name: &Name) -> Option<Statement> {
    let (_, cold_ms) = total(input, name, Request::Cold)?;
    let (_, warm_ms) = total(input, name, Request::Warm)?;
    Some(Statement::ColdStart { cold_ms, warm_ms })
}

fn quantization(input: &Quantizations, row: usize, quality: Option<&Test>) -> Vec<Statement> {
    let Some(this) = input.rows.get(row) else {
        return Vec::new();
    };
    let found = [
        quality_cost(input, this),
        quality
            .and_then(against_base)
            .map(|against| Statement::Divergence {
                nats: against.kl_mean,
                same_top: against.same_top,
            }),
    ];
    found.into_iter().flatten().collect()
}

/// Against the largest file of the same model.
fn quality_cost(input: &Quantizations, this: &QuantizationRow) -> Option<Statement> {
    let own = this.quality.as_ref()?;
    let (other, quality) = input
        .rows
        .iter()
        .filter(|row| row.group == this.group && row.file_bytes > this.file_bytes)
        .filter_map(|row| Some((row, row.quality.as_ref()?)))
        .max_by_key(|(row, _)| row.file_bytes)?;
    let decode = |row: &QuantizationRow| Some(row.decode.as_ref()?.mean);
    let ratio = decode(this)
        .zip(decode(other))
        .map(|(this, other)| this / other);
    Some(Statement::QualityCost {
        this: shown(&this.label),
        other: shown(&other.label),
        decode_ratio: ratio.filter(|ratio| ratio.is_finite() && *ratio > 0.0),
        perplexity_more: own.perplexity / quality.perplexity - 1.0,
        perplexity: own.perplexity,
    })
}

fn against_base(test: &Test) -> Option<AgainstBase> {
    test.samples
        .iter()
        .find_map(|record| match &record.sample.reading {
            Some(Reading::Quality(reading)) => reading.against_base,
            _ => None,
        })
}

fn sustained(input: &Sustained, row: usize) -> Vec<Statement> {
    let Some(series) = input.series.get(row) else {
        return Vec::new();
    };
    let held = |phase, course: &[(f64, f64)]| {
        let [first, last] = ends_of(&in_time(course))?;
        (first > 0.0).then(|| Statement::Held {
            phase,
            first,
            last,
            share: last / first,
            seconds: course.iter().map(|(at, _)| *at).fold(0.0, f64::max),
        })
    };
    let found = [
        held(PhaseName::Prefill, &series.prefill),
        held(PhaseName::Decode, &series.decode),
        machine(series),
    ];
    found.into_iter().flatten().collect()
}

/// Values in the order of their times.
fn in_time(course: &[(f64, f64)]) -> Vec<f64> {
    let mut course = course.to_vec();
    course.sort_by(|a, b| a.0.total_cmp(&b.0));
    course.into_iter().map(|(_, value)| value).collect()
}

fn machine(series: &SustainedSeries) -> Option<Statement> {
    let clock_ghz = ends_of(&in_time(&series.clock_ghz));
    let hottest_c = series
        .temperature_c
        .iter()
        .map(|(_, degrees)| *degrees)
        .max_by(f64::total_cmp);
    (clock_ghz.is_some() || hottest_c.is_some()).then_some(Statement::MachineCourse {
        clock_ghz,
        hottest_c,
    })
}

#[cfg(test)]
mod tests;
