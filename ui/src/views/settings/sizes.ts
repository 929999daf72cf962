/** Text sizes to choose from. */
export const textSizes = [0.8, 0.9, 1, 1.15, 1.3, 1.6] as const;

/** The one that is nearest to a size. */
export function nearest(size: number): number {
  return textSizes.reduce<number>(
    (best, each) => (Math.abs(each - size) < Math.abs(best - size) ? each : best),
    1,
  );
}

/** The next larger or smaller one; the same at the ends. */
export function next(size: number, by: 1 | -1): number {
  const at = textSizes.findIndex((each) => each === nearest(size));
  return textSizes[Math.min(textSizes.length - 1, Math.max(0, at + by))] ?? 1;
}

/** Threads as typed: a number, `null` for the default, or why it is neither. */
export function readThreads(
  text: string,
  most: number,
): { threads: number | null } | { wrong: string } {
  const typed = text.trim();
  if (typed === "") return { threads: null };
  const threads = /^\d{1,5}$/.test(typed) ? Number(typed) : 0;
  if (threads >= 1 && threads <= most) return { threads };
  return { wrong: `Write a whole number from 1 to ${String(most)}, or nothing for the default.` };
}
