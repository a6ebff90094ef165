// The table of runs: asked for as columns, drawn a window at a time; what is asked for stands in the address.
import { api, explain } from "../base/api.js";
import { ask } from "../base/dialog.js";
import { icon } from "../base/icons.js";
import { duration, language, t, tn } from "../base/i18n.js";
import { toast } from "../base/toast.js";
import { cell, exact, made, numeric } from "./runcells.js";
import { groups, metricsFirst, nextSort, short, stretch } from "./runtable.js";
import { sparkOf } from "./sparks.js";

const EACH = 37; // pixels of a row, as runs.css gives it
const MOST = 20; // runs beside each other
const whole = new Intl.NumberFormat(language);

const config = JSON.parse(document.getElementById("runs-config")?.textContent ?? "{}");
/** @param {string} selector @returns {any} */
const one = (selector) => document.querySelector(selector);
const wrap = one("[data-table]");
const bar = one("[data-bar]");
const charts = one("[data-run-charts]");

const query = new URLSearchParams(location.search);
const given = config.view ?? {};
/** @type {{filter: string, columns: string[], sort: string, group: string[], archived: boolean}} */
const asked = {
  filter: query.get("filter") ?? given.filter ?? "",
  columns: query.has("column") ? query.getAll("column") : (given.columns ?? []),
  sort: query.get("sort") ?? given.sort ?? "",
  group: query.has("group") ? query.getAll("group").filter(Boolean) : (given.group ?? []),
  archived: query.has("archived") ? query.get("archived") === "true" : (given.archived ?? false),
};
/** @type {any} */
let found = null;
/** @type {Set<number>} */
const chosen = new Set();
/** @type {Set<string>} */
const open = new Set();
/** @type {any[]} */
let lines = [];
let wanted = "";

/** Columns that are asked for: those of a grouping are there, too. */
const columnsAsked = () => (asked.columns.length ? [...new Set([...asked.group, ...asked.columns])] : []);

/** Show the table anew after a change of what is asked for. */
function apply() {
  remember();
  load();
}

function remember() {
  const now = new URLSearchParams();
  if (query.get("view")) now.set("view", query.get("view") ?? "");
  if (asked.filter || given.filter) now.set("filter", asked.filter);
  for (const name of asked.columns) now.append("column", name);
  if (asked.sort) now.set("sort", asked.sort);
  for (const name of asked.group) now.append("group", name);
  if (!asked.group.length && given.group?.length) now.append("group", "");
  if (asked.archived || given.archived) now.set("archived", String(asked.archived));
  history.replaceState(null, "", `${location.pathname}${now.size ? `?${now}` : ""}`);
}

async function load() {
  const now = new URLSearchParams();
  if (asked.filter) now.set("filter", asked.filter);
  if (asked.archived) now.set("archived", "true");
  if (asked.sort) now.set("sort", asked.sort);
  for (const name of columnsAsked()) now.append("column", name);
  wanted = String(now);
  one("[data-report]").search = wanted || "filter=";
  const mine = wanted;
  wrap.setAttribute("aria-busy", "true");
  try {
    const answer = await api.get(`${config.url}?${now}`);
    if (wanted !== mine) return; // asked for something else meanwhile
    const missing = asked.columns.length ? [] : asked.group.filter((name) => !answer.columns.some((column) => column.name === name));
    if (missing.length) {
      asked.columns = [...asked.group, ...answer.columns.map(({ name }) => name).filter((name) => !asked.group.includes(name))];
      await load();
      return;
    }
    found = answer;
    const there = new Set(found.runs.map(({ id }) => id));
    for (const id of chosen) if (!there.has(id)) chosen.delete(id);
    bar.querySelector("[name=filter]").removeAttribute("aria-invalid");
    draw();
  } catch (error) {
    if (error.status === 400) {
      bar.querySelector("[name=filter]").setAttribute("aria-invalid", "true");
      one("[data-said]").textContent = error.message;
    } else explain(error);
  } finally {
    wrap.removeAttribute("aria-busy");
  }
}

