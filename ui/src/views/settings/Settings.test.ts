import { screen, waitFor, within } from "@testing-library/svelte";
import userEvent from "@testing-library/user-event";
import { beforeEach, describe, expect, it } from "vitest";
import type { Job } from "$lib/backend/bindings";
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

  it("calibrates on request and shows what was found", async () => {
    const { fake, states } = await show(Settings, "empty");
    expect(await screen.findByText("Not calibrated.")).toBeVisible();
    await userEvent.click(screen.getByRole("button", { name: /^Calibrate/ }));
    expect(fake.asked("calibrate")).toHaveLength(1);
    await waitFor(() => {
      expect(states.app.machine?.read_bytes_s).toBe(18_000_000_000);
    });
    const section = screen.getByRole("region", { name: "Calibration" });
    expect(await within(section).findByText("Calibrated just now")).toBeVisible();
    expect(section).toHaveTextContent(/CPU\s+zen4 with 2\sthreads, llama\.cpp 11434/);
    const matrices = within(section).getByRole("table", { name: "Matrices" });
    const row = within(matrices).getByRole("row", { name: /Q4_K/ });
    expect(row).toHaveTextContent(/repacked\s*19\.1\s*14\.8\s*141/);
    const memory = within(section).getByRole("table", { name: "Memory" });
    expect(within(memory).getByRole("row", { name: /1\.2\sGB/ })).toHaveTextContent(
      /beyond the cache\s*18\.0/,
    );
  });

  it("shows how far calibrating is and whom it waits for, and cancels it", async () => {
    const fake = fakeOf();
    const job: Job = {
      id: "job 1",
      kind: "calibrate",
      title: "This machine",
      row: "",
      state: { state: "waiting", why: "Another measurement runs on this machine (bench)." },
    };
    fake.world.start.jobs = [job];
    await show(Settings, fake);
    expect(screen.getByText(/Another measurement runs .*bench/)).toBeVisible();
    const running = { fraction: 0.42, bytes: null, bytes_total: null };
    fake.tell({ event: "job", job: { ...job, state: { state: "running", ...running } } });
    expect(await screen.findByRole("progressbar")).toHaveAttribute("aria-valuenow", "42");
    expect(screen.getByText(/calibrating, 42\s%/)).toBeVisible();
    await userEvent.click(screen.getByRole("button", { name: "Cancel calibration" }));
    expect(fake.asked("cancel_job")).toEqual([{ job: "job 1" }]);
    expect(await screen.findByRole("button", { name: /Calibrate anew/ })).toBeVisible();
  });

  it("says that a calibration belongs to other settings", async () => {
    const fake = fakeOf();
    const { calibration } = fake.world;
    if (!calibration) throw new Error("the world is calibrated");
    calibration.does_not_hold = "not calibrated for 4 threads (for 2 it is)";
    await show(Settings, fake);
    expect(await screen.findByText(/does not hold .* for 4 threads \(for 2 it is\)/)).toBeVisible();
  });

  it("says why it was not calibrated", async () => {
    const fake = fakeOf();
    fake.refuse("calibrate", { code: "busy", message: "A run goes on. Wait for it or cancel it." });
    await show(Settings, fake);
    const button = await screen.findByRole("button", { name: /^Calibrate/ });
    await userEvent.click(button);
    expect(await screen.findByRole("alert")).toHaveTextContent("A run goes on");
    expect(button).toBeEnabled();
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
