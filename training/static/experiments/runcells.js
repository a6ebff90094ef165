// Cells of the table of runs as elements.
import { duration, language } from "../base/i18n.js";

export const exact = new Intl.NumberFormat(language, { maximumSignificantDigits: 4 });
const share = new Intl.NumberFormat(language, { minimumFractionDigits: 4, maximumFractionDigits: 4 });
const day = new Intl.DateTimeFormat(language, { timeZone: document.documentElement.dataset.zone || "UTC", hourCycle: "h23", year: "numeric", month: "short", day: "numeric", hour: "2-digit", minute: "2-digit" });

/** @param {string} tag @param {Record<string, any>} [set] @param {...(Node | string)} inside @returns {any} */
export function made(tag, set = {}, ...inside) {
  const { data = {}, aria = {}, ...rest } = set;
  const element = Object.assign(document.createElement(tag), rest);
  Object.assign(element.dataset, data);
  for (const [name, value] of Object.entries(aria)) element.setAttribute(`aria-${name}`, value);
  element.append(...inside);
  return element;
}

/** A metric below 1 has four decimals, so that a column of them is aligned. @param {number} value */
const metric = (value) => (Math.abs(value) < 1 && Math.abs(value) >= 0.001 ? share : exact).format(value);

/** @param {any} value @param {string} kind @param {string} [name] of the column @returns {Node | string} */
export function cell(value, kind, name = "") {
  if (value === null || value === undefined || value === "" || (Array.isArray(value) && !value.length)) return made("span", { className: "muted", textContent: "–" });
  if (kind === "state") return chip(value) ?? String(value);
  if (kind === "time") return day.format(new Date(value));
  if (kind === "duration") return duration(value);
  if (kind === "number") return typeof value === "number" ? (name.endsWith(")") ? metric(value) : exact.format(value)) : String(value);
  if (kind === "tags") {
    const box = document.createDocumentFragment();
    for (const tag of value.slice(0, 4)) box.append(made("span", { className: "tag", textContent: tag }), " ");
    if (value.length > 4) box.append(`+${value.length - 4}`);
    return box;
  }
  return String(value);
}

/** Icon, word and hue of a state, as the page brought them. @param {string} state */
function chip(state) {
  const found = document.querySelector(`template[data-state="${CSS.escape(state)}"]`);
  return found instanceof HTMLTemplateElement ? found.content.cloneNode(true) : null;
}

/** @param {import("./runtable.js").Column} column */
export const numeric = (column) => column.kind === "number" || column.kind === "duration";
