//! Estimates in the page's words.

use twospeed_estimate::{
    Bytes, Cache, CachePart, Calibration, ContextSettings, Estimate, MemorySource, Note, Shape,
    StoreKind, Term, TermBasis, TokensPerSecond, What, WouldFit,
};
use twospeed_library::display::shown;

use crate::estimate::*;

/// An estimate as the page shows it, without what only the app knows.
pub(super) fn view(
    request: EstimateRequest,
    empty: &Estimate,
    full: Option<&(u32, Estimate)>,
    shape: Option<&Shape>,
    context: &ContextSettings,
) -> EstimateView {
    let depths = std::iter::once((0, empty)).chain(full.map(|(depth, said)| (*depth, said)));
    let refused = empty.basis.notes.iter().find_map(|note| match note {
        Note::Context(error) => Some(error.to_string()),
        _ => None,
    });
    EstimateView {
        of: request.of,
        at: request.at,
        memory: memory(empty),
        cache: shape.map_or_else(Vec::new, |shape| parts(shape, context)),
        cache_bytes_per_token: empty.memory.kv_bytes_per_cached_token.map(|bytes| bytes.0),
        refused,
        weight_bytes_per_token: empty.decode.weight_bytes_per_token.map(|bytes| bytes.0),
        decode_ceiling: empty.decode.ceiling_tok_s.map(|speed| speed.0),
        speeds: depths
            .map(|(depth, said)| SpeedsAt {
                depth,
                prefill: predicted_prefill(said),
                decode: predicted_decode(said),
                kv_read_bytes: said.decode.kv_read_bytes_per_token.map(|bytes| bytes.0),
            })
            .collect(),
        decode_parts: time_parts(&empty.decode.breakdown),
        prefill_parts: time_parts(&empty.prefill.breakdown),
        basis: BasisView {
            calibrated: None,
            why_not: None,
            corrected_by_runs: u32::try_from(empty.basis.corrected_by_runs).unwrap_or(u32::MAX),
        },
        twin: None,
        notes: notes(empty),
    }
}

fn memory(said: &Estimate) -> MemoryView {
    let memory = &said.memory;
    let bytes = |bytes: Option<Bytes>| bytes.map(|bytes| bytes.0);
    MemoryView {
        weights_bytes: bytes(memory.weights_bytes),
        kv_bytes: bytes(memory.kv_bytes),
        state_bytes: bytes(memory.state_bytes),
        compute_bytes: bytes(memory.compute_bytes),
        output_bytes: bytes(memory.output_bytes),
        total_bytes: bytes(memory.total_bytes),
        at_least_bytes: memory.lower_bound.0,
        free_bytes: bytes(memory.available_bytes),
        fits: memory.fits,
        source: match memory.source {
            MemorySource::Engine => MemoryFrom::Engine,
            MemorySource::Formula => MemoryFrom::Formula,
        },
        instead: Vec::new(),
    }
}

/// What the page does not show in another way.
fn notes(said: &Estimate) -> Vec<String> {
    let shows_it = |note: &&Note| {
        !matches!(
            note,
            Note::Context(_)
                | Note::Bandwidth(_)
                | Note::ComputeUnknown
                | Note::TooLarge { .. }
                | Note::ContextTooShort { .. }
        )
    };
    let notes = said.basis.notes.iter().filter(shows_it);
    notes.map(|note| shown(&note.to_string())).collect()
}

/// The expected prefill, where there is one.
pub(super) fn predicted_prefill(said: &Estimate) -> Option<Predicted> {
    let prefill = &said.prefill;
    predicted(
        prefill.expected_tok_s,
        prefill.expected_low,
        prefill.expected_high,
    )
}

/// The expected decode, where there is one.
pub(super) fn predicted_decode(said: &Estimate) -> Option<Predicted> {
    let decode = &said.decode;
    predicted(
        decode.expected_tok_s,
        decode.expected_low,
        decode.expected_high,
    )
}

fn predicted(
    speed: Option<TokensPerSecond>,
    low: Option<TokensPerSecond>,
    high: Option<TokensPerSecond>,
) -> Option<Predicted> {
    Some(Predicted {
        tok_s: speed?.0,
        low: low?.0,
        high: high?.0,
    })
}

