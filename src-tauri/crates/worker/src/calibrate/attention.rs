//! Attention over a cache, as `llm_graph_context::build_attn` of llama.cpp builds it between the
//! matrices.

mod shape;

use llama_cpp_sys_2 as sys;
use twospeed_engine::protocol::Kernel;
use twospeed_gguf::TensorType;

use self::shape::Shape;
use super::cpu::Cpu;
use super::graph::{Graph, Work};
use super::memory::{self, Room, Tensor, Tensors};
use super::{types, weights};

/// Caches, each with the same queries.
#[derive(Debug)]
pub struct Attention {
    shape: Shape,
    flash: bool,
    queries: Tensor,
    /// Keys and values of each layer.
    caches: Vec<(Tensor, Tensor)>,
    mask: Tensor,
    rooms: Rooms,
    rotations: Rotations,
    // What all of them point to.
    _tensors: Tensors,
}

/// Where results go.
#[derive(Debug)]
struct Rooms {
    /// Keys and values as f16, where flash attention is asked of a cache of f32.
    as_f16: Option<(Room, Room)>,
    /// Scores of each query and cell, without flash attention.
    scores: Option<Room>,
    /// Values by head, without flash attention.
    by_head: Option<Room>,
    result: Room,
    rotated: Room,
}

/// What a quantized cache is rotated by, so that no element stands out: the engine does it where
/// heads are multiples of 64.
#[derive(Debug)]
struct Rotations {
    keys: Option<Tensor>,
    values: Option<Tensor>,
    /// Keys and values of the tokens that attend, as they are written.
    written: Tensor,
}

impl Attention {
    /// The attention of a [`Kernel::Attention`]. Errors: the sentence of a refusal.
    ///
    /// # Panics
    /// When it is another kernel.
    pub fn new(cpu: &Cpu, kernel: &Kernel) -> Result<Self, String> {
        let Kernel::Attention {
            heads,
            kv_heads,
            head,
            type_k,
            type_v,
            flash,
            cells,
            columns,
            set_bytes,
        } = kernel
        else {
            unreachable!("BUG: {kernel:?} is no attention")
        };
        let [heads, kv_heads, head, cells, columns] =
            [*heads, *kv_heads, *head, *cells, *columns].map(u64::from);
        let shape = Shape {
            heads,
            kv_heads,
            head,
            cells,
            columns,
        };
        let flash = *flash;
        let unknown = |name: &str| format!("The engine does not know a cache of {name}.");
        let type_k = types::named(type_k).ok_or_else(|| unknown(type_k))?;
        let type_v = types::named(type_v).ok_or_else(|| unknown(type_v))?;
        let bytes = shape.check(type_k, type_v, flash)?;
        let count = set_bytes.div_ceil(bytes.cache).max(1);
        weights::check_count(count, *set_bytes)?;
        // Once more for what is drawn before it is written.
        let set = bytes.cache.checked_mul(count + 1);
        memory::check_room(memory::sum([set, Some(bytes.beside)]))?;

        let mut tensors = Tensors::new(8 + 2 * count as usize);
        let keys = weights::draw(type_k, bytes.keys as usize)?;
        let values = weights::draw(type_v, (bytes.cache - bytes.keys) as usize)?;
        let wide = [kv_heads * head, cells];
        let mut caches = Vec::new();
        for _ in 0..count {
            caches.push((
                tensors.of(cpu, types::number(type_k), &wide, &keys)?,
                tensors.of(cpu, types::number(type_v), &wide, &values)?,
            ));
        }
        let rooms = Rooms::new(cpu, &mut tensors, shape, flash, [type_k, type_v])?;
        let rotations = Rotations::new(cpu, &mut tensors, shape, [type_k, type_v])?;
        Ok(Self {
            shape,
            flash,
            queries: tensors.random(cpu, &[head, heads, columns])?,
            caches,
            mask: mask(cpu, &mut tensors, shape, flash)?,
            rooms,
            rotations,
            _tensors: tensors,
        })
    }

    /// Queries, keys and values as a product wants them: a head at a time.
    fn by_heads(&self, graph: &Graph<'_>, queries: Tensor, index: usize) -> [Tensor; 3] {
        let Shape {
            heads,
            kv_heads,
            head,
            cells,
            columns,
        } = self.shape;
        let (keys, values) = self.caches[index % self.caches.len()];
        let context = graph.context();
        let [n_heads, n_kv, n_head, n_cells, n_columns] =
            [heads, kv_heads, head, cells, columns].map(|extent| extent as i64);
        // SAFETY: live tensors; the views lie inside them: the strides are those of llama.cpp's
        // `get_k` and `get_v` for a cache of just these cells.
        unsafe {
            let row = |kind, elements: u64| sys::ggml_row_size(kind, elements as i64);
            let stride = |dimension: usize| (*queries).nb[dimension];
            let q = sys::ggml_view_4d(
                context,
                queries,
                n_head,
                n_heads,
                n_columns,
                1,
                stride(1),
                stride(2),
                stride(2) * columns as usize,
                0,
            );
            let whole = |cache: Tensor| {
                let kind = (*cache).type_;
                sys::ggml_view_4d(
                    context,
                    cache,
                    n_head,
                    n_kv,
                    n_cells,
                    1,
                    row(kind, head),
                    row(kind, head * kv_heads),
                    row(kind, head * kv_heads * cells),
                    0,
                )
            };
            let v = if self.flash {
                whole(values)
            } else {
                // Kept transposed: a row is one element of a head in every cell.
                let kind = (*values).type_;
                sys::ggml_view_4d(
                    context,
                    values,
                    n_cells,
                    n_kv,
                    n_head,
                    1,
                    row(kind, cells * head),
                    row(kind, cells),
                    row(kind, cells * head * kv_heads),
                    0,
                )
            };
            [q, whole(keys), v].map(|tensor| sys::ggml_permute(context, tensor, 0, 2, 1, 3))
        }
    }

