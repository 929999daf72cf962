//! What published measurements teach of a kind of device.

use std::collections::BTreeMap;

use super::Family;
use super::footing::{Near, Throughput};
use super::work::{DecodeWork, PrefillWork};
use crate::device::Device;
use crate::public::{self, Phase};

/// A published measurement as something to learn from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Example<W> {
    pub(super) device: &'static Device,
    pub(super) weak: bool,
    pub(super) work: W,
    /// Of one decoded token, or of the whole prompt.
    pub(super) seconds: f64,
}

/// How much of a whole one a weak measurement counts.
const WEAK: f64 = 0.25;
/// So many devices all relatives of a kind count as, beside its own.
const RELATIVES: f64 = 0.5;
/// So many devices all other kinds count as, where it is judged how far off a kind's devices are.
const OTHERS: f64 = 2.0;
/// The share of devices that were left out which the band would have met.
pub(super) const MET: f64 = 0.95;
/// Shares of the peak bandwidth that are tried. More than 0.9 is not sustained by any memory.
const EFFICIENCIES: [f64; 11] = [
    0.40, 0.45, 0.50, 0.55, 0.60, 0.65, 0.70, 0.75, 0.80, 0.85, 0.90,
];

/// Every published measurement that can be learned from: the device and the model's shape known, all
/// layers on the device.
pub(super) fn examples() -> (Vec<Example<DecodeWork>>, Vec<Example<PrefillWork>>) {
    let (mut decode, mut prefill) = (Vec::new(), Vec::new());
    for row in public::rows() {
        let (Some(device), Some((weights, shape, question)), true) =
            (row.device(), row.work(), row.whole_on_device())
        else {
            continue;
        };
        let weak = row.weak;
        match row.test.phase {
            Phase::Decode => decode.extend(DecodeWork::of(&weights, &shape, &question).map(
                |work| Example {
                    device,
                    weak,
                    work,
                    seconds: 1.0 / row.speed.0,
                },
            )),
            Phase::Prefill => prefill.extend(PrefillWork::of(&weights, &shape, &question).map(
                |work| Example {
                    device,
                    weak,
                    work,
                    seconds: work.tokens / row.speed.0,
                },
            )),
        }
    }
    (decode, prefill)
}

/// How fast memory is read, and what a layer takes beside.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ReadRates {
    /// Share of the peak bandwidth that is reached.
    pub(super) efficiency: f64,
    /// What each layer adds: launching its operations, norms, waiting.
    pub(super) layer_seconds: f64,
}

impl ReadRates {
    pub(super) fn read_seconds(&self, device: &Device, bytes: f64) -> f64 {
        bytes / (device.bandwidth.0 as f64 * self.efficiency)
    }

    /// Of one decoded token.
    pub(super) fn seconds(&self, device: &Device, work: &DecodeWork) -> f64 {
        self.read_seconds(device, work.bytes()) + self.layer_seconds * work.layers
    }

    /// Of streaming the weights once for each micro-batch of a prompt.
    fn stream_seconds(&self, device: &Device, work: &PrefillWork) -> f64 {
        let batch =
            self.read_seconds(device, work.bytes_per_batch) + self.layer_seconds * work.layers;
        work.batches * batch
    }
}

/// What is known of a kind's decode.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct DecodeModel {
    pub(super) rates: ReadRates,
    pub(super) near: Near,
    /// Speeds are within this factor of what is expected.
    pub(super) band: f64,
    pub(super) devices: usize,
    pub(super) measurements: usize,
}

/// What is known of a kind's prefill.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PrefillModel {
    /// Throughput that is reached, as a share of the peak or in operations for a byte of bandwidth.
    pub(super) reached: f64,
    pub(super) throughput: Throughput,
    pub(super) stream: ReadRates,
    pub(super) near: Near,
    /// Speeds are within this factor of what is expected.
    pub(super) band: f64,
    pub(super) devices: usize,
    pub(super) measurements: usize,
}

impl PrefillModel {
    pub(super) fn seconds_per_flop(&self, device: &Device) -> f64 {
        // A model by peak is only asked of devices that have one.
        1.0 / (self.reached * self.throughput.base(device).unwrap_or(f64::NAN))
    }

    /// Of the whole prompt.
    pub(super) fn seconds(&self, device: &Device, work: &PrefillWork) -> f64 {
        work.flops * self.seconds_per_flop(device) + self.stream.stream_seconds(device, work)
    }
}

/// What is known of a kind of device.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Learned {
    pub(super) decode: Option<DecodeModel>,
    pub(super) by_peak: Option<PrefillModel>,
    pub(super) by_bandwidth: Option<PrefillModel>,
}

impl Learned {
    /// What is known of a device's prefill.
    pub(super) fn prefill(&self, device: &Device) -> Option<&PrefillModel> {
        let by_peak = device.peak_fp16_tflops.and(self.by_peak.as_ref());
        by_peak.or(self.by_bandwidth.as_ref())
    }
}

