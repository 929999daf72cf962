import { fireEvent, screen, waitFor, within } from "@testing-library/svelte";
import userEvent from "@testing-library/user-event";
import { beforeEach, describe, expect, it } from "vitest";
import type { Job } from "$lib/backend/bindings";
import { worlds } from "$lib/backend/fake";
import { never } from "$lib/backend/fake/world";
import { faults } from "$lib/testing/axe";
import { fakeOf, show } from "$lib/testing/render";
import Models from "./Models.svelte";

beforeEach(() => {
  location.hash = "";
  document.documentElement.dataset.theme = "light";
});

const q4_1 = "SmolLM2 135M Instruct Q4_1";
const q4_k_m = "SmolLM2 135M Instruct Q4_K_M";

function row(id: string): HTMLElement {
  const found = document.querySelector<HTMLElement>(`[data-row="${id}"]`);
  if (!found) throw new Error(`no row ${id}`);
  return found;
}

describe("Models", () => {
  it("says how to begin and offers two models while there is none", async () => {
    const { fake, states } = await show(Models, "empty");
    fake.answer("make", never);
    // Of what is listed: the history may know of files that are elsewhere now.
    expect(screen.getByText("none of these was measured on this machine yet")).toBeVisible();
    const intro = screen.getByRole("region", { name: /Add your models/ });
    expect(intro).toHaveTextContent(/145\sMB from Hugging Face/);
    expect(intro).toHaveTextContent(/only when you ask/);
    await userEvent.click(within(intro).getByRole("button", { name: /Download SmolLM2/ }));
    expect(fake.asked("make")).toEqual([{ row: "SmolLM2 135M Instruct Q8_0" }]);
    await userEvent.click(within(intro).getByRole("button", { name: /built-in/ }));
    expect(states.app.view).toBe("measure");
    expect([...states.models.selected]).toEqual(["Built-in 150M Q4_K_M"]);
  });

  it("asks nothing of the network by itself", async () => {
    const { fake } = await show(Models, "empty");
    expect(fake.calls.map((call) => call.name)).not.toContain("make");
  });

  it("has its skeleton before the list is there", async () => {
    const fake = fakeOf("usual");
    fake.answer("models", never);
    const { createStates } = await import("$lib/state/context");
    const { render } = await import("@testing-library/svelte");
    const { default: Provide } = await import("$lib/testing/Provide.svelte");
    const states = createStates(fake);
    void states.models.refresh();
    render(Provide, { states, view: Models });
    expect(screen.getByRole("heading", { level: 1, name: "Models" })).toBeVisible();
    expect(screen.getByText("Reading the list of models.")).toBeVisible();
    expect(screen.getByRole("table")).toHaveAttribute("aria-busy", "true");
  });

  it("says why there is no list, and tries again", async () => {
    const fake = fakeOf("usual");
    fake.refuse("models", { message: "The list could not be read. Restart Twospeed." });
    await show(Models, fake);
    expect(screen.getByRole("alert")).toHaveTextContent("The list could not be read");
    fake.answer("models", () => worlds.usual().models);
    await userEvent.click(screen.getByRole("button", { name: "Try again" }));
    expect(await screen.findByRole("checkbox", { name: q4_1 })).toBeVisible();
    expect(screen.queryByRole("alert")).toBeNull();
  });

  it("shows what was measured in bold, and what was not in words, never as 0", async () => {
    await show(Models);
    expect(row(q4_1)).toHaveTextContent("300");
    expect(row(q4_1).querySelector(".decode b")).toHaveTextContent("107");
    const never = row("Qwen3 30B-A3B Q8_0");
    expect(never).toHaveTextContent("not measured");
    expect(never).toHaveTextContent(/at most 5\.00/);
    expect(never).not.toHaveTextContent(/\b0 tok/);
    expect(row("Qwen3 30B-A3B Q8_0")).toHaveTextContent(/12\.7\sGB too large/);
  });

  it("shows what is predicted as a prediction, and never beside what was measured", async () => {
    await show(Models);
    const decode = row(q4_k_m).querySelector(".decode");
    expect(decode).toHaveTextContent(/predicted\s*101\s*92–110/);
    expect(decode?.querySelector("b, .bar")).toBeNull();
    expect(decode?.querySelector(".tick")).not.toBeNull();
    expect(decode?.getAttribute("title")).toMatch(/^Predicted, not measured/);
    // 107 was measured, 106 is expected of it.
    const measured = row(q4_1).querySelector(".decode");
    expect(measured).not.toHaveTextContent("106");
    expect(measured?.querySelector(".band, .tick")).toBeNull();
    expect(screen.getByText(/5 of 9\smodels measured .* the others predicted/)).toBeVisible();
  });

  it("leads to Measure with what is selected, in the order of selecting", async () => {
    const { states } = await show(Models);
    expect(screen.queryByRole("button", { name: /selected/ })).toBeNull();
    await userEvent.click(screen.getByRole("checkbox", { name: "Gemma 3 270M it Q4_K_M" }));
    await userEvent.click(screen.getByRole("checkbox", { name: q4_1 }));
    expect(await screen.findByText(/4\stests, about/)).toBeVisible();
    await userEvent.click(screen.getByRole("button", { name: "Measure 2 selected" }));
    expect(states.app.view).toBe("measure");
    expect([...states.models.selected]).toEqual(["Gemma 3 270M it Q4_K_M", q4_1]);
  });

  it("cannot select what is not there, and says why", async () => {
    await show(Models);
    const box = screen.getByRole("checkbox", { name: q4_k_m });
    expect(box).toBeDisabled();
    expect(box).toHaveAccessibleDescription(/not on this disk/);
  });

  it("adds what is written into the path field", async () => {
    const { fake } = await show(Models);
    const field = screen.getByRole("textbox", { name: "Folder or file path" });
    await userEvent.type(field, "~/more models{Enter}");
    expect(fake.asked("add_path")).toEqual([{ path: "~/more models" }]);
    await waitFor(() => {
      expect(field).toHaveValue("");
    });
    await userEvent.click(screen.getByRole("button", { name: /3\sfolders/ }));
    expect(screen.getByRole("list", { name: "Folders" })).toHaveTextContent("~/more models");
  });

  it("says beside the field why a path was not added, and keeps it", async () => {
    const fake = fakeOf();
    fake.refuse("add_path", { message: "/nowhere is not there. Check how it is written." });
    await show(Models, fake);
    const field = screen.getByRole("textbox", { name: "Folder or file path" });
    await userEvent.type(field, "/nowhere");
    await userEvent.click(screen.getByRole("button", { name: "Add folder" }));
    expect(field).toHaveAccessibleDescription(/is not there/);
    expect(field).toHaveValue("/nowhere");
  });

  it("adds what the picker gives, and nothing where it was closed", async () => {
    const { fake } = await show(Models);
    await userEvent.click(screen.getByRole("button", { name: "Choose…" }));
    expect(fake.asked("add_path")).toEqual([{ path: "/home/ada/models" }]);
    fake.world.picked = null;
    await userEvent.click(screen.getByRole("button", { name: "Choose…" }));
    expect(fake.asked("add_path")).toHaveLength(1);
  });

  it("takes a folder out of the list", async () => {
    const { fake } = await show(Models);
    await userEvent.click(screen.getByRole("button", { name: /2\sfolders/ }));
    expect(screen.getByText("not there now")).toBeVisible();
    await userEvent.click(screen.getByRole("button", { name: "Remove /media/ada/Backup/gguf" }));
    expect(fake.asked("remove_folder")).toEqual([{ folder: "folder 2" }]);
    expect(screen.queryByText("/media/ada/Backup/gguf")).toBeNull();
  });

  it("makes a quantization with one click and shows how far it is, until it is there", async () => {
    const fake = fakeOf();
    fake.answer("make", ({ row: id }) => ({
      id: "job 1",
      kind: "quantize",
      title: q4_k_m,
      row: id,
      state: { state: "waiting", why: "Waits for a measurement to end." },
    }));
    const { states } = await show(Models, fake);
    await userEvent.click(screen.getByRole("button", { name: `Make ${q4_k_m}` }));
    expect(row(q4_k_m)).toHaveTextContent("Waits for a measurement to end.");
    const job = states.app.jobOf(q4_k_m);
    if (!job) throw new Error("there is a job");
    const running = { fraction: 0.426, bytes: null, bytes_total: null };
    fake.tell({ event: "job", job: { ...job, state: { state: "running", ...running } } });
    expect(await screen.findByRole("progressbar")).toHaveAttribute("aria-valuenow", "42");
    expect(row(q4_k_m)).toHaveTextContent(/being made, 42\s%/);
    const made = fake.world.models.groups[0]?.rows[2];
    if (made) Object.assign(made, { place: { place: "on_disk" }, hindrance: null });
    fake.tell({ event: "job", job: { ...job, state: { state: "done", row: q4_k_m } } });
    fake.tell({ event: "models_changed" });
    await waitFor(() => {
      expect(screen.getByRole("checkbox", { name: q4_k_m })).toBeEnabled();
    });
  });

  it("cancels what is being made", async () => {
    const world = worlds.usual();
    world.start.jobs = [
      {
        id: "job 1",
        kind: "download",
        title: q4_k_m,
        row: q4_k_m,
        state: { state: "running", fraction: 0.1, bytes: 12e6, bytes_total: 105e6 },
      },
    ];
    const { fake } = await show(Models, world);
    expect(row(q4_k_m)).toHaveTextContent(/12\sMB of 105\sMB/);
    await userEvent.click(screen.getByRole("button", { name: `Cancel ${q4_k_m}` }));
    expect(fake.asked("cancel_job")).toEqual([{ job: "job 1" }]);
    expect(await screen.findByRole("button", { name: `Make ${q4_k_m}` })).toBeVisible();
  });

  it("says in the row why a job failed, until it is closed", async () => {
    await show(Models, "failures");
    const alert = screen.getByRole("alert");
    expect(alert).toHaveTextContent(/Failed.*needs 105 MB/);
    await userEvent.click(within(alert).getByRole("button", { name: /Close/ }));
    expect(screen.queryByRole("alert")).toBeNull();
  });

  it("shows the facts of a file", async () => {
    await show(Models);
    const button = screen.getByRole("button", { name: `Details of ${q4_1}` });
    await userEvent.click(button);
    expect(button).toHaveAttribute("aria-expanded", "true");
    const details = screen.getByRole("group", { name: `Details of ${q4_1}` });
    expect(await within(details).findByText("Weights read per token")).toBeVisible();
    expect(details).toHaveTextContent(/300\stok\/s, mean of 5\ssamples/);
    expect(within(details).getByRole("list", { name: /Tensor types/ })).toHaveTextContent("Q6_K");
  });

  it("works out what a model takes with other settings, and asks the engine once they stand still", async () => {
    const { fake } = await show(Models);
    await userEvent.click(screen.getByRole("button", { name: `Details of ${q4_1}` }));
    const what = await screen.findByRole("region", { name: /What SmolLM2 .* takes/ });
    expect(await within(what).findByText(/30\slayers × 4,096 tokens × 3\sheads/)).toBeVisible();
    const slider = within(what).getByRole("slider", { name: "Context" });
    expect(slider).toHaveAttribute("aria-valuetext", "4,096 tokens");
    await fireEvent.input(slider, { target: { value: "4" } });
    await userEvent.click(within(what).getByRole("radio", { name: "q8_0" }));
    await userEvent.click(within(what).getByRole("radio", { name: "2" }));
    // 30 layers x 16,384 tokens x 3 heads x (64 + 64) x 34 bytes for 32 values.
    expect(await within(what).findByText(/× 1\.0625 bytes \(q8_0\) = 201\sMB/)).toBeVisible();
    expect(within(what).getByRole("slider", { name: "Context of each" })).toBeVisible();
    await waitFor(() => {
      const exact = fake.asked("estimate").filter(({ request }) => request.exact);
      expect(exact.at(-1)?.request.at).toEqual({
        context: 16_384,
        users: 2,
        cache: "q8_0",
        flash_attention: "auto",
      });
      // What is known already is not asked again.
      expect(exact.map(({ request }) => request.at.context)).not.toContain(4096);
    });
    expect(await within(what).findByText("as the engine allocates it")).toBeVisible();
  });

  it("says why the engine refuses settings, and what would fit instead of what does not", async () => {
    await show(Models);
    await userEvent.click(screen.getByRole("button", { name: `Details of ${q4_1}` }));
    const what = await screen.findByRole("region", { name: /What SmolLM2 .* takes/ });
    await userEvent.click(within(what).getByRole("radio", { name: "q4_0" }));
    await userEvent.click(within(what).getByRole("radio", { name: "Off" }));
    expect(await within(what).findByText(/needs flash attention; switch it on/)).toBeVisible();
    await userEvent.click(screen.getByRole("button", { name: "Details of Qwen3 30B-A3B Q8_0" }));
    const large = await screen.findByRole("region", { name: /What Qwen3 30B-A3B Q8_0 takes/ });
    expect(await within(large).findByText(/GB too large/)).toBeVisible();
    expect(large).toHaveTextContent(/It would fit with Q4_K_M/);
  });

  it("says that nothing is predicted before a calibration, and calibrates", async () => {
    const world = worlds.usual();
    world.calibration = null;
    const { fake } = await show(Models, world);
    fake.answer("calibrate", never);
    await userEvent.click(screen.getByRole("button", { name: `Details of ${q4_1}` }));
    const what = await screen.findByRole("region", { name: /What SmolLM2 .* takes/ });
    expect(await within(what).findByText(/Not calibrated: only the ceiling/)).toBeVisible();
    expect(what).toHaveTextContent(/at most 187/);
    await userEvent.click(within(what).getByRole("button", { name: /Calibrate/ }));
    expect(fake.asked("calibrate")).toHaveLength(1);
  });

  it("answers what any model would run at here by its header and a twin", async () => {
    const { fake, container } = await show(Models);
    await userEvent.click(screen.getByRole("button", { name: "Predict a model…" }));
    const dialog = screen.getByRole("dialog", { name: "What would this run at here?" });
    const field = within(dialog).getByRole("textbox");
    await waitFor(() => {
      expect(field).toHaveFocus();
    });
    await userEvent.click(within(dialog).getByRole("button", { name: "Find out" }));
    expect(field).toHaveAccessibleDescription(/path of a \.gguf file, its address/);
    await userEvent.type(field, "/nowhere.gguf{Enter}");
    expect(field).toHaveAccessibleDescription(/is not there/);
    await userEvent.clear(field);
    await userEvent.type(field, "owner/name:Q4_K_M{Enter}");
    expect(fake.asked("look").at(-1)).toEqual({ source: "owner/name:Q4_K_M" });
    expect(await within(dialog).findByText(/30\.5\sB parameters, 3\.3\sB active/)).toBeVisible();
    expect(await within(dialog).findByText(/between 12\.4 and 14\.4/)).toBeVisible();
    expect(dialog).toHaveTextContent(/2 and 6 of its 48\slayers \(1\.1\sGB and 2\.6\sGB\)/);
    expect(dialog).toHaveTextContent(/Nothing was measured on the real model/);
    expect(await faults(container)).toEqual([]);
  });

  it("shows how far a twin is, whom it waits for, and cancels it", async () => {
    const fake = fakeOf("empty");
    const job: Job = {
      id: "twin 1",
      kind: "twin",
      title: "SmolLM2 135M Instruct Q8_0",
      row: "SmolLM2 135M Instruct Q8_0",
      state: { state: "waiting", why: "Another measurement runs on this machine." },
    };
    fake.world.start.jobs = [job];
    fake.answer("twin", () => job);
    await show(Models, fake);
    // It makes no file: the row is still one that can be downloaded.
    const name = "SmolLM2 135M Instruct Q8_0";
    expect(within(row(name)).getByRole("button", { name: `Download ${name}` })).toBeVisible();
    await userEvent.click(screen.getByRole("button", { name: `Details of ${name}` }));
    const details = screen.getByRole("group", { name: `Details of ${name}` });
    expect(await within(details).findByText(/Another measurement runs/)).toBeVisible();
    const bytes = { fraction: 0.5, bytes: 70e6, bytes_total: 140e6 };
    fake.tell({ event: "job", job: { ...job, state: { state: "running", ...bytes } } });
    expect(await within(details).findByText(/building a twin, 70\sMB of 140\sMB/)).toBeVisible();
    await userEvent.click(within(details).getByRole("button", { name: /Cancel twin of/ }));
    expect(fake.asked("cancel_job")).toEqual([{ job: "twin 1" }]);
    expect(
      await within(details).findByRole("button", { name: `What would ${name} run at here?` }),
    ).toBeVisible();
  });

  it("says why a twin was not measured", async () => {
    const fake = fakeOf("empty");
    const name = "SmolLM2 135M Instruct Q8_0";
    fake.refuse("twin", { message: "A run is being measured: try a twin when it has ended." });
    const { states } = await show(Models, fake);
    await userEvent.click(screen.getByRole("button", { name: `Details of ${name}` }));
    await userEvent.click(
      await screen.findByRole("button", { name: `What would ${name} run at here?` }),
    );
    expect(states.app.notices.map(({ message }) => message)).toEqual([
      "A run is being measured: try a twin when it has ended.",
    ]);
  });

  it("says why the facts cannot be read", async () => {
    const fake = fakeOf();
    fake.refuse("facts", { message: "The file is gone. Look through the folders again." });
    await show(Models, fake);
    await userEvent.click(screen.getByRole("button", { name: `Details of ${q4_1}` }));
    expect(await screen.findByRole("alert")).toHaveTextContent("The file is gone");
  });

  it("shows broken files with their sentence, and helpers on request", async () => {
    await show(Models);
    expect(screen.getByText("half-a-download.gguf")).toBeVisible();
    expect(screen.getByText(/The file ends before its tensors do/)).toBeVisible();
    expect(screen.getByText(/mmproj-gemma/).closest("details")).not.toHaveAttribute("open");
  });

  it("says how far a scan is", async () => {
    await show(Models, "slow");
    expect(screen.getByText(/214 of 1,902\sfiles/)).toBeVisible();
  });

  it("searches, and says when nothing is found", async () => {
    await show(Models);
    await userEvent.type(screen.getByRole("searchbox", { name: "Search" }), "gemma");
    expect(screen.queryByRole("checkbox", { name: q4_1 })).toBeNull();
    expect(screen.getByRole("checkbox", { name: "Gemma 3 270M it Q4_K_M" })).toBeVisible();
    await userEvent.type(screen.getByRole("searchbox", { name: "Search" }), "xx");
    expect(screen.getByText(/Nothing in the list is like this/)).toBeVisible();
  });

  it("goes from row to row by arrow keys, and selects by Space", async () => {
    const { states } = await show(Models);
    screen.getByRole("checkbox", { name: "SmolLM2 135M Instruct Q4_0" }).focus();
    await userEvent.keyboard("{ArrowDown} ");
    expect(screen.getByRole("checkbox", { name: q4_1 })).toHaveFocus();
    expect([...states.models.selected]).toEqual([q4_1]);
    await userEvent.keyboard("{End}");
    expect(screen.getByRole("checkbox", { name: "Qwen3 30B-A3B Q8_0" })).toHaveFocus();
    await userEvent.keyboard("{Home}");
    expect(screen.getByRole("checkbox", { name: "SmolLM2 135M Instruct Q4_0" })).toHaveFocus();
  });

  it("brings into sight and selects what the person opened", async () => {
    const { fake, states } = await show(Models);
    fake.tell({ event: "opened", rows: [q4_1] });
    await waitFor(() => {
      expect(screen.getByRole("checkbox", { name: q4_1 })).toHaveFocus();
    });
    expect(screen.getByRole("checkbox", { name: q4_1 })).toBeChecked();
    expect(states.app.view).toBe("models");
  });

  it("draws a long list as far as one looks, and whatever is sought in it", async () => {
    const world = worlds.usual();
    const [group] = world.models.groups;
    if (!group) throw new Error("the world has a model");
    world.models.groups = Array.from({ length: 60 }, (_, at) => ({
      ...group,
      id: `group ${String(at)}`,
      name: `Model ${String(at)}`,
      rows: group.rows.map((each) => ({ ...each, id: `${String(at)} ${each.id}` })),
    }));
    const { fake, container } = await show(Models, world);
    expect(container.querySelectorAll("h2").length).toBeLessThan(20);
    fake.tell({ event: "opened", rows: [`30 ${q4_1}`] });
    await waitFor(() => {
      expect(row(`30 ${q4_1}`).querySelector("input")).toHaveFocus();
    });
    await userEvent.type(screen.getByRole("searchbox", { name: "Search" }), "model59");
    expect([...container.querySelectorAll("h2")].map((each) => each.textContent)).toEqual([
      "Model 59",
    ]);
  });

  it("does not draw again what is the same", async () => {
    const { fake, states } = await show(Models);
    const before = states.models.view?.groups;
    const changed = fake.world.models.groups[1];
    if (changed) changed.name = "Another name";
    await states.models.refresh();
    expect(states.models.view?.groups[0]).toBe(before?.[0]);
    expect(states.models.view?.groups[1]).not.toBe(before?.[1]);
  });

  it("keeps long names whole in their titles", async () => {
    await show(Models, "long names");
    const [long] = worlds["long names"]().models.groups;
    expect(long?.name).toHaveLength(300);
    expect(screen.getByTitle(long?.name ?? "")).toHaveTextContent(long?.name ?? "");
  });

  it("shows names with markup as names", async () => {
    const { container } = await show(Models, "hostile");
    expect(container.querySelector("img, script, b > b")).toBeNull();
    expect(document.title).not.toBe("broken");
    expect(container).toHaveTextContent("<img src=x onerror=\"document.title='broken'\">");
    expect(container).toHaveTextContent('"><svg onload=alert(1)>.gguf');
    for (const name of container.querySelectorAll("h2"))
      expect(name.querySelector("bdi")).not.toBeNull();
  });

  it.each(["empty", "usual", "long names", "failures", "hostile", "slow"] as const)(
    "has no fault that axe-core finds (%s)",
    async (world) => {
      const { container, states } = await show(Models, world);
      const [first] = states.models.view?.groups ?? [];
      const id = first?.rows[0]?.id;
      if (id === undefined) throw new Error("the world has a model");
      states.models.open.add(id);
      states.models.toggle(id);
      await waitFor(() => {
        expect(container.querySelector(".details")).not.toBeNull();
      });
      expect(await faults(container)).toEqual([]);
    },
  );
});
