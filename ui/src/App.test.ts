import { render, screen, waitFor } from "@testing-library/svelte";
import userEvent from "@testing-library/user-event";
import { beforeEach, describe, expect, it, vi } from "vitest";
import App from "./App.svelte";
import { worlds, type Fake } from "$lib/backend/fake";
import { never } from "$lib/backend/fake/world";
import { createStates } from "$lib/state/context";
import { faults } from "$lib/testing/axe";
import { fakeOf } from "$lib/testing/render";

const root = document.documentElement;

beforeEach(() => {
  location.hash = "";
  root.dataset.theme = "light";
  root.removeAttribute("style");
});

function open(fake: Fake): ReturnType<typeof createStates> {
  const states = createStates(fake);
  render(App, { states });
  return states;
}

/** Opens the frame and waits until the program has answered. */
async function opened(fake: Fake): Promise<ReturnType<typeof createStates>> {
  const states = open(fake);
  await waitFor(() => {
    expect(states.app.started).toBe(true);
  });
  return states;
}

/** A system that is dark or light, and can change. */
function system(dark: boolean): (dark: boolean) => void {
  const query = Object.assign(new EventTarget(), { matches: dark });
  vi.spyOn(window, "matchMedia").mockReturnValue(query as unknown as MediaQueryList);
  return (now) => {
    query.matches = now;
    query.dispatchEvent(new Event("change"));
  };
}

