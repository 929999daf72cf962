import type { Place } from "./place";

/** Where no place can be measured, as in tests: that of a window of 1280 by 800. */
export const usualPlace: Place = { width: 580, height: null };

/** Repaints wait until the window's size has settled for so long, ms. */
const SETTLED = 120;

/** The room that there is for the figure, as the window grows and shrinks. */
export class Room {
  place = $state.raw<Place | null>(null);

  /** Measures an element from now on. */
  readonly measure = (element: HTMLElement): (() => void) => {
    const look = (): void => {
      const { width, height } = inside(element);
      if (width > 0) this.place = { width, height };
      else this.place ??= usualPlace;
    };
    look();
    if (typeof ResizeObserver === "undefined") return () => undefined;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const observer = new ResizeObserver(() => {
      clearTimeout(timer);
      timer = setTimeout(look, SETTLED);
    });
    observer.observe(element);
    return () => {
      clearTimeout(timer);
      observer.disconnect();
    };
  };
}

/** The room inside; its height counts only where the figure has a scroller of its own. */
function inside(element: HTMLElement): Place {
  const style = getComputedStyle(element);
  const sum = (...names: string[]): number =>
    names.reduce((total, name) => total + (parseFloat(style.getPropertyValue(name)) || 0), 0);
  const own = style.getPropertyValue("--own-height").trim() === "1";
  return {
    width: element.offsetWidth - sum("padding-left", "padding-right"),
    height: own ? element.offsetHeight - sum("padding-top", "padding-bottom") : null,
  };
}
