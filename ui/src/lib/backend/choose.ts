import type { Backend } from "./backend";
import { inWindow, tauri } from "./tauri";

/** The window's program; in a browser the scripted one, with the world that the address names. */
export async function chooseBackend(): Promise<Backend> {
  if (inWindow()) return tauri;
  const { Fake, worlds } = await import("./fake");
  const wanted = new URLSearchParams(location.search);
  const named = wanted.get("world") ?? "usual";
  const make = Object.entries(worlds).find(([name]) => name === named)?.[1] ?? worlds.usual;
  const fake = new Fake(make());
  const { settings } = fake.world.start;
  // As the window does it: the address says what the settings say.
  const theme = wanted.get("theme");
  if (theme === "light" || theme === "dark") settings.theme = theme;
  settings.text_size = Number(wanted.get("text") ?? settings.text_size);
  Object.assign(window, { fake });
  return fake;
}
