// Marks parameters that differ from the preset's defaults, resets them, and counts them where they are folded away.
// Buttons of usual values fill in the field that they belong to.
import { t, tn } from "../base/i18n.js";

/** @typedef {HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement} Control */

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

/** A small mark at the end of `place`, made when it is first needed.
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

/** The default of a changed parameter as text; "" for a text in several lines.
 * @param {Control} control
 */
function defaultText(control) {
  const usual = control.dataset.default ?? "";
  if (control instanceof HTMLInputElement && control.type === "checkbox") return usual === "on" ? t("on") : t("off");
  return control instanceof HTMLTextAreaElement ? "" : usual || t("empty");
}

/** A line below a changed parameter with its default and a button that restores it.
 * @param {Element} row
 * @param {Control} control
 * @param {boolean} isChanged
 */
function offerReset(row, control, isChanged) {
  let line = row.querySelector(":scope > .training-reset");
  if (!line && isChanged) {
    const text = Object.assign(document.createElement("span"), { className: "muted" });
    const usual = defaultText(control);
    text.textContent = usual && t("Default: %(value)s", { value: usual });
    const button = Object.assign(document.createElement("button"), { type: "button", className: "link-btn" });
    button.textContent = t("Reset");
    const name = control.closest(".form-row")?.querySelector("label")?.firstChild?.textContent?.trim() ?? control.name;
    button.setAttribute("aria-label", t("Reset %(name)s", { name }));
    button.addEventListener("click", () => {
      reset(control);
      control.focus();
    });
    line = Object.assign(document.createElement("p"), { className: "training-reset small" });
    line.append(text, " ", button);
    row.append(line);
  }
  if (line instanceof HTMLElement) line.hidden = !isChanged;
}

/** @param {Control} control */
function reset(control) {
  const usual = control.dataset.default ?? "";
  if (control instanceof HTMLInputElement && control.type === "checkbox") control.checked = usual === "on";
  else control.value = usual;
  control.dispatchEvent(new Event("change", { bubbles: true }));
}

function show() {
  /** @type {NodeListOf<Control>} */
  const controls = document.querySelectorAll("[data-default]");
  for (const control of controls) {
    const row = control.closest(".form-row");
    const label = row?.querySelector("label");
    if (label) mark(label, differs(control) ? t("changed") : "");
    if (row) offerReset(row, control, differs(control));
  }
  for (const more of document.querySelectorAll("details.training-more")) {
    /** @type {NodeListOf<Control>} */
    const inside = more.querySelectorAll("[data-default]");
    const count = [...inside].filter(differs).length;
    const summary = more.querySelector(":scope > summary");
    if (summary) mark(summary, count ? tn("%(count)s changed", "%(count)s changed", count) : "");
  }
  for (const group of valueGroups) showPressed(group);
}

/** @type {NodeListOf<HTMLElement>} */
const valueGroups = document.querySelectorAll("[data-values-of]");

/** @param {HTMLElement} group */
const controlOf = (group) => /** @type {HTMLInputElement} */ (document.getElementById(group.dataset.valuesOf ?? ""));

/** @param {HTMLElement} group */
function showPressed(group) {
  const value = controlOf(group).value.trim();
  /** @type {NodeListOf<HTMLButtonElement>} */
  const buttons = group.querySelectorAll("[data-value]");
  for (const button of buttons) button.ariaPressed = String(value !== "" && Number(button.dataset.value) === Number(value));
}

for (const group of valueGroups) {
  group.hidden = false;
  group.addEventListener("click", ({ target }) => {
    const button = target instanceof Element ? target.closest("[data-value]") : null;
    if (!(button instanceof HTMLElement)) return;
    const control = controlOf(group);
    control.value = button.dataset.value ?? "";
    control.dispatchEvent(new Event("change", { bubbles: true }));
  });
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
