/** Estimates of the fake backend: round numbers that hang together as the real ones do. */
import type {
  EstimateRequest,
  EstimateView,
  Job,
  Looked,
  ModelGroup,
  ModelRow,
  Predicted,
  Problem,
  TwinView,
} from "../bindings";
import type { Fake } from "../fake";

/** What is remembered beside the world, by the fake that it belongs to. */
interface Memory {
  looked: Map<string, Looked>;
  twins: Map<string, TwinView>;
}

const memories = new WeakMap<Fake, Memory>();

function memory(fake: Fake): Memory {
  const known = memories.get(fake) ?? { looked: new Map(), twins: new Map() };
  memories.set(fake, known);
  return known;
}

function refuse(code: string, message: string): never {
  const problem: Problem = { code, message, details: null };
  throw problem;
}

interface Subject {
  row: Partial<ModelRow>;
  group: Pick<ModelGroup, "context_length" | "active_parameters">;
  bytes: number;
}

function subject(fake: Fake, of: string): Subject {
  const looked = memory(fake).looked.get(of);
  if (looked) {
    const row: Partial<ModelRow> = {
      prefill_expected: { tok_s: 13, low: 10, high: 16 },
      decode_expected: { tok_s: 6.8, low: 5.8, high: 7.8 },
      decode_ceiling: 8.9,
    };
    return { row, group: looked, bytes: looked.file_bytes ?? 0 };
  }
  for (const group of fake.world.models.groups) {
    const row = group.rows.find((each) => each.id === of);
    if (!row) continue;
    if (row.place.place === "can_be_downloaded" && !memory(fake).twins.has(of))
      refuse("header_unknown", "What it takes is known when its header has been looked at.");
    return { row, group, bytes: row.file_bytes ?? 0 };
  }
  refuse("row_unknown", "This model is not in the list any more. Scan the folders again.");
}

function scaled(speed: Predicted | null | undefined, by: number): Predicted | null {
  if (!speed) return null;
  return { tok_s: speed.tok_s * by, low: speed.low * by * 0.97, high: speed.high * by * 1.03 };
}

const LAYERS = 30;
const HEADS = 3;
const HEAD = 64;
const valueBytes: Record<string, number> = { f16: 2, q8_0: 34 / 32, q4_0: 18 / 32 };

/** What a model takes with some settings, and how fast it is said to be. */
export function estimate(fake: Fake, { of, at, exact }: EstimateRequest): EstimateView {
  const { row, bytes } = subject(fake, of);
  const cells = Math.ceil(at.context / 256) * 256;
  const cell = HEADS * HEAD * 2 * (valueBytes[at.cache] ?? 2);
  const kv = Math.round(LAYERS * cells * cell);
  const engine = exact || (at.context === 4096 && row.memory_source === "engine");
  const compute = engine ? 190_000_000 + 1024 * cells : null;
  const output = 196_608 * at.users;
  const known = bytes + kv + output + (compute ?? 0);
  const free = fake.world.models.free_memory_bytes;
  const refused =
    at.flash_attention === "off" && at.cache !== "f16"
      ? `A V cache of type ${at.cache} needs flash attention; switch it on, or take f16.`
      : null;
  const tooLarge = free !== null && known > free;
  const deep = Math.floor(at.context / at.users) - 512;
  const reads = Math.round(bytes * 0.98);
  const ceiling = fake.world.start.machine.read_bytes_s;
  const { calibration } = fake.world;
  const holds = calibration?.does_not_hold === null ? calibration : null;
  const speeds = [0, ...(deep > 0 ? [deep] : [])].map((depth) => ({
    depth,
    prefill: holds ? scaled(row.prefill_expected, 1 / (1 + depth / 9000)) : null,
    decode: holds ? scaled(row.decode_expected, 1 / (1 + depth / 14_000)) : null,
    kv_read_bytes: Math.round(LAYERS * (depth + 256) * cell),
  }));
  const decode = speeds[0]?.decode;
  const prefill = speeds[0]?.prefill;
  const part = (
    what: EstimateView["decode_parts"][number]["what"],
    tensor_type: string | null,
    share: number,
    whole: number,
  ): EstimateView["decode_parts"][number] => ({
    what,
    tensor_type,
    share,
    ms: share * whole,
    measured: true,
  });
  return {
    of,
    at,
    memory: {
      weights_bytes: bytes,
      kv_bytes: refused === null ? kv : null,
      state_bytes: 0,
      compute_bytes: compute,
      output_bytes: output,
      total_bytes: compute === null || refused !== null ? null : known,
      at_least_bytes: known,
      free_bytes: free,
      fits: free === null ? null : tooLarge ? false : compute === null ? null : true,
      source: engine ? "engine" : "formula",
      instead: tooLarge
        ? bytes < free
          ? [
              {
                instead: "context",
                tokens: Math.floor((free - bytes) / (LAYERS * cell) / 256) * 256,
              },
              { instead: "cache", cache: "q8_0" },
            ]
          : [{ instead: "quantization", row: of, quantization: "Q4_K_M", bytes: free * 0.9 }]
        : [],
    },
    cache:
      refused === null
        ? [
            {
              kind: "full",
              layers: LAYERS,
              cells,
              kv_heads: HEADS,
              key_elements: HEADS * HEAD,
              value_elements: HEADS * HEAD,
              cell_bytes: cell,
              bytes: kv,
            },
          ]
        : [],
    cache_bytes_per_token: LAYERS * cell,
    refused,
    weight_bytes_per_token: reads,
    decode_ceiling: ceiling === null ? null : (row.decode_ceiling ?? ceiling / reads),
    speeds,
    decode_parts: decode
      ? [
          part("weights", "Q4_K", 0.58, 1000 / decode.tok_s),
          part("output", "Q6_K", 0.24, 1000 / decode.tok_s),
          part("layers", null, 0.1, 1000 / decode.tok_s),
          part("attention", null, 0.06, 1000 / decode.tok_s),
          part("step", null, 0.02, 1000 / decode.tok_s),
        ]
      : [],
    prefill_parts: prefill
      ? [
          part("weights", "Q4_K", 0.81, 512_000 / prefill.tok_s),
          part("attention", null, 0.12, 512_000 / prefill.tok_s),
          part("layers", null, 0.07, 512_000 / prefill.tok_s),
        ]
      : [],
    basis: {
      calibrated: holds && { at: holds.at, variant: holds.variant, threads: holds.threads },
      why_not: holds ? null : (calibration?.does_not_hold ?? "not calibrated"),
      corrected_by_runs: holds ? 4 : 0,
    },
    twin: memory(fake).twins.get(of) ?? null,
    notes: [],
  };
}

