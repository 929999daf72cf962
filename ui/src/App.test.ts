import { render, screen } from "@testing-library/svelte";
import userEvent from "@testing-library/user-event";
import { beforeEach, describe, expect, it } from "vitest";
import App from "./App.svelte";
import { createStates } from "$lib/state/context";
import { fakeOf } from "$lib/testing/render";

beforeEach(() => {
  location.hash = "";
});

describe("the frame", () => {
  it("opens views by Ctrl and a digit", async () => {
    render(App, { states: createStates(fakeOf("usual")) });
    await userEvent.keyboard("{Control>}3{/Control}");
    expect(screen.getByRole("heading", { level: 1 })).toHaveTextContent("Compare");
    expect(screen.getByRole("link", { name: "Compare" })).toHaveAttribute("aria-current", "page");
  });
});
