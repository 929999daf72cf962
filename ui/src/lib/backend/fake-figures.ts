// The figures beside speeds for the scripted program, drawn by
// `cargo run --release -p twospeed-chart --example page`.

import type {
  FigureData,
  FigureName,
  FigureRequest,
  FigureView,
  OtherResults,
  ResultsView,
  Statement,
} from "./bindings";
import context from "./fixtures/context.json";
import firstToken from "./fixtures/first-token.json";
import quantization from "./fixtures/quantization.json";
import sustained from "./fixtures/sustained.json";
import users from "./fixtures/users.json";

/** A drawing with its data layer. */
type Drawn = Pick<FigureView, "svg" | "width" | "height"> & { data: FigureData };

/** What was measured beside speeds. */
export function otherResults(): OtherResults[] {
  const name = "SmolLM2 135M Instruct";
  const other = (figure: FigureName, differs: string, quantizations = ["Q4_1"]): OtherResults => ({
    figure,
    groups: [
      {
        name,
        rows: quantizations.map((quantization) => ({
          id: `${figure} of ${name} ${quantization}`,
          run: `run of ${figure}`,
          quantization,
          differs,
          at: "2026-11-30T14:40:00Z",
          elsewhere: null,
          prefill: null,
          decode: null,
          warnings: [],
          noted: false,
        })),
      },
    ],
  });
  return [
    other("context", "depth 0 to 8,192"),
    other("users", "1 to 8 users, shared cache"),
    other("first_token", "prompt 512"),
    other("quantization", "", ["Q4_0", "Q4_K_M", "Q8_0", "F16"]),
    other("sustained", ""),
  ];
}

/** The figures that are not of speeds. */
type OtherName = Exclude<FigureName, "speeds" | "roofline" | "breakdown" | "estimate">;

/** The drawing of each figure that is not of speeds, and what is said of it. */
const others: Record<OtherName, { drawn: unknown; said: Statement[] }> = {
  context: {
    drawn: context,
    said: [
      {
        statement: "depth_loss",
        phase: "decode",
        depth: 8192,
        first: 138,
        last: 84.7,
        lost: 0.386,
        within_noise: false,
      },
      {
        statement: "depth_loss",
        phase: "prefill",
        depth: 8192,
        first: 350,
        last: 183,
        lost: 0.477,
        within_noise: false,
      },
      { statement: "depth_cost", ms_per_thousand: 0.56, token_ms: 7.25 },
    ],
  },
  users: {
    drawn: users,
    said: [
      {
        statement: "users_together",
        users: 8,
        fewest: 1,
        together: 401,
        before: 138,
        ratio: 2.9,
      },
      { statement: "users_each", users: 8, each: 50.2, before: 138, share: 0.364 },
      { statement: "users_wait", users: 8, median_ms: 1710, worst_ms: 3040 },
    ],
  },
  first_token: {
    drawn: firstToken,
    said: [
      {
        statement: "wait_parts",
        total_ms: 2028,
        parts: [
          { part: "load", ms: 1310 },
          { part: "context", ms: 14 },
          { part: "tokenize", ms: 1.2 },
          { part: "prefill", ms: 702 },
          { part: "first_sample", ms: 0.4 },
        ],
      },
      { statement: "reuse", reused: 511, prompt: 512, new_ms: 701, again_ms: 21 },
      { statement: "cold_start", cold_ms: 2028, warm_ms: 777 },
    ],
  },
  quantization: {
    drawn: quantization,
    said: [
      {
        statement: "quality_cost",
        this: "Q4_0",
        other: "F16",
        decode_ratio: 2.41,
        perplexity_more: 0.111,
        perplexity: 25.87,
      },
      { statement: "divergence", nats: 0.104, same_top: 0.81 },
      { statement: "ratio", prefill: 612, decode: 118, ratio: 612 / 118 },
    ],
  },
  sustained: {
    drawn: sustained,
    said: [
      { statement: "held", phase: "prefill", first: 350, last: 273, share: 0.78, seconds: 597 },
      { statement: "held", phase: "decode", first: 138, last: 128, share: 0.93, seconds: 597 },
      { statement: "machine_course", clock_ghz: [3.4, 2.72], hottest_c: 87 },
    ],
  },
};

/** The one figure of its kind; each of its rows stands for the result that is called like it. */
export function otherFigure(
  view: ResultsView,
  request: FigureRequest,
  figure: OtherName,
): FigureView {
  const drawn = others[figure].drawn as Drawn;
  const rows = view.others.find((other) => other.figure === figure)?.groups[0]?.rows ?? [];
  const resultOf = (label: string): string =>
    (rows.find((row) => row.quantization === label) ?? rows[0])?.id ?? request.results[0] ?? "";
  return {
    ...drawn,
    row_results: drawn.data.rows.map((row) => resultOf(row.label)),
    statements: others[figure].said,
    cautions: [],
    unexpected: null,
    has_ceiling: false,
    has_expected: false,
    save_as: `/home/ada/Pictures/SmolLM2 135M Instruct ${figure}`,
  };
}
