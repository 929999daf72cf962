import { screen, waitFor } from "@testing-library/svelte";
import userEvent from "@testing-library/user-event";
import { beforeEach, describe, expect, it } from "vitest";
import { faults } from "$lib/testing/axe";
import { fakeOf, show } from "$lib/testing/render";
import Settings from "./Settings.svelte";
import { nearest, next, readThreads, textSizes } from "./sizes";

beforeEach(() => {
  location.hash = "#settings";
});

describe("Settings", () => {
  it("changes theme and text size at once", async () => {
    const { fake } = await show(Settings);
    await userEvent.click(screen.getByRole("radio", { name: "Dark" }));
    await userEvent.click(screen.getByRole("radio", { name: /130/ }));
    expect(fake.asked("change_settings")).toEqual([
      { change: { theme: "dark" } },
      { change: { text_size: 1.3 } },
    ]);
    expect(screen.getByRole("radio", { name: /130/ })).toBeChecked();
  });

  it("goes back and says why where a change is refused", async () => {
    const fake = fakeOf();
    fake.refuse("change_settings", { message: "The settings cannot be kept: the disk is full." });
    const { states } = await show(Settings, fake);
    await userEvent.click(screen.getByRole("radio", { name: "Dark" }));
    await waitFor(() => {
      expect(screen.getByRole("radio", { name: "As the system" })).toBeChecked();
    });
    expect(states.app.notices.map((notice) => notice.message)).toEqual([
      "The settings cannot be kept: the disk is full.",
    ]);
  });

  it("takes a number of threads, and nothing for the default", async () => {
    const { fake } = await show(Settings);
    const field = screen.getByRole("textbox", { name: "Threads" });
    await userEvent.type(field, "3{Tab}");
    await userEvent.clear(field);
    await userEvent.tab();
    expect(fake.asked("change_settings")).toEqual([
      { change: { threads: 3 } },
      { change: { threads: 0 } },
    ]);
    expect(field).toHaveValue("");
  });

  it("says what is wrong with a number of threads, and changes nothing", async () => {
    const { fake } = await show(Settings);
    const field = screen.getByRole("textbox", { name: "Threads" });
    await userEvent.type(field, "400{Tab}");
    expect(field).toHaveAccessibleDescription(/from 1 to 4/);
    expect(fake.asked("change_settings")).toEqual([]);
  });

  it("measures the read speed on request", async () => {
    const { fake, states } = await show(Settings, "empty");
    expect(screen.getByText("not measured")).toBeVisible();
    await userEvent.click(screen.getByRole("button", { name: "Measure read speed" }));
    expect(fake.asked("calibrate")).toHaveLength(1);
    await waitFor(() => {
      expect(states.app.machine?.read_bytes_s).toBe(18_000_000_000);
    });
    expect(screen.getByText(/18\.0\sGB\/s/)).toBeVisible();
  });

  it("says why the read speed was not measured", async () => {
    const fake = fakeOf();
    fake.refuse("calibrate", { code: "busy", message: "A run goes on. Wait for it or cancel it." });
    await show(Settings, fake);
    await userEvent.click(screen.getByRole("button", { name: "Measure read speed" }));
    expect(await screen.findByRole("alert")).toHaveTextContent("A run goes on");
    expect(screen.getByRole("button", { name: "Measure read speed" })).toBeEnabled();
  });

  it("looks in other programs' folders when asked to", async () => {
    const { fake } = await show(Settings);
    expect(screen.getByText("/home/ada/.lmstudio/models")).toBeVisible();
    await userEvent.click(screen.getByRole("checkbox", { name: /LM Studio/ }));
    expect(fake.asked("change_settings")).toEqual([{ change: { known_places: true } }]);
  });

  it("says where data is and when the network is used", async () => {
    const { fake } = await show(Settings);
    expect(screen.getByText("https://huggingface.co")).toBeVisible();
    await userEvent.click(screen.getByRole("button", { name: "Show the folder" }));
    expect(fake.asked("reveal")).toEqual([{ path: "/home/ada/.local/share/twospeed" }]);
    expect(screen.getByText(/Twospeed 0\.1\.0/)).toBeVisible();
  });

  it("is there before its contents are", async () => {
    const { states } = await show(Settings);
    states.app.settings = null;
    expect(await screen.findByText("Reading the settings.")).toBeVisible();
  });

  it.each(["empty", "usual", "long names"] as const)(
    "has no fault that axe-core finds (%s)",
    async (world) => {
      const { container } = await show(Settings, world);
      expect(await faults(container)).toEqual([]);
    },
  );
});

describe("sizes", () => {
  it("steps through the sizes and stops at the ends", () => {
    expect(next(1, 1)).toBe(1.15);
    expect(next(1, -1)).toBe(0.9);
    expect(next(1.6, 1)).toBe(1.6);
    expect(next(0.8, -1)).toBe(0.8);
    expect(next(1.17, 1)).toBe(1.3);
    for (const size of textSizes) expect(nearest(size)).toBe(size);
  });

  it("reads threads as whole numbers alone", () => {
    expect(readThreads(" 4 ", 4)).toEqual({ threads: 4 });
    expect(readThreads("", 4)).toEqual({ threads: null });
    for (const wrong of ["0", "5", "-1", "1.5", "1e1", "four", "0x2", "99999999999"])
      expect(readThreads(wrong, 4)).toHaveProperty("wrong");
  });
});
