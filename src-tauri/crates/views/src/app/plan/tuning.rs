//! A plan whose tests are races: one row for each model.

use twospeed_engine::{FlashAttention, Settings};
use twospeed_measure::platform;
use twospeed_measure::tune::{Costs, Grid, MOST_VARIANTS, Share, Space, Target, thread_counts};

use super::super::eta::Forecast;
use crate::measure::*;

/// Micro-batches that are raced where prompts matter.
const MICRO_BATCHES: [u32; 5] = [128, 256, 512, 1024, 2048];

/// The core's word for what is to be fast.
pub(in super::super) fn target(wanted: TuneFor) -> Target {
    match wanted {
        TuneFor::Prefill => Target::Prefill,
        TuneFor::Decode => Target::Decode,
        TuneFor::Mix { prompt, generate } => Target::Mix { prompt, generate },
    }
}

/// Rows of tests become one row a model, with what its race may take.
pub(super) fn raced(
    rows: Vec<PlannedRow>,
    wanted: TuneFor,
    forecast: &Forecast,
    variants: usize,
) -> Vec<PlannedRow> {
    let mut raced: Vec<PlannedRow> = Vec::new();
    let mut tests: Vec<Vec<(usize, bool)>> = Vec::new();
    for row in rows {
        let is_decode = matches!(
            row.what,
            RowKind::Speed {
                phase: PhaseName::Decode,
                ..
            }
        );
        let test = (row.position as usize, is_decode);
        match (raced.last(), tests.last_mut()) {
            (Some(last), Some(tests)) if last.model == row.model => tests.push(test),
            _ => {
                tests.push(vec![test]);
                raced.push(PlannedRow {
                    position: u32::try_from(raced.len()).unwrap_or(u32::MAX),
                    what: RowKind::Tune { target: wanted },
                    unit: Unit::Gain,
                    ceiling: None,
                    ..row
                });
            }
        }
    }
    for (row, tests) in raced.iter_mut().zip(tests) {
        row.seconds = budget(target(wanted), forecast, &tests, variants);
    }
    raced
}

/// A quarter of what the full grid would take; `None` where the usual settings were never measured.
fn budget(
    target: Target,
    forecast: &Forecast,
    tests: &[(usize, bool)],
    variants: usize,
) -> Option<f64> {
    let mut costs = Costs {
        target,
        load: 0.0,
        change: 0.0,
        whole_prefill: 0.0,
        whole_decode: 0.0,
    };
    for (position, is_decode) in tests {
        let seconds = forecast.timed(*position)?;
        match is_decode {
            true => costs.whole_decode = seconds,
            false => costs.whole_prefill = seconds,
        }
    }
    let space = Space {
        variants: vec![None; variants.clamp(1, MOST_VARIANTS)],
        threads: thread_counts(&platform::topology()),
        flash: vec![FlashAttention::Auto, FlashAttention::Off],
        repack: vec![true, false],
        micro_batches: match target.prefill() {
            Some(_) => MICRO_BATCHES.to_vec(),
            None => vec![Settings::default().n_ubatch],
        },
    };
    Some(Grid::of(&space, target).seconds(&costs) * Share::QUARTER.0)
}
