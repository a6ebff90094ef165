// Tables of lists: the menu "Table view" chooses density and columns, heads stay visible, J and K move between rows.
//
// The density holds for all tables of a reader, the columns for one list; both are kept in the browser's storage, and
// early.js applies them before the first paint.
import { t } from "./i18n.js";

const root = document.documentElement;
const COLUMNS = `aip.columns.${root.dataset.reader}`;
const DENSITY = `aip.density.${root.dataset.reader}`;

/** @typedef {{hidden: string[], css: string}} Hidden columns of a list by name, and the rules that hide them */

/** @returns {Record<string, Hidden>} by id of the list */
export function storedColumns() {
  try {
    const stored = JSON.parse(localStorage.getItem(COLUMNS) ?? "{}");
    return stored && typeof stored === "object" ? stored : {};
  } catch {
    return {};
  }
}

/** @param {string} name @param {string} value */
function store(name, value) {
  try {
    localStorage.setItem(name, value);
  } catch {
    // storage is switched off: the choice lasts as long as the page
  }
}

/** The only table of a list; a list of several has no choice of columns. @param {Element | null} region */
function tableOf(region) {
  const tables = region?.querySelectorAll("table.table") ?? [];
  return tables.length === 1 ? tables[0] : null;
}

/**
 * Columns that can be hidden: all but boxes, actions and the one that leads to the object.
 * @param {Element | null} table
 */
export function columnsOf(table) {
  const heads = [...(table?.querySelectorAll("thead th") ?? [])];
  const first = table?.querySelector("tbody tr");
  return heads.flatMap((head, index) => {
    const label = head.textContent.trim();
    const isFixed = !label || head.querySelector(".sr-only, input") || first?.children[index]?.matches(".main-cell, .actions") || first?.children[index]?.querySelector(".main-cell");
    return isFixed ? [] : [{ name: head.querySelector("a")?.dataset.order ?? label, label, index }];
  });
}

/**
 * Rules that hide columns.
 * @param {string} id of the list
 * @param {{name: string, index: number}[]} columns
 * @param {string[]} hidden
 */
export function rulesOf(id, columns, hidden) {
  const rules = columns.filter(({ name }) => hidden.includes(name)).map(({ index }) => `#${CSS.escape(id)} .table tr > :nth-child(${index + 1})`);
  return rules.length ? `${rules.join(",")}{display:none}` : "";
}

/** Apply the stored columns to what the lists show now: their tables may have other columns than at the last time. */
function apply() {
  const stored = storedColumns();
  let isChanged = false;
  for (const [id, one] of Object.entries(stored)) {
    const table = tableOf(document.getElementById(id));
    if (!table) continue;
    const css = rulesOf(id, columnsOf(table), one.hidden);
    isChanged ||= css !== one.css;
    one.css = css;
  }
  if (isChanged) store(COLUMNS, JSON.stringify(stored));
  adopt(stored);
}

/** @param {Record<string, Hidden>} stored */
function adopt(stored) {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(Object.values(stored).map(({ css }) => css).join(""));
  document.adoptedStyleSheets = [sheet];
}

/** @param {string} id @param {string} name @param {boolean} isShown */
function setColumn(id, name, isShown) {
  const stored = storedColumns();
  const hidden = (stored[id]?.hidden ?? []).filter((one) => one !== name);
  if (!isShown) hidden.push(name);
  const css = rulesOf(id, columnsOf(tableOf(document.getElementById(id))), hidden);
  if (hidden.length) stored[id] = { hidden, css };
  else delete stored[id];
  store(COLUMNS, JSON.stringify(stored));
  adopt(stored);
  fit();
}

/** @param {boolean} isCompact */
function setDensity(isCompact) {
  if (isCompact) root.dataset.density = "compact";
  else delete root.dataset.density;
  store(DENSITY, isCompact ? "compact" : "");
}

