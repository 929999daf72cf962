//! Speed twins: which layers of a model to build with random weights, and what the speeds of what
//! was built say of the whole model.
//!
//! A token's time is a part that every depth has (embedding, output) and a part that grows with
//! the layers. Two twins of different depth tell the two apart. Layers are not alike: attention
//! may be full or sliding, the feed-forward part dense or of experts, and a mixture of tensor types
//! gives some layers more bits. So a twin keeps the order of structures that the model begins with,
//! takes the types of each structure in the proportion that the whole model has, and what one
//! layer costs is scaled by its work: bytes for decode, operations for prefill.

use std::collections::HashMap;
use std::hash::Hash;

use twospeed_gguf::Model;

use crate::shape::{Layer, Shape};
use crate::units::Bytes;

/// Bytes of layers that the deeper twin should have at least: some hundred megabytes, so that
/// neither a cache nor the noise of a measurement decides.
const WORTH_MEASURING: u64 = 512 << 20;

/// The deeper twin's layers against the last-level cache, and the shallower's.
const DEEP_CACHES: f64 = 3.0;
const SHALLOW_CACHES: f64 = 1.5;

/// A last-level cache where the machine does not say.
const USUAL_CACHE: u64 = 32 << 20;

/// Fewest layers of the deeper twin.
const LEAST_DEEP: usize = 3;

/// The longest run of layers that is looked for as a period.
const LONGEST_PERIOD: usize = 16;

/// Layers before the period begins (dense ones before experts).
const LONGEST_LEAD: usize = 8;

/// How far a prediction may be off whatever the spread says: the machine of the next minute is
/// not that of this one. For a twin with all layers, and for one that had to be extrapolated.
const WHOLE_UNCERTAINTY: f64 = 0.03;
const EXTRAPOLATED_UNCERTAINTY: f64 = 0.05;

/// Standard errors on both sides of a band.
const BAND: f64 = 2.0;

/// The layers of a model, as far as a twin has to tell them apart.
#[derive(Debug, Clone, PartialEq)]
pub struct TwinLayers {
    /// By layer: which of the different structures it has.
    structures: Vec<usize>,
    /// By layer: which of the different choices of tensor types it has.
    mixes: Vec<usize>,
    /// By layer: bytes on disk.
    bytes: Vec<u64>,
    /// Bytes of what belongs to no layer.
    outside: u64,
    /// A part of each layer is chosen anew for each token.
    experts: bool,
    /// Layers can be left out and the rest is still a model.
    divisible: bool,
}

/// How deep the twins are to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depths {
    /// One twin with every layer.
    All,
    /// Two with so many layers.
    Two {
        /// Of the shallower.
        shallow: usize,
        /// Of the deeper.
        deep: usize,
    },
}

/// The smallest twin that says anything does not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLarge {
    /// Bytes of its file.
    pub needs: Bytes,
}

impl TwinLayers {
    /// What a header says of its layers; those that predict further tokens are left out.
    pub fn of(model: &Model) -> Self {
        let shape = Shape::from_model(model).ok();
        let count = trunk(model);
        let blocks = model.metadata().arch_u64("block_count").unwrap_or(0);
        // Where blocks run several times, or an encoder stands beside the decoder, the number of
        // layers says more than how many there are.
        let alike = |shape: &Shape| shape.layers.len() as u64 == blocks;
        let plain = |name: &str| !name.starts_with("enc.") && !name.starts_with("dec.");
        let divisible = shape.as_ref().is_none_or(alike)
            && model.tensors.iter().all(|tensor| plain(&tensor.name));

        let mut structures = vec![Vec::new(); count];
        let mut mixes = vec![Vec::new(); count];
        let mut bytes = vec![0u64; count];
        let mut outside = 0u64;
        for tensor in &model.tensors {
            let Some(layer) = tensor.layer() else {
                outside = outside.saturating_add(tensor.bytes);
                continue;
            };
            let layer = layer as usize;
            if layer >= count {
                continue;
            }
            let part = tensor.name.split_once("blk.").map_or("", |(_, rest)| rest);
            let part = part.split_once('.').map_or("", |(_, part)| part);
            structures[layer].push((part, &tensor.dimensions[..]));
            mixes[layer].push((part, tensor.tensor_type));
            bytes[layer] = bytes[layer].saturating_add(tensor.bytes);
        }
        for parts in &mut structures {
            parts.sort_unstable();
        }
        for parts in &mut mixes {
            parts.sort_unstable();
        }
        let kept = |layer: usize| {
            let shape = shape.as_ref().filter(|shape| alike(shape))?;
            shape.layers.get(layer).map(kind)
        };
        let structures: Vec<_> = structures
            .into_iter()
            .enumerate()
            .map(|(layer, parts)| (parts, kept(layer)))
            .collect();
        Self {
            structures: numbered(&structures),
            mixes: numbered(&mixes),
            bytes,
            outside,
            experts: model.metadata().arch_u64("expert_count").is_some(),
            divisible,
        }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.structures.len()
    }

