//! Which layers look back a limited way.

use super::Plan;
use crate::architecture::{WindowLayers, WindowSize};
use crate::shape::ShapeError;

impl Plan<'_> {
    /// The window's size, and which layers have it.
    pub(super) fn window(
        &self,
        recurrent: &[bool],
    ) -> Result<(Option<u64>, Vec<bool>), ShapeError> {
        const SIZE: &str = "attention.sliding_window";
        let raw = self.keys.raw(SIZE)?;
        let set = raw.filter(|size| *size > 0);
        let size = match self.rules.window.size {
            WindowSize::None => None,
            WindowSize::IfSet => set,
            WindowSize::Required => Some(raw.ok_or_else(|| self.keys.missing(SIZE))?),
            WindowSize::Or(default) => Some(raw.unwrap_or(default)),
            WindowSize::IfSetFixed(fixed) => set.map(|_| fixed),
            WindowSize::UnlessZeroFixed(fixed) => (raw != Some(0)).then_some(fixed),
            WindowSize::OnlyWithLayers { layers, or } => {
                (self.trunk == layers).then(|| raw.unwrap_or(or))
            }
        };
        let sliding = match size {
            Some(_) => self.sliding_layers(recurrent)?,
            None => vec![false; self.blocks()],
        };
        Ok((size, sliding))
    }

    fn sliding_layers(&self, recurrent: &[bool]) -> Result<Vec<bool>, ShapeError> {
        const PATTERN: &str = "attention.sliding_window_pattern";
        let blocks = self.blocks();
        let rule = self.rules.window.layers;
        match rule {
            WindowLayers::All => return Ok(vec![true; blocks]),
            WindowLayers::AllIfHyperConnected
                if self.keys.get("hyper_connection.count")?.is_some() =>
            {
                return Ok(vec![true; blocks]);
            }
            WindowLayers::AllThatAttend => {
                return Ok((0..blocks)
                    .map(|i| i < self.trunk && !recurrent[i])
                    .collect());
            }
            _ => {}
        }
        if let Some(listed) = self.keys.list(PATTERN)? {
            if listed.len() < self.trunk {
                return Err(ShapeError::UnusableKey(self.keys.name(PATTERN)));
            }
            let slides = |i: usize| listed.get(i).is_some_and(|slides| *slides != 0);
            return Ok((0..blocks).map(slides).collect());
        }
        let period = self.keys.raw(PATTERN)?;
        let (period, full) = match rule {
            WindowLayers::LastOfEachFull(default) => {
                let period = period.unwrap_or(default);
                (period, period.saturating_sub(1))
            }
            WindowLayers::FirstOfEachFull(default) => (period.unwrap_or(default), 0),
            _ => {
                let period = period.ok_or_else(|| self.keys.missing(PATTERN))?;
                (period, period.saturating_sub(1))
            }
        };
        // A period of 0 makes every layer slide.
        let slides = |i: usize| i < self.trunk && (period == 0 || i as u64 % period != full);
        Ok((0..blocks).map(slides).collect())
    }
}
