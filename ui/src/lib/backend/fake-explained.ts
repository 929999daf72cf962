// What the estimator would say of the scripted results: the numbers of one token of 18 GB/s.

import type { Rests, ResultRow, Says, Statement, Unexpected } from "./bindings";

const READ_BYTES_S = 18_000_000_000;

/** Why nothing is expected of a result; `null` = something is. */
export function unexpectedOf(row: ResultRow, calibrated: boolean): Unexpected | null {
  if (row.elsewhere !== null) return { unexpected: "other_machine", name: row.elsewhere };
  return calibrated ? null : { unexpected: "not_calibrated" };
}

/** What is said of a calibrated result, and of its model whatever the machine is. */
export function explainedOf(row: ResultRow, weightBytes: number, expected: boolean): Statement[] {
  const said = (says: Says, rests: Rests = { rests: "calibrated" }): Statement => ({
    statement: "explained",
    says,
    rests,
  });
  const statements: Statement[] = [];
  if (expected && row.decode) {
    const decode = row.decode.mean;
    const ms = 1000 / decode;
    const ceiling = READ_BYTES_S / weightBytes;
    const weights = 0.71 * ms;
    const attention = 0.09 * ms;
    const layers = 0.18 * ms;
    const step = 0.02 * ms;
    statements.push(
      said({
        says: "token_time",
        total_ms: ms,
        weights_ms: weights,
        weights_share: 0.71,
        parts: [
          { portion: "weights", ms: 0.52 * ms, share: 0.52 },
          { portion: "output", ms: 0.19 * ms, share: 0.19 },
          { portion: "layers", ms: layers, share: 0.18 },
          { portion: "attention", ms: attention, share: 0.09 },
          { portion: "step", ms: step, share: 0.02 },
        ],
      }),
      said({
        says: "gap",
        decode,
        is_measured: true,
        ceiling,
        share: decode / ceiling,
        gap_ms: ms - 1000 / ceiling,
        parts: [
          { portion: "layers", ms: layers },
          { portion: "weights", ms: weights - 1000 / ceiling },
          { portion: "attention", ms: attention },
          { portion: "step", ms: step },
        ],
        rest_ms: 0,
      }),
      said({
        says: "judged",
        phase: "decode",
        measured: decode,
        expected: decode * 1.02,
        low: decode * 0.93,
        high: decode * 1.1,
        ratio: 1 / 1.02,
        verdict: "within",
        reasons: [],
      }),
    );
  }
  statements.push(
    said(
      {
        says: "kv_growth",
        bytes_per_token: 23_040,
        context: 4096,
        kv_bytes: 94_371_840,
        doubled_bytes: 188_743_680,
        weight_bytes: weightBytes,
        equal_depth: Math.ceil(weightBytes / 23_040 / 256) * 256,
        most_context: 8192,
      },
      { rests: "file" },
    ),
  );
  return statements;
}
