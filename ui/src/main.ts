import "./app.css";
import { mount } from "svelte";
import App from "./App.svelte";
import { chooseBackend } from "$lib/backend/choose";
import { createStates } from "$lib/state/context";

const target = document.getElementById("app");
if (!target) throw new Error("BUG: the page has no #app");

mount(App, { target, props: { states: createStates(await chooseBackend()) } });
