//! The additive model: what one decoded token and one prompt take, term by term.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use super::rates::{self, Attention, Rates, Rest, Timed};
use super::{Expected, Term, TermBasis, What, band};
use crate::cache::{self, ContextSettings, FlashAttention};
use crate::calibration::Calibration;
use crate::kv_type::KvType;
use crate::learn::Correction;
use crate::question::Question;
use crate::shape::{Layer, Shape, StoreKind};
use crate::units::{Bytes, Flops, TokensPerSecond};
use crate::weights::{Matrix, Role, Weights};

/// What a speed is worked out for.
pub(crate) struct Work<'a> {
    /// The model's layers.
    pub(crate) shape: &'a Shape,
    /// Its weights.
    pub(crate) weights: &'a Weights,
    /// Lengths and settings.
    pub(crate) question: &'a Question,
    /// The machine.
    pub(crate) calibration: &'a Calibration,
}

/// Positions of a long prompt for which attention is worked out; between them its cost is a line.
const POSITIONS: u64 = 64;

/// Terms as they are added up.
struct Sum {
    terms: Vec<Term>,
    /// How often what is added comes.
    times: f64,
}

impl Default for Sum {
    fn default() -> Self {
        Self {
            terms: Vec::new(),
            times: 1.0,
        }
    }
}

impl Sum {
    fn add(&mut self, what: What, (ns, basis): Timed, bytes: f64, flops: f64) {
        let term = match self.terms.iter_mut().find(|term| term.what == what) {
            Some(term) => term,
            None => self.terms.push_mut(Term {
                what,
                ns: 0.0,
                bytes: Some(Bytes::ZERO),
                flops: Some(Flops(0)),
                basis,
            }),
        };
        term.ns += ns * self.times;
        term.basis = rates::worse(term.basis, basis);
        term.bytes = term
            .bytes
            .map(|sum| sum + Bytes((bytes * self.times).round() as u64));
        term.flops = term
            .flops
            .map(|sum| Flops(sum.0.saturating_add((flops * self.times).round() as u64)));
    }

    fn expected(self, tokens: u64, correction: Option<Correction>) -> Option<Expected> {
        let mut terms = self.terms;
        terms.retain(|term| term.ns > 0.0);
        let ns: f64 = terms.iter().map(|term| term.ns).sum();
        if !ns.is_finite() || ns <= 0.0 || tokens == 0 {
            return None;
        }
        let mut speed = tokens as f64 * 1e9 / ns;
        if let Some(correction) = correction {
            speed *= correction.factor;
        }
        let (low, high) = band::around(&terms, correction);
        Some(Expected {
            speed: TokensPerSecond(speed),
            low: TokensPerSecond(speed * low),
            high: TokensPerSecond(speed * high),
            terms,
        })
    }
}