/// Learns what a set of measurements says of a kind.
pub(super) fn learn(
    decode: &[&Example<DecodeWork>],
    prefill: &[&Example<PrefillWork>],
    kind: &str,
) -> Learned {
    let by = |throughput| prefill_model(decode, prefill, kind, throughput);
    Learned {
        decode: decode_model(decode, kind),
        by_peak: by(Throughput::OfPeak),
        by_bandwidth: by(Throughput::WithBandwidth),
    }
}

fn decode_model(examples: &[&Example<DecodeWork>], kind: &str) -> Option<DecodeModel> {
    let pool = Pool::of(examples, kind, Near::Kind)?;
    let near = pool.near;
    let band = band(examples, kind, near, |training, held_out| {
        let pool = Pool::of(training, &held_out.kind, near).filter(|pool| pool.near == near)?;
        let rates = read_rates(&pool);
        Some(move |work: &DecodeWork| rates.seconds(held_out, work))
    })?;
    Some(DecodeModel {
        rates: read_rates(&pool),
        near,
        band,
        devices: pool.devices(),
        measurements: pool.measurements(),
    })
}

fn prefill_model(
    decode: &[&Example<DecodeWork>],
    prefill: &[&Example<PrefillWork>],
    kind: &str,
    throughput: Throughput,
) -> Option<PrefillModel> {
    let usable: Vec<_> = prefill
        .iter()
        .copied()
        .filter(|example| throughput.base(example.device).is_some())
        .collect();
    let pool = Pool::of(&usable, kind, Near::Kind)?;
    // Peaks of related kinds are stated on other terms (sparse or dense, which precision).
    if throughput == Throughput::OfPeak && pool.near != Near::Kind {
        return None;
    }
    let stream = read_rates(&Pool::of(decode, kind, Near::Kind)?);
    let near = pool.near;
    let band = band(&usable, kind, near, |training, held_out| {
        let others: Vec<_> = decode
            .iter()
            .copied()
            .filter(|example| example.device.name != held_out.name)
            .collect();
        let stream = read_rates(&Pool::of(&others, &held_out.kind, near)?);
        let pool = Pool::of(training, &held_out.kind, near).filter(|pool| pool.near == near)?;
        let reached = reached(&pool, throughput, &stream)?;
        let base = throughput.base(held_out)?;
        Some(move |work: &PrefillWork| {
            work.flops / (reached * base) + stream.stream_seconds(held_out, work)
        })
    })?;
    Some(PrefillModel {
        reached: reached(&pool, throughput, &stream)?,
        throughput,
        stream,
        near,
        band,
        devices: pool.devices(),
        measurements: pool.measurements(),
    })
}

/// The measurements that stand for a kind, with how much each counts.
struct Pool<'a, W> {
    members: Vec<(&'a Example<W>, f64)>,
    /// How near those are that count most.
    near: Near,
}

impl<'a, W> Pool<'a, W> {
    /// Those of the kind's own devices, each device counting as one, and those of its relatives, all
    /// together counting as half a device. With [`Near::Family`] its own are left out. `None` where
    /// there is neither.
    fn of(examples: &[&'a Example<W>], kind: &str, near: Near) -> Option<Self> {
        let family = Family::of(kind)?;
        let balanced = balanced(examples);
        let (own, others): (Vec<_>, Vec<_>) = balanced
            .into_iter()
            .partition(|(example, _)| example.device.kind == kind);
        let relatives: Vec<_> = others
            .into_iter()
            .filter(|(example, _)| Family::of(&example.device.kind) == Some(family))
            .collect();
        let own = if near == Near::Kind { own } else { Vec::new() };
        let near = if own.is_empty() {
            Near::Family
        } else {
            Near::Kind
        };
        let sum: f64 = relatives.iter().map(|(_, weight)| weight).sum();
        let scaled = relatives
            .into_iter()
            .map(|(example, weight)| (example, weight * RELATIVES / sum));
        let members: Vec<_> = own.into_iter().chain(scaled).collect();
        (!members.is_empty()).then_some(Self { members, near })
    }

    /// Those that the figures rest on: the kind's own, or where there are none its relatives'.
    fn base(&self) -> impl Iterator<Item = &'a Example<W>> {
        let kind = match self.near {
            Near::Kind => self
                .members
                .first()
                .map(|(example, _)| &example.device.kind),
            Near::Family => None,
        };
        let members = self.members.iter().map(|(example, _)| *example);
        members.filter(move |example| kind.is_none_or(|kind| example.device.kind == *kind))
    }

    fn devices(&self) -> usize {
        let names: std::collections::BTreeSet<_> = self
            .base()
            .map(|example| example.device.name.as_str())
            .collect();
        names.len()
    }

    fn measurements(&self) -> usize {
        self.base().count()
    }
}

