import type {
  CalibrationView,
  ModelGroup,
  ModelRow,
  ModelsView,
  Place,
  Predicted,
  ResultsView,
  Speed,
  Start,
} from "../bindings";
import { pagesOf, runsWithoutResult, usualResults } from "../fake-results";
import type { World } from "./world";

const at = "2026-11-30T14:02:00Z";

function speed(mean: number, tokens: number): Speed {
  const samples = [0.98, 1.01, 0.99, 1.03, 0.99].map((factor) => mean * factor);
  return { mean, deviation: mean * 0.02, samples, tokens, depth: 0, at };
}

interface Sketch {
  quantization: string;
  place?: Place;
  megabytes: number;
  bits: number;
  prefill?: number;
  decode?: number;
  ceiling?: number | null;
  fits?: boolean | null;
  hindrance?: string;
  /** Expected: the speed, the lower and the upper end of its band. */
  reads?: [number, number, number];
  writes?: [number, number, number];
}

function predicted(sketch: [number, number, number] | undefined): Predicted | null {
  if (!sketch) return null;
  const [tok_s, low, high] = sketch;
  return { tok_s, low, high };
}

function row(model: string, sketch: Sketch): ModelRow {
  const place = sketch.place ?? { place: "on_disk" };
  const there = place.place === "on_disk";
  const file = there ? `${model.replaceAll(" ", "-")}.${sketch.quantization}.gguf` : null;
  return {
    id: `${model} ${sketch.quantization}`,
    quantization: sketch.quantization,
    place,
    file,
    path: file === null ? null : `/home/ada/models/${file}`,
    file_bytes: sketch.megabytes * 1_000_000,
    bits_per_weight: sketch.bits,
    memory_bytes: sketch.megabytes * 1_050_000 + 190_000_000,
    memory_source: there ? "engine" : "formula",
    fits: sketch.fits === undefined ? true : sketch.fits,
    prefill: sketch.prefill === undefined ? null : speed(sketch.prefill, 512),
    decode: sketch.decode === undefined ? null : speed(sketch.decode, 128),
    prefill_expected: predicted(sketch.reads),
    decode_expected: predicted(sketch.writes),
    decode_ceiling: sketch.ceiling ?? null,
    hindrance:
      sketch.hindrance ??
      (there ? null : `${model} ${sketch.quantization} is not on this disk. Make it first.`),
  };
}

type Described = Omit<ModelGroup, "id" | "name" | "rows" | "synthetic" | "active_parameters"> &
  Partial<ModelGroup>;

function group(name: string, described: Described, sketches: Sketch[]): ModelGroup {
  const rows = sketches.map((sketch) => row(name, sketch));
  return { id: name, name, synthetic: false, active_parameters: null, ...described, rows };
}

const made = (from: string, lossy_source = false): Place => ({
  place: "can_be_made",
  from,
  lossy_source,
});
const fetched = (from: string): Place => ({ place: "can_be_downloaded", from });

const smolRepository = "HuggingFaceTB/SmolLM2-135M-Instruct-GGUF";

function builtin(): ModelGroup {
  return group(
    "Built-in 150M",
    { architecture: "llama", parameters: 150_000_000, context_length: 4096, synthetic: true },
    [
      {
        quantization: "Q4_K_M",
        place: made("random weights"),
        megabytes: 91,
        bits: 4.85,
        ceiling: 205,
        reads: [585, 530, 640],
        writes: [121, 112, 130],
      },
    ],
  );
}

function download(): ModelGroup {
  return group(
    "SmolLM2 135M Instruct",
    { architecture: "llama", parameters: 134_515_008, context_length: 8192 },
    [
      {
        quantization: "Q8_0",
        place: fetched(`${smolRepository}, smollm2-135m-instruct-q8_0.gguf`),
        megabytes: 145,
        bits: 8.6,
        ceiling: 126,
      },
    ],
  );
}