/** A line of the menu with a box or a radio button. */
function choice(label, type, checked, change, group = "") {
  const line = Object.assign(document.createElement("label"), { className: "menu-item" });
  const input = Object.assign(document.createElement("input"), { type, checked, name: group });
  input.addEventListener("change", () => change(input.checked));
  line.append(input, label);
  return line;
}

/** @param {HTMLElement} menu */
function fill(menu) {
  const id = menu.dataset.tableView ?? "";
  const hidden = storedColumns()[id]?.hidden ?? [];
  const isCompact = root.dataset.density === "compact";
  const caption = (text) => Object.assign(document.createElement("div"), { className: "menu-head", textContent: text });
  const columns = columnsOf(tableOf(document.getElementById(id)));
  menu.querySelector(".menu-list")?.replaceChildren(
    caption(t("Density")),
    choice(t("Comfortable"), "radio", !isCompact, () => setDensity(false), "density"),
    choice(t("Compact"), "radio", isCompact, () => setDensity(true), "density"),
    ...(columns.length ? [caption(t("Columns"))] : []),
    ...columns.map(({ name, label }) => choice(label, "checkbox", !hidden.includes(name), (shown) => setColumn(id, name, shown))),
  );
}

document.addEventListener(
  "toggle",
  (event) => {
    const menu = /** @type {HTMLDetailsElement} */ (event.target);
    if (menu.matches?.("details[data-table-view][open]")) fill(menu);
  },
  true, // toggle does not bubble
);

/** The tables of lists, and their frames, which scroll sideways. */
const tables = () => [...document.querySelectorAll("[data-list] table.table")].map((table) => [table, /** @type {HTMLElement} */ (table.parentElement)]);

/** Heads stay visible while the page scrolls, where no table has to scroll sideways. */
function fit() {
  for (const [table, frame] of tables()) frame.classList.toggle("table-fits", table.scrollWidth <= frame.clientWidth);
}

const observer = new ResizeObserver(fit);

/** Fit the tables that the lists show now, and again when they or their frames change their size. */
function watch() {
  observer.disconnect();
  for (const pair of tables()) for (const one of pair) observer.observe(one);
  fit();
}

/**
 * Move the focus to the row before or after the one that has it.
 * @param {number} step 1 or -1
 */
function move(step) {
  const rows = [...document.querySelectorAll("[data-list] tbody tr")].filter((row) => linkOf(row));
  const at = rows.findIndex((row) => row.contains(document.activeElement));
  const next = linkOf(rows[at < 0 && step < 0 ? rows.length - 1 : at + step]);
  next?.focus();
  next?.scrollIntoView({ block: "nearest" });
}

/** The link that leads to the object of a row. @param {Element | undefined} row @returns {HTMLElement | null | undefined} */
const linkOf = (row) => row?.querySelector(".main-cell a:not([tabindex='-1'])");

/** @param {Element | null | undefined} row */
function toggleRow(row) {
  /** @type {HTMLInputElement | null | undefined} */
  const box = row?.querySelector("[data-select]");
  box?.click();
}

/**
 * What a key without a modifier does on a page with a list; null for nothing.
 * @param {string} key
 */
export function rowAction(key) {
  if (!document.querySelector("[data-list] tbody .main-cell a")) return null;
  if (key === "j") return () => move(1);
  if (key === "k") return () => move(-1);
  const row = document.activeElement?.closest("[data-list] tbody tr");
  return key === "x" && row?.querySelector("[data-select]") ? () => toggleRow(row) : null;
}

/** Keys of lists for the list of shortcuts: [keys, what they do]. @returns {[string[], string][]} */
export function rowKeys() {
  if (!document.querySelector("[data-list] tbody .main-cell a")) return [];
  /** @type {[string[], string][]} */
  const keys = [[["j"], t("Next row")], [["k"], t("Previous row")]];
  if (document.querySelector("[data-list] [data-select]")) keys.push([["x"], t("Select row")]);
  return keys;
}

document.addEventListener("listshown", () => {
  apply();
  watch();
});
apply();
watch();
