import { painted } from "$lib/state/painted";

/** The window waits no longer than this for the typeface, nor for a frame. */
const PATIENCE_MS = 120;

function after(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}

/**
 * Resolves when the first picture of the page is worth being shown: the typeface is there and a frame
 * is painted, or soon. A window that is not on the screen yet may paint nothing at all.
 */
export async function firstPicture(): Promise<void> {
  const fonts = (document as Partial<Pick<Document, "fonts">>).fonts;
  const typeface = fonts?.load("13px Inter").catch(() => undefined);
  await Promise.race([typeface, after(PATIENCE_MS)]);
  await Promise.race([painted(), after(PATIENCE_MS)]);
}