impl Work<'_> {
    fn settings(&self) -> &ContextSettings {
        &self.question.context
    }

    /// Decode: so many tokens a second, of all users together.
    pub(crate) fn decode(&self) -> Option<Expected> {
        let users = self.settings().sequences.max(1);
        let depth = self.question.depth;
        let cache = cache::read_per_token(self.shape, self.settings(), depth).ok()?;
        let set = self.weights.bytes_per_token() + cache;
        let rates = Rates::new(self.calibration, set);
        let mut sum = Sum::default();
        self.matrices(&rates, &mut sum, users, users)?;
        // The token in the middle of the answer stands for all of them.
        let seen = depth as f64 + self.question.generate as f64 / 2.0 + 1.0;
        self.attention(&rates, &mut sum, users, 1, seen)?;
        self.rest(&rates, &mut sum, users)?;
        let state = Bytes(self.shape.state_per_sequence().0.saturating_mul(2 * users));
        sum.add(What::State, rates.state(state)?, state.0 as f64, 0.0);
        if let Some(step) = rates.step() {
            sum.add(What::Step, step, 0.0, 0.0);
        }
        sum.expected(users, self.question.corrections.decode)
    }

    /// Prefill: so many prompt tokens a second.
    pub(crate) fn prefill(&self) -> Option<Expected> {
        let prompt = self.question.prompt;
        let rates = Rates::new(self.calibration, self.weights.bytes_per_token());
        let mut sum = Sum::default();
        let batch = self.settings().batch.max(1);
        let step = self.settings().ubatch.min(batch).max(1);
        let (whole, left) = (prompt / step, prompt % step);
        // The engine is handed batches, and keeps the logits of each batch's last token.
        let last = u64::from(left > 0);
        let ends = (prompt.div_ceil(batch) - last).min(whole);
        for (columns, outputs, times) in [(step, 0, whole - ends), (step, 1, ends), (left, 1, last)]
        {
            if times == 0 {
                continue;
            }
            sum.times = times as f64;
            self.matrices(&rates, &mut sum, columns, outputs)?;
            self.rest(&rates, &mut sum, columns)?;
            if let Some(step) = rates.step() {
                sum.add(What::Step, step, 0.0, 0.0);
            }
        }
        let depth = self.question.depth as f64;
        let mut attend = |before: f64, columns: u64, times: u64| {
            sum.times = times as f64;
            let seen = depth + before + columns as f64 / 2.0 + 0.5;
            self.attention(&rates, &mut sum, 1, columns, seen)
        };
        let groups = whole.min(POSITIONS);
        for group in 0..groups {
            let start = |group| u128::from(whole) * u128::from(group) / u128::from(groups);
            let (from, to) = (start(group) as u64, start(group + 1) as u64);
            let middle = (from as f64 + (to - 1) as f64) / 2.0;
            attend(middle * step as f64, step, to - from)?;
        }
        if left > 0 {
            attend((whole * step) as f64, left, 1)?;
        }
        sum.times = 1.0;
        let state = Bytes(self.shape.state_per_sequence().0.saturating_mul(2));
        sum.add(What::State, rates.state(state)?, state.0 as f64, 0.0);
        sum.expected(prompt, self.question.corrections.prefill)
    }

    /// The weights times `columns` tokens, of which `outputs` are wanted as logits.
    fn matrices(&self, rates: &Rates<'_>, sum: &mut Sum, columns: u64, outputs: u64) -> Option<()> {
        for matrix in &self.weights.matrices {
            let Matrix {
                tensor_type,
                inner,
                rows,
                count,
                role,
                resembles,
            } = *matrix;
            let row = tensor_type.bits_per_weight() / 8.0 * inner as f64;
            let times = count as f64;
            let (what, timed, read, columns) = match role {
                Role::Experts { used, of, last } => {
                    let columns = if last { outputs } else { columns };
                    if columns == 0 {
                        continue;
                    }
                    let timed = rates.experts(tensor_type, inner, rows, (used, of), columns)?;
                    let read = rates::touched(used, of, columns);
                    (
                        What::Experts { tensor_type },
                        timed,
                        read,
                        columns.saturating_mul(used),
                    )
                }
                Role::Layer | Role::LastFeedForward | Role::Output => {
                    let columns = if role == Role::Layer {
                        columns
                    } else {
                        outputs
                    };
                    if columns == 0 {
                        continue;
                    }
                    let what = match role {
                        Role::Output => What::Output { tensor_type },
                        _ => What::Weights { tensor_type },
                    };
                    (
                        what,
                        rates.matrix(tensor_type, inner, rows, columns)?,
                        1.0,
                        columns,
                    )
                }
            };
            let basis = if resembles {
                rates::worse(timed.1, TermBasis::Resembling)
            } else {
                timed.1
            };
            sum.add(
                what,
                (timed.0 * times, basis),
                row * rows as f64 * read * times,
                2.0 * inner as f64 * rows as f64 * columns as f64 * times,
            );
        }
        Some(())
    }

    /// Attention of all layers: `users` times `columns` tokens, each of which would see `seen`.
    fn attention(
        &self,
        rates: &Rates<'_>,
        sum: &mut Sum,
        users: u64,
        columns: u64,
        seen: f64,
    ) -> Option<()> {
        let settings = self.settings();
        let flash =
            settings.flash_attention != FlashAttention::Off && !self.shape.without_flash_attention;
        for (layer, count) in self.attending() {
            let kept = layer.reads.and_then(|i| self.shape.layers.get(i));
            let stores = &kept.unwrap_or(layer).stores;
            let Some(store) = stores.first() else {
                continue;
            };
            let cells = cache::cells(self.shape, settings, store.kind).ok()? as f64;
            let kept = match store.kind {
                StoreKind::Compressed(ratio) | StoreKind::CompressedIndexer(ratio) => {
                    seen / ratio.max(1) as f64
                }
                _ => seen,
            };
            let window = match store.kind {
                StoreKind::Window => self.shape.window.map(|window| window as f64),
                _ => None,
            };
            let seen = window.map_or(kept, |window| kept.min(window)).min(cells);
            let (ns, basis) = rates.attention(&Attention {
                heads: layer.heads,
                head: (layer.head_key + layer.head_value) as f64 / 2.0,
                type_k: settings.type_k,
                flash,
                columns,
                users,
                seen,
                held: (cache::padded(kept.ceil().max(1.0) as u64) as f64).min(cells),
                slides: window.is_some_and(|window| kept > window),
            })?;
            let basis = if settings.type_k == settings.type_v {
                basis
            } else {
                TermBasis::Resembling
            };
            let times = count as f64 * users as f64;
            let row = row_bytes(settings.type_k, store.key)
                + row_bytes(settings.type_v, store.value.map_or(0, |value| value.row));
            let head = (layer.head_key + layer.head_value) as f64;
            let flops = 2.0 * layer.heads as f64 * head * columns as f64 * seen;
            sum.add(
                What::Attention,
                (ns * times, basis),
                row * seen * times,
                flops * times,
            );
        }
        Some(())
    }

    /// Layers that attend, alike ones together.
    fn attending(&self) -> Vec<(&Layer, u64)> {
        let mut alike: Vec<(&Layer, u64)> = Vec::new();
        let trunk = &self.shape.layers[..self.shape.trunk];
        for layer in trunk.iter().filter(|layer| layer.attends()) {
            match alike.iter_mut().find(|(other, _)| *other == layer) {
                Some((_, count)) => *count += 1,
                None => alike.push((layer, 1)),
            }
        }
        alike
    }

    fn rest(&self, rates: &Rates<'_>, sum: &mut Sum, columns: u64) -> Option<()> {
        let layers = self.shape.trunk.max(1) as f64;
        let mut outputs = 0.0;
        let mut used_by_layers = BTreeMap::new();
        for matrix in &self.weights.matrices {
            let rows = matrix.rows as f64 * matrix.count as f64;
            match matrix.role {
                Role::Output => {}
                Role::Layer | Role::LastFeedForward => outputs += rows,
                Role::Experts { used, .. } => {
                    outputs += rows * used as f64;
                    *used_by_layers.entry(used).or_insert(0) += matrix.count;
                }
            }
        }
        let experts = used_by_layers.keys().max().copied().unwrap_or(0);
        let (norms, of_norms) = self.weights.norms;
        let rest = Rest {
            norms: norms as f64 / layers,
            elements: (outputs + of_norms as f64) / layers,
            experts: experts as f64,
        };
        let (ns, basis) = rates.rest(rest, columns)?;
        sum.add(What::Layers, (ns * layers, basis), 0.0, 0.0);
        Some(())
    }
}

fn row_bytes(kv: KvType, elements: u64) -> f64 {
    kv.row_bytes(elements).unwrap_or(0) as f64
}
