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

/** Texts that count for one choice alone are shown, and sent, only while it is chosen. */
function fitChoices() {
  /** @type {NodeListOf<HTMLTextAreaElement>} */
  const texts = document.querySelectorAll("textarea[data-of-choice]");
  for (const text of texts) {
    const [name, value] = (text.dataset.ofChoice ?? "").split("=");
    const choice = text.form?.elements.namedItem(text.name.replace(/[^_]+$/, name));
    const counts = choice instanceof HTMLSelectElement && choice.value === value;
    text.disabled = !counts;
    const beside = document.querySelector(`[data-beside="${text.id}"]`);
    for (const part of [text.closest(".form-row"), beside]) if (part instanceof HTMLElement) part.hidden = !counts;
  }
}

/** @param {MouseEvent} event */
function fill(event) {
  const button = event.target instanceof Element ? event.target.closest("button[data-fill]") : null;
  const text = button instanceof HTMLElement ? document.getElementById(button.dataset.fill ?? "") : null;
  if (!(button instanceof HTMLElement) || !(text instanceof HTMLTextAreaElement)) return;
  text.focus();
  text.select();
  // typed in, so that undoing brings back what was there
  if (!document.execCommand("insertText", false, button.dataset.text)) text.value = button.dataset.text ?? "";
  text.dispatchEvent(new Event("input", { bubbles: true }));
}

document.addEventListener("change", fitChoices);
document.addEventListener("click", fill);
fitChoices();
document.addEventListener("input", show);
document.addEventListener("change", show);
show();
