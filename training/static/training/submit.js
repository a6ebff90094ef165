// The form of a new training: offers the presets that fit the chosen dataset, and shows what belongs to the chosen one.

import { tn } from "../base/i18n.js";
import { deviceFor } from "./fitting.js";

/** @type {HTMLFormElement} */
const form = document.getElementById("submit-form");
/** @type {HTMLElement} */
const cards = form.querySelector("[data-presets]");
const data = /** @type {HTMLSelectElement} */ (form.elements.namedItem("version"));
const isPinned = "pinned" in form.dataset; // the preset comes from what the form started from
let chosenByHand = false;
/** @type {AbortController | null} */
let running = null;

const device = /** @type {HTMLSelectElement} */ (form.elements.namedItem("device"));
const gpus = /** @type {HTMLInputElement} */ (form.elements.namedItem("gpus_per_node"));
/** @returns {HTMLInputElement | null} */
const checked = () => form.querySelector('input[name="preset"]:checked');
const isCpuOnly = () => "cpuOnly" in (checked()?.dataset ?? {});
const usual = form.dataset.gpus ?? "0"; // of presets that can use a GPU
const [first] = device.options; // a GPU where a node has one
let earlier = isCpuOnly() && device.value === "cpu" ? { device: usual === "0" ? "cpu" : first.value, gpus: usual } : null;

function fitDevice() {
  const before = { device: device.value, gpus: gpus.value };
  const fitting = deviceFor(isCpuOnly(), before, earlier);
  earlier = fitting.earlier;
  if (fitting.now.device === before.device && fitting.now.gpus === before.gpus) return;
  device.value = fitting.now.device;
  device.dispatchEvent(new Event("change", { bubbles: true }));
  gpus.value = fitting.now.gpus;
  gpus.dispatchEvent(new Event("input", { bubbles: true }));
}

function show() {
  const chosen = checked()?.value ?? "";
  /** @type {NodeListOf<HTMLElement>} */
  const parts = form.querySelectorAll("[data-of]");
  for (const part of parts) part.hidden = !(part.dataset.of ?? "").split(" ").includes(chosen);
}

/** Ask the server which presets fit the chosen dataset. A preset that the user chose stays where it fits. */
async function fetchPresets() {
  running?.abort();
  running = new AbortController();
  const query = new URLSearchParams({ version: data.value });
  const chosen = checked()?.value;
  if (chosen && (chosenByHand || isPinned || chosen === "own")) query.set("preset", chosen);
  if (isPinned && !chosenByHand) query.set("pinned", "1");
  const request = { headers: { "HX-Request": "true" }, signal: running.signal };
  const response = await fetch(`${cards.dataset.presets}?${query}`, request).catch(() => null);
  if (!response?.ok) return;
  const text = await response.text();
  if (request.signal.aborted) return;
  cards.innerHTML = text;
  fitDevice();
  show();
  const count = cards.querySelectorAll("input:not(:disabled)").length - 1; // besides custom code
  const status = form.querySelector("[data-presets-status]");
  if (status) status.textContent = tn("%(count)s preset fits the dataset", "%(count)s presets fit the dataset", count);
}

/** @type {Promise<void> | null} */
let offering = null;

function offerPresets() {
  const offer = fetchPresets().finally(() => {
    if (offering === offer) offering = null;
  });
  offering = offer;
}

form.addEventListener("submit", async (event) => {
  if (!offering) return;
  event.preventDefault(); // what would be sent may not fit the dataset that was just chosen
  const { submitter } = event;
  await offering;
  form.requestSubmit(submitter);
});
cards.addEventListener("change", () => {
  chosenByHand = true;
  fitDevice();
  show();
});
data.addEventListener("change", offerPresets);
/** @type {HTMLElement | null} */
const upload = form.querySelector("[data-upload]");
if (upload) {
  const isUploading = () => !upload.hidden && !upload.classList.contains("is-failed");
  const watcher = new MutationObserver(() => {
    if (!isUploading() || !data.value) return;
    data.value = ""; // the new data takes the place of the version, and may carry other annotations
    offerPresets();
  });
  watcher.observe(upload, { attributes: true, attributeFilter: ["hidden"] });
}
show();
form.querySelector(".has-error input, .has-error select, .has-error textarea")?.focus();
