import { Channel, invoke, isTauri } from "@tauri-apps/api/core";
import { toProblem, type Answer, type Arguments, type Backend, type CommandName } from "./backend";
import type { Message } from "./backend";

/** The program of the window. */
export const tauri: Backend = {
  async call<K extends CommandName>(
    name: K,
    args: Arguments<K>,
    tell?: (message: Message<K>) => void,
  ): Promise<Answer<K>> {
    try {
      if (!tell) return await invoke<Answer<K>>(name, args);
      return await invoke<Answer<K>>(name, { ...args, events: new Channel<Message<K>>(tell) });
    } catch (thrown) {
      throw toProblem(thrown);
    }
  },
};

/** Whether the page runs in Twospeed's window. */
export function inWindow(): boolean {
  return isTauri();
}