    /// Whether tokens choose among experts.
    pub fn has_experts(&self) -> bool {
        self.experts
    }

    /// Bytes of a file with the layers of [`TwinLayers::choice`].
    pub fn bytes(&self, depth: usize) -> Bytes {
        let layers = self.choice(depth).into_iter();
        Bytes(self.outside + layers.map(|layer| self.bytes[layer as usize]).sum::<u64>())
    }

    /// The layers that a twin of `depth` layers is made of, by their place in the model.
    ///
    /// The structures are those of the first layers, in their order. Of the layers with the
    /// structure of a place, the one is taken whose tensor types are behind their share so far:
    /// the types of any run of places are those of the model, give or take a layer. The layers of
    /// a shallower twin are the first of those of a deeper one.
    pub fn choice(&self, depth: usize) -> Vec<u32> {
        // Of each structure: its choices of types with the layers that have them, and how often
        // each was taken.
        type Mixes = Vec<(usize, Vec<u32>, usize)>;
        let mut by_structure: HashMap<usize, Mixes> = HashMap::new();
        for (layer, (structure, mix)) in self.structures.iter().zip(&self.mixes).enumerate() {
            let mixes = by_structure.entry(*structure).or_default();
            match mixes.iter_mut().find(|(known, ..)| known == mix) {
                Some((_, layers, _)) => layers.push(layer as u32),
                None => mixes.push((*mix, vec![layer as u32], 0)),
            }
        }
        let take = |structure: &usize| {
            let mixes = by_structure.get_mut(structure)?;
            let all: usize = mixes.iter().map(|(_, layers, _)| layers.len()).sum();
            let placed: usize = mixes.iter().map(|(.., taken)| taken).sum();
            let behind = |(_, layers, taken): &(usize, Vec<u32>, usize)| {
                layers.len() as f64 / all as f64 * (placed + 1) as f64 - *taken as f64
            };
            let (_, layers, taken) = mixes
                .iter_mut()
                .max_by(|a, b| behind(a).total_cmp(&behind(b)))?;
            *taken += 1;
            layers.get((*taken - 1) % layers.len()).copied()
        };
        self.structures
            .iter()
            .take(depth)
            .filter_map(take)
            .collect()
    }

    /// How deep the twins should be: every layer of a small model; of a larger one two depths
    /// whose layers are `cache` several times over, and whose files are at most `at_most`.
    ///
    /// Depths are whole periods of the order of structures where that fits.
    /// Errors: not even the smallest pair fits.
    pub fn depths(&self, cache: Option<Bytes>, at_most: Bytes) -> Result<Depths, TooLarge> {
        let cache = cache.map_or(USUAL_CACHE, |cache| cache.0) as f64;
        let count = self.count();
        let whole = self.bytes(count);
        let mut wanted = WORTH_MEASURING.max((DEEP_CACHES * cache) as u64);
        if self.experts {
            // A token reads a part of them.
            wanted = wanted.saturating_mul(2);
        }
        let layers = |depth| self.bytes(depth).0 - self.outside;
        if (layers(count) <= wanted || count <= LEAST_DEEP || !self.divisible) && whole <= at_most {
            return Ok(Depths::All);
        }
        if count <= LEAST_DEEP || !self.divisible {
            return Err(TooLarge { needs: whole });
        }
        let (lead, period) = self.period();
        let wanted = wanted.min(at_most.0.saturating_sub(self.outside));
        let mut least = whole;
        for (lead, step) in [(lead, period), (lead, 1), (0, 1)] {
            let depth = |steps: usize| (lead + steps * step).min(count);
            let too_small = |steps: usize| {
                depth(steps) < LEAST_DEEP || (layers(depth(steps)) as f64) < DEEP_CACHES * cache
            };
            let mut deep = 2;
            while depth(deep) < count && (too_small(deep) || layers(depth(deep + 1)) <= wanted) {
                deep += 1;
            }
            let bytes = self.bytes(depth(deep));
            if bytes > at_most {
                least = least.min(bytes);
                continue;
            }
            if depth(deep) == count {
                return Ok(Depths::All);
            }
            let mut shallow = deep.div_ceil(3);
            while (layers(depth(shallow)) as f64) < SHALLOW_CACHES * cache && shallow + 1 < deep {
                shallow += 1;
            }
            return Ok(Depths::Two {
                shallow: depth(shallow),
                deep: depth(deep),
            });
        }
        Err(TooLarge { needs: least })
    }

