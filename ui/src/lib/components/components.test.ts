import { render, screen, within } from "@testing-library/svelte";
import userEvent from "@testing-library/user-event";
import { createRawSnippet } from "svelte";
import { describe, expect, it, vi } from "vitest";
import { faults } from "$lib/testing/axe";
import { Chip, Dialog, Menu, Segmented, Sentence, Toggle } from ".";

const words = (text: string): ReturnType<typeof createRawSnippet> =>
  createRawSnippet(() => ({ render: () => `<span>${text}</span>` }));

describe("a menu", () => {
  function menu(): { svg: () => void; csv: () => void } {
    const acts = { svg: vi.fn(), csv: vi.fn() };
    render(Menu, {
      label: "Export",
      groups: [
        {
          title: "Figure",
          items: [
            { name: "SVG", act: acts.svg },
            { name: "PDF", act: vi.fn(), disabled: true },
          ],
        },
        { title: "Numbers", items: [{ name: "CSV", note: "table", act: acts.csv }] },
      ],
    });
    return acts;
  }

  it("opens by arrow down at its first item, by arrow up at its last", async () => {
    menu();
    const button = screen.getByRole("button", { name: "Export" });
    button.focus();
    await userEvent.keyboard("{ArrowDown}");
    expect(screen.getByRole("menuitem", { name: "SVG" })).toHaveFocus();
    expect(button).toHaveAttribute("aria-expanded", "true");
    await userEvent.keyboard("{Escape}{ArrowUp}");
    expect(screen.getByRole("menuitem", { name: /CSV/ })).toHaveFocus();
  });

  it("walks over what is off, round its ends, and by letters", async () => {
    menu();
    screen.getByRole("button", { name: "Export" }).focus();
    await userEvent.keyboard("{Enter}{ArrowDown}");
    expect(screen.getByRole("menuitem", { name: /CSV/ })).toHaveFocus();
    await userEvent.keyboard("{ArrowDown}");
    expect(screen.getByRole("menuitem", { name: "SVG" })).toHaveFocus();
    await userEvent.keyboard("c");
    expect(screen.getByRole("menuitem", { name: /CSV/ })).toHaveFocus();
  });

  it("does what is chosen and gives the focus back", async () => {
    const acts = menu();
    const button = screen.getByRole("button", { name: "Export" });
    await userEvent.click(button);
    await userEvent.click(screen.getByRole("menuitem", { name: /CSV/ }));
    expect(acts.csv).toHaveBeenCalledOnce();
    expect(screen.queryByRole("menu")).toBeNull();
    expect(button).toHaveFocus();
  });

  it("closes by Escape and by a press elsewhere, doing nothing", async () => {
    const acts = menu();
    await userEvent.click(screen.getByRole("button", { name: "Export" }));
    await userEvent.keyboard("{Escape}");
    expect(screen.queryByRole("menu")).toBeNull();
    await userEvent.click(screen.getByRole("button", { name: "Export" }));
    await userEvent.click(document.body);
    expect(screen.queryByRole("menu")).toBeNull();
    expect(acts.svg).not.toHaveBeenCalled();
  });

  it("has no fault that axe-core finds", async () => {
    menu();
    await userEvent.click(screen.getByRole("button", { name: "Export" }));
    expect(await faults()).toEqual([]);
  });
});

describe("a dialog", () => {
  it("has a name, and says when it was closed", async () => {
    const onclose = vi.fn();
    render(Dialog, {
      open: true,
      title: "Replace the file?",
      onclose,
      children: words("It is there."),
    });
    const dialog = screen.getByRole("dialog", { name: "Replace the file?" });
    expect(within(dialog).getByText("It is there.")).toBeVisible();
    expect(await faults()).toEqual([]);
    (dialog as HTMLDialogElement).close();
    expect(onclose).toHaveBeenCalledOnce();
  });
});

describe("small controls", () => {
  it("a toggle says whether it is pressed", async () => {
    const onchange = vi.fn();
    render(Toggle, { pressed: false, onchange, children: words("Ceiling") });
    const toggle = screen.getByRole("button", { name: "Ceiling" });
    expect(toggle).toHaveAttribute("aria-pressed", "false");
    await userEvent.click(toggle);
    expect(toggle).toHaveAttribute("aria-pressed", "true");
    expect(onchange).toHaveBeenCalledExactlyOnceWith(true);
  });

  it("one of several is chosen by its radio button", async () => {
    const onchange = vi.fn();
    const options = [
      { value: 1, name: "One" },
      { value: 2, name: "Two" },
    ];
    render(Segmented, { label: "Size", options, value: 1, onchange });
    await userEvent.click(screen.getByRole("radio", { name: "Two" }));
    expect(onchange).toHaveBeenCalledExactlyOnceWith(2);
    expect(screen.getByRole("radiogroup", { name: "Size" })).toBeVisible();
  });

  it("a chip shows a name with markup as a name", () => {
    const { container } = render(Chip, { label: "<b>Q4</b>" });
    expect(container.querySelector("b")).toBeNull();
    expect(container).toHaveTextContent("<b>Q4</b>");
  });

  it("a failure is an alert with that word, its details on request", () => {
    render(Sentence, { message: "It did not work. Try again.", failed: true, details: "line 1" });
    expect(screen.getByRole("alert")).toHaveTextContent("Failed. It did not work. Try again.");
    expect(screen.getByText("line 1").closest("details")).not.toHaveAttribute("open");
  });
});