    fn flash(&self, graph: &Graph<'_>, [q, k, v]: [Tensor; 3], scale: f32) -> Tensor {
        let context = graph.context();
        // SAFETY: live tensors of the shapes that flash attention wants, which `Shape::check` saw to.
        unsafe {
            let cast =
                |tensor, room| graph.put(sys::ggml_cast(context, tensor, sys::GGML_TYPE_F16), room);
            let is_f32 = |tensor: Tensor| (*tensor).type_ == sys::GGML_TYPE_F32;
            let (k, v) = match self.rooms.as_f16 {
                Some((keys, values)) => (
                    if is_f32(k) { cast(k, keys) } else { k },
                    if is_f32(v) { cast(v, values) } else { v },
                ),
                None => (k, v),
            };
            let result = sys::ggml_flash_attn_ext(context, q, k, v, self.mask, scale, 0.0, 0.0);
            sys::ggml_prec_set_acc(result, sys::GGML_PREC_F32);
            graph.put(result, self.rooms.result);
            sys::ggml_reshape_2d(
                context,
                result,
                (*result).ne[0] * (*result).ne[1],
                (*result).ne[2] * (*result).ne[3],
            )
        }
    }

    fn apart(&self, graph: &Graph<'_>, [q, k, v]: [Tensor; 3], scale: f32) -> Tensor {
        let context = graph.context();
        let (Some(scores), Some(by_head)) = (self.rooms.scores, self.rooms.by_head) else {
            unreachable!("BUG: without flash attention there is room for scores")
        };
        // SAFETY: live tensors of shapes that match.
        unsafe {
            let kq = graph.put(sys::ggml_mul_mat(context, k, q), scores);
            sys::ggml_prec_set_acc(kq, sys::GGML_PREC_F32);
            // In place, as the engine's allocator lets it.
            let soft = sys::ggml_soft_max_ext(context, kq, self.mask, scale, 0.0);
            let kqv = sys::ggml_mul_mat(context, v, graph.put(soft, scores));
            graph.put(kqv, by_head);
            let turned = sys::ggml_permute(context, kqv, 0, 2, 1, 3);
            let joined = sys::ggml_cont_2d(
                context,
                turned,
                (*turned).ne[0] * (*turned).ne[1],
                (*turned).ne[2] * (*turned).ne[3],
            );
            graph.put(joined, self.rooms.result)
        }
    }

    fn rotate(&self, graph: &Graph<'_>, tensor: Tensor, by: Tensor) -> Tensor {
        let context = graph.context();
        // SAFETY: live tensors; rows of the rotation's width fill the other whole.
        unsafe {
            let width = (*by).ne[0];
            let flat =
                sys::ggml_reshape_2d(context, tensor, width, sys::ggml_nelements(tensor) / width);
            let product = sys::ggml_mul_mat(context, by, flat);
            sys::ggml_mul_mat_set_hint(product, sys::GGML_HINT_SRC0_IS_HADAMARD);
            graph.put(product, self.rooms.rotated);
            let [a, b, c, d] = (*tensor).ne;
            sys::ggml_reshape_4d(context, product, a, b, c, d)
        }
    }
}

impl Work for Attention {
    fn different(&self) -> usize {
        self.caches.len()
    }

    fn tensors(&self) -> usize {
        40
    }

    fn append(&self, graph: &Graph<'_>, index: usize) {
        let Rotations {
            keys,
            values,
            written,
        } = self.rotations;
        for rotation in [keys, values].into_iter().flatten() {
            graph.append(self.rotate(graph, written, rotation));
        }
        let queries = match keys {
            Some(rotation) => self.rotate(graph, self.queries, rotation),
            None => self.queries,
        };
        let inputs = self.by_heads(graph, queries, index);
        let scale = 1.0 / (self.shape.head as f32).sqrt();
        let result = if self.flash {
            self.flash(graph, inputs, scale)
        } else {
            self.apart(graph, inputs, scale)
        };
        graph.append(match values {
            Some(rotation) => self.rotate(graph, result, rotation),
            None => result,
        });
    }
}