function draw() {
  const none = !found.runs.length;
  one("[data-empty]").hidden = !none;
  wrap.hidden = none;
  const usual = !asked.filter;
  one("[data-empty-words]").textContent = usual ? t("No runs yet. Each training job and each custom job creates one.") : t("No run matches this filter.");
  one("[data-empty-act]").hidden = !usual || !config.may_submit;
  one("[data-said]").textContent = none ? "" : found.total > found.runs.length
    ? t("%(shown)s of %(count)s runs are shown. Use a filter to find the others.", { shown: whole.format(found.runs.length), count: whole.format(found.total) })
    : tn("%(count)s run", "%(count)s runs", found.total);
  one("[data-grouped]").textContent = asked.group.length ? String(asked.group.length) : "";
  lines = [];
  if (asked.group.length) {
    for (const own of groups(found.columns, asked.group, found.runs.length)) {
      const key = JSON.stringify(own.values);
      lines.push({ group: own, key });
      if (open.has(key)) for (const row of own.members) lines.push({ row, inside: true });
    }
  } else lines = (asked.sort ? found.runs.map((_, row) => row) : metricsFirst(found.columns, found.runs.length, config.live)).map((row) => ({ row }));
  const table = made("table", { className: "table runs-table" });
  table.setAttribute("aria-rowcount", String(lines.length + 1));
  table.append(made("caption", { className: "sr-only", textContent: t("Runs") }), head(), made("tbody", { data: { rows: "" } }));
  const left = wrap.scrollLeft;
  wrap.replaceChildren(table);
  wrap.scrollLeft = left;
  rows();
  acts();
}

function head() {
  const all = made("input", { type: "checkbox", checked: found.runs.length > 0 && chosen.size === found.runs.length });
  all.indeterminate = chosen.size > 0 && chosen.size < found.runs.length;
  all.setAttribute("aria-label", t("Select all"));
  all.addEventListener("change", () => {
    chosen.clear();
    if (all.checked) for (const { id } of found.runs) chosen.add(id);
    draw();
  });
  const line = made("tr", {}, made("th", { scope: "col", className: "runs-tick" }, all), sorted("name", t("Name"), ""));
  for (const column of shownColumns()) line.append(sorted(column.name, column.label, numeric(column) ? "num" : "", column));
  return made("thead", {}, line);
}

/** Columns of the body: in a grouping its own come first. */
function shownColumns() {
  const first = asked.group.map((name) => found.columns.find((column) => column.name === name)).filter(Boolean);
  return [...first, ...found.columns.filter((column) => !first.includes(column))];
}

