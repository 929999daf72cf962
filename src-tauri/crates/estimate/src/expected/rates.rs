//! Costs worked out of a calibration's readings.
//!
//! A reading holds for one size; between sizes costs follow straight lines: a matrix-vector product
//! takes its bytes, a matrix-matrix product its multiplications and something for each element of the
//! result, attention what each token sees. Where a type or a size was not measured the nearest stands
//! in, and the term says so.

mod line;
#[cfg(test)]
mod tests;

use twospeed_gguf::TensorType;

use line::{Curve, Line};

use super::TermBasis;
use crate::calibration::{Calibration, Kernel, KernelReading};
use crate::kv_type::KvType;
use crate::units::Bytes;

/// From so many columns on a product counts as one of matrices.
const MANY: u32 = 64;

/// The engine computes attention in tiles of so many tokens; fewer go one by one.
pub(super) const TILE: u64 = 64;
/// From so many cells on the engine shares them among the threads where a single token attends.
const SHARED_CELLS: f64 = 512.0;

/// A time and what it rests on.
pub(super) type Timed = (f64, TermBasis);

/// The costs of one machine for a model of a certain size.
pub(super) struct Rates<'a> {
    calibration: &'a Calibration,
    /// What beginning an operation takes on all threads.
    begin_ns: f64,
    /// How far from the processor the weights are: 0 in the last-level cache, 1 in memory.
    distance: f64,
}

/// Operations of a llama's layer beside its matrices and attention, without the two norms' own.
const OTHER_OPERATIONS: f64 = 5.0;
/// Operations of a norm: scaling to length one, and by the weights.
const OPERATIONS_OF_A_NORM: f64 = 2.0;
/// Operations that choose experts, and one more to add each.
const OPERATIONS_OF_A_ROUTER: f64 = 8.0;

/// What a layer does beside its matrices and attention.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Rest {
    /// Norms.
    pub(super) norms: f64,
    /// Elements that the operations go through for one token.
    pub(super) elements: f64,
    /// Experts that a token uses.
    pub(super) experts: f64,
}

impl Rest {
    fn operations(self) -> f64 {
        let router = if self.experts > 0.0 {
            OPERATIONS_OF_A_ROUTER + self.experts
        } else {
            0.0
        };
        OTHER_OPERATIONS + OPERATIONS_OF_A_NORM * self.norms + router
    }
}

/// Attention of one layer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Attention {
    pub(super) heads: u64,
    /// Elements of a head, the mean of key and value.
    pub(super) head: f64,
    pub(super) type_k: KvType,
    pub(super) flash: bool,
    /// Tokens that attend together.
    pub(super) columns: u64,
    /// Sequences that attend at once.
    pub(super) users: u64,
    /// Tokens that each sees, on the average.
    pub(super) seen: f64,
    /// Cells that are gone through for it; those that are not seen are skipped.
    pub(super) held: f64,
    /// The seen ones lie anywhere among the cells, not at their beginning.
    pub(super) slides: bool,
}

impl<'a> Rates<'a> {
    /// For a model that reads `working_set` bytes over and over.
    pub(super) fn new(calibration: &'a Calibration, working_set: Bytes) -> Self {
        let mut rates = Self {
            calibration,
            begin_ns: 0.0,
            distance: distance(calibration, working_set),
        };
        rates.begin_ns = rates.begin().unwrap_or(0.0);
        rates
    }

    fn readings(&self) -> impl Iterator<Item = &'a KernelReading> + Clone + use<'a> {
        self.calibration.kernels.iter().filter(|r| r.ns > 0.0)
    }

    /// The smallest matrix-vector product takes hardly more than its beginning.
    fn begin(&self) -> Option<f64> {
        let (bytes, ns, tensor_type) = self
            .readings()
            .filter_map(|reading| match reading.kernel {
                Kernel::Matrix {
                    tensor_type,
                    inner,
                    rows,
                    columns: 1,
                    ..
                } => {
                    let bytes = matrix_bytes(tensor_type, inner.into(), rows.into())?;
                    Some((bytes, reading.ns, tensor_type))
                }
                _ => None,
            })
            .min_by(|a, b| a.0.total_cmp(&b.0))?;
        let (near, _) = self.by_set(tensor_type)?;
        Some((ns - bytes * near.0).max(0.0))
    }

