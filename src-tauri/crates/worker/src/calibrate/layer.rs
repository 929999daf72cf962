//! What a layer does beside its matrices and attention: as llama.cpp's `models/llama.cpp` builds it.

use llama_cpp_sys_2 as sys;
use twospeed_engine::protocol::Kernel;

use super::cpu::Cpu;
use super::graph::{Graph, Work};
use super::memory::{self, Room, Tensor, Tensors};
use super::weights;

/// Layers with norms and caches of their own.
const LAYERS: usize = 8;
/// Cells of a context are multiples of this.
const CELLS: u64 = 256;
const EPSILON: f32 = 1e-5;

/// Layers, one after the other; what the matrices and attention would give stays as it is.
#[derive(Debug)]
pub struct Layer {
    shape: Shape,
    layers: Vec<OfLayer>,
    /// What layers hand on, in turn from the first to the second and back.
    streams: [Tensor; 2],
    positions: Tensor,
    cells: Tensor,
    /// Results of the matrices and of attention.
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attended: Tensor,
    gate: Tensor,
    up: Tensor,
    down: Tensor,
    normed: Room,
    between: Room,
    activated: Room,
    // What all of them point to.
    _tensors: Tensors,
}

/// What each layer has of its own.
#[derive(Debug)]
struct OfLayer {
    norms: [Tensor; 2],
    keys: Tensor,
    values: Tensor,
}

#[derive(Debug, Clone, Copy)]
struct Shape {
    embedding: u64,
    feed_forward: u64,
    heads: u64,
    kv_heads: u64,
    head: u64,
    columns: u64,
}

impl Layer {
    /// The layer of a [`Kernel::Layer`]. Errors: the sentence of a refusal.
    ///
    /// # Panics
    /// When it is another kernel.
    pub fn new(cpu: &Cpu, kernel: &Kernel) -> Result<Self, String> {
        let Kernel::Layer {
            embedding,
            feed_forward,
            heads,
            kv_heads,
            head,
            columns,
        } = kernel
        else {
            unreachable!("BUG: {kernel:?} is no layer")
        };
        let shape = Shape {
            embedding: (*embedding).into(),
            feed_forward: (*feed_forward).into(),
            heads: (*heads).into(),
            kv_heads: (*kv_heads).into(),
            head: (*head).into(),
            columns: (*columns).into(),
        };
        memory::check_room(Some(shape.check()?))?;
        let Shape {
            embedding,
            feed_forward,
            heads,
            kv_heads,
            head,
            columns,
        } = shape;
        let wide = kv_heads * head;
        let cells = columns.next_multiple_of(CELLS);

        let mut tensors = Tensors::new(16 + 4 * LAYERS);
        let mut layers = Vec::new();
        for _ in 0..LAYERS {
            layers.push(OfLayer {
                norms: [
                    tensors.random(cpu, &[embedding])?,
                    tensors.random(cpu, &[embedding])?,
                ],
                keys: tensors.zeros(cpu, sys::GGML_TYPE_F16, &[wide, cells])?,
                values: tensors.zeros(cpu, sys::GGML_TYPE_F16, &[wide, cells])?,
            });
        }
        let positions: Vec<i32> = (0..columns as i32).collect();
        let places: Vec<i64> = (0..columns as i64).collect();
        let whole = [embedding, columns];
        let half = [feed_forward, columns];
        Ok(Self {
            shape,
            layers,
            streams: [tensors.random(cpu, &whole)?, tensors.random(cpu, &whole)?],
            positions: tensors.of(cpu, sys::GGML_TYPE_I32, &[columns], &positions)?,
            cells: tensors.of(cpu, sys::GGML_TYPE_I64, &[columns], &places)?,
            query: tensors.random(cpu, &[heads * head, columns])?,
            key: tensors.random(cpu, &[wide, columns])?,
            value: tensors.random(cpu, &[wide, columns])?,
            attended: tensors.random(cpu, &whole)?,
            gate: tensors.random(cpu, &half)?,
            up: tensors.random(cpu, &half)?,
            down: tensors.random(cpu, &whole)?,
            normed: tensors.room(cpu, 4 * embedding * columns)?,
            between: tensors.room(cpu, 4 * embedding * columns)?,
            activated: tensors.room(cpu, 4 * feed_forward * columns)?,
            _tensors: tensors,
        })
    }

