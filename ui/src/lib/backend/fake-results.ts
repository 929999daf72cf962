// Results, their runs and their figures for the scripted program. The figures are real ones, drawn
// by `cargo run --release -p twospeed-chart --example page`.

import type {
  Caution,
  FigureData,
  FigureRequest,
  FigureView,
  Pair,
  PhaseName,
  ResultGroup,
  ResultRow,
  ResultsView,
  RunPage,
  Speed,
  Statement,
  TestPage,
} from "./bindings";
import { explainedOf, unexpectedOf } from "./fake-explained";
import { otherFigure, otherResults } from "./fake-figures";
import breakdown from "./fixtures/breakdown.json";
import estimate from "./fixtures/estimate.json";
import four from "./fixtures/four.json";
import fourBreakdown from "./fixtures/four-breakdown.json";
import fourExpected from "./fixtures/four-expected.json";
import fourLarge from "./fixtures/four-large.json";
import fourWithoutCeiling from "./fixtures/four-without-ceiling.json";
import hostile from "./fixtures/hostile.json";
import one from "./fixtures/one.json";
import roofline from "./fixtures/roofline.json";

/** A drawing with its data layer. */
type Drawn = Pick<FigureView, "svg" | "width" | "height"> & { data: FigureData };

const READ_BYTES_S = 18_000_000_000;

/** Offsets of five samples with mean 0 and standard deviation 1. */
const OFFSETS = [-0.95, -0.32, 0.32, 1.54, -0.59];

function speed(mean: number, deviation: number, tokens: number, at: string): Speed {
  const samples = OFFSETS.map((offset) => mean + offset * deviation);
  return { mean, deviation, samples, tokens, depth: 0, at };
}

interface Sketch {
  quantization: string;
  differs?: string;
  at: string;
  run?: string;
  elsewhere?: string;
  prefill: [number, number];
  decode: [number, number] | null;
  megabytes: number;
}

/** Sizes of files, which the statements need; by result. */
const sizes = new Map<string, number>();

function row(model: string, sketch: Sketch): ResultRow {
  const { quantization, differs = "", at, prefill, decode } = sketch;
  const id = `result of ${model} ${quantization}${differs ? ` ${differs}` : ""}`;
  sizes.set(id, sketch.megabytes * 1_000_000);
  return {
    id,
    run: sketch.run ?? "run 1",
    quantization,
    differs,
    at,
    elsewhere: sketch.elsewhere ?? null,
    prefill: speed(prefill[0], prefill[1], 512, at),
    decode: decode && speed(decode[0], decode[1], 128, at),
    warnings: [],
    noted: false,
  };
}

function group(name: string, sketches: Sketch[]): ResultGroup {
  return { name, rows: sketches.map((sketch) => row(name, sketch)) };
}

/** What was measured on a usual day. */
export function usualResults(): ResultsView {
  const day = (time: string) => `2026-11-30T${time}:00Z`;
  return {
    groups: [
      group("SmolLM2 135M Instruct", [
        {
          quantization: "F16",
          at: day("14:08"),
          prefill: [254, 11],
          decode: [48.9, 1.6],
          megabytes: 271,
        },
        {
          quantization: "Q8_0",
          at: day("14:06"),
          prefill: [438, 17],
          decode: [79.6, 2.6],
          megabytes: 145,
        },
        {
          quantization: "Q4_1",
          at: day("14:04"),
          prefill: [300, 13],
          decode: [107, 4],
          megabytes: 98,
        },
        {
          quantization: "Q4_0",
          at: day("14:02"),
          prefill: [612, 22],
          decode: [118, 4],
          megabytes: 92,
        },
      ]),
      group("Qwen3 0.6B", [
        {
          quantization: "Q8_0",
          differs: "d4096",
          at: day("11:44"),
          run: "run 2",
          prefill: [96, 3],
          decode: [18.2, 0.4],
          megabytes: 639,
        },
        {
          quantization: "Q8_0",
          at: day("11:40"),
          run: "run 2",
          prefill: [118, 2],
          decode: [22.4, 0.5],
          megabytes: 639,
        },
      ]),
      group("Gemma 3 270M it", [
        {
          quantization: "Q4_K_M",
          at: day("11:31"),
          run: "run 3",
          prefill: [551, 18],
          decode: [50.1, 1.3],
          megabytes: 253,
        },
      ]),
      group("Qwen3 1.7B", [
        {
          quantization: "Q4_K_M",
          at: "2026-11-12T09:10:00Z",
          run: "run 4",
          elsewhere: "Jetson Orin Nano",
          prefill: [402, 6],
          decode: [27.8, 0.3],
          megabytes: 1100,
        },
        {
          quantization: "Q8_0",
          at: "2026-11-12T09:02:00Z",
          run: "run 4",
          elsewhere: "Jetson Orin Nano",
          prefill: [377, 5],
          decode: null,
          megabytes: 1830,
        },
      ]),
    ],
    others: otherResults(),
    runs: [],
    calibrated: true,
  };
}

