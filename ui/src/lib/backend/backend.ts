import type { Commands, Problem } from "./bindings";

/** Name of something the page may ask. */
export type CommandName = keyof Commands;

/** What a command takes. */
export type Arguments<K extends CommandName> = Commands[K]["arguments"];

/** What a command tells while it is at work. */
export type Message<K extends CommandName> = Commands[K]["tells"];

/** What a command answers. */
export type Answer<K extends CommandName> = Commands[K]["answer"];

/**
 * The program behind the page: the one way out of it.
 *
 * `call` rejects with a {@link Problem}, whatever went wrong.
 */
export interface Backend {
  call<K extends CommandName>(
    name: K,
    args: Arguments<K>,
    tell?: (message: Message<K>) => void,
  ): Promise<Answer<K>>;
}

function isProblem(thrown: unknown): thrown is Problem {
  return (
    typeof thrown === "object" &&
    thrown !== null &&
    "code" in thrown &&
    "message" in thrown &&
    typeof thrown.code === "string" &&
    typeof thrown.message === "string" &&
    !(thrown instanceof Error)
  );
}

/** Whatever was thrown, as a problem that can be shown. */
export function toProblem(thrown: unknown): Problem {
  if (isProblem(thrown)) return { ...thrown, details: thrown.details ?? null };
  const said = thrown instanceof Error ? thrown.message : String(thrown);
  return {
    code: "page",
    message: "The window could not do this. Try again; if it happens again, restart Twospeed.",
    details: said,
  };
}
