//! What lies where: the engine's own numbers, and from its log what it tells nowhere else.

use twospeed_engine::protocol::{Buffer, BufferUse, Placement};

use crate::breakdown::Part;
use crate::log::Line;

/// The log prints MiB with two decimals.
const ROUNDING: u64 = 5_243;

/// What the log of loading and of making a context says.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Told {
    buffers: Vec<Buffer>,
    offloaded: Option<(u32, u32)>,
    flash_attention: Option<bool>,
}

impl Told {
    /// Reads lines, in the order they were logged.
    pub fn read<'a>(lines: impl IntoIterator<Item = &'a Line>) -> Self {
        let mut told = Self::default();
        for line in lines {
            told.line(&line.text);
        }
        told
    }

    fn line(&mut self, line: &str) {
        // Each line begins with the name of the function that wrote it.
        let text = line.split_once(": ").map_or(line, |(_, text)| text).trim();
        if let Some(buffer) = buffer(text) {
            add(&mut self.buffers, buffer);
        } else if let Some(counts) = offloaded(text) {
            self.offloaded = Some(counts);
        } else if let Some(choice) = flash_attention(text) {
            self.flash_attention = choice;
        }
    }

    fn bytes(&self, holds: BufferUse, device: &str) -> Option<u64> {
        let buffer = self
            .buffers
            .iter()
            .find(|buffer| buffer.holds == holds && buffer.device == device)?;
        Some(buffer.bytes)
    }
}

/// Sizes are added where one name comes twice: two caches of one model log under one name.
fn add(buffers: &mut Vec<Buffer>, more: Buffer) {
    match buffers
        .iter_mut()
        .find(|buffer| buffer.holds == more.holds && buffer.device == more.device)
    {
        Some(buffer) => buffer.bytes += more.bytes,
        None => buffers.push(more),
    }
}

/// `CPU KV buffer size =    60.00 MiB`
fn buffer(text: &str) -> Option<Buffer> {
    let (what, size) = text.split_once(" buffer size = ")?;
    let (device, what) = what.trim().split_once(char::is_whitespace)?;
    let holds = match what.trim() {
        "model" => BufferUse::Model,
        "KV" => BufferUse::Kv,
        "RS" => BufferUse::State,
        "compute" => BufferUse::Compute,
        "output" => BufferUse::Output,
        what if what.ends_with(" state") => BufferUse::State,
        _ => return None,
    };
    let mib: f64 = size.trim().strip_suffix(" MiB")?.trim().parse().ok()?;
    Some(Buffer {
        device: device.to_owned(),
        holds,
        bytes: (mib * 1024.0 * 1024.0).round() as u64,
    })
}

/// `offloaded 10/33 layers to GPU`
fn offloaded(text: &str) -> Option<(u32, u32)> {
    let counts = text
        .strip_prefix("offloaded ")?
        .strip_suffix(" layers to GPU")?;
    let (on_gpu, all) = counts.split_once('/')?;
    Some((on_gpu.parse().ok()?, all.parse().ok()?))
}

/// What was asked for, or what became of `auto`; the later line counts.
fn flash_attention(text: &str) -> Option<Option<bool>> {
    if let Some((name, value)) = text.split_once('=')
        && name.trim() == "flash_attn"
    {
        return match value.trim() {
            "enabled" => Some(Some(true)),
            "disabled" => Some(Some(false)),
            _ => Some(None),
        };
    }
    match text {
        "Flash Attention enabled" => Some(Some(true)),
        "Flash Attention not supported, set to disabled" => Some(Some(false)),
        _ => None,
    }
}

/// A context, made in `context_ns`, with room for `n_ctx` tokens.
///
/// Sizes are the breakdown's where it has them. It knows cache and state only as one sum: where a
/// device holds both, the log's rounded state is taken and the cache is the rest, so that the sum is
/// exact. `logits_bytes` is what the output buffer should be, taken where the log agrees.
pub fn placement(
    told: &Told,
    parts: &[Part],
    context_ns: u64,
    n_ctx: u32,
    logits_bytes: u64,
) -> Placement {
    let mut buffers = Vec::new();
    let mut push = |device: &str, holds, bytes| {
        if bytes > 0 {
            buffers.push(Buffer {
                device: device.to_owned(),
                holds,
                bytes,
            });
        }
    };
    for part in parts {
        push(&part.device, BufferUse::Model, part.model);
    }
    for part in parts {
        let kv = told.bytes(BufferUse::Kv, &part.device).unwrap_or(0);
        let state = told.bytes(BufferUse::State, &part.device).unwrap_or(0);
        let state = if kv == 0 && state > 0 {
            part.context
        } else {
            state.min(part.context)
        };
        push(&part.device, BufferUse::Kv, part.context - state);
        push(&part.device, BufferUse::State, state);
    }
    for part in parts {
        push(&part.device, BufferUse::Compute, part.compute);
    }
    for buffer in &told.buffers {
        let in_parts = !parts.is_empty() && buffer.holds != BufferUse::Output;
        let bytes = match buffer.holds {
            BufferUse::Output if buffer.bytes.abs_diff(logits_bytes) <= ROUNDING => logits_bytes,
            _ => buffer.bytes,
        };
        if !in_parts {
            push(&buffer.device, buffer.holds, bytes);
        }
    }
    Placement {
        context_ns,
        n_ctx,
        offloaded_layers: told.offloaded.map(|(on_gpu, _)| on_gpu),
        total_layers: told.offloaded.map(|(_, all)| all),
        flash_attention: told.flash_attention,
        buffers,
    }
}
