// `npm run icons`: draws every size of the app's icon from icons/twospeed.svg. The results are
// committed, so nobody else needs this: run it after a change to the drawing and look at 32 and 256.

import { copyFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { main, npm, root } from "./setup.mjs";

/** Tauri's own tool writes the containers of Windows and macOS and knows their sizes. */
const tool = "@tauri-apps/cli@2.12.5";

/** Sizes in pixels that only Linux asks for, and the files kept of Tauri's set. */
const linuxSizes = [16, 24, 48, 64];
const kept = ["32x32.png", "128x128.png", "128x128@2x.png", "icon.png", "icon.ico", "icon.icns"];

await main(() => {
  const icons = join(root, "icons");
  const drawing = join(icons, "twospeed.svg");
  const work = mkdtempSync(join(tmpdir(), "twospeed-icons-"));
  try {
    const draw = (...options) => npm(["exec", "--yes", "--", tool, "icon", drawing, "-o", work, ...options], { stdio: ["ignore", "ignore", "inherit"] });
    draw();
    draw("--png", linuxSizes.join(","));
    for (const name of [...kept, ...linuxSizes.map((size) => `${size}x${size}.png`)]) {
      copyFileSync(join(work, name), join(icons, name));
    }
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
});
