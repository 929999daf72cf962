// `npm test`: sets up what is missing and runs everything there is: lints, unit tests, tests with real
// models in the real worker.

import { build } from "./build.mjs";
import { check } from "./check.mjs";
import { model, models, modelsFolder } from "./models.mjs";
import { buildEnvironment, main, run, setUp } from "./setup.mjs";

await main(async () => {
  setUp();
  for (const name of Object.keys(models)) await model(name);
  build();
  check();
  const env = { ...buildEnvironment(), TWOSPEED_MODELS: modelsFolder };
  run("cargo", ["test", "--release", "--locked", "--workspace", ...process.argv.slice(2)], { env });
});
