// The page of the editor, and of a version to look at: what the server wrote into it, mounted.
import { mount } from "./mount.js";

const given = (id) => JSON.parse(document.getElementById(id)?.textContent ?? "null");
const root = document.getElementById("pipeline-editor");

const editor = mount(root, { catalogue: given("pipeline-catalogue"), ...given("pipeline-draft") });
/** @type {any} */ (globalThis).pipelineEditor = editor;
document.querySelector("a[href='#pipeline-canvas']")?.addEventListener("click", (event) => {
  event.preventDefault();
  editor.focusCanvas(); // the list, where that is what is shown
});
root.removeAttribute("data-busy");