/** Two runs that came to nothing. */
export function runsWithoutResult(view: ResultsView): ResultsView {
  return {
    ...view,
    runs: [
      {
        id: "run failed",
        at: "2026-11-30T15:20:00Z",
        models: "Qwen3 30B-A3B Q4_K_M",
        sentence: "The system ended the engine for lack of memory. Try a smaller quantization.",
      },
      {
        id: "run cancelled",
        at: "2026-11-30T13:20:00Z",
        models: "SmolLM2 135M Instruct Q4_1, Q8_0",
        sentence: "You stopped it before its first sample.",
      },
    ],
  };
}

function pairs(values: Record<string, string | null>): Pair[] {
  return Object.entries(values).map(([name, value]) => ({ name, value }));
}

function test(model: string, phase: PhaseName, measured: Speed, result: ResultRow): TestPage {
  const prefill = phase === "prefill";
  const depth = /^d(\d+)$/.exec(result.differs)?.[1];
  const sorted = [...measured.samples].sort((a, b) => a - b);
  return {
    id: `${phase} of ${result.id}`,
    model: `${model} ${result.quantization}`,
    phase,
    name: `${prefill ? "pp512" : "tg128"}${depth ? ` @ d${depth}` : ""}`,
    end: { end: "done" },
    interrupted: false,
    mean: measured.mean,
    deviation: measured.deviation,
    median: sorted[2] ?? null,
    readings: [],
    joules_per_token: null,
    suspect: null,
    allowed: false,
    samples: measured.samples.map((tokens_per_second, at) => ({
      number: at + 1,
      tokens_per_second,
      ms: (measured.tokens / tokens_per_second) * 1000,
      involuntary_switches: at === 0 ? 3 : 0,
      major_faults: at === 4 ? null : 0,
      clock_hz: null,
      temperature_c: null,
    })),
    warnings: [],
    settings: pairs({
      n_prompt: prefill ? "512" : "0",
      n_gen: prefill ? "0" : "128",
      n_depth: depth ?? "0",
      n_batch: "2048",
      n_ubatch: "512",
      n_threads: "2",
      type_k: "f16",
      type_v: "f16",
      flash_attn: "auto",
      use_mmap: "1",
    }),
    environment: pairs({
      Engine: "llama.cpp 11434",
      "CPU variant": "zen4",
      "Load time": "0.4 s",
      "Page cache": "warm",
      Temperature: null,
    }),
    placement: pairs({
      "CPU, weights": "97.8 MB",
      "CPU, cache": "15.7 MB",
      "CPU, compute": "102 MB",
    }),
  };
}

/** The pages of the runs of these results. */
export function pagesOf(view: ResultsView): Record<string, RunPage> {
  const pages: Record<string, RunPage> = {};
  const page = (id: string, more: Partial<RunPage>): RunPage =>
    (pages[id] ??= {
      id,
      origin: "Measured here",
      preset: "Article",
      started_at: "2026-11-30T14:01:12Z",
      ended_at: "2026-11-30T14:09:40Z",
      status: "complete",
      note: "",
      app_version: "0.1.0",
      machine: pairs({
        CPU: "Intel Xeon",
        "Physical cores": "2",
        Memory: "24 GB",
        "Read speed": "18.0 GB/s",
        System: "Debian 12",
        Governor: null,
      }),
      tests: [],
      ...more,
    });
  for (const { name, rows } of view.groups) {
    // The list has the newest first, a run the other way round.
    for (const result of rows.toReversed()) {
      const { elsewhere, prefill, decode } = result;
      const of = page(result.run, {
        started_at: result.at,
        ...(elsewhere === null ? {} : { origin: `Imported, from ${elsewhere}` }),
      });
      if (prefill) of.tests.push(test(name, "prefill", prefill, result));
      if (decode) of.tests.push(test(name, "decode", decode, result));
    }
  }
  for (const run of view.runs) {
    const failed = run.id === "run failed";
    page(run.id, {
      started_at: run.at,
      ended_at: failed ? run.at : null,
      status: failed ? "complete" : "stopped",
      preset: "Quick",
      tests: [
        {
          id: `test of ${run.id}`,
          model: run.models,
          phase: "prefill",
          name: "pp512",
          end: failed
            ? {
                end: "failed",
                code: "engine_killed",
                message: run.sentence,
                log: [
                  "load_tensors: loading model tensors, this can take a while",
                  "load_tensors:   CPU_Mapped model buffer size = 17697.12 MiB",
                ],
              }
            : { end: "cancelled" },
          interrupted: false,
          mean: null,
          deviation: null,
          median: null,
          readings: [],
          joules_per_token: null,
          suspect: null,
          allowed: false,
          samples: [],
          warnings: failed ? [{ warning: "swap_in_use", bytes: 2_400_000_000 }] : [],
          settings: pairs({ n_prompt: "512", n_gen: "0", n_threads: "2" }),
          environment: pairs({ Engine: "llama.cpp 11434", "CPU variant": null }),
          placement: [],
        },
      ],
    });
  }
  return pages;
}

/** The results that each fixture shows, from top to bottom. */
const FOUR = ["Q4_0", "Q4_1", "Q8_0", "F16"];

