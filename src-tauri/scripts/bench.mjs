// `npm run bench -- NAME [options]`: the benchmarks behind the figures of the README.

import { main, SetupError } from "./setup.mjs";

const benchmarks = {
  parity: () => import("./bench/parity.mjs"),
  window: () => import("./bench/window.mjs"),
  faces: () => import("./bench/faces.mjs"),
  quality: () => import("./bench/quality.mjs"),
  users: () => import("./bench/users.mjs"),
  dropin: () => import("./bench/dropin.mjs"),
  tune: () => import("./bench/tune.mjs"),
  estimator: () => import("./bench/estimator.mjs"),
  until: () => import("./bench/until.mjs"),
};

await main(async () => {
  const [name, ...options] = process.argv.slice(2);
  const load = benchmarks[name];
  if (!load) throw new SetupError(`Which benchmark? One of: ${Object.keys(benchmarks).join(", ")}. For example: npm run bench -- parity`);
  await (await load()).default(options);
});
