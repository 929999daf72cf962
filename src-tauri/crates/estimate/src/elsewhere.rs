//! What to expect on another device, from published measurements of its kind.
//!
//! Decode is bytes / (peak bandwidth x the share of it that is reached) + a constant for each layer.
//! Prefill is operations / (throughput that is reached) + that same time to stream the weights once
//! for each micro-batch; the throughput is a share of the published peak, or where none is published
//! goes with the bandwidth. Nothing is fitted to a single measurement: shares and constants are
//! weighted medians over the devices of a kind, each device counting as one, and the band is how far
//! each device was met by what the others taught.
//!
//! Quantization decides the bytes and nothing else: a factor for types of few bits was tried and met
//! devices that were left out no better.

mod footing;
mod learn;
mod work;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use crate::device::{self, Device};
use crate::expected::{Expected, Term, TermBasis, What};
use crate::question::Question;
use crate::shape::Shape;
use crate::units::{Bytes, Flops, TokensPerSecond};
use crate::weights::{Role, Weights};

pub use footing::{Footing, Near, Throughput};

use learn::{Learned, examples, learn};
use work::{DecodeWork, PrefillWork};

/// Devices whose speeds have the same causes, by kind: published measurements of one stand in for
/// another where there are none of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Family {
    Nvidia,
    Apple,
    Amd,
    Intel,
    /// Processors: memory presets, single-board computers.
    Processor,
}

impl Family {
    fn of(kind: &str) -> Option<Self> {
        Some(match kind {
            "nvidia_gpu" | "nvidia_soc" | "nvidia_jetson" => Self::Nvidia,
            "apple_soc" => Self::Apple,
            "amd_gpu" | "amd_apu" => Self::Amd,
            "intel_gpu" | "intel_soc" => Self::Intel,
            "dram" | "sbc" | "arm_soc" => Self::Processor,
            _ => return None,
        })
    }
}

/// What all published measurements teach of a kind of device.
fn learned(kind: &str) -> Option<&'static Learned> {
    static LEARNED: LazyLock<BTreeMap<&'static str, Learned>> = LazyLock::new(|| {
        let (decode, prefill) = examples();
        let (decode, prefill): (Vec<_>, Vec<_>) =
            (decode.iter().collect(), prefill.iter().collect());
        let kinds: BTreeSet<_> = device::devices().iter().map(|d| d.kind.as_str()).collect();
        kinds
            .into_iter()
            .map(|kind| (kind, learn(&decode, &prefill, kind)))
            .collect()
    });
    LEARNED.get(kind)
}

/// What to expect on a device: decode and prefill, for one user with all of the model on the device.
///
/// `None` where published measurements say nothing: of several users, of part of the layers beside
/// the device, of kinds of device that nobody measured.
pub fn expected(
    device: &Device,
    weights: &Weights,
    shape: &Shape,
    question: &Question,
) -> (Option<Expected>, Option<Expected>) {
    let Some(learned) = learned(&device.kind) else {
        return (None, None);
    };
    if unlike_any(device, shape, question).is_some() {
        return (None, None);
    }
    (
        decode(learned, device, weights, shape, question),
        prefill(learned, device, weights, shape, question),
    )
}

/// What the expectations of a device rest on, or why there are none.
pub fn footing(device: &Device, shape: &Shape, question: &Question) -> Vec<Footing> {
    if let Some(why) = unlike_any(device, shape, question) {
        return vec![why];
    }
    let Some(learned) = learned(&device.kind) else {
        return Vec::new();
    };
    let decode = learned
        .decode
        .as_ref()
        .map(|model| Footing::decode(device, model));
    let prefill = learned
        .prefill(device)
        .map(|model| Footing::prefill(device, model));
    decode.into_iter().chain(prefill).collect()
}

/// Why a device cannot hold what is known to be needed, all of its sizes considered.
pub fn too_large(device: &Device, at_least: Bytes) -> Option<Footing> {
    let largest = *device.capacities.last()?;
    (at_least > largest).then(|| Footing::TooLarge {
        device: device.name.clone(),
        at_least,
        largest,
    })
}

/// Why no published measurement is like what is asked.
fn unlike_any(device: &Device, shape: &Shape, question: &Question) -> Option<Footing> {
    let processor = Family::of(&device.kind) == Some(Family::Processor);
    let part = usize::try_from(question.gpu_layers).is_ok_and(|layers| layers <= shape.trunk);
    if question.context.sequences > 1 {
        Some(Footing::SeveralUsers)
    } else if part && !processor {
        Some(Footing::PartOfTheLayers)
    } else {
        None
    }
}