    /// Whether a twin made of these layers is to the engine what the model is: each layer keeps
    /// and attends as the one it was taken from.
    pub fn same_kinds(model: &Model, twin: &Model, choice: &[u32]) -> bool {
        let (Ok(model), Ok(twin)) = (Shape::from_model(model), Shape::from_model(twin)) else {
            // What the rules do not know they cannot judge: the engine will.
            return true;
        };
        twin.layers.len() == choice.len()
            && choice.iter().zip(&twin.layers).all(|(from, made)| {
                let from = model.layers.get(*from as usize);
                from.is_some_and(|from| kind(from) == kind(made))
            })
    }

    /// Layers before the order of structures begins to repeat, and how many it repeats after;
    /// (0, 1) where it does not.
    fn period(&self) -> (usize, usize) {
        let all = &self.structures;
        let repeats = |lead: usize, period: usize| {
            let rest = &all[lead..];
            rest.len() >= 2 * period && rest.iter().zip(&rest[period..]).all(|(a, b)| a == b)
        };
        let mut candidates: Vec<_> = (0..=LONGEST_LEAD.min(all.len()))
            .flat_map(|lead| (1..=LONGEST_PERIOD).map(move |period| (lead, period)))
            .collect();
        candidates.sort_by_key(|(lead, period)| lead + period);
        candidates
            .into_iter()
            .find(|(lead, period)| repeats(*lead, *period))
            .unwrap_or((0, 1))
    }
}

/// Layers that every token passes.
fn trunk(model: &Model) -> usize {
    let key = |suffix| model.metadata().arch_u64(suffix).unwrap_or(0);
    let (blocks, next) = (key("block_count"), key("nextn_predict_layers"));
    let tensors = model.tensors.iter().filter_map(|tensor| tensor.layer());
    let highest = tensors.max().map_or(0, |highest| u64::from(highest) + 1);
    let trunk = if next < blocks { blocks - next } else { blocks };
    usize::try_from(trunk.min(highest)).unwrap_or(0)
}

/// What a layer is to the engine, whatever its place and its neighbours are.
fn kind(layer: &Layer) -> (u64, u64, u64, Vec<String>, u64, bool) {
    let stores = layer.stores.iter();
    let stores = stores.map(|store| {
        let value = store.value.map(|value| value.row);
        format!("{:?} {} {value:?}", store.kind, store.key)
    });
    (
        layer.heads,
        layer.head_key,
        layer.head_value,
        stores.collect(),
        layer.state,
        layer.reads.is_some(),
    )
}

/// Numbers for values, the same for equal ones.
fn numbered<T: Eq + Hash>(values: &[T]) -> Vec<usize> {
    let mut known = HashMap::new();
    values
        .iter()
        .map(|value| {
            let next = known.len();
            *known.entry(value).or_insert(next)
        })
        .collect()
}

/// What was measured with a twin.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TwinTime {
    /// Work for one token: bytes read, or operations.
    pub work: f64,
    /// Seconds for one token.
    pub seconds: f64,
    /// Standard error of the seconds; `None` where one sample has none.
    pub error: Option<f64>,
}

/// What twins let expect.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TwinPrediction {
    /// Tokens per second.
    pub tokens_per_second: f64,
    /// Lower end of the band.
    pub low: f64,
    /// Upper end of the band.
    pub high: f64,
}

impl TwinPrediction {
    /// From a twin with all layers: its speed, for the work that the question asks for.
    pub fn of_whole(twin: TwinTime, work: f64) -> Option<Self> {
        let scale = work / twin.work;
        Self::new(
            twin.seconds * scale,
            twin.error.map(|error| error * scale),
            WHOLE_UNCERTAINTY,
        )
    }

