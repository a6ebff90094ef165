// A list to choose from by typing: kinds of steps, what to link to, steps to go to.
import { t, tn } from "../base/i18n.js";
import { icon } from "../base/icons.js";
import { dialog, el, freshName } from "./dom.js";

const MOST = 100; // entries shown at once; more words find the rest

/**
 * @template T
 * @typedef {{value: T, label: string, about?: string, icon?: string, words?: string}} Choice
 */

/**
 * Ask for one of many. Resolves to its value, or null.
 * @template T
 * @param {string} title
 * @param {Choice<T>[]} choices
 * @param {{placeholder?: string, none?: string}} [options]
 * @returns {Promise<T | null>}
 */
export function pick(title, choices, { placeholder = t("Search"), none = t("No match.") } = {}) {
  const list = el("ul", "pl-picks plain", { role: "listbox", id: freshName("picks"), "aria-label": title });
  const input = el("input", "input", { type: "search", role: "combobox", autocomplete: "off", "aria-expanded": "true", "aria-controls": list.id, "aria-autocomplete": "list", "aria-label": title, placeholder });
  const said = el("p", "muted small", { role: "status" });
  const box = dialog(title, [input, list, said]);
  /** @type {Choice<T>[]} */
  let shown = [];
  let at = 0;
  const mark = (now) => {
    at = Math.max(0, Math.min(shown.length - 1, now));
    for (const [n, item] of [...list.children].entries()) item.setAttribute("aria-selected", String(n === at));
    const item = list.children[at];
    input.setAttribute("aria-activedescendant", item?.id ?? "");
    item?.scrollIntoView({ block: "nearest" });
  };
  const draw = () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    const found = choices.filter(({ label, about = "", words: more = "" }) => words.every((word) => `${label} ${about} ${more}`.toLowerCase().includes(word)));
    const begins = ({ label }) => words.length > 0 && label.toLowerCase().startsWith(words[0]);
    found.sort((one, other) => Number(begins(other)) - Number(begins(one)));
    shown = found.slice(0, MOST);
    list.replaceChildren(...shown.map((choice, n) => option(choice, n)));
    list.hidden = !shown.length;
    said.textContent = !found.length ? none : found.length > MOST ? tn("%(count)s more: type to find it", "%(count)s more: type to find them", found.length - MOST) : "";
    mark(0);
  };
  /** @param {Choice<T>} choice @param {number} n */
  const option = ({ label, about, icon: name }, n) => {
    const item = el("li", "pl-pick", { role: "option", id: `${list.id}-${n}` }, ...(name ? [icon(name)] : []), el("span", "grow", {}, label), ...(about ? [el("span", "muted small pl-pick-about", {}, about)] : []));
    item.addEventListener("click", () => done(n));
    return item;
  };
  const done = (n) => shown[n] && box.close(String(n));
  input.addEventListener("input", draw);
  input.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown") mark(at + 1);
    else if (event.key === "ArrowUp") mark(at - 1);
    else if (event.key === "Enter") done(at);
    else return;
    event.preventDefault();
  });
  draw();
  box.showModal();
  input.focus();
  return new Promise((resolve) => {
    box.addEventListener("close", () => resolve(shown[Number(box.returnValue || "-1")]?.value ?? null));
  });
}
