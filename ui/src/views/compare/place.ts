// The place that the figure is drawn for.

/** The narrowest figure there is, px before scaling. */
const LEAST_WIDTH = 420;

/** A place on the page, px. */
export interface Place {
  width: number;
  /** `null` = as high as it comes. */
  height: number | null;
}

/** What a figure is drawn for. */
export interface Drawing extends Place {
  scale: number;
}

/**
 * How a figure is drawn into a place at a text size: as large as the text, unless it would then be
 * wider than the place; never smaller than it was drawn for, or than the text.
 */
export function drawingFor(place: Place, textSize: number): Drawing {
  const width = Math.floor(place.width);
  const fits = Math.floor((width / LEAST_WIDTH) * 100) / 100;
  const scale = Math.min(textSize, Math.max(fits, Math.min(1, textSize)));
  const height = place.height === null ? null : Math.floor(place.height);
  return { width, height, scale };
}