    /// From two twins, for a model of so much work.
    ///
    /// Seconds grow in a straight line with work; its slope is that between the twins. Where the
    /// deeper twin was not slower, noise was larger than the difference, and the whole of its time
    /// is taken to grow with work.
    pub fn of_two(shallow: TwinTime, deep: TwinTime, work: f64) -> Option<Self> {
        let reach = (work - deep.work) / (deep.work - shallow.work);
        let slope = deep.seconds - shallow.seconds;
        if slope.is_nan() || slope <= 0.0 || !reach.is_finite() {
            return Self::of_whole(deep, work);
        }
        let error = match (shallow.error, deep.error) {
            (Some(shallow), Some(deep)) => Some(((1.0 + reach) * deep).hypot(reach * shallow)),
            _ => None,
        };
        Self::new(
            deep.seconds + reach * slope,
            error,
            EXTRAPOLATED_UNCERTAINTY,
        )
    }

    fn new(seconds: f64, error: Option<f64>, uncertainty: f64) -> Option<Self> {
        if !seconds.is_finite() || seconds <= 0.0 {
            return None;
        }
        let spread = BAND * error.unwrap_or(0.0);
        let half = spread.hypot(uncertainty * seconds).min(0.9 * seconds);
        Some(Self {
            tokens_per_second: 1.0 / seconds,
            low: 1.0 / (seconds + half),
            high: 1.0 / (seconds - half),
        })
    }
}

#[cfg(test)]
mod tests {
    use twospeed_gguf::TensorType::{self, F32, Q4K, Q6K};

    use super::*;
    use crate::testing::model;

    const MIB: u64 = 1 << 20;

    /// So many layers of one matrix of 100 MiB and so many bits, on an embedding of 200 MiB.
    fn layers(types: &[TensorType]) -> TwinLayers {
        TwinLayers {
            structures: vec![0; types.len()],
            mixes: types.iter().map(|t| t.id() as usize).collect(),
            bytes: types.iter().map(|_| 100 * MIB).collect(),
            outside: 200 * MIB,
            experts: false,
            divisible: true,
        }
    }