function sorted(name, label, kind, column = null) {
  const cell = made("th", { scope: "col", className: kind });
  const now = asked.sort || "-created";
  const down = now === `-${name}`;
  if (down || now === name) cell.setAttribute("aria-sort", down ? "descending" : "ascending");
  const button = made("button", { type: "button", className: "runs-sort", title: column && short(name) !== label ? short(name) : "" });
  const words = made("span", { textContent: label.replaceAll(" · ", "\u00a0·\u00a0") });
  const before = /^(last|min|max)\(/.exec(name)?.[1];
  if (before) words.append(made("span", { className: "muted", textContent: ` ${{ last: t("latest"), min: t("minimum"), max: t("maximum") }[before]}` }));
  button.append(words, icon(down ? "arrow-down" : now === name ? "arrow-up" : "sort"));
  button.addEventListener("click", () => {
    asked.sort = nextSort(now, name);
    apply();
  });
  cell.append(button);
  return cell;
}

/** Draw the rows in the window, with empty ones of their height around them. */
function rows() {
  const body = wrap.querySelector("[data-rows]");
  if (!body) return;
  const { first, end } = stretch(lines.length, wrap.scrollTop, wrap.clientHeight || 700, EACH);
  const columns = shownColumns();
  const span = columns.length + 2;
  const gap = (height) => {
    const line = made("tr", { className: "runs-gap" }, made("td", { colSpan: span }));
    line.setAttribute("aria-hidden", "true");
    line.firstChild.style.height = `${height}px`;
    return line;
  };
  const focused = document.activeElement instanceof HTMLElement && body.contains(document.activeElement) ? document.activeElement.dataset.focus : "";
  const drawn = lines.slice(first, end).map((line, at) => {
    const element = line.group ? groupRow(line, columns) : runRow(line, columns);
    element.setAttribute("aria-rowindex", String(first + at + 2));
    return element;
  });
  body.replaceChildren(...(first ? [gap(first * EACH)] : []), ...drawn, ...(end < lines.length ? [gap((lines.length - end) * EACH)] : []));
  if (focused) body.querySelector(`[data-focus="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
}

function runRow({ row, inside }, columns) {
  const run = found.runs[row];
  const tick = made("input", { type: "checkbox", checked: chosen.has(run.id), data: { focus: `tick-${run.id}` } });
  tick.setAttribute("aria-label", t("Select %(name)s", { name: run.name }));
  tick.addEventListener("change", () => {
    if (tick.checked) chosen.add(run.id);
    else chosen.delete(run.id);
    tick.closest("tr").setAttribute("aria-selected", String(tick.checked));
    acts();
  });
  const star = made("button", { type: "button", className: "btn btn-quiet btn-icon btn-small runs-star", data: { focus: `star-${run.id}` } }, icon("star"));
  star.setAttribute("aria-pressed", String(run.starred));
  star.setAttribute("aria-label", t("Star %(name)s", { name: run.name }));
  star.addEventListener("click", () => change([run.id], { star: !run.starred }));
  const name = made("a", { href: `${config.run}${run.id}/`, textContent: run.name, data: { focus: `name-${run.id}` } });
  const cells = columns.map((column) => {
    const sparks = sparkOf(columns, column, row, run.id);
    return made("td", { className: `${numeric(column) ? "num" : ""}${sparks.length ? " runs-metric" : ""}`, title: text(column, row) }, ...sparks, cell(column.values[row], column.kind, column.name));
  });
  const line = made("tr", { className: inside ? "runs-inside" : "" }, made("td", { className: "runs-tick" }, tick), made("td", { className: "main-cell runs-name" }, star, name, ...(run.archived ? [" ", icon("archive")] : [])), ...cells);
  line.setAttribute("aria-selected", String(chosen.has(run.id)));
  return line;
}

/** Of a value that its cell may cut. */
const text = (column, row) => (["text", "tags"].includes(column.kind) && column.values[row] ? String(column.values[row]) : "");

function groupRow({ group, key }, columns) {
  const shut = !open.has(key);
  const opener = made("button", { type: "button", className: "btn btn-quiet btn-icon btn-small", data: { focus: `group-${key}` } }, icon(shut ? "chevron-right" : "chevron-down"));
  opener.setAttribute("aria-expanded", String(!shut));
  const said = tn("%(count)s run", "%(count)s runs", group.members.length);
  opener.setAttribute("aria-label", said);
  opener.addEventListener("click", () => {
    if (shut) open.add(key);
    else open.delete(key);
    draw();
  });
  const ids = group.members.map((row) => found.runs[row].id);
  const tick = made("input", { type: "checkbox", checked: ids.every((id) => chosen.has(id)), data: { focus: `ticks-${key}` } });
  tick.indeterminate = !tick.checked && ids.some((id) => chosen.has(id));
  tick.setAttribute("aria-label", t("Select these %(count)s runs", { count: ids.length }));
  tick.addEventListener("change", () => {
    for (const id of ids) {
      if (tick.checked) chosen.add(id);
      else chosen.delete(id);
    }
    draw();
  });
  const cells = columns.map((column, at) => {
    if (at < asked.group.length) return made("td", { className: numeric(column) ? "num" : "" }, cell(group.values[at], column.kind));
    const told = group.stats.get(column.name);
    if (!told) return made("td", {});
    const write = (value) => (column.kind === "duration" ? duration(value) : exact.format(value));
    if (column.name.startsWith("params.")) return made("td", { className: "num", textContent: told.low === told.high ? write(told.low) : `${write(told.low)} … ${write(told.high)}` });
    const mean = made("span", { textContent: write(told.mean) });
    const around = told.n > 1 ? made("span", { className: "muted", textContent: ` ± ${write(told.deviation)}` }) : "";
    const less = told.n < group.members.length ? made("span", { className: "muted", textContent: ` n ${told.n}` }) : "";
    return made("td", { className: "num", title: `n ${told.n} · ${write(told.low)} … ${write(told.high)}` }, mean, around, less);
  });
  return made("tr", { className: "runs-group" }, made("td", { className: "runs-tick" }, tick), made("td", { className: "main-cell runs-name" }, opener, said), ...cells);
}

function acts() {
  const count = chosen.size;
  one("[data-acts]").hidden = !count;
  one("[data-chosen]").textContent = t("%(count)s selected", { count: whole.format(count) });
  const compare = one("[data-compare]");
  compare.disabled = !count || count > MOST;
  if (count > MOST) compare.title = t("At most %(count)s runs can be compared.", { count: MOST });
  else if (count) compare.title = "";
  one("[data-act=compare]").disabled = compare.disabled;
  one("[data-act=compare]").title = compare.title;
  compare.querySelector("[data-count]").textContent = count ? String(count) : "";
  charts.hidden = !found.runs.length;
  drawCharts();
}

/** Draw the charts of the runs in the table; their code loads when they are opened for the first time. */
async function drawCharts() {
  if (charts.open && found) (await import("./runcharts.js")).show({ filter: asked.filter, archived: asked.archived, known: found.known, chosen });
}

/** @param {number[]} ids @param {Record<string, any>} said */
async function change(ids, said) {
  try {
    await api.post(config.bulk, { runs: ids, ...said });
    await load();
  } catch (error) {
    explain(error);
  }
}

function compareChosen() {
  const to = new URLSearchParams([...chosen].map((id) => ["run", String(id)]));
  for (const name of asked.group) to.append("group", name);
  location.assign(`${config.compare}?${to}`);
}
one("[data-compare]").addEventListener("click", compareChosen);
const simple = { star: { star: true }, unstar: { star: false }, archive: { archived: true }, restore: { archived: false } };
one("[data-acts]").addEventListener("click", async ({ target }) => {
  const act = target.closest("[data-act]")?.dataset.act;
  if (act === "none") {
    chosen.clear();
    draw();
  } else if (act === "compare") compareChosen();
  else if (act) {
    await change([...chosen], simple[act]);
    if (act === "archive") toast(t("Archived. “Include archived” shows them again."), "ok");
  }
});

bar.addEventListener("submit", (event) => {
  event.preventDefault();
  asked.filter = bar.querySelector("[name=filter]").value.trim();
  apply();
});
bar.querySelector("[name=archived]").addEventListener("change", ({ target }) => {
  asked.archived = target.checked;
  apply();
});
bar.querySelector("[name=filter]").value = asked.filter;
bar.querySelector("[name=archived]").checked = asked.archived;

/** The dialogs load when the first of them is opened. */
document.addEventListener("click", async ({ target }) => {
  const id = target instanceof Element ? target.closest("[data-dialog-open^=runs-]")?.dataset.dialogOpen : "";
  if (id && found) (await import("./rundialogs.js")).fill(id, { asked, found, chosen, config, change, apply });
});

one("[data-view-delete]")?.addEventListener("click", async () => {
  if (!(await ask({ title: t("Delete the view %(name)s?", { name: config.name }), text: t("The runs are kept."), act: t("Delete"), danger: true }))) return;
  api.delete(`${config.views}${config.number}/`).then(() => location.assign(location.pathname)).catch(explain);
});

charts.addEventListener("toggle", drawCharts);
let waiting = false;
wrap.addEventListener("scroll", () => {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => {
    waiting = false;
    rows();
  });
}, { passive: true });
new ResizeObserver(() => found && rows()).observe(wrap);
load();
// while something runs its figures grow
setInterval(() => {
  const states = found?.columns.find((column) => column.name === "state")?.values ?? [];
  if (!document.hidden && !document.querySelector("dialog[open]") && states.some((state) => config.live.includes(state))) load();
}, 10_000);