fn decode(
    learned: &Learned,
    device: &Device,
    weights: &Weights,
    shape: &Shape,
    question: &Question,
) -> Option<Expected> {
    let model = learned.decode.as_ref()?;
    let work = DecodeWork::of(weights, shape, question)?;
    let read_ns = |bytes: Bytes| 1e9 * model.rates.read_seconds(device, bytes.0 as f64);
    let term = |what, bytes: Bytes| Term {
        what,
        ns: read_ns(bytes),
        bytes: Some(bytes),
        flops: None,
        basis: TermBasis::Published,
    };
    let mut terms: Vec<Term> = read_by_part(weights)
        .into_iter()
        .map(|(what, bytes)| term(what, bytes))
        .collect();
    terms.push(term(What::Attention, work.cache));
    terms.push(term(What::State, work.state));
    terms.push(Term {
        what: What::Layers,
        ns: 1e9 * model.rates.layer_seconds * work.layers,
        bytes: None,
        flops: None,
        basis: TermBasis::Published,
    });
    let ceiling = device.bandwidth.0 as f64 / work.bytes();
    finished(
        terms,
        1.0 / model.rates.seconds(device, &work),
        model.band,
        ceiling,
    )
}

fn prefill(
    learned: &Learned,
    device: &Device,
    weights: &Weights,
    shape: &Shape,
    question: &Question,
) -> Option<Expected> {
    let model = learned.prefill(device)?;
    let work = PrefillWork::of(weights, shape, question)?;
    let compute_ns = |flops: f64| 1e9 * flops * model.seconds_per_flop(device);
    let mut terms = Vec::new();
    let mut in_matrices = 0.0;
    for (what, flops, bytes) in work::matrices(weights, &work) {
        in_matrices += flops;
        terms.push(Term {
            what,
            ns: compute_ns(flops) + 1e9 * model.stream.read_seconds(device, bytes),
            bytes: Some(Bytes(bytes.round() as u64)),
            flops: Some(Flops(flops.round() as u64)),
            basis: TermBasis::Published,
        });
    }
    let attention = (work.flops - in_matrices).max(0.0);
    terms.push(Term {
        what: What::Attention,
        ns: compute_ns(attention),
        bytes: None,
        flops: Some(Flops(attention.round() as u64)),
        basis: TermBasis::Published,
    });
    terms.push(Term {
        what: What::Layers,
        ns: 1e9 * model.stream.layer_seconds * work.layers * work.batches,
        bytes: None,
        flops: None,
        basis: TermBasis::Published,
    });
    let seconds = model.seconds(device, &work);
    finished(terms, work.tokens / seconds, model.band, f64::INFINITY)
}

/// A speed with its band, which never exceeds what the bandwidth allows.
fn finished(mut terms: Vec<Term>, speed: f64, band: f64, ceiling: f64) -> Option<Expected> {
    terms.retain(|term| term.ns > 0.0);
    (speed.is_finite() && speed > 0.0 && band.is_finite()).then(|| Expected {
        speed: TokensPerSecond(speed),
        low: TokensPerSecond(speed / band),
        high: TokensPerSecond((speed * band).min(ceiling).max(speed)),
        terms,
    })
}

/// Bytes that a token reads, by what they are for; vectors (norms, biases) stand with the layers'
/// matrices of their type.
fn read_by_part(weights: &Weights) -> Vec<(What, Bytes)> {
    let mut parts: Vec<(What, Bytes)> = Vec::new();
    for (&tensor_type, &all) in &weights.read_per_token {
        let mut left = all;
        let of_type = weights
            .matrices
            .iter()
            .filter(|matrix| matrix.tensor_type == tensor_type);
        for matrix in of_type {
            let what = match matrix.role {
                Role::Output => What::Output { tensor_type },
                Role::Experts { .. } => What::Experts { tensor_type },
                Role::Layer | Role::LastFeedForward => continue,
            };
            let bytes = Bytes(work::bytes_for(matrix, 1.0).round() as u64);
            let bytes = bytes.min(left);
            left = Bytes(left.0 - bytes.0);
            match parts.iter_mut().find(|(part, _)| *part == what) {
                Some((_, sum)) => *sum += bytes,
                None => parts.push((what, bytes)),
            }
        }
        parts.push((What::Weights { tensor_type }, left));
    }
    parts
}

#[cfg(test)]
mod tests;
