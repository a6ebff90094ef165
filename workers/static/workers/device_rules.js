// The rules of the chosen type of device beside its field, and how many devices a form asks for in all.

/** @type {HTMLFormElement} */
const form = document.getElementById("submit-form") ?? document.querySelector("form:has([data-device-rules])");
const choice = /** @type {HTMLSelectElement | null} */ (form?.elements.namedItem("device") ?? null);
const total = /** @type {HTMLOutputElement | null} */ (form?.querySelector("[data-device-total]") ?? null);

/** @param {string} name @param {number} otherwise */
function number(name, otherwise) {
  const field = form?.elements.namedItem(name);
  const value = field instanceof HTMLInputElement ? Number.parseInt(field.value, 10) : Number.NaN;
  return Number.isFinite(value) && value >= 0 ? value : otherwise;
}

function show() {
  for (const rules of form?.querySelectorAll("[data-device-rules]") ?? []) {
    /** @type {HTMLElement} */ (rules).hidden = /** @type {HTMLElement} */ (rules).dataset.deviceRules !== choice?.value;
  }
  const cards = form?.elements.namedItem("gpus_per_node");
  if (cards instanceof HTMLInputElement) cards.readOnly = choice?.value === "cpu";
  if (total) total.value = String(choice?.value === "cpu" ? 0 : number("nodes", 1) * number("gpus_per_node", 0));
}

choice?.addEventListener("change", () => {
  const cards = form?.elements.namedItem("gpus_per_node");
  if (cards instanceof HTMLInputElement && choice.value === "cpu") cards.value = "0";
  show();
});
form?.addEventListener("input", show);
show();

export {}; // a module of its own, as it is loaded