function usualGroups(): ModelGroup[] {
  return [
    group(
      "SmolLM2 135M Instruct",
      { architecture: "llama", parameters: 134_515_008, context_length: 8192 },
      [
        {
          quantization: "Q4_0",
          megabytes: 92,
          bits: 5.4,
          prefill: 612,
          decode: 118,
          ceiling: 200,
          reads: [615, 560, 670],
          writes: [117, 110, 125],
        },
        {
          quantization: "Q4_1",
          megabytes: 98,
          bits: 5.8,
          prefill: 300,
          decode: 107,
          ceiling: 187,
          reads: [315, 285, 345],
          writes: [106, 99, 114],
        },
        {
          quantization: "Q4_K_M",
          place: made("F16"),
          megabytes: 105,
          bits: 6.2,
          ceiling: 174,
          reads: [360, 315, 405],
          writes: [101, 92, 110],
        },
        {
          quantization: "Q8_0",
          megabytes: 145,
          bits: 8.6,
          prefill: 438,
          decode: 79.6,
          ceiling: 126,
          reads: [440, 405, 475],
          writes: [79, 74, 85],
        },
        {
          quantization: "F16",
          megabytes: 271,
          bits: 16,
          prefill: 254,
          decode: 48.9,
          ceiling: 67,
          reads: [260, 235, 285],
          writes: [48, 45, 51],
        },
      ],
    ),
    builtin(),
    group(
      "Gemma 3 270M it",
      { architecture: "gemma3", parameters: 268_098_176, context_length: 32_768 },
      [
        {
          quantization: "Q4_K_M",
          megabytes: 253,
          bits: 7.4,
          prefill: 551,
          decode: 50.1,
          ceiling: 71,
          reads: [560, 515, 605],
          writes: [49, 46, 52],
        },
        {
          quantization: "Q8_0",
          place: made("Q4_K_M", true),
          megabytes: 292,
          bits: 8.6,
          ceiling: 62,
          reads: [480, 430, 530],
          writes: [44, 40, 48],
        },
      ],
    ),
    group(
      "Qwen3 0.6B",
      { architecture: "qwen3", parameters: 596_049_920, context_length: 40_960 },
      [
        {
          quantization: "Q4_K_M",
          place: made("Q8_0"),
          megabytes: 397,
          bits: 5.3,
          ceiling: 46,
          reads: [125, 112, 138],
          writes: [33, 30, 36],
        },
        {
          quantization: "Q8_0",
          megabytes: 639,
          bits: 8.5,
          ceiling: 28.4,
          reads: [107, 98, 116],
          writes: [20.7, 19.3, 22.1],
        },
      ],
    ),
    group(
      "gpt-oss 20B",
      {
        architecture: "gpt-oss",
        parameters: 20_914_757_184,
        active_parameters: 3_609_000_000,
        context_length: 131_072,
      },
      [
        {
          quantization: "MXFP4",
          megabytes: 12_110,
          bits: 4.6,
          ceiling: 8.1,
          reads: [15, 12, 18],
          writes: [7, 6, 8],
        },
      ],
    ),
    group(
      "Qwen3 30B-A3B",
      {
        architecture: "qwen3moe",
        parameters: 30_532_122_624,
        active_parameters: 3_345_000_000,
        context_length: 40_960,
      },
      [
        {
          quantization: "Q4_K_M",
          megabytes: 18_556,
          bits: 4.9,
          ceiling: 8.9,
          reads: [13, 10, 16],
          writes: [6.8, 5.8, 7.8],
        },
        { quantization: "Q8_0", megabytes: 32_484, bits: 8.5, fits: false, ceiling: 5 },
      ],
    ),
  ];
}

function start(): Start {
  return {
    version: "0.1.0",
    machine: {
      cpu: "Intel Xeon",
      cores: 2,
      memory_bytes: 24_000_000_000,
      read_bytes_s: 18_000_000_000,
      read_at: "2026-11-30T12:02:00Z",
      calibrated_at: "2026-11-30T12:02:00Z",
      engine: "zen4, llama.cpp 11434",
      os: "Debian 12",
    },
    settings: {
      theme: "system",
      text_size: 1,
      threads: null,
      default_threads: 2,
      most_threads: 4,
      known_places: false,
      known_folders: ["/home/ada/.cache/huggingface/hub", "/home/ada/.lmstudio/models"],
      data_folder: "/home/ada/.local/share/twospeed",
      download_from: "https://huggingface.co",
    },
    notices: [],
    running: false,
    jobs: [],
    opened: [],
  };
}

function list(groups: ModelGroup[]): ModelsView {
  return {
    groups,
    broken: [],
    helpers: [],
    notes: [],
    folders: [],
    scanning: null,
    free_memory_bytes: 21_600_000_000,
    context: 4096,
  };
}

