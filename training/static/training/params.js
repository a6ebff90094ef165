// Marks parameters that differ from the preset's defaults, and counts them where they are folded away.
import { t, tn } from "../base/i18n.js";

/** @typedef {HTMLInputElement | HTMLSelectElement} Control */

/** @param {Control} control */
function differs(control) {
  const usual = control.dataset.default ?? "";
  if (control instanceof HTMLInputElement && control.type === "checkbox") return control.checked !== (usual === "on");
  const value = control.value.trim();
  if (control instanceof HTMLInputElement && control.type === "number") {
    return value !== "" && Number(value) !== Number(usual); // an emptied number is the default
  }
  return value !== usual;
}

/** A small mark at the end of `place`, made when it is first wanted.
 * @param {Element} place
 * @param {string} words nothing hides it
 */
function mark(place, words) {
  let tag = place.querySelector(":scope > .training-changed");
  if (!tag && words) {
    tag = Object.assign(document.createElement("span"), { className: "tag training-changed" });
    place.append(" ", tag);
  }
  if (tag instanceof HTMLElement) {
    tag.textContent = words;
    tag.hidden = !words;
  }
}

function show() {
  /** @type {NodeListOf<Control>} */
  const controls = document.querySelectorAll("[data-default]");
  for (const control of controls) {
    const label = control.closest(".form-row")?.querySelector("label");
    if (label) mark(label, differs(control) ? t("changed") : "");
  }
  for (const more of document.querySelectorAll("details.training-more")) {
    /** @type {NodeListOf<Control>} */
    const inside = more.querySelectorAll("[data-default]");
    const count = [...inside].filter(differs).length;
    const summary = more.querySelector(":scope > summary");
    if (summary) mark(summary, count ? tn("%(count)s changed", "%(count)s changed", count) : "");
  }
}

document.addEventListener("input", show);
document.addEventListener("change", show);
show();