    /// Nanoseconds a byte of a matrix-vector product: from the smallest set and from the largest,
    /// with the beginning taken off.
    fn by_set(&self, tensor_type: TensorType) -> Option<((f64, u64), (f64, u64))> {
        let rates = self.readings().filter_map(|reading| match reading.kernel {
            Kernel::Matrix {
                tensor_type: its,
                inner,
                rows,
                columns: 1,
                set_bytes,
            } if its == tensor_type => {
                let bytes = matrix_bytes(its, inner.into(), rows.into())?;
                // A matrix too small says more of beginning than of reading.
                (bytes >= 262_144.0)
                    .then(|| ((reading.ns - self.begin_ns).max(0.0) / bytes, set_bytes))
            }
            _ => None,
        });
        let near = rates.clone().min_by_key(|rate| rate.1)?;
        let far = rates.max_by_key(|rate| rate.1)?;
        Some((near, far))
    }

    /// Nanoseconds a byte where this model's weights lie.
    fn byte_ns(&self, tensor_type: TensorType) -> Option<f64> {
        let (near, far) = self.by_set(tensor_type)?;
        Some(near.0 + self.distance * (far.0 - near.0).max(0.0))
    }

    /// The measured type that resembles this one most: itself, or the nearest by bits a weight.
    fn stand_in(
        &self,
        tensor_type: TensorType,
        has: impl Fn(TensorType) -> bool,
    ) -> Option<(TensorType, TermBasis)> {
        if has(tensor_type) {
            return Some((tensor_type, TermBasis::Measured));
        }
        let bits = tensor_type.bits_per_weight();
        let mut types = TensorType::ALL.to_vec();
        types.retain(|other| has(*other));
        types
            .into_iter()
            .min_by(|a, b| {
                let far = |t: &TensorType| (t.bits_per_weight() / bits).ln().abs();
                far(a).total_cmp(&far(b))
            })
            .map(|other| (other, TermBasis::Resembling))
    }

    /// A matrix times so many columns.
    pub(super) fn matrix(
        &self,
        tensor_type: TensorType,
        inner: u64,
        rows: u64,
        columns: u64,
    ) -> Option<Timed> {
        let (vector, vector_basis) = self.vector(tensor_type, inner, rows)?;
        if columns <= 1 {
            return Some((self.begin_ns + vector, vector_basis));
        }
        let (element, basis) = self.product(tensor_type, inner)?;
        let many = element * rows as f64 * columns as f64;
        // Few columns cost what reading the weights does, many what multiplying does.
        let both = soft_max(vector, many);
        Some((self.begin_ns + both, worse(basis, vector_basis)))
    }

    fn vector(&self, tensor_type: TensorType, inner: u64, rows: u64) -> Option<Timed> {
        let measured = |t: TensorType| self.by_set(t).is_some();
        let (like, basis) = self.stand_in(tensor_type, measured)?;
        // A stand-in costs the same for a weight, or the same for a byte, whichever is more.
        let own = matrix_bytes(tensor_type, inner, rows)?;
        let its = matrix_bytes_about(like, inner, rows);
        Some((self.byte_ns(like)? * own.max(its), basis))
    }

    /// Nanoseconds of an element of a matrix-matrix product.
    fn product(&self, tensor_type: TensorType, inner: u64) -> Option<Timed> {
        let measured = |t: TensorType| self.product_line(t).is_some();
        let (like, basis) = self.stand_in(tensor_type, measured)?;
        Some((self.product_line(like)?.at(inner as f64), basis))
    }

    /// By the length of a row.
    fn product_line(&self, tensor_type: TensorType) -> Option<Line> {
        let points: Vec<_> = self
            .readings()
            .filter_map(|reading| match reading.kernel {
                Kernel::Matrix {
                    tensor_type: its,
                    inner,
                    rows,
                    columns,
                    ..
                } if its == tensor_type && columns >= MANY => {
                    let elements = f64::from(rows) * f64::from(columns);
                    Some((f64::from(inner), (reading.ns - self.begin_ns) / elements))
                }
                _ => None,
            })
            .collect();
        Line::through(&points)
    }

