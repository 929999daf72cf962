//! What lies where: the engine's own numbers, and from its log what it tells nowhere else.

use twospeed_engine::protocol::{Buffer, BufferUse, Placement};

use crate::breakdown::Part;
use crate::log::Line;

/// The log prints MiB with two decimals.
const ROUNDING: u64 = 5_243;

/// Buffers that log under one name for one device, at most (DeepSeek V4's three states).
const MOST_OF_ONE_NAME: u64 = 3;

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

    /// The devices that hold this.
    pub fn devices(&self, holds: BufferUse) -> impl Iterator<Item = &str> {
        let held = self.buffers.iter();
        held.filter(move |buffer| buffer.holds == holds)
            .map(|buffer| buffer.device.as_str())
    }

    /// Whether a device holds a cache and a recurrent state, which the engine's breakdown tells as
    /// one sum.
    pub fn keeps_both(&self) -> bool {
        self.devices(BufferUse::State)
            .any(|device| self.bytes(BufferUse::Kv, device).is_some())
    }

    /// Whether the log, as it rounds, says so many bytes for this.
    pub fn agrees(&self, holds: BufferUse, device: &str, bytes: u64) -> bool {
        let told = self.bytes(holds, device);
        told.is_some_and(|told| told.abs_diff(bytes) <= MOST_OF_ONE_NAME * ROUNDING)
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
/// device holds both, the state is taken from `states` (see [`crate::foresee::states`]), else as the
/// log rounds it, and the cache is the rest, so that the sum is exact. `output_bytes` is what the
/// output buffer should be, taken where the log agrees.
pub fn placement(
    told: &Told,
    parts: &[Part],
    states: &[(String, u64)],
    context_ns: u64,
    n_ctx: u32,
    output_bytes: u64,
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
        // Without weights the log counts every cache as 0 bytes, and small states are 0 as well:
        // that there is a line is what counts.
        let kv = told.bytes(BufferUse::Kv, &part.device);
        let state = match (kv, told.bytes(BufferUse::State, &part.device)) {
            (_, None) => 0,
            (None, Some(_)) => part.context,
            (Some(_), Some(rounded)) => {
                let exact = states.iter().find(|(device, _)| *device == part.device);
                exact.map_or(rounded, |(_, bytes)| *bytes).min(part.context)
            }
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
            BufferUse::Output if buffer.bytes.abs_diff(output_bytes) <= ROUNDING => output_bytes,
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

#[cfg(test)]
mod tests {
    use super::*;
    use BufferUse::{Compute, Kv, Model, Output, State};

    // Lines of build 11434 with a context of 4,096 tokens, on the reference machine.
    const SMOLLM2: &str = "\
load_tensors:   CPU_Mapped model buffer size =    92.10 MiB
llama_context: n_ctx                 = 4096
llama_context: flash_attn            = auto
llama_context:        CPU  output buffer size =     0.19 MiB
llama_kv_cache:        CPU KV buffer size =    90.00 MiB
resolve_fused_ops: Flash Attention enabled
sched_reserve:        CPU compute buffer size =   106.77 MiB
";
    const GEMMA3: &str = "\
load_tensors:   CPU_Mapped model buffer size =   235.16 MiB
load_tensors:   CPU_REPACK model buffer size =    12.66 MiB
llama_context: flash_attn            = auto
llama_context:        CPU  output buffer size =     1.00 MiB
llama_kv_cache_iswa: creating non-SWA KV cache, size = 4096 cells
llama_kv_cache:        CPU KV buffer size =    12.00 MiB
llama_kv_cache_iswa: creating     SWA KV cache, size = 1024 cells
llama_kv_cache:        CPU KV buffer size =    15.00 MiB
resolve_fused_ops: Flash Attention enabled
sched_reserve:        CPU compute buffer size =   524.53 MiB
";
    const OFFLOADED: &str = "\
load_tensors: offloading 9 repeating layers to GPU
load_tensors: offloaded 10/33 layers to GPU
load_tensors:   CPU_Mapped model buffer size =  3000.00 MiB
load_tensors:      Vulkan0 model buffer size =  1200.50 MiB
llama_context: flash_attn            = disabled
llama_kv_cache:    Vulkan0 KV buffer size =   144.00 MiB
llama_memory_recurrent:    Vulkan0 RS buffer size =     0.26 MiB
";

    fn told(log: &str) -> Told {
        let lines: Vec<Line> = log.lines().map(Line::info).collect();
        Told::read(&lines)
    }

    fn sizes(placement: &Placement) -> Vec<(&str, BufferUse, u64)> {
        placement
            .buffers
            .iter()
            .map(|buffer| (buffer.device.as_str(), buffer.holds, buffer.bytes))
            .collect()
    }

    fn part(device: &str, model: u64, context: u64, compute: u64) -> Part {
        Part {
            device: device.into(),
            host: true,
            model,
            context,
            compute,
        }
    }

    fn mib(count: f64) -> u64 {
        (count * 1_048_576.0).round() as u64
    }

    #[test]
    fn the_log_alone_tells_every_buffer_as_it_rounds_it() {
        let placement = placement(&told(SMOLLM2), &[], &[], 5, 4096, 49_152 * 4);
        assert_eq!(
            sizes(&placement),
            [
                ("CPU_Mapped", Model, mib(92.10)),
                // 49,152 entries of 4 bytes, which the log rounds to 0.19 MiB.
                ("CPU", Output, 196_608),
                ("CPU", Kv, mib(90.0)),
                ("CPU", Compute, mib(106.77)),
            ]
        );
        assert_eq!((placement.context_ns, placement.n_ctx), (5, 4096));
        assert_eq!(placement.flash_attention, Some(true), "auto came to on");
        assert_eq!(
            placement.offloaded_layers, None,
            "a build without a GPU says nothing of it"
        );
    }

    #[test]
    fn the_breakdown_makes_the_sizes_exact() {
        // The bytes that llama.cpp's own memory breakdown gives for this model and context.
        let parts = [
            part("CPU_REPACK", 13_271_040, 0, 0),
            part("CPU_Mapped", 246_587_904, 0, 0),
            part("CPU", 0, 28_311_552, 550_008_832),
        ];
        let placement = placement(&told(GEMMA3), &parts, &[], 0, 4096, 262_144 * 4);
        assert_eq!(
            sizes(&placement),
            [
                ("CPU_REPACK", Model, 13_271_040),
                ("CPU_Mapped", Model, 246_587_904),
                ("CPU", Kv, 28_311_552),
                ("CPU", Compute, 550_008_832),
                ("CPU", Output, 1_048_576),
            ]
        );
    }

    #[test]
    fn two_caches_of_one_name_are_added() {
        assert_eq!(told(GEMMA3).bytes(Kv, "CPU"), Some(mib(27.0)));
    }

    #[test]
    fn layers_on_a_gpu_and_recurrent_state_are_told_apart() {
        let told = told(OFFLOADED);
        let parts = [
            part("CPU_Mapped", mib(3000.0), 0, 0),
            part("Vulkan0", mib(1200.5), mib(144.26), 0),
        ];
        let placement = placement(&told, &parts, &[], 0, 4096, 0);
        assert_eq!(
            (placement.offloaded_layers, placement.total_layers),
            (Some(10), Some(33))
        );
        assert_eq!(placement.flash_attention, Some(false));
        assert_eq!(
            sizes(&placement)[2..],
            [
                ("Vulkan0", Kv, mib(144.26) - mib(0.26)),
                ("Vulkan0", State, mib(0.26)),
            ]
        );
    }

    // LFM2 of the tests' tiny models, loaded without weights: build 11434.
    const HYBRID: &str = "\
llama_context:        CPU  output buffer size =     0.00 MiB
llama_kv_cache:        CPU KV buffer size =     0.00 MiB
llama_memory_recurrent:        CPU RS buffer size =     0.00 MiB
sched_reserve:        CPU compute buffer size =     1.25 MiB
";

    #[test]
    fn a_state_that_the_log_rounds_away_is_told_from_the_cache_to_the_byte() {
        let told = told(HYBRID);
        assert!(told.keeps_both());
        let parts = [part("CPU", 1_000_000, 4_194_304 + 2_048, 1_310_720)];
        let states = [("CPU".to_owned(), 2_048)];
        let of = placement(&told, &parts, &states, 0, 4096, 512);
        assert_eq!(
            sizes(&of)[1..],
            [
                ("CPU", Kv, 4_194_304),
                ("CPU", State, 2_048),
                ("CPU", Compute, 1_310_720),
                ("CPU", Output, 512),
            ]
        );
        assert!(told.agrees(State, "CPU", 2_048));
        assert!(
            !told.agrees(State, "CPU", 1 << 20),
            "no rounding hides that"
        );
        assert!(!told.agrees(State, "Vulkan0", 0), "nothing is there");
    }

    #[test]
    fn what_is_recurrent_alone_keeps_its_state_whatever_the_log_rounds() {
        let log = "llama_memory_recurrent:        CPU RS buffer size =     0.00 MiB";
        let of = placement(&told(log), &[part("CPU", 0, 3_000, 0)], &[], 0, 4096, 0);
        assert_eq!(sizes(&of), [("CPU", State, 3_000)]);
    }

    #[test]
    fn lines_that_only_resemble_a_buffer_are_left_alone() {
        let lines = "\
~llama_context:        CPU compute buffer size is  106.7700 MiB, matches expectation of  106.7700 MiB
llama_kv_cache: size =   90.00 MiB (  4096 cells,  30 layers,  1/1 seqs), K (f16):   45.00 MiB
CPU buffer size = soon
";
        assert_eq!(told(lines), Told::default());
    }
}
