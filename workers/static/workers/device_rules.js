// The rules of the chosen type of device beside its field, and how many devices a form asks for in all.

/** @type {HTMLFormElement} */
const form = document.getElementById("submit-form") ?? document.querySelector("form:has([data-device-rules])");
// a refused form with files gets new elements (base/keepfiles.js), so they are looked up each time
const device = () => /** @type {HTMLSelectElement | null} */ (form?.elements.namedItem("device") ?? null);

/** @param {string} name @param {number} otherwise */
function number(name, otherwise) {
  const field = form?.elements.namedItem(name);
  const value = field instanceof HTMLInputElement ? Number.parseInt(field.value, 10) : Number.NaN;
  return Number.isFinite(value) && value >= 0 ? value : otherwise;
}

function show() {
  const choice = device();
  const total = /** @type {HTMLOutputElement | null} */ (form?.querySelector("[data-device-total]") ?? null);
  for (const rules of form?.querySelectorAll("[data-device-rules]") ?? []) {
    /** @type {HTMLElement} */ (rules).hidden = /** @type {HTMLElement} */ (rules).dataset.deviceRules !== choice?.value;
  }
  if (total) {
    const nodes = number("nodes", 1);
    const devices = choice?.value === "cpu" ? 0 : nodes * number("gpus_per_node", 0);
    total.value = String(devices);
    /** @type {HTMLElement} */ (total.parentElement).hidden = devices === 0 || nodes === 1; // else the field says it
  }
}

form?.addEventListener("change", (event) => {
  const choice = device();
  if (!choice || event.target !== choice) return;
  const cards = form?.elements.namedItem("gpus_per_node");
  if (cards instanceof HTMLInputElement && choice.value === "cpu") cards.value = "0";
  const share = form?.elements.namedItem("share"); // hidden with the GPUs, see resource_request.css
  if (share instanceof HTMLSelectElement && choice.value === "cpu") share.selectedIndex = 0;
  show();
});
form?.addEventListener("input", show);
show();

export {}; // a module of its own, as it is loaded