    /// Experts: each of `columns` tokens uses `used` of `of`.
    pub(super) fn experts(
        &self,
        tensor_type: TensorType,
        inner: u64,
        rows: u64,
        (used, of): (u64, u64),
        columns: u64,
    ) -> Option<Timed> {
        let touched = touched(used, of, columns);
        let (one, vector_basis) = self.vector(tensor_type, inner, rows)?;
        let few = one * touched;
        let (factor_few, factor_many, known) = self.experts_factors(tensor_type);
        if columns <= 1 {
            return Some((self.begin_ns + few * factor_few, worse(known, vector_basis)));
        }
        let (element, basis) = self.product(tensor_type, inner)?;
        let many = element * rows as f64 * columns as f64 * used as f64 * factor_many;
        let both = soft_max(few * factor_few, many);
        Some((
            self.begin_ns + both,
            worse(known, worse(basis, vector_basis)),
        ))
    }

    /// How much longer experts take than matrices of the same size, with one column and with many:
    /// of this type, or of those that were measured.
    fn experts_factors(&self, tensor_type: TensorType) -> (f64, f64, TermBasis) {
        let factors = |few: bool, of_type: Option<TensorType>| {
            let factors: Vec<f64> = self
                .readings()
                .filter_map(|reading| match reading.kernel {
                    Kernel::Experts {
                        tensor_type: its,
                        inner,
                        rows,
                        experts,
                        used,
                        columns,
                        ..
                    } if (columns == 1) == few && of_type.is_none_or(|t| t == its) => {
                        let (inner, rows) = (inner.into(), u64::from(rows));
                        let far = self.by_set(its)?.1.0;
                        let bytes = matrix_bytes(its, inner, rows)?;
                        let plain = if few {
                            f64::from(used) * far * bytes
                        } else {
                            let reads =
                                touched(used.into(), experts.into(), columns.into()) * far * bytes;
                            let computes = self.product_line(its)?.at(inner as f64)
                                * rows as f64
                                * f64::from(columns)
                                * f64::from(used);
                            soft_max(reads, computes)
                        };
                        Some((reading.ns - self.begin_ns) / plain)
                    }
                    _ => None,
                })
                .collect();
            (!factors.is_empty()).then(|| factors.iter().sum::<f64>() / factors.len() as f64)
        };
        let own = factors(true, Some(tensor_type)).zip(factors(false, Some(tensor_type)));
        match own {
            Some((few, many)) => (few, many, TermBasis::Measured),
            None => (
                factors(true, None).unwrap_or(1.0),
                factors(false, None).unwrap_or(1.0),
                TermBasis::Resembling,
            ),
        }
    }

    /// Attention of one layer over its cache.
    pub(super) fn attention(&self, asked: &Attention) -> Option<Timed> {
        let same_type = |r: &Attention| r.type_k == asked.type_k;
        let resembling = |r: &Attention| r.type_k.is_quantized() == asked.type_k.is_quantized();
        let same_way = |r: &Attention| r.flash == asked.flash;
        let of = |keep: &dyn Fn(&Attention) -> bool| self.attention_of(asked, keep);
        let found = of(&|r| same_type(r) && same_way(r)).map(|ns| (ns, TermBasis::Measured));
        let (each, basis) = found.or_else(|| {
            let ns = of(&|r| resembling(r) && same_way(r))
                .or_else(|| of(&|r| same_type(r)))
                .or_else(|| of(&|r| resembling(r)))
                .or_else(|| of(&|_| true))?;
            Some((ns, TermBasis::Resembling))
        })?;
        let rows = asked.heads as f64 * asked.columns as f64;
        let threads = self.calibration.threads;
        Some((rows * each * asked.unevenness(threads), basis))
    }

    /// Cost for each head and token that attends: between the measured sizes of a head and numbers
    /// of tokens seen.
    fn attention_of(&self, asked: &Attention, keep: &dyn Fn(&Attention) -> bool) -> Option<f64> {
        let tiled = |columns: u64| columns >= TILE;
        let readings: Vec<(Attention, f64)> = self
            .readings()
            .filter_map(|reading| Some((Attention::of(&reading.kernel)?, reading.ns)))
            .filter(|(its, _)| tiled(its.columns) == tiled(asked.columns) && keep(its))
            .collect();
        let mut sizes: Vec<f64> = readings.iter().map(|(its, _)| its.head).collect();
        sizes.sort_by(f64::total_cmp);
        sizes.dedup();
        let at = |size: f64| {
            let of_size = readings.iter().filter(|(its, _)| its.head == size);
            let points = of_size.map(|(its, ns)| {
                let rows = its.heads as f64 * its.columns as f64;
                let uneven = its.unevenness(self.calibration.threads);
                (its.seen, ns / rows / uneven)
            });
            Some(Curve::through(points.collect())?.at(asked.seen))
        };
        let head = asked.head;
        let below = sizes.iter().copied().rfind(|size| *size <= head);
        let above = sizes.iter().copied().find(|size| *size >= head);
        match (below, above) {
            (Some(below), Some(above)) if below < above => {
                let (low, high) = (at(below)?, at(above)?);
                Some(low + (head - below) / (above - below) * (high - low))
            }
            (Some(size), _) | (_, Some(size)) => Some(at(size)? * (head / size).max(1.0)),
            (None, None) => None,
        }
    }

