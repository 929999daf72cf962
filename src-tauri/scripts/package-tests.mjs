// `npm run test:package`: builds the .deb and tests it, installed into an empty prefix. With
// `-- --clean-root` it is also installed by apt into a fresh Debian (as root, a few minutes).

import { readdirSync } from "node:fs";
import { join } from "node:path";
import { build } from "./build.mjs";
import { debianPackage, epoch } from "./package.mjs";
import { buildEnvironment, main, onDebian, releaseFolder, root, run, setUp, SetupError } from "./setup.mjs";

const folder = join(root, "tests", "package");

/** Builds the package of what is built and tests it. */
export function testPackage() {
  if (!onDebian()) {
    console.error("The package is not tested here: it is a .deb, which Debian and Ubuntu can build and install.");
    return;
  }
  // One time for every package made from here, whatever is committed meanwhile.
  process.env.SOURCE_DATE_EPOCH = String(epoch());
  const env = { ...buildEnvironment(), TWOSPEED_DEB: debianPackage(), TWOSPEED_RELEASE: releaseFolder() };
  const tests = readdirSync(folder).filter((name) => name.endsWith(".test.mjs")).map((name) => join(folder, name));
  const command = [process.execPath, "--test", "--test-concurrency=1", ...tests];
  // dpkg installs as root only; into a prefix, a pretended one is enough.
  if (process.getuid() !== 0) command.unshift("fakeroot");
  run(command[0], command.slice(1), { env });
}

async function testInCleanRoot() {
  if (!onDebian() || process.getuid() !== 0) throw new SetupError("A fresh Debian can be made by root on Debian or Ubuntu only: run this there.");
  const { cleanRoot } = await import(join(folder, "clean-root.mjs"));
  await cleanRoot(debianPackage());
}

if (process.argv[1] === import.meta.filename) {
  await main(async () => {
    setUp({ tests: true });
    build({ manual: true });
    if (process.argv.includes("--clean-root")) await testInCleanRoot();
    else testPackage();
  });
}
