import type { Backend } from "./backend";
import { inWindow, tauri } from "./tauri";

/** The window's program; in a browser the scripted one, with the world that the address names. */
export async function chooseBackend(): Promise<Backend> {
  if (inWindow()) return tauri;
  const { Fake, worlds } = await import("./fake");
  const named = new URLSearchParams(location.search).get("world") ?? "usual";
  const make = Object.entries(worlds).find(([name]) => name === named)?.[1] ?? worlds.usual;
  const fake = new Fake(make());
  Object.assign(window, { fake });
  return fake;
}
