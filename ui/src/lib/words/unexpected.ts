import type { Unexpected } from "$lib/backend/bindings";

/** Why nothing is expected of a result. */
export interface UnexpectedWords {
  /** One sentence or more. */
  sentence: string;
  /** Calibrating this machine would help. */
  calibrate: boolean;
}

/** How the way out is called. */
export const CALIBRATE = "Calibrate (about 15 s)";

/** The words of why nothing is expected. */
export function unexpectedWords(why: Unexpected): UnexpectedWords {
  const said = (sentence: string, calibrate = false): UnexpectedWords => ({ sentence, calibrate });
  switch (why.unexpected) {
    case "not_calibrated":
      return said(
        "This machine is not calibrated, so only ceilings are known: what it takes to multiply a matrix here has not been measured.",
        true,
      );
    case "other_calibration":
      return said(`This result was measured otherwise than was calibrated. ${why.sentence}`);
    case "other_machine":
      return said(
        `This result comes from ${why.name ?? "another machine"}: what to expect there, only a calibration of that machine could tell.`,
      );
    case "other_backend":
      return said(`This result was computed by ${why.ran}, of which there is no calibration.`);
    case "file_gone":
      return said(
        `The file is not here any more, so its layers are not known. It was ${why.path}. In one of the folders of Models it would be found again by its content.`,
      );
    case "file_unknown":
      return said("This result does not say which file it was measured with.");
    case "not_estimated":
      return said(["The file does not say all that it takes.", ...why.why].join(" "));
  }
}
