import type { Warning } from "$lib/backend/bindings";
import { bytes, count, nbsp, percent, significant } from "$lib/format";

/** What happened, and what to do about it. */
export interface Said {
  /** A few words: `Slow first sample`. */
  title: string;
  /** One sentence with the numbers. */
  sentence: string;
  /** What to do. */
  advice: string;
}

/** The words of a warning. */
export function warningWords(warning: Warning): Said {
  switch (warning.warning) {
    case "slow_first_sample":
      return {
        title: "Slow first sample",
        sentence: `The first sample took ${significant(warning.by)} times as long as the others.`,
        advice: "Measure again, or take more samples.",
      };
    case "high_variance":
      return {
        title: "Samples far apart",
        sentence: `The samples spread by ${percent(warning.relative)} of their mean.`,
        advice: "Close other programs and measure again with more samples.",
      };
    case "trend":
      return {
        title: warning.relative < 0 ? "Slower with every sample" : "Faster with every sample",
        sentence: `From the first sample to the last the speed ${warning.relative < 0 ? "fell" : "rose"} by ${percent(Math.abs(warning.relative))}.`,
        advice:
          warning.relative < 0
            ? "The machine may have become warm. Let it cool down and measure again."
            : "The machine was not at its full speed yet. Measure again.",
      };
    case "swap_in_use":
      return {
        title: "Swap in use",
        sentence: `${bytes(warning.bytes)} of memory lay on the disk.`,
        advice: "Close other programs, or choose a smaller quantization.",
      };
    case "other_load":
      return {
        title: "Other programs at work",
        sentence: `Other programs took ${significant(warning.cores)} cores.`,
        advice: "Close them and measure again.",
      };
    case "steal":
      return {
        title: "Time taken by the host",
        sentence: `The host of this virtual machine took ${percent(warning.share)} of the time.`,
        advice: "Measure at another hour, or on a machine of its own.",
      };
    case "cpu_quota":
      return {
        title: "Held back by a quota",
        sentence: `${count(warning.threads, "thread")} ran where the quota allows ${significant(warning.cores)}${nbsp}cores.`,
        advice: "Choose no more threads than the quota allows.",
      };
    case "drift":
      return {
        title: "The machine changed",
        sentence: `After the test the machine was ${percent(Math.abs(warning.relative))} ${warning.relative > 0 ? "slower" : "faster"} than before it.`,
        advice: "Measure again when nothing else is going on.",
      };
    case "on_battery":
      return {
        title: "On battery",
        sentence: "The machine ran on its battery.",
        advice: "Connect it to power and measure again.",
      };
    case "variant_set_aside":
      return {
        title: "Another CPU variant",
        sentence: `The engine's variant ${warning.died} does not run here, so ${warning.ran} ran.`,
        advice: "Compare with results of the same variant.",
      };
    case "software_gpu":
      return {
        title: "No real GPU",
        sentence: `${warning.device} is software, not a GPU.`,
        advice: "Install the driver of your GPU, or measure on the CPU.",
      };
    case "nothing_offloaded":
      return {
        title: "Nothing on the GPU",
        sentence: `${count(warning.asked, "layer")} were to run on a GPU, and none did.`,
        advice: "Check that the GPU and its driver are there.",
      };
    case "page_faults":
      return {
        title: "Read from disk",
        sentence: `While samples were timed, the machine read from disk ${count(warning.faults, "time")}.`,
        advice: "Free memory, so that the model stays in it.",
      };
    case "not_settled":
      return {
        title: "Mean not settled",
        sentence: `With all repetitions that were allowed, the mean is known to ${percent(warning.relative)}, not to the ${percent(warning.target)} asked for.`,
        advice: "Close other programs, allow more repetitions, or ask for less.",
      };
    case "outliers":
      return {
        title: "Single samples far off",
        sentence: `${count(warning.count, "sample")} ${warning.count === 1 ? "lies" : "lie"} far from all others, the farthest at ${percent(warning.by)} of the median.`,
        advice: "Go by the median, or measure again.",
      };
    case "throttled":
      return {
        title: "Slowed down by heat",
        sentence: `The processor held its clock down ${count(warning.times, "time")} because of its temperature.`,
        advice: "Let it cool down and measure again.",
      };
    case "power_saver":
      return {
        title: "Saving energy",
        sentence: `The power profile is ${warning.profile}, which saves energy at the cost of speed.`,
        advice: "Choose a profile for performance and measure again.",
      };
  }
}