function calibration(): CalibrationView {
  const rate = (
    tensor_type: string,
    near: number,
    far: number,
    flops: number,
    repacked = false,
  ): CalibrationView["rates"][number] => ({
    tensor_type,
    near_bytes_s: near * 1e9,
    far_bytes_s: far * 1e9,
    flops_s: flops * 1e9,
    repacked,
  });
  return {
    at: "2026-11-30T12:02:00Z",
    backend: "CPU",
    variant: "zen4",
    threads: 2,
    build: 11434,
    does_not_hold: null,
    reads: [
      { buffer_bytes: 4_194_304, bytes_s: 61_000_000_000 },
      { buffer_bytes: 98_000_000, bytes_s: 24_300_000_000 },
      { buffer_bytes: 1_200_000_000, bytes_s: 18_000_000_000 },
    ],
    rates: [
      rate("F32", 40.2, 17.6, 61),
      rate("F16", 38.4, 17.4, 92),
      rate("Q4_0", 21.8, 15.9, 168, true),
      rate("Q4_K", 19.1, 14.8, 141, true),
      rate("Q5_K", 16.6, 13.9, 96),
      rate("Q6_K", 15.2, 13.7, 102),
      rate("Q8_0", 33.0, 17.1, 149),
    ],
    last_level_cache_bytes: 314_572_800,
    ubatch: 512,
  };
}

function world(): World {
  return {
    delay: 0,
    pace: 1,
    start: start(),
    models: list([]),
    results: { groups: [], others: [], runs: [], calibrated: false },
    pages: {},
    figure: null,
    script: "usual",
    hold: null,
    run: [],
    gpus: [],
    resumable: null,
    picked: "/home/ada/models",
    calibration: calibration(),
  };
}

/** As on the first day: nothing but the built-in model and the offer of a download. */
function empty(): World {
  const made = world();
  made.models = list([builtin(), download()]);
  made.start.machine = {
    ...made.start.machine,
    read_bytes_s: null,
    read_at: null,
    calibrated_at: null,
    engine: null,
  };
  made.calibration = null;
  for (const each of made.models.groups) {
    for (const row of each.rows) {
      Object.assign(row, { decode_ceiling: null, prefill_expected: null, decode_expected: null });
    }
  }
  return made;
}

function usual(): World {
  const made = world();
  made.models = list(usualGroups());
  made.models.folders = [
    { id: "folder 1", path: "/home/ada/models", exists: true, models: 9, is_file: false },
    {
      id: "folder 2",
      path: "/media/ada/Backup/gguf",
      exists: false,
      models: 0,
      is_file: false,
    },
  ];
  made.models.broken = [
    {
      id: "odd 1",
      file: "half-a-download.gguf",
      path: "/home/ada/models/half-a-download.gguf",
      sentence: "The file ends before its tensors do: 12 MB of 98 MB are there. Fetch it again.",
    },
  ];
  made.models.helpers = [
    {
      id: "odd 2",
      file: "mmproj-gemma-3-4b.gguf",
      path: "/home/ada/models/mmproj-gemma-3-4b.gguf",
      sentence: "A projector for images, which goes with a model and is not measured alone.",
    },
  ];
  measured(made, usualResults());
  return made;
}

/** Puts results into a world, with the pages of their runs. */
function measured(made: World, results: ResultsView): void {
  made.results = results;
  made.pages = pagesOf(results);
}

/** Names as long as they come. */
function longNames(): World {
  const made = usual();
  const word = "an-exceedingly-long-name-of-a-merge-of-merges-";
  const first = made.models.groups[0];
  const second = made.models.groups[2];
  if (first && second) {
    first.name = word.repeat(7).slice(0, 300);
    second.name = `${"Long words ".repeat(27)}end`;
    for (const row of first.rows) {
      row.quantization = `${row.quantization}-${"tuned-".repeat(8)}`;
      row.path = `/home/ada/${"deep/".repeat(40)}${row.file ?? ""}`;
    }
  }
  measured(made, {
    groups: usualResults().groups.map((each, index) => ({
      name: made.models.groups[index === 0 ? 0 : 2]?.name ?? each.name,
      rows: each.rows.map((row) => ({
        ...row,
        quantization: `${row.quantization}-${"tuned-".repeat(8)}`,
        differs: row.differs && `${row.differs}, 16 threads, batch 4096, cache q8_0`,
        elsewhere: row.elsewhere && made.start.machine.cpu.repeat(4),
      })),
    })),
    others: usualResults().others,
    runs: [],
    calibrated: true,
  });
  made.models.folders[0] = {
    id: "folder 1",
    path: `/home/ada/${"a folder in a folder/".repeat(14)}models`,
    exists: true,
    models: 9,
    is_file: false,
  };
  made.start.machine.cpu = "AMD Ryzen Threadripper PRO 7995WX 96-Cores with everything";
  made.start.notices = [`The history was read, but ${"a long sentence ".repeat(12)}follows.`];
  return made;
}

