// The command palette: arrows select, Enter opens or runs. Results come from /search/ and hold only what the reader may
// open: pages, objects and commands. Without a query it lists what was opened last. keys.js opens it and loads this module.
import { api, explain, sendForm } from "./api.js";
import { ask } from "./dialog.js";
import { icon } from "./icons.js";
import { t } from "./i18n.js";
import { recent, recentFirst, remember } from "./recent.js";

/**
 * @typedef {{group: string, name: string, kind: string, icon: string, url: string, post?: boolean,
 *   fields?: Record<string, string>, question?: string, press?: string}} Result
 */

/** On pages for signed-in users. @type {HTMLDialogElement} */
const dialog = document.querySelector("[data-palette]");
const input = dialog?.querySelector("input");
const list = dialog?.querySelector("[role=listbox]");
const DELAY_MS = 120;
let timer = 0;
/** @type {AbortController | null} */
let running = null;
/** @type {Result[]} */
let shown = [];
let selected = -1;
/** The query that `shown` answers; null before the first answer. @type {string | null} */
let answered = null;

function option(result, place) {
  const line = document.createElement("div");
  line.className = "found-hit";
  line.id = `palette-${place}`;
  line.setAttribute("role", "option");
  line.setAttribute("aria-selected", "false");
  const label = Object.assign(document.createElement("span"), { className: "grow cut", textContent: result.name });
  const kind = Object.assign(document.createElement("span"), { className: "muted small", textContent: result.kind });
  line.append(icon(result.icon), label, kind);
  line.addEventListener("click", () => run(result));
  return line;
}

/** @param {{label: string, rows: Result[]}[]} groups */
function show(groups) {
  const filled = groups.filter(({ rows }) => rows.length);
  shown = filled.flatMap(({ rows }) => rows);
  let place = 0;
  list.replaceChildren(
    ...filled.map(({ label, rows }, number) => {
      const group = document.createElement("div");
      group.setAttribute("role", "group");
      if (label) {
        const head = Object.assign(document.createElement("div"), { className: "palette-head", textContent: label, id: `palette-group-${number}` });
        head.setAttribute("role", "presentation");
        group.setAttribute("aria-labelledby", head.id);
        group.append(head);
      } else group.setAttribute("aria-label", t("Results"));
      group.append(...rows.map((row) => option(row, place++)));
      return group;
    }),
  );
  if (!shown.length) {
    const none = Object.assign(document.createElement("div"), { className: "found-note", textContent: t("Nothing found.") });
    none.setAttribute("role", "option");
    none.setAttribute("aria-disabled", "true");
    list.append(none);
  }
  select(0);
}

function select(place) {
  list.querySelector('[aria-selected="true"]')?.setAttribute("aria-selected", "false");
  selected = shown.length ? (place + shown.length) % shown.length : -1;
  const line = document.getElementById(`palette-${selected}`);
  if (!line) {
    input.removeAttribute("aria-activedescendant");
    return;
  }
  line.setAttribute("aria-selected", "true");
  line.scrollIntoView({ block: "nearest" });
  input.setAttribute("aria-activedescendant", line.id);
}

async function load() {
  const query = input.value.trim();
  running?.abort();
  const request = new AbortController();
  running = request;
  /** @type {Result[]} */
  let results;
  try {
    ({ results } = await api.get(`${dialog.dataset.palette}?q=${encodeURIComponent(query)}`, { signal: request.signal }));
  } catch (error) {
    if (error.name !== "AbortError") explain(error);
    return;
  }
  answered = query;
  if (query) {
    show([{ label: "", rows: recentFirst(results) }]);
    return;
  }
  const opened = recent().map((row) => ({ ...row, group: "object" }));
  const known = new Set(opened.map(({ url }) => url));
  const of = (group) => results.filter((row) => row.group === group && !(group === "page" && known.has(row.url)));
  show([
    { label: t("Recent"), rows: opened },
    { label: t("Pages"), rows: of("page") },
    { label: t("Commands"), rows: of("command") },
  ]);
}

/** Run the selected result; of a query whose results are still to come, the first of them. */
async function enter() {
  const query = input.value.trim();
  if (answered !== query) {
    clearTimeout(timer);
    await load();
    if (!dialog.open || answered !== query || input.value.trim() !== query) return; // failed, or the text changed
  }
  if (shown[selected]) run(shown[selected]);
}

/** @param {Result} result */
async function run(result) {
  clearTimeout(timer);
  running?.abort();
  dialog.close();
  if (result.press) {
    /** @type {HTMLElement | null} */ (document.querySelector(result.press))?.click();
    return;
  }
  if (!result.post) {
    if (result.group !== "command") remember(result);
    location.assign(result.url);
    return;
  }
  if (result.question && !(await ask({ title: result.question, act: t("Continue"), danger: true }))) return;
  const fields = { ...result.fields };
  if ("next" in fields) fields.next = location.pathname + location.search; // the server returns to this page
  sendForm(result.url, fields);
}

/** Show the results for what the palette's field holds, once it is open. @param {boolean} runsFirst  Enter was pressed already */
export function search(runsFirst) {
  list.replaceChildren();
  shown = [];
  answered = null;
  if (runsFirst) enter();
  else load();
}

if (dialog) {
  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(load, DELAY_MS);
  });
  input.addEventListener("keydown", (event) => {
    if (event.isComposing) return;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) select(selected + step);
    else if (event.key === "Home" && !input.value) select(0);
    else if (event.key === "Enter") enter();
    else return;
    event.preventDefault();
  });
}
