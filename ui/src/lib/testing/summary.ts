import type { Reporter, TestModule } from "vitest/node";

/** Says how many tests passed and failed in one plain last line, for programs that read the output. */
export default class Summary implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], errors: readonly unknown[]) {
    let passed = 0;
    let failed = errors.length;
    for (const module of modules) {
      for (const test of module.children.allTests()) {
        const { state } = test.result();
        if (state === "passed") passed += 1;
        if (state === "failed") failed += 1;
      }
      failed += module.errors().length;
    }
    // After vitest's own closing lines, which are written while the reporters are told of the end.
    process.once("exit", () => process.stdout.write(`ui: ${passed} passed, ${failed} failed\n`));
  }
}