/// Each measurement with how much it counts: each device as one, whatever the number of its
/// measurements; a device that only has weak ones as a quarter.
fn balanced<'a, W>(examples: &[&'a Example<W>]) -> Vec<(&'a Example<W>, f64)> {
    let counts = |example: &Example<W>| if example.weak { WEAK } else { 1.0 };
    let mut devices: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
    for example in examples {
        let (sum, best) = devices.entry(&example.device.name).or_default();
        *sum += counts(example);
        *best = best.max(counts(example));
    }
    let weight = |example: &Example<W>| {
        let (sum, best) = devices
            .get(example.device.name.as_str())
            .copied()
            .unwrap_or((1.0, 1.0));
        best * counts(example) / sum
    };
    examples
        .iter()
        .map(|example| (*example, weight(example)))
        .collect()
}

/// The share of the bandwidth and the constant of a layer that meet the measurements with the least
/// relative error, weighted. For one share the best constant is a weighted median.
fn read_rates(pool: &Pool<'_, DecodeWork>) -> ReadRates {
    let with = |efficiency: f64| {
        let ideal = ReadRates {
            efficiency,
            layer_seconds: 0.0,
        };
        let left_for_a_layer = pool.members.iter().map(|(example, weight)| {
            let left = example.seconds - ideal.seconds(example.device, &example.work);
            let layers = example.work.layers;
            (left / layers, weight * layers / example.seconds)
        });
        let layer_seconds = quantile(left_for_a_layer.collect(), 0.5).max(0.0);
        let rates = ReadRates {
            efficiency,
            layer_seconds,
        };
        let errors = pool.members.iter().map(|(example, weight)| {
            let expected = rates.seconds(example.device, &example.work);
            weight * (expected / example.seconds - 1.0).abs()
        });
        (errors.sum::<f64>(), rates)
    };
    let mut best = with(EFFICIENCIES[0]);
    for efficiency in &EFFICIENCIES[1..] {
        let (error, rates) = with(*efficiency);
        if error < best.0 {
            best = (error, rates);
        }
    }
    best.1
}

/// Throughput that is reached, in parts of `throughput`'s base: a weighted median of what is left of
/// a prompt's time when the weights have been streamed.
fn reached(
    pool: &Pool<'_, PrefillWork>,
    throughput: Throughput,
    stream: &ReadRates,
) -> Option<f64> {
    let slowness = pool.members.iter().filter_map(|(example, weight)| {
        let ideal = example.work.flops / throughput.base(example.device)?;
        let left = example.seconds - stream.stream_seconds(example.device, &example.work);
        Some((left.max(0.0) / ideal, weight * ideal / example.seconds))
    });
    let slowness = quantile(slowness.collect(), 0.5);
    (slowness > 0.0).then(|| 1.0 / slowness)
}

/// The factor within which devices were met that were left out, each in turn, in [`MET`] of all
/// cases: the kind's own devices, and all others counting as two.
fn band<'a, W, F>(
    examples: &[&'a Example<W>],
    kind: &str,
    near: Near,
    fit: impl Fn(&[&'a Example<W>], &'static Device) -> Option<F>,
) -> Option<f64>
where
    F: Fn(&W) -> f64,
{
    let weighted = balanced(examples);
    let mut devices: BTreeMap<&str, &'static Device> = BTreeMap::new();
    for example in examples {
        devices.insert(&example.device.name, example.device);
    }
    let (mut own, mut others) = (Vec::new(), Vec::new());
    for held_out in devices.into_values() {
        let training: Vec<_> = examples
            .iter()
            .copied()
            .filter(|example| example.device.name != held_out.name)
            .collect();
        let Some(seconds) = fit(&training, held_out) else {
            continue;
        };
        for (example, weight) in &weighted {
            if example.device.name == held_out.name {
                let off = (example.seconds / seconds(&example.work)).ln().abs();
                if near == Near::Kind && held_out.kind == kind {
                    own.push((off, *weight));
                } else {
                    others.push((off, *weight));
                }
            }
        }
    }
    let sum: f64 = others.iter().map(|(_, weight)| weight).sum();
    let scale = if sum > OTHERS { OTHERS / sum } else { 1.0 };
    own.extend(
        others
            .into_iter()
            .map(|(off, weight)| (off, weight * scale)),
    );
    (!own.is_empty()).then(|| quantile(own, MET).exp())
}

/// The value that a share of the weights does not exceed; 0 without values.
pub(super) fn quantile(mut values: Vec<(f64, f64)>, share: f64) -> f64 {
    values.sort_by(|a, b| a.0.total_cmp(&b.0));
    let wanted = share * values.iter().map(|(_, weight)| weight).sum::<f64>();
    let mut sum = 0.0;
    for (value, weight) in &values {
        sum += weight;
        // Sums of weights are not exact.
        if sum >= wanted - 1e-12 {
            return *value;
        }
    }
    values.last().map_or(0.0, |(value, _)| *value)
}