impl Rooms {
    fn new(
        cpu: &Cpu,
        tensors: &mut Tensors,
        shape: Shape,
        flash: bool,
        cached: [TensorType; 2],
    ) -> Result<Self, String> {
        let Shape {
            heads,
            kv_heads,
            head,
            cells,
            columns,
        } = shape;
        let result = 4 * head * heads * columns;
        let f16 = 2 * head * kv_heads * cells;
        let mut room = |bytes| tensors.room(cpu, bytes);
        let casts = flash && cached.contains(&TensorType::F32);
        let mut when = |needed: bool, bytes| needed.then(|| room(bytes)).transpose();
        let (keys, values) = (when(casts, f16)?, when(casts, f16)?);
        Ok(Self {
            as_f16: keys.zip(values),
            scores: when(!flash, 4 * cells * columns * heads)?,
            by_head: when(!flash, result)?,
            result: room(result)?,
            rotated: room(result)?,
        })
    }
}

impl Rotations {
    fn new(
        cpu: &Cpu,
        tensors: &mut Tensors,
        shape: Shape,
        [type_k, type_v]: [TensorType; 2],
    ) -> Result<Self, String> {
        let rotates = |tensor_type: TensorType| {
            tensor_type.block_elements() > 1 && shape.head.is_multiple_of(64)
        };
        let mut rotation =
            |width: u64| tensors.of(cpu, sys::GGML_TYPE_F32, &[width, width], &hadamard(width));
        // Keys by the widest that divides a head, values by the narrowest.
        let widest = 1 << shape.head.trailing_zeros();
        Ok(Self {
            keys: rotates(type_k).then(|| rotation(widest)).transpose()?,
            values: rotates(type_v).then(|| rotation(64)).transpose()?,
            written: tensors.random(cpu, &[shape.head, shape.kv_heads, shape.columns])?,
        })
    }
}

/// Sylvester's matrix of that width (a power of two), of length 1 in each row.
fn hadamard(width: u64) -> Vec<f32> {
    let length = 1.0 / (width as f32).sqrt();
    (0..width)
        .flat_map(|row| (0..width).map(move |column| (row & column).count_ones()))
        .map(|ones| if ones % 2 == 0 { length } else { -length })
        .collect()
}

/// Each of the last tokens sees itself and those before it.
fn mask(cpu: &Cpu, tensors: &mut Tensors, shape: Shape, flash: bool) -> Result<Tensor, String> {
    let Shape { cells, columns, .. } = shape;
    let sees = (0..columns)
        .flat_map(|column| (0..cells).map(move |cell| cell <= cells - columns + column));
    let extents = [cells, columns];
    if flash {
        // Half precision: 0 and minus infinity.
        let values: Vec<u16> = sees.map(|sees| if sees { 0 } else { 0xfc00 }).collect();
        tensors.of(cpu, sys::GGML_TYPE_F16, &extents, &values)
    } else {
        let values: Vec<f32> = sees
            .map(|sees| if sees { 0.0 } else { f32::NEG_INFINITY })
            .collect();
        tensors.of(cpu, sys::GGML_TYPE_F32, &extents, &values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calibrate::{cpu, graph};

    /// Two heads of 32 share one of keys; four tokens fill the cache.
    fn small(flash: bool) -> Kernel {
        Kernel::Attention {
            heads: 2,
            kv_heads: 1,
            head: 32,
            type_k: "f16".into(),
            type_v: "f16".into(),
            flash,
            cells: 4,
            columns: 4,
            set_bytes: 0,
        }
    }

    #[test]
    fn the_first_token_sees_itself_alone_and_the_last_sees_all() {
        let cpu = cpu::for_tests();
        for flash in [true, false] {
            let attention = Attention::new(&cpu, &small(flash)).unwrap();
            let result = graph::result(&cpu, &attention, 0, 1);
            let halves: Vec<u16> = memory::values(attention.caches[0].1);
            let value = |cell: usize, element: usize| {
                let at = if flash {
                    32 * cell + element
                } else {
                    4 * element + cell
                };
                // SAFETY: a function without preconditions.
                unsafe { sys::ggml_fp16_to_fp32(halves[at]) }
            };
            // A token's heads lie side by side.
            for head in 0..2 {
                for element in 0..32 {
                    let first = result[32 * head + element];
                    let close = (first - value(0, element)).abs() < 1e-2;
                    assert!(close, "{first}, {}", value(0, element));
                    let last = result[3 * 64 + 32 * head + element];
                    let seen = (0..4).map(|cell| value(cell, element));
                    let least = seen.clone().fold(f32::INFINITY, f32::min);
                    let most = seen.fold(f32::NEG_INFINITY, f32::max);
                    assert!((least..=most).contains(&last), "a mean: {last}");
                    assert!((last - value(0, element)).abs() > 1e-6, "of more than one");
                }
            }
        }
    }

    #[test]
    fn the_rows_of_a_rotation_are_at_right_angles() {
        let matrix = hadamard(4);
        assert_eq!(
            matrix,
            [
                [0.5, 0.5, 0.5, 0.5],
                [0.5, -0.5, 0.5, -0.5],
                [0.5, 0.5, -0.5, -0.5],
                [0.5, -0.5, -0.5, 0.5],
            ]
            .concat()
        );
    }
}