/** Measured, and the machine was never calibrated. */
function uncalibrated(): World {
  const made = usual();
  made.start.machine = { ...made.start.machine, calibrated_at: null };
  made.calibration = null;
  for (const each of made.models.groups) {
    for (const row of each.rows) {
      Object.assign(row, { prefill_expected: null, decode_expected: null });
    }
  }
  return made;
}

/** Everything that can be wrong with what is there. */
function failures(): World {
  const made = usual();
  made.script = "killed";
  made.resumable = {
    run: "run 1",
    at: "2026-11-30T13:02:00Z",
    models: ["SmolLM2 135M Instruct Q4_1", "Gemma 3 270M it Q4_K_M"],
    missing: 5,
    of: 12,
    interrupted: true,
  };
  made.start.notices = [
    "The history of 29 November could not be read. It is kept as history.damaged.sqlite, and a new one was begun.",
  ];
  made.start.jobs = [
    {
      id: "job 1",
      kind: "quantize",
      title: "SmolLM2 135M Instruct Q4_K_M",
      row: "SmolLM2 135M Instruct Q4_K_M",
      state: {
        state: "failed",
        problem: {
          code: "disk_full",
          message: "/home/ada/.local/share has 12 MB free, and Q4_K_M needs 105 MB. Make room.",
          details: "write: No space left on device (os error 28)",
        },
      },
    },
  ];
  const results = runsWithoutResult(usualResults());
  const swapped = results.groups[0]?.rows[2];
  swapped?.warnings.push({ warning: "swap_in_use", bytes: 1_200_000_000 });
  measured(made, results);
  for (const test of made.pages["run 1"]?.tests ?? []) {
    if (test.model.endsWith("Q4_1")) test.warnings = swapped?.warnings ?? [];
  }
  made.models.notes = ["/root was passed over: it may not be read."];
  made.models.free_memory_bytes = null;
  const row = made.models.groups[2]?.rows[0];
  if (row) row.hindrance = "This file has no tokenizer, so it cannot write. Fetch a whole one.";
  return made;
}

/** Names that are not what they seem. They are names, and nothing of them acts. */
function hostile(): World {
  const made = usual();
  const names = [
    "<img src=x onerror=\"document.title='broken'\">",
    "two\u240alines \u2066of\u2069 text \uFFFD\uFFFD",
    "\u202Egnp.ledom\u202C and \u05D0\u05D1\u05D2 \u0645\u0631\u062D\u0628\u0627",
    "{@html `<b>bold</b>`} ${7*7} {{7*7}}",
    "ꓘ⃝\u0301\u0301\u0301\u0301\u0301\u0301\u0301\u0301 🐉".repeat(10),
  ];
  made.models.groups.forEach((each, index) => {
    each.name = names[index % names.length] ?? each.name;
  });
  measured(made, {
    groups: usualResults().groups.map((each, index) => ({
      name: names[index % names.length] ?? each.name,
      rows: each.rows.map((row) => ({ ...row, quantization: `${row.quantization}<b onclick=1>` })),
    })),
    others: usualResults().others,
    runs: runsWithoutResult(usualResults()).runs.map((run) => ({
      ...run,
      models: names.join(", "),
      sentence: `"><svg onload=alert(1)> ${run.sentence}`,
    })),
    calibrated: true,
  });
  const row = made.models.groups[0]?.rows[0];
  if (row) row.quantization = "<script>alert(1)</script>";
  made.models.broken.push({
    id: "odd 3",
    file: '"><svg onload=alert(1)>.gguf',
    path: '/home/ada/models/"><svg onload=alert(1)>.gguf',
    sentence: "The header says it has 18446744073709551615 tensors. This is no GGUF file.",
  });
  made.start.machine.cpu = "<b>CPU</b>";
  return made;
}

/** Answers come late, and a scan goes on. */
function slow(): World {
  const made = usual();
  made.delay = 4000;
  made.models.scanning = { read: 214, of: 1902 };
  return made;
}

/** The worlds there are. */
export const worlds = {
  empty,
  usual,
  "long names": longNames,
  failures,
  hostile,
  slow,
  uncalibrated,
};

/** The name of one of them. */
export type WorldName = keyof typeof worlds;