/**
 * A figure of the results: the fixture that fits best. It fits well where the four quantizations
 * of the first model are asked for, or one of anything; else it is an example of a figure, and
 * says of its rows what they are.
 */
export function figureOf(view: ResultsView, request: FigureRequest): FigureView {
  const { figure } = request;
  const ofExpected = figure === "roofline" || figure === "breakdown" || figure === "estimate";
  if (figure !== "speeds" && !ofExpected) return otherFigure(view, request, figure);
  const all = view.groups.flatMap(({ name, rows }) => rows.map((each) => ({ name, row: each })));
  const first = view.groups[0]?.rows ?? [];
  const wanted = request.results.filter((id) => all.some(({ row: each }) => each.id === id));
  const inFirst = (label: string, at: number): string => {
    const found = first.find((each) => each.quantization.startsWith(label));
    return found?.id ?? wanted[at % wanted.length] ?? "";
  };
  let drawn: Drawn;
  let rows: string[];
  if (ofExpected) {
    drawn = { roofline, breakdown, estimate }[figure] as unknown as Drawn;
    rows = drawn.data.rows.map(({ label }, at) => inFirst(label, at));
  } else if (all.some(({ name }) => name.includes("<"))) {
    drawn = hostile as unknown as Drawn;
    rows = drawn.data.rows.map((_, at) => wanted[at % wanted.length] ?? "");
  } else if (wanted.length === 1) {
    drawn = one as unknown as Drawn;
    rows = wanted;
  } else {
    drawn = fourOf(view, request) as unknown as Drawn;
    rows = FOUR.map(inFirst);
  }
  const focus = request.focus !== null && rows.includes(request.focus) ? request.focus : rows[0];
  const focused = all.find(({ row: each }) => each.id === focus);
  const here = all.filter(({ row: each }) => wanted.includes(each.id) && each.elsewhere === null);
  return {
    ...drawn,
    row_results: rows,
    statements: focused ? statements(focused.row, focused.name, rows, all, view.calibrated) : [],
    unexpected: focused ? unexpectedOf(focused.row, view.calibrated) : null,
    cautions: cautions(all.filter(({ row: each }) => wanted.includes(each.id))),
    has_ceiling: here.length > 0,
    has_expected: view.calibrated && here.length > 0,
    save_as: "/home/ada/Pictures/SmolLM2 135M Instruct",
  };
}

/** The four quantizations with the overlays that are asked for, as far as they were drawn. */
function fourOf(
  view: ResultsView,
  { scale, ceiling, expected, breakdown }: FigureRequest,
): unknown {
  if (scale > 1.3) return fourLarge;
  if (!ceiling) return fourWithoutCeiling;
  if (view.calibrated && breakdown) return fourBreakdown;
  return view.calibrated && expected ? fourExpected : four;
}

interface Named {
  name: string;
  row: ResultRow;
}

function statements(
  row: ResultRow,
  name: string,
  rows: string[],
  all: Named[],
  calibrated: boolean,
): Statement[] {
  const weight_bytes = sizes.get(row.id) ?? 98_000_000;
  const expected = calibrated && row.elsewhere === null;
  const explained = explainedOf(row, weight_bytes, expected);
  const said: Statement[] = [];
  if (row.decode && row.elsewhere !== null) said.push({ statement: "no_ceiling" });
  else if (row.decode && !expected) {
    const ceiling = READ_BYTES_S / weight_bytes;
    const decode = row.decode.mean;
    said.push({
      statement: "ceiling_share",
      decode,
      ceiling,
      share: decode / ceiling,
      weight_bytes,
      read_bytes_s: READ_BYTES_S,
    });
    said.push({ statement: "token_time", token_ms: 1000 / decode, weights_ms: 1000 / ceiling });
  }
  const other = all.find(({ row: each }) => each.id !== row.id && rows.includes(each.id));
  if (other?.row.prefill && row.prefill) {
    const both = other.name === name ? "" : `${name} `;
    said.push({
      statement: "against",
      phase: "prefill",
      this: `${both}${row.quantization}`,
      other: `${both ? `${other.name} ` : ""}${other.row.quantization}`,
      ratio: row.prefill.mean / other.row.prefill.mean,
      size_ratio: weight_bytes / (sizes.get(other.row.id) ?? weight_bytes),
      within_noise: false,
    });
  } else if (row.prefill && row.decode) {
    said.push({
      statement: "request",
      prompt: 4000,
      answer: 200,
      prefill_s: 4000 / row.prefill.mean,
      decode_s: 200 / row.decode.mean,
    });
  }
  // Where its time goes comes first, what holds for its model last.
  const early = expected ? explained.slice(0, 2) : [];
  return [...early, ...said, ...explained.slice(early.length)];
}

function cautions(shown: Named[]): Caution[] {
  const machines = new Set(shown.map(({ row: each }) => each.elsewhere));
  return [
    ...(machines.size > 1 ? [{ caution: "machines" } as const] : []),
    ...shown
      .filter(({ row: each }) => each.warnings.length > 0)
      .map(({ name, row: each }): Caution => ({
        caution: "warned",
        result: `${name} ${each.quantization}`,
        warnings: each.warnings,
      })),
  ];
}
