// The form of a new training: shows what belongs to the chosen preset, and lets the data choose it.

import { deviceFor, presetsToShow } from "./fitting.js";

/** @type {HTMLFormElement} */
const form = document.getElementById("submit-form");
const presets = [.../** @type {NodeListOf<HTMLInputElement>} */ (form.querySelectorAll('input[name="preset"]'))];
const data = /** @type {HTMLSelectElement} */ (form.elements.namedItem("version"));
const begun = new URLSearchParams(location.search);
let chosenByHand = ["preset", "weights", "set", "clone"].some((name) => begun.has(name)); // or by what it begins from

const device = /** @type {HTMLSelectElement} */ (form.elements.namedItem("device"));
const gpus = /** @type {HTMLInputElement} */ (form.elements.namedItem("gpus_per_node"));
const isCpuOnly = () => presets.some((radio) => radio.checked && "cpuOnly" in radio.dataset);
const [first] = device.options; // a GPU where a node has one
let earlier = isCpuOnly() && device.value === "cpu" ? { device: first.value, gpus: first.value === "cpu" ? "0" : "1" } : null;

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

function showFittingPresets() {
  const checked = presets.find((radio) => radio.checked)?.value;
  const shown = presetsToShow(presets.map((radio) => radio.value), data.selectedOptions[0]?.dataset.presets, checked);
  for (const radio of presets) /** @type {HTMLElement} */ (radio.closest("label")).hidden = !shown.includes(radio.value);
}

function show() {
  showFittingPresets();
  const chosen = presets.find((radio) => radio.checked)?.value;
  for (const part of form.querySelectorAll("[data-of]")) part.hidden = !(part.dataset.of ?? "").split(" ").includes(chosen ?? "");
  for (const part of form.querySelectorAll("[data-of-preset]")) part.hidden = chosen === "own";
}

function fitPresetToData() {
  const suits = data.selectedOptions[0]?.dataset.preset;
  const fitting = presets.find((radio) => radio.value === suits);
  if (!suits || !fitting || chosenByHand) return;
  fitting.checked = true;
  fitDevice();
  show();
}

for (const radio of presets) {
  radio.addEventListener("change", () => {
    chosenByHand = true;
    fitDevice();
    show();
  });
}
data.addEventListener("change", () => {
  fitPresetToData();
  show();
});
show();
form.querySelector(".has-error input, .has-error select, .has-error textarea")?.focus();