    fn two(depths: Result<Depths, TooLarge>) -> (usize, usize) {
        match depths {
            Ok(Depths::Two { shallow, deep }) => (shallow, deep),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_small_model_is_built_whole_and_a_large_one_twice_in_part() {
        let room = Bytes::gib(8);
        let cache = Some(Bytes::mib(32));
        assert_eq!(layers(&[Q4K; 5]).depths(cache, room), Ok(Depths::All));
        // 512 MiB are five layers; a third of them, rounded up, is two.
        assert_eq!(two(layers(&[Q4K; 80]).depths(cache, room)), (2, 5));
    }

    #[test]
    fn both_twins_are_clearly_larger_than_the_cache() {
        let twins = layers(&[Q4K; 80]);
        let (shallow, deep) = two(twins.depths(Some(Bytes::mib(300)), Bytes::gib(8)));
        assert!(
            deep * 100 >= 900 && shallow * 100 >= 450,
            "{shallow} {deep}"
        );
        assert!(deep <= 10, "and no larger than that takes");
    }

    #[test]
    fn what_does_not_fit_is_said_with_its_size() {
        let twins = layers(&[Q4K; 80]);
        // Three layers and the embedding.
        let least = Bytes::mib(500);
        let cache = Some(Bytes::mib(32));
        assert_eq!(two(twins.depths(cache, least)), (1, 3));
        let refused = twins.depths(cache, Bytes::mib(499));
        assert_eq!(refused, Err(TooLarge { needs: least }));
    }

    #[test]
    fn types_stand_in_the_proportion_of_the_whole_model_in_every_run_of_layers() {
        // As in Q4_K_M: the first and last eighth have more bits, and every third between.
        let more = |layer: usize| !(4..28).contains(&layer) || (layer - 4) % 3 == 2;
        let types: Vec<_> = (0..32).map(|l| if more(l) { Q6K } else { Q4K }).collect();
        let share = types.iter().filter(|t| **t == Q6K).count() as f64 / 32.0;
        let twins = layers(&types);
        let choice = twins.choice(32);
        let mut all = choice.clone();
        all.sort_unstable();
        assert_eq!(all, (0..32).collect::<Vec<_>>(), "each layer once");
        for (start, end) in [(0, 4), (4, 12), (0, 12), (12, 32)] {
            let run = &choice[start..end];
            let found = run.iter().filter(|layer| more(**layer as usize)).count();
            let expected = share * run.len() as f64;
            assert!(
                (found as f64 - expected).abs() <= 1.0,
                "{start}..{end}: {found}"
            );
        }
        assert_eq!(
            twins.choice(5),
            choice[..5],
            "the shallower is a part of the deeper"
        );
    }

    #[test]
    fn depths_are_whole_periods_after_the_lead() {
        // Two dense layers, then five that slide for each that does not.
        let mut twins = layers(&[Q4K; 38]);
        twins.bytes = vec![10 * MIB; 38];
        twins.structures = (0..38)
            .map(|layer| match layer {
                0 | 1 => 0,
                _ if (layer - 2) % 6 == 5 => 2,
                _ => 1,
            })
            .collect();
        twins.bytes[2..].fill(20 * MIB);
        let (shallow, deep) = two(twins.depths(Some(Bytes::mib(32)), Bytes::gib(8)));
        assert_eq!((shallow, deep), (2 + 12, 2 + 24));
        // Without room for two periods, for what there is room.
        let (shallow, deep) = two(twins.depths(Some(Bytes::mib(8)), Bytes::mib(400)));
        assert!(deep < 14 && shallow < deep, "{shallow} {deep}");
    }

    #[test]
    fn layers_are_told_apart_by_what_the_architecture_makes_of_them() {
        let tensors: Vec<_> = (0..12)
            .map(|layer| (format!("blk.{layer}.attn_q.weight"), F32, &[8u64, 8][..]))
            .collect();
        let keys = [
            ("block_count", 12),
            ("embedding_length", 8),
            ("context_length", 4096),
            ("attention.head_count", 2),
            ("attention.sliding_window", 512),
        ];
        let gemma = TwinLayers::of(&model("gemma3", &keys, &tensors));
        // Gemma 3: one full layer ends each six.
        assert_eq!(gemma.structures, [0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1]);
        assert_eq!(gemma.period(), (0, 6));
        let llama = TwinLayers::of(&model("llama", &keys, &tensors));
        assert_eq!(llama.structures, [0; 12]);
        assert_eq!(llama.period(), (0, 1));
    }

    fn time(work: f64, seconds: f64, error: f64) -> TwinTime {
        TwinTime {
            work,
            seconds,
            error: Some(error),
        }
    }

    #[test]
    fn the_line_through_two_twins_leads_to_the_whole() {
        // 10 ms for the output and 2 ms a layer: 4 and 12 layers are 18 and 34 ms, 80 are 170 ms.
        let predicted =
            TwinPrediction::of_two(time(4.0, 0.018, 0.0), time(12.0, 0.034, 0.0), 80.0).unwrap();
        assert!((1.0 / predicted.tokens_per_second - 0.170).abs() < 1e-12);
        assert!((1.0 / predicted.low - 0.170 * 1.05).abs() < 1e-9);
    }

    #[test]
    fn noise_counts_the_more_the_farther_the_line_leads() {
        let near = TwinPrediction::of_two(time(4.0, 0.018, 1e-4), time(12.0, 0.034, 1e-4), 16.0);
        let far = TwinPrediction::of_two(time(4.0, 0.018, 1e-4), time(12.0, 0.034, 1e-4), 200.0);
        let width = |p: TwinPrediction| (p.high - p.low) / p.tokens_per_second;
        assert!(width(far.unwrap()) > width(near.unwrap()));
        // By hand: the reach is (200 - 12) / 8 = 23.5, the error 1e-4 x sqrt(24.5² + 23.5²) =
        // 3.395 ms, twice that 6.79 ms; 5 % of 410 ms are 20.5 ms; together 21.6 ms.
        let slowest = 1.0 / far.unwrap().low;
        assert!((slowest - (0.410 + 0.021_595)).abs() < 2e-5, "{slowest}");
    }

    #[test]
    fn twins_that_noise_turned_round_still_say_something() {
        let predicted =
            TwinPrediction::of_two(time(4.0, 0.020, 0.0), time(12.0, 0.019, 0.0), 24.0).unwrap();
        assert!((1.0 / predicted.tokens_per_second - 0.038).abs() < 1e-12);
        assert!(TwinPrediction::of_whole(time(1.0, 0.0, 0.0), 1.0).is_none());
    }
}