    /// Both write to one place: the backend makes one of them.
    fn norm(&self, graph: &Graph<'_>, stream: Tensor, weight: Tensor) {
        // SAFETY: live tensors of one width.
        let scaled = unsafe {
            let normed = sys::ggml_rms_norm(graph.context(), stream, EPSILON);
            graph.put(normed, self.normed);
            sys::ggml_mul(graph.context(), normed, weight)
        };
        graph.append(graph.put(scaled, self.normed));
    }

    /// In place, as the engine's allocator lets it; the numbers turn and turn.
    fn rope(&self, graph: &Graph<'_>, product: Tensor, heads: u64) -> Tensor {
        let Shape { head, columns, .. } = self.shape;
        let context = graph.context();
        // SAFETY: live tensors; the heads fill the product's rows; a position for each column.
        let turned = unsafe {
            let by_heads =
                sys::ggml_reshape_3d(context, product, head as i64, heads as i64, columns as i64);
            sys::ggml_rope_ext(
                context,
                by_heads,
                self.positions,
                std::ptr::null_mut(),
                head as i32,
                sys::LLAMA_ROPE_TYPE_NORM,
                8192,
                10_000.0,
                1.0,
                0.0,
                1.0,
                32.0,
                1.0,
            )
        };
        graph.append(graph.put(turned, Room::of(product)));
        turned
    }

    fn write(&self, graph: &Graph<'_>, new: Tensor, cache: Tensor) {
        let Shape {
            kv_heads,
            head,
            columns,
            ..
        } = self.shape;
        let wide = kv_heads * head;
        // SAFETY: live tensors; a row of the cache for each column.
        let written = unsafe {
            let rows = sys::ggml_view_2d(
                graph.context(),
                new,
                wide as i64,
                columns as i64,
                4 * wide as usize,
                0,
            );
            sys::ggml_set_rows(graph.context(), cache, rows, self.cells)
        };
        graph.append(written);
    }

    fn add(&self, graph: &Graph<'_>, [a, b]: [Tensor; 2], to: Room) -> Tensor {
        // SAFETY: live tensors of one shape.
        let sum = unsafe { sys::ggml_add(graph.context(), a, b) };
        graph.append(graph.put(sum, to));
        sum
    }
}

impl Work for Layer {
    fn different(&self) -> usize {
        self.layers.len()
    }

    fn tensors(&self) -> usize {
        40
    }

    fn append(&self, graph: &Graph<'_>, index: usize) {
        let OfLayer {
            norms,
            keys,
            values,
        } = &self.layers[index % self.layers.len()];
        let input = self.streams[index % 2];
        let output = Room::of(self.streams[(index + 1) % 2]);
        let Shape {
            heads, kv_heads, ..
        } = self.shape;

        self.norm(graph, input, norms[0]);
        self.rope(graph, self.query, heads);
        let key = self.rope(graph, self.key, kv_heads);
        self.write(graph, key, *keys);
        self.write(graph, self.value, *values);
        let between = self.add(graph, [self.attended, input], self.between);
        self.norm(graph, between, norms[1]);
        // SAFETY: live tensors of one shape.
        let activated = unsafe { sys::ggml_swiglu_split(graph.context(), self.gate, self.up) };
        graph.append(graph.put(activated, self.activated));
        self.add(graph, [self.down, between], output);
    }
}

