// Curves of several runs: a chart for each metric with a line for each run, zoomed together.
import { api, explain } from "../base/api.js";
import { Chart, valueWord } from "../base/chart.js";
import { dashOf, hueOf } from "../base/chart_data.js";
import { swatch } from "../base/chart_parts.js";
import { ChartTools, tabOf } from "../base/chart_tools.js";
import { duration, grouped as counted, t, tn } from "../base/i18n.js";
import { waits } from "../base/skeletons.js";
import { betterBy, rank } from "../workers/curves.js";
import { groupOf, nameOf, titleOf, unitOf } from "../workers/figures.js";
import { alike, grouped } from "./comparison.js";

const root = /** @type {HTMLElement} */ (document.querySelector("[data-compare]"));
const tools = new ChartTools(root, { look: drawAll, axis: loadAll, tab: () => undefined });
let bands = true;
/** @type {Map<string, Curves>} */
const cards = new Map();

/** @type {HTMLInputElement[]} */
const boxes = [...root.querySelectorAll("[data-run]")].filter((one) => one instanceof HTMLInputElement);
const runs = boxes.map((box) => ({ id: Number(box.dataset.run), name: box.dataset.name ?? "" }));
/** Names of the runs, each once: charts tell their lines apart by name. */
const names = runs.map(({ name }, at) => (runs.some((other, place) => place !== at && other.name === name) ? `${name} · ${runs[at].id}` : name));

/** Inputs of each run, by parameter. @type {Record<string, (string | null)[]>} */
const params = JSON.parse(document.getElementById("compared-params")?.textContent ?? "{}");
/** Lines that are drawn: one for each run, or one for runs alike in a parameter. @type {{name: string, members: number[]}[]} */
let drawn = [];

function divide() {
  const by = [...root.querySelectorAll("[data-group-by] input:checked")].map((box) => /** @type {HTMLInputElement} */ (box).value);
  const seen = runs.map((_, at) => at).filter((at) => boxes[at].checked);
  const words = seen.map((at) => by.map((name) => `${name} ${params[name]?.[at] ?? "–"}`).join(", "));
  drawn = by.length ? alike(words).map(([name, members]) => ({ name: t("%(name)s (n %(count)s)", { name, count: members.length }), members: members.map((at) => seen[at]) })) : names.map((name, at) => ({ name, members: [at] }));
  root.classList.toggle("is-grouped", by.length > 0);
  return by.length > 0;
}

/** @param {number} place */
const strokeOf = (place) => getComputedStyle(root).getPropertyValue(hueOf(place)).trim();

/** The lines of groups, by name. */
function nameGroups() {
  const isGrouped = divide();
  const items = isGrouped ? drawn.map(({ name }, at) => {
    const item = document.createElement("li");
    item.append(swatch(strokeOf(at), dashOf(at)), Object.assign(document.createElement("span"), { className: "mono small", textContent: name }));
    return item;
  }) : [];
  root.querySelector("[data-groups]")?.replaceChildren(...items);
}

/** The curves of one metric: asked for as fine as they can be drawn, once they are looked at. */
class Curves {
  /** @param {string} key */
  constructor(key) {
    this.key = key;
    this.span = /** @type {[number, number] | null} */ (null);
    this.isAsked = false;
    const name = nameOf(key) || titleOf(groupOf(key));
    const unit = unitOf(groupOf(key));
    const title = name.replace(/\s*[(（][^()（）]*[)）](?= ·|$)/, ""); // the unit is at the axis
    this.chart = new Chart({ title, key, unit, legend: false, x: { name: "" }, onZoom: (span) => (span ? zoomAll(span) : loadAll()) });
    this.chart.element.classList.add("compare-chart");
    this.chart.element.dataset.key = key;
  }

  async load() {
    this.isAsked = true;
    const query = new URLSearchParams(runs.map(({ id }) => ["run", String(id)]));
    query.set("key", this.key);
    query.set("axis", tools.view.axis);
    query.set("width", String(Math.max(100, Math.min(2000, this.chart.element.clientWidth - 80))));
    if (this.span) {
      query.set("from", String(this.span[0]));
      query.set("to", String(this.span[1]));
    }
    const wanted = String(query);
    this.wanted = wanted;
    try {
      const [answer] = await api.get(`${root.dataset.compare}?${wanted}`);
      if (this.wanted !== wanted) return; // asked for something else meanwhile
      this.curves = answer;
      this.draw();
    } catch (error) {
      explain(error);
    }
  }

