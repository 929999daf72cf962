//! How long an operation takes: runs of a graph, and what they have in common.

use std::time::{Duration, Instant};

use super::cpu::Cpu;
use super::graph::{Graph, Work};
use crate::failure::Stopped;
use crate::wire;

/// What one operation took.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Timed {
    /// The median of the runs, in nanoseconds.
    pub ns: f64,
    /// The median of the distances from it.
    pub spread_ns: f64,
}

/// A graph is at least so long, where it may be: waking the threads and planning take microseconds
/// a graph, whatever is in it, and the engine pays them once a token. To measure them apart and take
/// them off would put their own noise on every short operation; in a long graph they do not show.
const LONG: Duration = Duration::from_millis(2);
/// Operations of a graph at most.
const MOST: usize = 4096;
/// Timed runs at least.
const FEWEST: usize = 3;

/// Runs in the time asked for, about: enough for a median.
const RUNS: u32 = 10;

/// Times one operation of `work`, for about `duration`.
pub fn time(
    cpu: &Cpu,
    work: &dyn Work,
    duration: Duration,
    request: u64,
) -> Result<Timed, Stopped> {
    let Tried { wanted, ran } = operations_of_a_run(cpu, work, duration, request)?;
    let mut first = 0;
    let mut graphs = Vec::new();
    for operations in shares(work.different(), wanted) {
        graphs.push(Graph::new(work, first, operations));
        first += operations;
    }
    if graphs[0].operations() > ran {
        // Brings the data into the caches it fits.
        run(cpu, work, &graphs[0], request)?;
    }
    let begun = Instant::now();
    let mut samples = Vec::new();
    for graph in graphs.iter().cycle().skip(1) {
        samples.push(run(cpu, work, graph, request)? / graph.operations() as f64);
        if samples.len() >= FEWEST && begun.elapsed() >= duration {
            break;
        }
    }
    Ok(Timed::of(&samples))
}

impl Timed {
    fn of(samples: &[f64]) -> Self {
        let ns = median(samples);
        let distances: Vec<f64> = samples.iter().map(|sample| (sample - ns).abs()).collect();
        Self {
            ns,
            spread_ns: median(&distances),
        }
    }
}

/// Nanoseconds of one run.
fn run(cpu: &Cpu, work: &dyn Work, graph: &Graph<'_>, request: u64) -> Result<f64, Stopped> {
    work.prepare_run();
    let start = Instant::now();
    cpu.compute(graph)?;
    let ns = start.elapsed().as_nanos() as f64;
    if wire::is_cancelled(request) {
        return Err(Stopped::Cancelled);
    }
    Ok(ns)
}

/// What was found out before the timed runs.
struct Tried {
    /// Operations of a run, so that it is long enough and there are enough of them.
    wanted: usize,
    /// Operations that ran, the first ones of all.
    ran: usize,
}

fn operations_of_a_run(
    cpu: &Cpu,
    work: &dyn Work,
    duration: Duration,
    request: u64,
) -> Result<Tried, Stopped> {
    let long = (duration / RUNS).max(LONG).as_nanos() as f64;
    let mut ran = 1;
    loop {
        let graph = Graph::new(work, 0, ran);
        let mut ns = run(cpu, work, &graph, request)?;
        if ns < long {
            // The first time it was slower than it is.
            ns = run(cpu, work, &graph, request)?;
        }
        let wanted = ((ran as f64 * long / ns) as usize).clamp(1, work.different().max(MOST));
        // A short graph says little of a long one.
        if ns * 2.0 >= long || wanted <= ran {
            return Ok(Tried { wanted, ran });
        }
        ran = wanted;
    }
}

/// How many operations each graph has: whole rounds through all different ones in a single graph, or
/// several graphs that share a round.
fn shares(different: usize, wanted: usize) -> Vec<usize> {
    if wanted >= different {
        return vec![wanted - wanted % different];
    }
    let graphs = different.div_ceil(wanted);
    (0..graphs)
        .map(|graph| different * (graph + 1) / graphs - different * graph / graphs)
        .collect()
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    if sorted.len().is_multiple_of(2) {
        (sorted[middle - 1] + sorted[middle]) / 2.0
    } else {
        sorted[middle]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_graph_goes_round_as_often_as_it_has_room_for() {
        assert_eq!(shares(3, 10), [9]);
        assert_eq!(shares(3, 3), [3]);
        assert_eq!(shares(1, 1), [1]);
    }

    #[test]
    fn graphs_share_a_round_evenly_where_it_is_long() {
        assert_eq!(shares(10, 4), [3, 3, 4]);
        assert_eq!(shares(5, 1), [1; 5]);
        assert_eq!(shares(7, 6), [3, 4]);
    }

    #[test]
    fn the_spread_is_the_median_of_the_distances() {
        // Sorted: 1 2 4 6 100; distances from 4: 3 2 0 2 96; sorted: 0 2 2 3 96.
        let timed = Timed::of(&[6.0, 1.0, 100.0, 2.0, 4.0]);
        assert_eq!((timed.ns, timed.spread_ns), (4.0, 2.0));
        // The middle of 1 3 5 7 is 4; distances 3 1 1 3.
        let timed = Timed::of(&[1.0, 3.0, 5.0, 7.0]);
        assert_eq!((timed.ns, timed.spread_ns), (4.0, 2.0));
    }
}