/** The header of what a person names. */
export function look(fake: Fake, source: string): Looked {
  if (source.includes("nowhere"))
    refuse("file_unusable", `${source} is not there. Check how it is written.`);
  const remote = !/^[~/.]/.test(source);
  const looked: Looked = {
    id: `looked ${source}`,
    name: "Qwen3 30B A3B Instruct",
    quantization: "Q4_K_M",
    from: source,
    is_row: false,
    parameters: 30_532_122_624,
    active_parameters: 3_345_000_000,
    file_bytes: 18_556_000_000,
    fetched_bytes: remote ? 6_291_456 : null,
    layers: 48,
    context_length: 262_144,
    notes: [],
  };
  memory(fake).looked.set(looked.id, looked);
  return looked;
}

/** A job that waits, works and ends with `done`. */
export function begun(fake: Fake, job: Omit<Job, "state">, done: () => void): Job {
  const { jobs } = fake.world.start;
  const waiting: Job = {
    ...job,
    state: {
      state: "waiting",
      why: "Another measurement runs on this machine (bench, process 4711, since 14:02): this one waits until it ends.",
    },
  };
  fake.world.start.jobs = [...jobs.filter((each) => each.id !== job.id), waiting];
  void fake.wait(1200).then(async () => {
    for (let step = 0; step <= 10; step += 1) {
      // `cancel_job` ends it.
      if (waiting.state.state === "cancelled") return;
      waiting.state = { state: "running", fraction: step / 10, bytes: null, bytes_total: null };
      fake.tell({ event: "job", job: waiting });
      await fake.wait(500);
    }
    done();
    waiting.state = { state: "done", row: job.row };
    fake.tell({ event: "job", job: waiting });
  });
  return waiting;
}

/** Tries a twin. */
export function twin(fake: Fake, of: string): Job {
  const looked = memory(fake).looked.get(of);
  const title = looked ? `${looked.name} ${looked.quantization}` : of;
  return begun(fake, { id: `twin of ${of}`, kind: "twin", title, row: of }, () => {
    memory(fake).twins.set(of, {
      prefill: { tok_s: 13.4, low: 12.4, high: 14.4 },
      decode: { tok_s: 6.8, low: 6.3, high: 7.3 },
      layers: [2, 6],
      of_layers: 48,
      bytes: [1_120_000_000, 2_610_000_000],
      seconds: 24,
      at: new Date().toISOString(),
      notes: [],
    });
  });
}
