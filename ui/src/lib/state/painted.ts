/**
 * Resolves when what changed before is on the screen: the frame that shows it has been painted once a
 * second one begins. A hidden window paints nothing, so there is nothing to wait for.
 */
export function painted(): Promise<void> {
  return new Promise((resolve) => {
    let frame = 0;
    const hidden = (): void => {
      if (document.visibilityState === "hidden") done();
    };
    const done = (): void => {
      cancelAnimationFrame(frame);
      document.removeEventListener("visibilitychange", hidden);
      resolve();
    };
    document.addEventListener("visibilitychange", hidden);
    frame = requestAnimationFrame(() => {
      frame = requestAnimationFrame(done);
    });
    hidden();
  });
}
