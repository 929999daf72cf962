import type { Settings } from "../bindings";
import type { Handlers } from "../fake";
import { never } from "./world";

export const frame: Handlers<"start" | "follow_app" | "change_settings" | "shown"> = {
  start: (_, fake) => fake.world.start,
  follow_app: (_, fake, tell) => {
    fake.follow(tell);
    return never();
  },
  change_settings: ({ change }, fake) => {
    const before = fake.world.start.settings;
    const settings: Settings = {
      ...before,
      theme: change.theme ?? before.theme,
      text_size: change.text_size ?? before.text_size,
      known_places: change.known_places ?? before.known_places,
    };
    if (change.threads !== undefined) settings.threads = change.threads || null;
    fake.world.start.settings = settings;
    return settings;
  },
  shown: () => null,
};
