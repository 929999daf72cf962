import type { Answer, Arguments, Backend, CommandName, Message } from "./backend";
import type { AppEvent, Problem } from "./bindings";
import { compare } from "./fake/compare";
import { frame } from "./fake/frame";
import { measure } from "./fake/measure";
import { models } from "./fake/models";
import type { World } from "./fake/world";

export { never, type World } from "./fake/world";
export { worlds } from "./fake/worlds";

/** How one command is answered. */
export type Handler<K extends CommandName> = (
  args: Arguments<K>,
  fake: Fake,
  tell: (message: Message<K>) => void,
) => Answer<K> | Promise<Answer<K>>;

/** How some commands are answered. */
export type Handlers<K extends CommandName = CommandName> = { [N in K]: Handler<N> };

const usual: Handlers = { ...frame, ...models, ...measure, ...compare };

/** A call that was made. */
export interface Call {
  name: CommandName;
  args: unknown;
}

/**
 * A program that is none: it answers from a {@link World}, so that every view opens without Rust.
 *
 * Tests ask for `calls`, put single commands in place with `answer`, let them fail with `refuse`, and
 * tell of events with `tell`.
 */
export class Fake implements Backend {
  readonly calls: Call[] = [];
  readonly world: World;
  /** Everything that takes time takes so many times as long; 0 = at once. */
  pace: number;
  #own: Partial<Handlers> = {};
  #listeners = new Set<(event: AppEvent) => void>();

  constructor(world: World) {
    this.world = world;
    this.pace = world.pace;
  }

  async call<K extends CommandName>(
    name: K,
    args: Arguments<K>,
    tell: (message: Message<K>) => void = () => undefined,
  ): Promise<Answer<K>> {
    this.calls.push({ name, args: structuredClone(args) });
    await this.wait(this.world.delay);
    const handler: Handler<K> = this.#own[name] ?? usual[name];
    // What crosses to the window is a copy too.
    return structuredClone(await handler(args, this, tell));
  }

  /** Answers a command in another way from now on. */
  answer<K extends CommandName>(name: K, handler: Handler<K>): void {
    Object.assign(this.#own, { [name]: handler });
  }

  /** Lets a command fail from now on. */
  refuse(name: CommandName, problem: Partial<Problem> = {}): void {
    const whole: Problem = {
      code: "refused",
      message: `The stand-in refuses ${name}. Ask it for something else.`,
      details: null,
      ...problem,
    };
    this.answer(name, () => {
      throw whole;
    });
  }

  /** Whether it answers a command. */
  knows(name: CommandName): boolean {
    return name in usual || name in this.#own;
  }

  /** Says something to everyone who follows the app. */
  tell(event: AppEvent): void {
    for (const listener of this.#listeners) listener(structuredClone(event));
  }

  /** Adds one who follows the app. */
  follow(listener: (event: AppEvent) => void): void {
    this.#listeners.add(listener);
  }

  /** The arguments of every call of a command. */
  asked<K extends CommandName>(name: K): Arguments<K>[] {
    return this.calls.filter((call) => call.name === name).map((call) => call.args as Arguments<K>);
  }

  /** Lets time pass. */
  wait(milliseconds: number): Promise<void> {
    const long = milliseconds * this.pace;
    if (long <= 0) return Promise.resolve();
    return new Promise((resolve) => setTimeout(resolve, long));
  }
}