impl Shape {
    /// Refuses what is no layer, and counts the bytes.
    fn check(&self) -> Result<u64, String> {
        let Self {
            embedding,
            feed_forward,
            heads,
            kv_heads,
            head,
            columns,
        } = *self;
        if [embedding, feed_forward, heads, kv_heads, head, columns].contains(&0) {
            return Err(
                "A layer without width, heads or tokens takes no time: give at least 1.".into(),
            );
        }
        if !head.is_multiple_of(2) {
            return Err(format!(
                "RoPE turns pairs, and a head of {head} has one without: give an even number."
            ));
        }
        let count = || -> Option<(u64, u64, u64)> {
            let wide = kv_heads.checked_mul(head)?;
            let queries = heads.checked_mul(head)?;
            let cells = columns.checked_next_multiple_of(CELLS)?;
            // Streams, between, normed, results of two matrices; three of the feed-forward part.
            let a_column = [(6, embedding), (3, feed_forward), (1, queries), (2, wide)]
                .into_iter()
                .try_fold(0_u64, |sum, (times, width)| {
                    sum.checked_add(width.checked_mul(times)?)
                })?;
            let caches = wide.checked_mul(cells)?.checked_mul(4 * LAYERS as u64)?;
            let all = a_column.checked_mul(columns)?.checked_mul(4)?;
            Some((wide, queries, all.checked_add(caches)?))
        };
        let (wide, queries, bytes) =
            count().ok_or("More bytes than any memory holds: ask for less.")?;
        weights::check_extents(&[embedding, feed_forward, wide, queries, columns])?;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calibrate::{cpu, graph};

    #[test]
    fn a_layer_adds_what_it_is_given_and_writes_the_cache() {
        let cpu = cpu::for_tests();
        let kernel = Kernel::Layer {
            embedding: 64,
            feed_forward: 96,
            heads: 4,
            kv_heads: 2,
            head: 16,
            columns: 3,
        };
        let layer = Layer::new(&cpu, &kernel).unwrap();
        let values = |tensor| -> Vec<f32> { memory::values(tensor) };
        let (input, attended, down) = (
            values(layer.streams[0]),
            values(layer.attended),
            values(layer.down),
        );
        let result = graph::result(&cpu, &layer, 0, 1);
        assert_eq!(result, values(layer.streams[1]));
        for place in 0..64 * 3 {
            let expected = down[place] + (attended[place] + input[place]);
            assert!((result[place] - expected).abs() < 1e-6);
        }
        // A cell holds the values of a token, those behind the last nothing.
        let halves: Vec<u16> = memory::values(layer.layers[0].values);
        let written = values(layer.value);
        for (half, value) in halves.iter().zip(&written) {
            // SAFETY: a function without preconditions.
            let stored = unsafe { sys::ggml_fp16_to_fp32(*half) };
            assert!((stored - value).abs() < 1e-3);
        }
        assert!(halves[written.len()..].iter().all(|half| *half == 0));
    }

    #[test]
    fn many_layers_stay_finite() {
        let cpu = cpu::for_tests();
        let kernel = Kernel::Layer {
            embedding: 64,
            feed_forward: 96,
            heads: 4,
            kv_heads: 2,
            head: 16,
            columns: 1,
        };
        let layer = Layer::new(&cpu, &kernel).unwrap();
        let result = graph::result(&cpu, &layer, 0, 2000);
        assert!(result.iter().all(|value| value.is_finite()));
    }

    #[test]
    fn what_is_no_layer_is_refused() {
        let shape = Shape {
            embedding: 576,
            feed_forward: 1536,
            heads: 9,
            kv_heads: 3,
            head: 64,
            columns: 1,
        };
        // (6 x 576 + 3 x 1536 + 576 + 2 x 192) floats, 8 x 2 caches of 256 x 192 halves.
        assert_eq!(shape.check().unwrap(), 4 * 9024 + 16 * 256 * 192 * 2);
        assert!(Shape { head: 63, ..shape }.check().is_err());
        assert!(
            Shape {
                columns: 0,
                ..shape
            }
            .check()
            .is_err()
        );
        assert!(
            Shape {
                heads: u64::MAX,
                ..shape
            }
            .check()
            .is_err()
        );
    }
}
