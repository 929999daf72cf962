// `npm test`: sets up what is missing and runs everything there is: lints, unit tests, tests with real
// models in the real worker, the page's tests, the real window, the package. The first failure ends it.

import { build } from "./build.mjs";
import { check } from "./check.mjs";
import { model, models, modelsFolder } from "./models.mjs";
import { testPackage } from "./package-tests.mjs";
import { buildEnvironment, main, npm, run, setUp } from "./setup.mjs";

await main(async () => {
  setUp({ tests: true });
  for (const name of Object.keys(models)) await model(name);
  build({ manual: true });
  check();
  const env = { ...buildEnvironment(), TWOSPEED_MODELS: modelsFolder };
  run("cargo", ["test", "--release", "--locked", "--workspace", ...process.argv.slice(2)], { env });
  npm(["run", "test:ui"], { env });
  npm(["run", "test:window"], { env: { ...env, TWOSPEED_WINDOW_BUILT: "1" } });
  testPackage();
});
