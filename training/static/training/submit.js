// The form of a new training: shows what belongs to the chosen preset, and lets the data choose it.

/** @type {HTMLFormElement} */
const form = document.getElementById("submit-form");
const presets = [.../** @type {NodeListOf<HTMLInputElement>} */ (form.querySelectorAll('input[name="preset"]'))];
const data = /** @type {HTMLSelectElement} */ (form.elements.namedItem("version"));
const begun = new URLSearchParams(location.search);
let chosenByHand = ["preset", "weights", "set", "clone"].some((name) => begun.has(name)); // or by what it begins from

function show() {
  const chosen = presets.find((radio) => radio.checked)?.value;
  for (const part of form.querySelectorAll("[data-of]")) part.hidden = !(part.dataset.of ?? "").split(" ").includes(chosen ?? "");
  for (const part of form.querySelectorAll("[data-of-preset]")) part.hidden = chosen === "own";
}

function fitPresetToData() {
  const suits = data.selectedOptions[0]?.dataset.preset;
  const fitting = presets.find((radio) => radio.value === suits);
  if (!suits || !fitting || chosenByHand) return;
  fitting.checked = true;
  show();
}

for (const radio of presets) {
  radio.addEventListener("change", () => {
    chosenByHand = true;
    show();
  });
}
data.addEventListener("change", fitPresetToData);
show();
form.querySelector(".has-error input, .has-error select, .has-error textarea")?.focus();
