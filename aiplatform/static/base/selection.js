// Selected rows of lists, and actions on them. Rows stay selected while the list shows other pages of itself.
//
//   <input type="checkbox" data-select value="7" data-name="run 7" data-possible="stop delete">   in a row
//   <div data-bulk="trainings" hidden>… <button data-bulk-code="stop" data-method="POST" data-url="/api/v1/jobs/0/stop/">
//
// An action is one request per row, so each row is allowed or refused by the rules that it has alone.
import { api } from "./api.js";
import { ask } from "./dialog.js";
import { t, tn } from "./i18n.js";
import { reload } from "./lists.js";
import { toast } from "./toast.js";

const MAX_REASONS = 3; // refusals that are shown one by one
const MAX_NAMES = 5; // in a question

/** @typedef {{key: string, name: string, possible: string[]}} Chosen */

/** @type {Map<string, Map<string, Chosen>>} by id of the list, by key of the row */
const selections = new Map();

/** @param {string} id */
function selectionOf(id) {
  const found = selections.get(id) ?? new Map();
  selections.set(id, found);
  return found;
}

/** @param {Element} region @returns {NodeListOf<HTMLInputElement>} */
const boxesOf = (region) => region.querySelectorAll("[data-select]");

/** @param {HTMLInputElement} box @returns {Chosen} */
const chosenOf = (box) => ({ key: box.value, name: box.dataset.name ?? box.value, possible: (box.dataset.possible ?? "").split(" ") });

/** Show the selection of a list in its boxes and its bar. @param {HTMLElement} bar */
function show(bar) {
  const region = document.getElementById(bar.dataset.bulk ?? "");
  if (!region) return;
  const selection = selectionOf(region.id);
  const boxes = [...boxesOf(region)];
  for (const box of boxes) {
    box.checked = selection.has(box.value);
    if (box.checked) selection.set(box.value, chosenOf(box)); // what is possible may have changed
    box.closest("tr")?.setAttribute("aria-selected", String(box.checked));
  }
  const ticked = boxes.filter((box) => box.checked).length;
  /** @type {HTMLInputElement | null} */
  const all = region.querySelector("[data-select-all]");
  if (all) {
    all.disabled = !boxes.length;
    all.checked = ticked > 0 && ticked === boxes.length;
    all.indeterminate = ticked > 0 && ticked < boxes.length;
  }
  bar.hidden = !selection.size;
  bar.querySelector("[data-bulk-count]").textContent = t("%(count)s selected", { count: selection.size });
  /** @type {NodeListOf<HTMLButtonElement>} */
  const buttons = bar.querySelectorAll("[data-bulk-code]");
  for (const button of buttons) {
    const rows = possible(selection, button);
    const { label = "", least, differ = "" } = button.dataset;
    const differs = kindsOf(rows, button.dataset.bulkCode ?? "").size > 1;
    button.disabled = rows.length < Number(least) || differs;
    button.title = differs ? differ : "";
    button.querySelector("span").textContent = rows.length && rows.length < selection.size ? `${label} (${rows.length})` : label;
  }
}

function showAll() {
  /** @type {NodeListOf<HTMLElement>} */
  const bars = document.querySelectorAll("[data-bulk]");
  for (const bar of bars) show(bar);
}

/** @param {Map<string, Chosen>} selection @param {HTMLElement} button */
const possible = (selection, button) => [...selection.values()].filter((row) => row.possible.includes(button.dataset.bulkCode ?? ""));

/** What an action compares rows by, as `CODE=…` among what is possible. @param {Chosen[]} rows @param {string} code */
const kindsOf = (rows, code) => new Set(rows.flatMap((row) => row.possible.filter((word) => word.startsWith(`${code}=`))));

