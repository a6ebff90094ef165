// Parts of a chart's card as elements: buttons, the export menu, the legend and the tooltip.
import { icon } from "./icons.js";
import { t, tn } from "./i18n.js";

const SVG = "http://www.w3.org/2000/svg";

/** @param {string} tag @param {string} [className] @param {string} [text] @returns {any} */
export function make(tag, className = "", text = "") {
  return Object.assign(document.createElement(tag), { className, textContent: text });
}

/** A small button with an icon. @param {string} sign @param {string} label @param {() => void} act @returns {HTMLButtonElement} */
export function headButton(sign, label, act) {
  const button = make("button", "btn btn-quiet btn-icon btn-small");
  Object.assign(button, { type: "button", title: label });
  button.setAttribute("aria-label", label);
  button.append(icon(sign));
  button.addEventListener("click", act);
  return button;
}

/** A menu with one item for each file format. @param {string} title @param {Record<string, () => void>} formats */
export function exportMenu(title, formats) {
  const menu = make("details", "menu");
  const summary = make("summary", "btn btn-quiet btn-icon btn-small");
  const label = t("Export %(title)s", { title });
  summary.setAttribute("aria-label", label);
  summary.title = label;
  summary.append(icon("download"));
  const list = make("div", "menu-list");
  for (const [format, act] of Object.entries(formats)) {
    const item = make("button", "menu-item", format);
    item.type = "button";
    item.setAttribute("aria-label", t("Save %(title)s as %(format)s", { title, format }));
    item.addEventListener("click", () => {
      menu.open = false;
      act();
    });
    list.append(item);
  }
  menu.append(summary, list);
  return menu;
}

/** A short line as it is drawn. @param {string} color @param {number[]} dash */
export function swatch(color, dash) {
  const svg = document.createElementNS(SVG, "svg");
  const line = document.createElementNS(SVG, "line");
  for (const [name, value] of Object.entries({ class: "chart-swatch", viewBox: "0 0 20 8", "aria-hidden": "true" })) svg.setAttribute(name, value);
  for (const [name, value] of Object.entries({ x1: 0, y1: 4, x2: 20, y2: 4, stroke: color, "stroke-dasharray": dash.join(" ") })) line.setAttribute(name, String(value));
  svg.append(line);
  return svg;
}

/**
 * Fill a legend: a button for each line, with its values. Its buttons stay while only values change, so that none loses the focus.
 * @param {HTMLElement} list
 * @param {{name: string, last: string, best: string, title: string, color: string, dash: number[], isHidden: boolean}[]} rows
 * @param {{toggle: (name: string) => void, highlight: (line: number | null) => void}} on
 */
export function legendOf(list, rows, on) {
  const shape = JSON.stringify(rows.map(({ name, color }) => [name, color]));
  if (list.dataset.shape !== shape) {
    list.dataset.shape = shape;
    list.replaceChildren(...rows.map(({ name, color, dash }, line) => {
      const button = make("button", "chart-key");
      button.type = "button";
      button.dataset.line = name;
      button.append(swatch(color, dash), make("span", "cut", name), make("span", "num strong"), make("span", "num muted"));
      button.addEventListener("click", () => on.toggle(name));
      for (const event of ["pointerenter", "focus"]) button.addEventListener(event, () => on.highlight(line));
      for (const event of ["pointerleave", "blur"]) button.addEventListener(event, () => on.highlight(null));
      const item = document.createElement("li");
      item.append(button);
      return item;
    }));
  }
  for (const [at, { last, best, title, isHidden }] of rows.entries()) {
    const button = /** @type {HTMLButtonElement} */ (list.children[at].firstElementChild);
    const [, , value, top] = button.children;
    value.textContent = last;
    top.textContent = best ? t("best %(best)s", { best }) : "";
    button.title = title;
    button.setAttribute("aria-pressed", String(!isHidden));
  }
}

/**
 * @param {HTMLElement} tip
 * @param {string} place
 * @param {{name: string, value: string, color: string}[]} rows
 * @param {number} more
 */
export function paintTip(tip, place, rows, more) {
  const items = rows.map(({ name, value, color }) => {
    const row = make("div", "chart-tip-row");
    const mark = make("span", "chart-tip-mark");
    mark.style.background = color;
    row.append(mark, make("span", "cut", name), make("strong", "num", value));
    return row;
  });
  const rest = more ? [make("div", "muted", tn("%(count)s more line", "%(count)s more lines", more))] : [];
  tip.replaceChildren(make("div", "chart-tip-place", place), ...items, ...rest);
}