  draw() {
    if (!this.curves) return;
    const isGrouped = divide();
    const { axis } = tools.view;
    const curves = isGrouped ? grouped(this.curves, drawn.map(({ members }) => members)) : this.curves;
    const seen = drawn.map(({ members }) => isGrouped || boxes[members[0]].checked);
    const points = curves.runs.filter((_, i) => seen[i]).reduce((sum, run) => sum + run.points, 0);
    const words = { step: t("Step"), epoch: t("Epoch"), time: t("Run time") };
    const isTime = axis === "time" || (axis === "step" && tabOf(this.key) === "system"); // steps of system metrics are seconds
    const { options, hidden, note } = this.chart;
    options.x = { name: isTime ? words.time : words[axis], word: isTime ? duration : valueWord };
    options.sync = `${axis} ${tabOf(this.key)}`;
    hidden.clear();
    for (const [at, { name }] of drawn.entries()) if (!seen[at]) hidden.add(name);
    // only where curves are thinned: each drawn value then stands for several reported ones
    const isThinned = curves.runs.some((run, i) => seen[i] && run.points > curves.x.length);
    note.textContent = isThinned
      ? t("%(points)s points, averaged to %(stretches)s per curve", { points: counted(points), stretches: curves.x.length })
      : tn("%(count)s point", "%(count)s points", points);
    const lines = drawn.map(({ name }, at) => ({ name, values: curves.runs[at].mean, low: curves.runs[at].low, high: curves.runs[at].high, better: betterBy(this.key), place: at }));
    return this.chart.show(curves.x, lines, { ...tools.view, bands });
  }
}

/** @type {string[]} */
const order = JSON.parse(document.getElementById("compared-keys")?.textContent ?? "[]"); // names may have spaces
order.sort((a, b) => Number(b.startsWith("val/")) - Number(a.startsWith("val/")) || rank(groupOf(a), groupOf(b)) || a.localeCompare(b));
tools.offer(order);

// charts out of view ask for nothing
const eyes = new IntersectionObserver((entries) => {
  for (const { isIntersecting, target } of entries) {
    const card = isIntersecting ? cards.get(/** @type {HTMLElement} */ (target).dataset.key ?? "") : null;
    if (card && !card.isAsked) waits(card.chart.frame, "chart", card.load());
  }
}, { rootMargin: "200px" });
for (const key of order) {
  const card = new Curves(key);
  cards.set(key, card);
  tools.gridOf(key).append(card.chart.element);
  eyes.observe(card.chart.element);
}

function drawAll() {
  nameGroups();
  for (const card of cards.values()) card.draw();
}

/** @param {[number, number] | null} span  of the axis, in all charts together */
function zoomAll(span) {
  for (const card of cards.values()) {
    card.span = span;
    if (card.isAsked) card.load();
  }
}

function loadAll() {
  zoomAll(null);
}

const range = root.querySelector("[data-band]");
range?.addEventListener("click", () => {
  bands = !bands;
  range.setAttribute("aria-pressed", String(bands));
  drawAll();
});
for (const [at, box] of boxes.entries()) {
  box.addEventListener("change", drawAll);
  const row = box.closest("li");
  /** @param {number | null} line */
  const highlight = (line) => {
    if (!root.classList.contains("is-grouped")) for (const { chart } of cards.values()) chart.highlight(line);
  };
  for (const event of ["pointerenter", "focusin"]) row?.addEventListener(event, () => highlight(at));
  for (const event of ["pointerleave", "focusout"]) row?.addEventListener(event, () => highlight(null));
}
root.querySelector("[data-group-by]")?.addEventListener("change", drawAll);
const asked = new URLSearchParams(location.search).getAll("group").map((name) => name.replace(/^params\./, ""));
/** @type {NodeListOf<HTMLInputElement>} */
const ticks = root.querySelectorAll("[data-group-by] input");
for (const tick of ticks) tick.checked = asked.includes(tick.value);
nameGroups();

function paintLegend() {
  for (const line of root.querySelectorAll("[data-line]")) {
    const place = Number(line.getAttribute("data-line"));
    line.setAttribute("stroke", strokeOf(place));
    line.setAttribute("stroke-dasharray", dashOf(place).join(" "));
  }
  nameGroups();
}
new MutationObserver(paintLegend).observe(document.documentElement, { attributeFilter: ["data-theme"] });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", paintLegend);
paintLegend();

const differing = root.querySelector("[data-differing]");
const table = root.querySelector("[data-given]");
const fold = () => table?.classList.toggle("is-differing", differing instanceof HTMLInputElement && differing.checked);
differing?.addEventListener("change", fold);
fold();
