import { svelte } from "@sveltejs/vite-plugin-svelte";
import { svelteTesting } from "@testing-library/svelte/vite";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

export default defineConfig({
  root: fileURLToPath(new URL(".", import.meta.url)),
  plugins: [svelte(), svelteTesting()],
  resolve: { alias: { $lib: fileURLToPath(new URL("./src/lib", import.meta.url)) } },
  build: {
    // WebKitGTK and WKWebView that Tauri 2 supports, WebView2.
    target: ["safari16", "chrome109"],
    outDir: "dist",
    emptyOutDir: true,
    // Nothing may be inlined: the window allows styles, scripts and fonts from files alone.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
  server: { port: 5173, strictPort: false },
  test: {
    environment: "jsdom",
    include: ["src/**/*.test.ts"],
    setupFiles: ["src/lib/testing/setup.ts"],
    reporters: ["default", "./src/lib/testing/summary.ts"],
    restoreMocks: true,
    // A check by axe-core takes seconds on a slow machine.
    testTimeout: 30_000,
  },
});