fn time_parts(terms: &[Term]) -> Vec<TimePart> {
    let all: f64 = terms.iter().map(|term| term.ns).sum();
    let part = |term: &Term| {
        let (what, tensor_type) = match term.what {
            What::Weights { tensor_type } => (TimeOf::Weights, Some(tensor_type)),
            What::Experts { tensor_type } => (TimeOf::Experts, Some(tensor_type)),
            What::Output { tensor_type } => (TimeOf::Output, Some(tensor_type)),
            What::Attention => (TimeOf::Attention, None),
            What::State => (TimeOf::State, None),
            What::Layers => (TimeOf::Layers, None),
            What::Step => (TimeOf::Step, None),
        };
        TimePart {
            what,
            tensor_type: tensor_type.map(|one| one.name().to_owned()),
            ms: term.ns / 1e6,
            share: term.ns / all,
            measured: term.basis == TermBasis::Measured,
        }
    };
    let takes_time = |term: &&Term| term.ns > 0.0;
    terms.iter().filter(takes_time).map(part).collect()
}

/// How the cache comes to its size; nothing where the engine refuses the settings.
fn parts(shape: &Shape, context: &ContextSettings) -> Vec<CachePartView> {
    let Ok(cache) = Cache::of(shape, context) else {
        return Vec::new();
    };
    let parts = cache.parts.iter();
    parts.map(|part| cache_part(shape, part)).collect()
}

fn cache_part(shape: &Shape, part: &CachePart) -> CachePartView {
    let layers = || {
        part.layers.iter().filter_map(|at| {
            let layer = shape.layers.get(*at)?;
            let store = layer.stores.iter().find(|store| store.kind == part.kind)?;
            Some((layer, store))
        })
    };
    let key = same(layers().map(|(_, store)| store.key));
    let value = same(layers().map(|(_, store)| store.value.map_or(0, |value| value.row)));
    let head = same(layers().map(|(layer, _)| layer.head_key));
    let heads = key.zip(head).and_then(|(key, head)| {
        let whole = head > 0 && key % head == 0;
        whole.then(|| key / head)
    });
    let cells = part.cells.saturating_mul(part.streams);
    let bytes = (part.keys + part.values).0;
    let count = part.layers.len();
    let rows = cells as f64 * count as f64;
    CachePartView {
        kind: match part.kind {
            StoreKind::Full => CacheKind::Full,
            StoreKind::Window => CacheKind::Window,
            StoreKind::Indexer => CacheKind::Indexer,
            StoreKind::Compressed(_) | StoreKind::CompressedIndexer(_) => CacheKind::Compressed,
        },
        layers: u32::try_from(count).unwrap_or(u32::MAX),
        cells,
        kv_heads: heads.filter(|_| matches!(part.kind, StoreKind::Full | StoreKind::Window)),
        key_elements: key,
        value_elements: value,
        cell_bytes: if rows > 0.0 { bytes as f64 / rows } else { 0.0 },
        bytes,
    }
}

/// What all of them are, where they are one.
fn same(mut all: impl Iterator<Item = u64>) -> Option<u64> {
    let first = all.next()?;
    all.all(|other| other == first).then_some(first)
}

/// What would fit, each change by itself.
pub(super) fn instead(ways: &WouldFit) -> Vec<Instead> {
    let context = ways.context.and_then(|tokens| u32::try_from(tokens).ok());
    let users = ways.sequences.and_then(|users| u32::try_from(users).ok());
    let ways = [
        context.map(|tokens| Instead::Context { tokens }),
        ways.kv_type.map(|cache| Instead::Cache {
            cache: cache.to_string(),
        }),
        users.map(|users| Instead::Users { users }),
    ];
    ways.into_iter().flatten().collect()
}

/// Which calibration it is.
pub(super) fn calibrated_at(calibration: &Calibration) -> CalibratedAt {
    CalibratedAt {
        at: calibration.at.clone(),
        variant: shown(&calibration.variant),
        threads: calibration.threads,
    }
}