    /// What a layer does beside its matrices and attention, for so many tokens.
    pub(super) fn rest(&self, rest: Rest, columns: u64) -> Option<Timed> {
        let one = self.rest_line(|columns| columns == 1)?;
        let ours = rest.operations();
        let llama = Rest {
            norms: 2.0,
            ..Rest::default()
        };
        let begin = one.at_zero * ours / llama.operations();
        let slope = if columns <= 1 {
            one.slope
        } else {
            self.rest_line(|columns| columns >= MANY)
                .map_or(one.slope, |many| many.slope)
        };
        let basis = if rest.experts > 0.0 {
            TermBasis::Resembling
        } else {
            TermBasis::Measured
        };
        Some((begin + slope * rest.elements * columns as f64, basis))
    }

    fn rest_line(&self, keep: impl Fn(u32) -> bool) -> Option<Line> {
        let points: Vec<_> = self
            .readings()
            .filter_map(|reading| match reading.kernel {
                Kernel::Layer {
                    embedding,
                    feed_forward,
                    heads,
                    kv_heads,
                    head,
                    columns,
                } if keep(columns) => {
                    let outputs = f64::from(heads + 2 * kv_heads) * f64::from(head)
                        + 2.0 * f64::from(embedding)
                        + 2.0 * f64::from(feed_forward);
                    let elements = outputs + 2.0 * f64::from(embedding);
                    Some((elements * f64::from(columns), reading.ns))
                }
                _ => None,
            })
            .collect();
        Line::through(&points)
    }

    /// Reading and writing recurrent state.
    pub(super) fn state(&self, bytes: Bytes) -> Option<Timed> {
        if bytes == Bytes::ZERO {
            return Some((0.0, TermBasis::Measured));
        }
        let slowest = self.calibration.reads.iter().max_by_key(|r| r.buffer)?;
        let ns = bytes.0 as f64 * 1e9 / slowest.rate.0.max(1) as f64;
        Some((ns, TermBasis::Resembling))
    }

    /// What a step takes whatever the model.
    pub(super) fn step(&self) -> Option<Timed> {
        self.calibration.step_ns.map(|ns| (ns, TermBasis::Measured))
    }
}

impl Attention {
    /// What a kernel asks for.
    fn of(kernel: &Kernel) -> Option<Self> {
        match *kernel {
            Kernel::Attention {
                heads,
                head,
                type_k,
                flash,
                cells,
                columns,
                ..
            } => Some(Self {
                heads: heads.into(),
                head: head.into(),
                type_k,
                flash,
                columns: columns.into(),
                users: 1,
                seen: f64::from(cells) - f64::from(columns - 1) / 2.0,
                held: cells.into(),
                slides: false,
            }),
            _ => None,
        }
    }

    /// How much longer the busiest thread takes than the average. A single token over many
    /// unquantized cells is shared by cells, each thread taking as many whether they are seen or
    /// not. Otherwise the rows (a head of a token each) go to threads in chunks, four for each.
    fn unevenness(&self, threads: u32) -> f64 {
        let threads = u64::from(threads.max(1));
        let by_cells = self.flash
            && self.columns.saturating_mul(self.users) == 1
            && !self.type_k.is_quantized()
            && self.held >= SHARED_CELLS;
        if by_cells {
            let busiest = busiest_cells(self.seen, self.held, threads, self.slides);
            return (busiest * threads as f64 / self.seen).max(1.0);
        }
        let rows = self
            .heads
            .saturating_mul(self.columns)
            .saturating_mul(self.users);
        if rows == 0 {
            return 1.0;
        }
        let busiest = longest_share(rows, rows.div_ceil(4 * threads), threads);
        busiest as f64 * threads as f64 / rows as f64
    }
}