describe("the frame", () => {
  it("is there before the program answers", () => {
    const fake = fakeOf();
    fake.answer("start", never);
    fake.answer("models", never);
    open(fake);
    for (const name of ["Models", "Measure", "Compare", "Settings"])
      expect(screen.getByRole("link", { name })).toBeVisible();
    expect(screen.getByRole("heading", { level: 1, name: "Models" })).toBeVisible();
  });

  it("puts the keyboard to the heading where the control that led there is gone", async () => {
    const { app } = await opened(fakeOf());
    expect(document.body).toHaveFocus();
    app.go("settings");
    await waitFor(() => {
      expect(screen.getByRole("heading", { level: 1, name: "Settings" })).toHaveFocus();
    });
  });

  it("says that it is shown once it is painted", async () => {
    const fake = fakeOf();
    open(fake);
    expect(fake.asked("shown")).toHaveLength(0);
    await waitFor(() => {
      expect(fake.asked("shown")).toHaveLength(1);
    });
  });

  it("shows the machine, and what is not known of it in words", async () => {
    open(fakeOf("empty"));
    const machine = screen.getByRole("region", { name: "This machine" });
    expect(await screen.findByRole("heading", { name: "Intel Xeon" })).toBeVisible();
    expect(machine).toHaveTextContent("Read speed not measured");
    expect(machine).toHaveTextContent("Memory 24 GB");
  });

  it("says why it cannot start, and tries again", async () => {
    const fake = fakeOf();
    fake.refuse("start", { message: "The data folder cannot be written. Give Twospeed another." });
    open(fake);
    expect(await screen.findByRole("alert")).toHaveTextContent("The data folder cannot be written");
    fake.answer("start", () => worlds.usual().start);
    await userEvent.click(screen.getByRole("button", { name: "Try again" }));
    await waitFor(() => {
      expect(screen.queryByRole("alert")).toBeNull();
    });
  });

  it("opens views by links, by Ctrl and a digit, and by the address", async () => {
    const states = open(fakeOf());
    await userEvent.keyboard("{Control>}3{/Control}");
    expect(screen.getByRole("link", { name: "Compare" })).toHaveAttribute("aria-current", "page");
    await userEvent.keyboard("{Control>}4{/Control}");
    expect(await screen.findByRole("heading", { level: 1, name: "Settings" })).toBeVisible();
    location.hash = "#compare/run%2F1";
    await waitFor(() => {
      expect(states.app.view).toBe("compare");
    });
    expect(states.app.rest).toBe("run/1");
  });

  it("goes to the search by a slash, but writes it where text is written", async () => {
    open(fakeOf());
    await userEvent.keyboard("/");
    expect(screen.getByRole("searchbox")).toHaveFocus();
    await userEvent.keyboard("a/b");
    expect(screen.getByRole("searchbox")).toHaveValue("a/b");
  });

  it("has the web view's menu only where text can be copied or pasted", async () => {
    await opened(fakeOf());
    const opens = (where: Element) =>
      where.dispatchEvent(new MouseEvent("contextmenu", { bubbles: true, cancelable: true }));
    const heading = screen.getByRole("heading", { name: "Models" });
    expect(opens(heading)).toBe(false);
    expect(opens(screen.getByRole("searchbox"))).toBe(true);
    document.getSelection()?.selectAllChildren(heading);
    expect(opens(heading)).toBe(true);
    document.getSelection()?.removeAllRanges();
    expect(opens(heading)).toBe(false);
  });

  it("makes text larger, smaller and usual again by keys", async () => {
    await opened(fakeOf());
    await userEvent.keyboard("{Control>}+{/Control}");
    await waitFor(() => {
      expect(root.style.getPropertyValue("--text")).toBe("1.15");
    });
    await userEvent.keyboard("{Control>}0{/Control}");
    await waitFor(() => {
      expect(root.style.getPropertyValue("--text")).toBe("1");
    });
  });

  it("keeps the theme of the first picture, and follows the system when that changes", async () => {
    const turn = system(false);
    root.dataset.theme = "dark";
    await opened(fakeOf());
    expect(root.dataset.theme).toBe("dark");
    turn(true);
    turn(false);
    expect(root.dataset.theme).toBe("light");
  });

  it("follows no system where a theme is chosen", async () => {
    const turn = system(true);
    await opened(fakeOf());
    await userEvent.click(screen.getByRole("button", { name: "Light" }));
    turn(true);
    expect(root.dataset.theme).toBe("light");
    await userEvent.click(screen.getByRole("button", { name: "Dark" }));
    expect(root.dataset.theme).toBe("dark");
    expect(screen.getByRole("button", { name: "Dark" })).toHaveAttribute("aria-pressed", "true");
  });

  it("says what happened in a line that can be closed, failures with that word", async () => {
    const fake = fakeOf();
    await opened(fake);
    fake.tell({ event: "notice", message: "The file is no model. Choose another.", failed: true });
    const alert = await screen.findByRole("alert");
    expect(alert).toHaveTextContent("Failed. The file is no model. Choose another.");
    await userEvent.click(screen.getByRole("button", { name: /^Close/ }));
    expect(screen.queryByRole("alert")).toBeNull();
  });

  it("shows a job above the other views, and says when its file is there", async () => {
    const fake = fakeOf();
    const states = await opened(fake);
    states.app.go("compare");
    const job = {
      id: "job 1",
      kind: "quantize" as const,
      title: "SmolLM2 135M Instruct Q4_K_M",
      row: "SmolLM2 135M Instruct Q4_K_M",
    };
    const running = { fraction: 0.5, bytes: null, bytes_total: null };
    fake.tell({ event: "job", job: { ...job, state: { state: "running", ...running } } });
    const notices = await screen.findByRole("region", { name: "Notices" });
    expect(notices).toHaveTextContent(/Q4_K_M being made, 50\s% Cancel/);
    fake.tell({ event: "job", job: { ...job, state: { state: "done", row: job.row } } });
    expect(await screen.findByText(/is there. Select it in Models/)).toBeVisible();
  });

  it("takes up jobs and a run when the page is loaded again", async () => {
    const fake = fakeOf("failures");
    fake.world.start.running = true;
    const states = open(fake);
    await waitFor(() => {
      expect(fake.asked("follow_run")).toHaveLength(1);
    });
    expect(states.app.jobs).toHaveLength(1);
  });

  it("says where files would go while they are held over it", async () => {
    const fake = fakeOf();
    await opened(fake);
    fake.tell({ event: "drop_hover", over: true });
    expect(await screen.findByText("Drop to add")).toBeVisible();
    fake.tell({ event: "drop_hover", over: false });
    await waitFor(() => {
      expect(screen.queryByText("Drop to add")).toBeNull();
    });
  });

  it("asks for the list again when it changed", async () => {
    const fake = fakeOf();
    const states = open(fake);
    await waitFor(() => {
      expect(states.models.view).not.toBeNull();
    });
    const before = fake.asked("models").length;
    fake.tell({ event: "models_changed" });
    fake.tell({ event: "models_changed" });
    fake.tell({ event: "models_changed" });
    await waitFor(() => {
      expect(fake.asked("models")).toHaveLength(before + 2);
    });
  });

  it.each(["usual", "failures"] as const)(
    "has no fault that axe-core finds (%s)",
    async (world) => {
      const states = open(fakeOf(world));
      await waitFor(() => {
        expect(states.app.started && states.models.view !== null).toBe(true);
      });
      expect(await faults()).toEqual([]);
    },
  );
});
