// The page of the editor: what the server wrote into it, mounted.
import { mount } from "./mount.js";

const given = (id) => JSON.parse(document.getElementById(id)?.textContent ?? "null");
const root = document.getElementById("pipeline-editor");

/** @type {any} */ (globalThis).pipelineEditor = mount(root, { catalogue: given("pipeline-catalogue"), ...given("pipeline-draft") });
root.removeAttribute("data-busy");