/// Where a working set lies between the last-level cache (0) and memory (1), by how fast buffers of
/// such sizes are read.
fn distance(calibration: &Calibration, working_set: Bytes) -> f64 {
    let mut reads = calibration.reads.clone();
    reads.sort_by_key(|read| read.buffer);
    let (Some(first), Some(last)) = (reads.first(), reads.last()) else {
        return 1.0;
    };
    let byte_ns = |read: &crate::BandwidthReading| 1e9 / read.rate.0.max(1) as f64;
    let (near, far) = (byte_ns(first), byte_ns(last));
    if far <= near || working_set >= last.buffer {
        return 1.0;
    }
    let size = |bytes: Bytes| (bytes.0.max(1) as f64).ln();
    let at = size(working_set);
    let here = reads
        .windows(2)
        .find(|pair| size(pair[1].buffer) >= at)
        .map_or(far, |pair| {
            let (low, high) = (size(pair[0].buffer), size(pair[1].buffer));
            let part = ((at - low) / (high - low).max(f64::MIN_POSITIVE)).clamp(0.0, 1.0);
            byte_ns(&pair[0]) + part * (byte_ns(&pair[1]) - byte_ns(&pair[0]))
        });
    ((here - near) / (far - near)).clamp(0.0, 1.0)
}

/// Experts that so many tokens use between them, each choosing evenly.
pub(super) fn touched(used: u64, of: u64, columns: u64) -> f64 {
    let (used, of) = (used as f64, of.max(1) as f64);
    of * (1.0 - (1.0 - used / of).max(0.0).powf(columns as f64))
}

/// Rows of the busiest of so many threads that take chunks as they get free.
fn longest_share(rows: u64, chunk: u64, threads: u64) -> u64 {
    let chunks = rows.div_ceil(chunk);
    let rounds = chunks / threads;
    let full = rounds * chunk;
    match chunks % threads {
        0 => full,
        // The last chunk may be a short one, and goes to whoever is free.
        1 => full + (rows - (chunks - 1) * chunk),
        _ => full + chunk,
    }
}

/// Most of the `seen` cells that one of the threads goes through, each taking its part of `held` in
/// their order. Where they slide they lie anywhere, going on at the beginning: the mean of it all.
fn busiest_cells(seen: f64, held: f64, threads: u64, slides: bool) -> f64 {
    let held = held.max(seen);
    let part = held / threads as f64;
    if !slides {
        return part.min(seen);
    }
    /// Places that are tried.
    const PLACES: u32 = 32;
    let overlap =
        |from: f64, to: f64, begin: f64| (to.min(begin + part) - from.max(begin)).max(0.0);
    let most = |from: f64| {
        let shares = (0..threads).map(|thread| {
            let begin = thread as f64 * part;
            let end = from + seen;
            overlap(from, end.min(held), begin) + overlap(0.0, (end - held).max(0.0), begin)
        });
        shares.fold(0.0, f64::max)
    };
    let places = (0..PLACES).map(|place| most(held * f64::from(place) / f64::from(PLACES)));
    places.sum::<f64>() / f64::from(PLACES)
}

/// Between the larger of two and their sum: both limits are felt where they are near.
fn soft_max(a: f64, b: f64) -> f64 {
    (a.powi(4) + b.powi(4)).powf(0.25)
}

/// The weaker of two.
pub(super) fn worse(a: TermBasis, b: TermBasis) -> TermBasis {
    match (a, b) {
        (TermBasis::Measured, TermBasis::Measured) => TermBasis::Measured,
        (TermBasis::Published, _) | (_, TermBasis::Published) => TermBasis::Published,
        _ => TermBasis::Resembling,
    }
}

fn matrix_bytes(tensor_type: TensorType, inner: u64, rows: u64) -> Option<f64> {
    let row = tensor_type.bytes(inner)?;
    Some(row as f64 * rows as f64)
}

/// Also where rows are no whole blocks of the type.
fn matrix_bytes_about(tensor_type: TensorType, inner: u64, rows: u64) -> f64 {
    tensor_type.bits_per_weight() / 8.0 * inner as f64 * rows as f64
}