/** @param {HTMLElement} bar @param {HTMLButtonElement} button */
async function run(bar, button) {
  const region = document.getElementById(bar.dataset.bulk ?? "");
  const selection = selectionOf(bar.dataset.bulk ?? "");
  const rows = possible(selection, button);
  const { method, url = "", label: act = "", text, parameter = "" } = button.dataset;
  if (method === "GET") {
    location.assign(`${url}?${new URLSearchParams(rows.map(({ key }) => [parameter, key]))}`);
    return;
  }
  if (text && !(await ask({ title: question(act, rows.length), text: `${namesOf(rows)} ${text}`, act, danger: true }))) return;
  /** @type {[string, string][]} */
  const refused = [];
  bar.inert = true;
  for (const [done, { key, name }] of rows.entries()) {
    bar.querySelector("[data-bulk-count]").textContent = t("%(done)s of %(total)s", { done, total: rows.length });
    const address = url.replace("/0/", `/${encodeURIComponent(key)}/`);
    try {
      await (method === "DELETE" ? api.delete(address) : api.post(address));
      selection.delete(key);
    } catch (error) {
      refused.push([name, error.message]);
    }
  }
  bar.inert = false;
  report(act, rows.length - refused.length, refused);
  if (region) await reload(region);
  show(bar);
}

/** @param {string} act @param {number} count */
const question = (act, count) => tn("%(action)s the selected row?", "%(action)s %(count)s selected rows?", count, { action: act });

/** The names of rows for a question: "a, b, c and 7 more." @param {Chosen[]} rows */
function namesOf(rows) {
  const names = rows.slice(0, MAX_NAMES).map(({ name }) => name).join(", ");
  const more = rows.length - MAX_NAMES;
  return more > 0 ? t("%(names)s and %(count)s more.", { names, count: more }) : `${names}.`;
}

/** @param {string} act @param {number} done @param {[string, string][]} refused names with reasons */
function report(act, done, refused) {
  if (done) toast(tn("%(action)s: %(count)s row.", "%(action)s: %(count)s rows.", done, { action: act }), "ok");
  for (const [name, reason] of refused.slice(0, MAX_REASONS)) toast(`${name}: ${reason}`, "fail");
  const more = refused.length - MAX_REASONS;
  if (more > 0) toast(tn("%(count)s more row was refused.", "%(count)s more rows were refused.", more), "fail");
}

/** @type {HTMLInputElement | null} the box that was clicked last, where a range begins */
let anchor = null;

document.addEventListener("click", (event) => {
  const target = /** @type {HTMLElement} */ (event.target);
  const box = /** @type {HTMLInputElement | null} */ (target.closest?.("[data-select]"));
  if (box) {
    const region = box.closest("[data-list]");
    const boxes = region ? [...boxesOf(region)] : [];
    const [from, to] = [anchor ? boxes.indexOf(anchor) : -1, boxes.indexOf(box)];
    const range = event.shiftKey && from >= 0 ? boxes.slice(Math.min(from, to), Math.max(from, to) + 1) : [box];
    select(region, range, box.checked);
    anchor = box;
    return;
  }
  const bar = /** @type {HTMLElement | null} */ (target.closest?.("[data-bulk]"));
  if (!bar) return;
  if (target.closest("[data-bulk-clear]")) clear(bar);
  const button = /** @type {HTMLButtonElement | null} */ (target.closest("[data-bulk-code]"));
  if (button) run(bar, button);
});

/** @param {Element | null} region @param {HTMLInputElement[]} boxes @param {boolean} isOn */
function select(region, boxes, isOn) {
  const selection = selectionOf(region?.id ?? "");
  for (const box of boxes) {
    if (isOn) selection.set(box.value, chosenOf(box));
    else selection.delete(box.value);
  }
  showAll();
}

/** @param {HTMLElement} bar */
function clear(bar) {
  selectionOf(bar.dataset.bulk ?? "").clear();
  anchor = null;
  show(bar);
}

document.addEventListener("change", ({ target }) => {
  const all = /** @type {HTMLInputElement} */ (target);
  if (!all.matches?.("[data-select-all]")) return;
  const region = all.closest("[data-list]");
  if (region) select(region, [...boxesOf(region)], all.checked);
});

document.addEventListener("keydown", (event) => {
  /** @type {HTMLElement | null} */
  const bar = document.querySelector("[data-bulk]:not([hidden])");
  if (event.key === "Escape" && bar && !document.querySelector("dialog[open], details.menu[open]")) clear(bar);
});

document.addEventListener("listshown", showAll);
/** @type {NodeListOf<HTMLInputElement>} */
const ticked = document.querySelectorAll("[data-select]:checked"); // the browser remembers, going back
for (const box of ticked) select(box.closest("[data-list]"), [box], true);
showAll();
