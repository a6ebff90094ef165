// Small parts that the editor is made of.
import { icon } from "../base/icons.js";

const SVG = "http://www.w3.org/2000/svg";
let made = 0;

/** An id no other element has. */
export const freshName = (stem) => `pl-${stem}-${++made}`;

/**
 * An element with attributes and children.
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag
 * @param {string} [className]
 * @param {Record<string, string | number | boolean | undefined>} [attributes]  true: there, false or undefined: not there
 * @param {...(Node | string)} children
 * @returns {HTMLElementTagNameMap[T]}
 */
export function el(tag, className = "", attributes = {}, ...children) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== undefined && value !== false) element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children);
  return element;
}

/** @param {string} tag @param {string} [className] */
export function svg(tag, className = "") {
  const element = /** @type {SVGElement} */ (document.createElementNS(SVG, tag));
  if (className) element.setAttribute("class", className);
  return element;
}

/** A button with an icon, a word, or both; without a word `label` is its name. */
export function button({ icon: name = "", text = "", label = "", className = "btn btn-quiet", act }) {
  const bare = name && !text;
  const element = el("button", `${className}${bare ? " btn-icon" : ""}`, { type: "button", "aria-label": text ? undefined : label, title: text ? undefined : label });
  if (name) element.append(icon(name));
  if (text) element.append(text);
  element.addEventListener("click", act);
  return element;
}

/** A dialog with a head, a body and a foot; shown by showModal(), it goes when it closes. */
export function dialog(title, body, foot = []) {
  const heading = el("h2", "", { id: freshName("title") }, title);
  const form = el("form", "", { method: "dialog" }, el("div", "dialog-head", {}, heading), el("div", "dialog-body", {}, ...body));
  if (foot.length) form.append(el("div", "dialog-foot", {}, ...foot));
  const element = el("dialog", "dialog pl-dialog", { "aria-labelledby": heading.id }, form);
  element.addEventListener("close", () => element.remove());
  element.addEventListener("keydown", (event) => event.stopPropagation()); // keys of the page mean nothing in here
  document.body.append(element);
  return element;
}

/** Do `act` once in the next frame, however often it is asked for. */
export function once(act) {
  let asked = false;
  return () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => {
      asked = false;
      act();
    });
  };
}
