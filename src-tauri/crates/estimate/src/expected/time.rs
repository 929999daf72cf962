//! The additive model: what one decoded token and one prompt take, term by term.

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

/// Terms as they are added up.
#[derive(Default)]
struct Sum {
    terms: Vec<Term>,
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
        term.ns += ns;
        term.basis = rates::worse(term.basis, basis);
        term.bytes = term.bytes.map(|sum| sum + Bytes(bytes.round() as u64));
        term.flops = term
            .flops
            .map(|sum| Flops(sum.0.saturating_add(flops.round() as u64)));
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
        let step = self.settings().ubatch.min(self.settings().batch).max(1);
        let mut done = 0;
        while done < prompt {
            let columns = step.min(prompt - done);
            let before = self.question.depth + done;
            done += columns;
            // The engine is handed batches, and keeps the logits of each batch's last token.
            let ends_batch = done == prompt || done % self.settings().batch.max(1) == 0;
            self.matrices(&rates, &mut sum, columns, u64::from(ends_batch))?;
            let seen = before as f64 + columns as f64 / 2.0 + 0.5;
            self.attention(&rates, &mut sum, 1, columns, seen)?;
            self.rest(&rates, &mut sum, columns)?;
            if let Some(step) = rates.step() {
                sum.add(What::Step, step, 0.0, 0.0);
            }
        }
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
            sum.add(
                what,
                (timed.0 * times, timed.1),
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
            let seen = match (store.kind, self.shape.window) {
                (StoreKind::Window, Some(window)) => seen.min(window as f64),
                (StoreKind::Compressed(ratio) | StoreKind::CompressedIndexer(ratio), _) => {
                    seen / ratio.max(1) as f64
                }
                _ => seen,
            }
            .min(cells);
            let (ns, basis) = rates.attention(&Attention {
                heads: layer.heads,
                head: (layer.head_key + layer.head_value) as f64 / 2.0,
                type_k: settings.type_k,
                flash,
                columns,
                seen,
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use twospeed_gguf::{Model, TensorType};

    use super::*;
    use crate::calibration::{Kernel, KernelReading};
    use crate::estimate::estimate;
    use crate::testing::{Tensor, model};
    use crate::{BandwidthReading, BytesPerSecond};
    use TensorType::{F32, Q8_0};

    /// Two layers of 589,824 elements in matrices each, 393,216 of them feed-forward, and an output of
    /// 256,000: in Q8_0, of 34 bytes for 32, 626,688 bytes a layer and 272,000.
    fn small() -> Model {
        let mut tensors: Vec<Tensor<'static>> = vec![
            ("token_embd.weight".into(), Q8_0, &[256, 1000]),
            ("output.weight".into(), Q8_0, &[256, 1000]),
        ];
        const LAYER: [(&str, TensorType, &[u64]); 9] = [
            ("attn_norm", F32, &[256]),
            ("attn_q", Q8_0, &[256, 256]),
            ("attn_k", Q8_0, &[256, 128]),
            ("attn_v", Q8_0, &[256, 128]),
            ("attn_output", Q8_0, &[256, 256]),
            ("ffn_norm", F32, &[256]),
            ("ffn_gate", Q8_0, &[256, 512]),
            ("ffn_up", Q8_0, &[256, 512]),
            ("ffn_down", Q8_0, &[512, 256]),
        ];
        for layer in 0..2 {
            for (name, tensor_type, dimensions) in LAYER {
                tensors.push((
                    format!("blk.{layer}.{name}.weight"),
                    tensor_type,
                    dimensions,
                ));
            }
        }
        let keys = [
            ("block_count", 2),
            ("embedding_length", 256),
            ("context_length", 8192),
            ("attention.head_count", 4),
            ("attention.head_count_kv", 2),
        ];
        model("llama", &keys, &tensors)
    }

    fn attention(cells: u32, columns: u32) -> Kernel {
        Kernel::Attention {
            heads: 4,
            kv_heads: 2,
            head: 64,
            type_k: KvType::F16,
            type_v: KvType::F16,
            flash: true,
            cells,
            columns,
            set_bytes: 0,
        }
    }

    /// 2,560 elements: outputs of (4 + 2 x 2) x 64 + 2 x 256 + 2 x 512, and norms of 2 x 256.
    fn layer(columns: u32) -> Kernel {
        Kernel::Layer {
            embedding: 256,
            feed_forward: 512,
            heads: 4,
            kv_heads: 2,
            head: 64,
            columns,
        }
    }

    /// 0.1 ns a byte; 0.001 ns a multiplication; 1 ns for each head, token and token seen; 1,000 ns
    /// for the rest of a layer and 0.01 ns for each element of many tokens; 5,000 ns a step.
    fn calibration() -> Calibration {
        let vector = Kernel::Matrix {
            tensor_type: Q8_0,
            inner: 1024,
            rows: 1024,
            columns: 1,
            set_bytes: 1 << 20,
        };
        let product = Kernel::Matrix {
            tensor_type: Q8_0,
            inner: 256,
            rows: 1024,
            columns: 512,
            set_bytes: 1 << 20,
        };
        let Kernel::Layer {
            heads,
            kv_heads,
            head,
            ..
        } = layer(1)
        else {
            unreachable!()
        };
        let wide = Kernel::Layer {
            embedding: 512,
            feed_forward: 1024,
            heads,
            kv_heads,
            head,
            columns: 1,
        };
        let kernels = [
            (vector, 111_411.2),
            (product, 0.256 * 1024.0 * 512.0),
            (attention(1000, 1), 4_000.0),
            (attention(512, 512), 4.0 * 512.0 * 256.5),
            (layer(1), 1_000.0),
            (wide, 1_000.0),
            (layer(512), 0.01 * 2560.0 * 512.0),
        ];
        Calibration {
            id: "c".into(),
            at: "2026-12-01T00:00:00Z".into(),
            backend: "CPU".into(),
            variant: "zen4".into(),
            threads: 2,
            build: 11434,
            ubatch: 512,
            last_level_cache: None,
            reads: vec![BandwidthReading {
                buffer: Bytes::mib(256),
                rate: BytesPerSecond(10_000_000_000),
            }],
            kernels: kernels
                .into_iter()
                .map(|(kernel, ns)| KernelReading {
                    kernel,
                    ns,
                    spread_ns: 0.0,
                    repacked: false,
                })
                .collect(),
            step_ns: Some(5_000.0),
        }
    }

    fn asked(change: impl FnOnce(&mut Question)) -> Question {
        let mut question = Question {
            calibration: Some(Arc::new(calibration())),
            ..Question::default()
        };
        question.context.context = 8192;
        change(&mut question);
        question
    }

    fn ns(terms: &[Term], what: What) -> f64 {
        let of = terms.iter().filter(|term| term.what == what);
        of.map(|term| term.ns).sum()
    }

    fn near(a: f64, b: f64) -> bool {
        (a / b - 1.0).abs() < 0.002
    }

    const LAYERS: What = What::Weights { tensor_type: Q8_0 };
    const OUTPUT: What = What::Output { tensor_type: Q8_0 };

    #[test]
    fn a_decoded_token_reads_every_weight_and_looks_back() {
        let said = estimate(&small(), &asked(|_| {}));
        let terms = &said.decode.breakdown;
        assert!(near(ns(terms, LAYERS), 125_337.6), "2 x 62,668.8");
        assert!(near(ns(terms, OUTPUT), 27_200.0));
        // The 65th token stands for 128: 2 layers x 4 heads x 65.
        assert!(near(ns(terms, What::Attention), 520.0));
        assert!(near(ns(terms, What::Layers), 2_000.0));
        assert!(near(ns(terms, What::Step), 5_000.0));
        // 160,057.6 ns in all.
        assert!(near(said.decode.expected_tok_s.unwrap().0, 6_247.7));
        assert!(said.decode.expected_low < said.decode.expected_tok_s);
        assert!(said.decode.expected_tok_s < said.decode.expected_high);
        assert_eq!(said.basis.calibration.as_deref(), Some("c"));
    }

    #[test]
    fn depth_costs_attention_alone() {
        let deep = estimate(&small(), &asked(|q| q.depth = 4096));
        let terms = &deep.decode.breakdown;
        // 2 x 4 x (4,096 + 65)
        assert!(near(ns(terms, What::Attention), 33_288.0));
        assert!(near(ns(terms, LAYERS), 125_337.6));
    }

    #[test]
    fn a_prompt_multiplies_all_but_the_last_feed_forward_part() {
        let said = estimate(&small(), &asked(|_| {}));
        let terms = &said.prefill.breakdown;
        // (589,824 + 196,608) x 512 x 0.001, and the last token's 393,216 x 34 / 32 x 0.1.
        assert!(near(ns(terms, LAYERS), 402_653.2 + 41_779.2));
        assert!(near(ns(terms, OUTPUT), 27_200.0));
        // 2 x 4 x 512 x 256.5
        assert!(near(ns(terms, What::Attention), 1_050_624.0));
        // 2 x (1,000 + 0.01 x 2,560 x 512)
        assert!(near(ns(terms, What::Layers), 28_214.4));
    }

    #[test]
    fn users_share_the_weights_and_not_their_caches() {
        let four = estimate(
            &small(),
            &asked(|q| {
                q.context.sequences = 4;
                q.depth = 1024;
            }),
        );
        let terms = &four.decode.breakdown;
        // 4 x 2 x 4 x (1,024 + 65)
        assert!(near(ns(terms, What::Attention), 34_848.0));
        // Reading still binds: 4 columns multiply for 0.004 ns an element, reading takes 0.10625.
        assert!(near(ns(terms, LAYERS), 125_337.6));
        assert!(four.decode.expected_tok_s.unwrap().0 > 3.0 * 6_247.7);
    }

    #[test]
    fn a_correction_moves_the_speed_and_its_band() {
        let correction = Correction {
            factor: 0.9,
            spread: 0.05,
            runs: 4,
            same_model: true,
        };
        let corrected = estimate(
            &small(),
            &asked(|q| q.corrections.decode = Some(correction)),
        );
        let speed = corrected.decode.expected_tok_s.unwrap().0;
        assert!(near(speed, 0.9 * 6_247.7));
        assert!(near(
            corrected.decode.expected_high.unwrap().0,
            1.05 * speed
        ));
        assert_eq!(corrected.basis.corrected_by_runs, 4);
    }

    #[test]
    fn without_a_calibration_nothing_is_expected() {
        let said = estimate(&small(), &asked(|q| q.calibration = None));
        assert_eq!(said.decode.expected_tok_s, None);
        assert_eq!(said.prefill.expected_tok_s, None);
        assert!(said.decode.breakdown.is_empty());
    }
}
