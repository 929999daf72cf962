import type { Caution } from "$lib/backend/bindings";
import { percent } from "$lib/format";
import { warningWords, type Said } from "./warnings";

/** The words of a caution: why what is shown may not be comparable, and what to do. */
export function cautionWords(caution: Caution): Said {
  switch (caution.caution) {
    case "drift":
      return {
        title: "The machine changed",
        sentence: `Between ${caution.one} and ${caution.other} the machine itself changed by ${percent(Math.abs(caution.relative))}, more than they differ.`,
        advice: "Measure both again in one run.",
      };
    case "machines":
      return {
        title: "Different machines",
        sentence: "These results come from more than one machine, so a difference may be theirs.",
        advice: "Choose results of one machine, or one model on several.",
      };
    case "settings":
      return {
        title: "Different settings",
        sentence: `These results differ in ${list(caution.names)} too.`,
        advice: "Measure them with the same settings to compare the models alone.",
      };
    case "warned":
      return warned(caution.result, caution.warnings.map(warningWords));
  }
}

function warned(result: string, warnings: Said[]): Said {
  const [only] = warnings;
  if (!only) {
    return {
      title: `${result}: not complete`,
      sentence: "It was not measured to its end.",
      advice: "Its run says why; measure it again.",
    };
  }
  // The same thing may have happened to both speeds.
  const titles = [...new Set(warnings.map((warning) => warning.title))];
  if (titles.length === 1) {
    return {
      title: `${result}: ${lower(only.title)}`,
      sentence: only.sentence,
      advice: only.advice,
    };
  }
  return {
    title: `${result}: ${titles.length} warnings`,
    sentence: `${list(titles.map((title, at) => (at === 0 ? title : lower(title))))}.`,
    advice: "Its run says more.",
  };
}

/** For the middle of a sentence; what is written in capitals stays. */
function lower(text: string): string {
  return /^[A-Z][a-z ]/.test(text) ? text.charAt(0).toLowerCase() + text.slice(1) : text;
}

/** `threads`, `threads and batch size`, `threads, batch size and depth`. */
function list(names: readonly string[]): string {
  if (names.length < 2) return names[0] ?? "settings";
  return `${names.slice(0, -1).join(", ")} and ${names.at(-1) ?? ""}`;
}
