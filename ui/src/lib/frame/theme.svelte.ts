import type { AppState } from "$lib/state/app.svelte";

/**
 * Keeps the page's theme and text size at what the settings say.
 *
 * Until the settings are there, what the first script set stays. Where they follow the system, it
 * stays too, until the system changes: the program may know the system's theme better than the page.
 */
export function followTheme(app: AppState): void {
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");
  let chosen: string | null = null;

  const asSystem = (): void => {
    root.dataset.theme = system.matches ? "dark" : "light";
  };

  $effect(() => {
    const theme = app.settings?.theme;
    if (!theme) return;
    if (theme !== "system") root.dataset.theme = theme;
    else if (chosen !== null) asSystem();
    chosen = theme;
  });

  $effect(() => {
    const size = app.settings?.text_size;
    if (size) root.style.setProperty("--text", String(size));
  });

  $effect(() => {
    const changed = (): void => {
      if ((app.settings?.theme ?? "system") === "system") asSystem();
    };
    system.addEventListener("change", changed);
    return () => {
      system.removeEventListener("change", changed);
    };
  });
}
