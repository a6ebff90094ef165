// File fields of forms: the drop zone around each (components/field.html) shows the names of the chosen files.
import { bytes } from "./i18n.js";

const MAX_NAMES = 5;

/** @param {HTMLInputElement} input */
export function showNames(input) {
  const names = input.closest("[data-drop-file]")?.querySelector("[data-drop-names]");
  if (!names) return;
  const files = [...(input.files ?? [])];
  const shown = files.slice(0, MAX_NAMES).map((file) => `${file.name} (${bytes(file.size)})`);
  if (files.length > MAX_NAMES) shown.push(`+ ${files.length - MAX_NAMES}`);
  names.textContent = shown.join(", ");
}

const zoneOf = (event) => /** @type {Element} */ (event.target).closest?.("[data-drop-file]");

document.addEventListener("change", (event) => {
  const input = /** @type {HTMLInputElement} */ (event.target);
  if (input.type === "file") showNames(input);
});
document.addEventListener("dragenter", (event) => zoneOf(event)?.classList.add("is-over"));
for (const name of ["dragleave", "drop"]) document.addEventListener(name, (event) => zoneOf(event)?.classList.remove("is-over"));

// a page that the browser restored from its history has its files still
for (const input of document.querySelectorAll("[data-drop-file] > input")) showNames(/** @type {HTMLInputElement} */ (input));
