// Curves of several trainings: a card for each figure, a line for each training, closer where somebody looks closer.
import { api, explain } from "../base/api.js";
import { icon } from "../base/icons.js";
import { duration, language, t } from "../base/i18n.js";
import { rank, smoothed } from "../workers/curves.js";
import { save, savePng, saveSvg } from "../workers/export.js";
import { groupOf, nameOf, titleOf } from "../workers/figures.js";
import { alike, asCsv, dashOf, grouped, lines, shadeOf } from "./comparison.js";

const HEIGHT = 240;
const exact = new Intl.NumberFormat(language, { maximumSignificantDigits: 5 });
const root = /** @type {HTMLElement} */ (document.querySelector("[data-compare]"));
const shown = { smooth: 0, byLog: false, axis: "step", bands: true };
/** @param {number} place */
const placeWord = (place) => (shown.axis === "time" ? duration(place) : exact.format(place));
/** @type {Map<string, Card>} */
const cards = new Map();

/** @type {HTMLInputElement[]} */
const boxes = [...root.querySelectorAll("[data-run]")].filter((one) => one instanceof HTMLInputElement);
const runs = boxes.map((box) => ({ id: Number(box.dataset.run), name: box.dataset.name ?? "" }));

/** What each run was given, by parameter. @type {Record<string, (string | null)[]>} */
const given = JSON.parse(document.getElementById("compared-params")?.textContent ?? "{}");
/** Lines that are drawn: one for each run, or one for runs alike in a parameter. @type {{name: string, members: number[]}[]} */
let drawn = [];

function divide() {
  const by = [...root.querySelectorAll("[data-group-by] input:checked")].map((box) => /** @type {HTMLInputElement} */ (box).value);
  const seen = runs.map((_, at) => at).filter((at) => boxes[at].checked);
  const words = seen.map((at) => by.map((name) => `${name} ${given[name]?.[at] ?? "–"}`).join(", "));
  drawn = by.length ? alike(words).map(([name, members]) => ({ name: t("%(name)s (n %(count)s)", { name, count: members.length }), members: members.map((at) => seen[at]) })) : runs.map(({ name }, at) => ({ name, members: [at] }));
  root.classList.toggle("is-grouped", by.length > 0);
  return by.length > 0;
}

/** Which line is which group. */
function nameGroups() {
  const isGrouped = divide();
  const items = isGrouped ? drawn.map(({ name }, at) => {
    const item = document.createElement("li");
    const swatch = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    swatch.setAttribute("class", "compare-swatch");
    swatch.setAttribute("viewBox", "0 0 28 8");
    swatch.setAttribute("aria-hidden", "true");
    const line = document.createElementNS("http://www.w3.org/2000/svg", "line");
    for (const [key, value] of Object.entries({ x1: 0, y1: 4, x2: 28, y2: 4, stroke: strokeOf(at), "stroke-dasharray": dashOf(at).join(" ") })) line.setAttribute(key, String(value));
    swatch.append(line);
    item.append(swatch, Object.assign(document.createElement("span"), { className: "mono small", textContent: name }));
    return item;
  }) : [];
  root.querySelector("[data-groups]")?.replaceChildren(...items);
}

/** @param {string} name */
const colour = (name) => getComputedStyle(root).getPropertyValue(name).trim();
/** @param {number} place */
const strokeOf = (place) => colour(`--chart-${shadeOf(place)}`);

class Card {
  /** @param {string} key */
  constructor(key) {
    this.key = key;
    this.plot = null;
    this.span = null;
    this.box = Object.assign(document.createElement("figure"), { className: "card chart-card compare-chart" });
    const head = Object.assign(document.createElement("div"), { className: "spread" });
    const title = document.createElement("h3");
    title.append(nameOf(key) || titleOf(groupOf(key)));
    title.append(" ", Object.assign(document.createElement("span"), { className: "mono small muted", textContent: key }));
    const keep = Object.assign(document.createElement("button"), { type: "button", className: "btn btn-quiet btn-icon btn-small", title: t("Save as PNG") });
    keep.setAttribute("aria-label", t("Save %(title)s as PNG", { title: key }));
    keep.append(icon("image"));
    keep.addEventListener("click", () => this.plot && savePng(this.plot, key, key));
    const vector = this.button("chart", t("Save %(title)s as SVG", { title: key }), () => this.plot && saveSvg(this.plot, key, key, { x: placeWord, y: (value) => exact.format(value) }));
    const table = this.button("download", t("Save %(title)s as CSV", { title: key }), () => this.found && save(new Blob([asCsv(this.shown(), drawn.map(({ name }) => name), shown.axis === "time" ? "seconds" : shown.axis)], { type: "text/csv" }), `${key.replace(/\W+/g, "-")}.csv`));
    const large = this.button("expand", t("Show %(title)s in full screen", { title: key }), () => (document.fullscreenElement ? document.exitFullscreen() : this.box.requestFullscreen()));
    this.box.addEventListener("fullscreenchange", () => this.draw());
    const acts = Object.assign(document.createElement("span"), { className: "compare-acts" });
    acts.append(keep, vector, table, large);
    head.append(title, acts);
    this.told = Object.assign(document.createElement("p"), { className: "small muted compare-told" });
    this.box.append(head, this.told);
  }

  /** @param {string} sign @param {string} label @param {() => any} act */
  button(sign, label, act) {
    const made = Object.assign(document.createElement("button"), { type: "button", className: "btn btn-quiet btn-icon btn-small", title: label });
    made.setAttribute("aria-label", label);
    made.append(icon(sign));
    made.addEventListener("click", act);
    return made;
  }

  /** Curves as they are drawn: of each run, or of groups. */
  shown() {
    return root.classList.contains("is-grouped") ? grouped(this.found, drawn.map(({ members }) => members)) : this.found;
  }

  get height() {
    return document.fullscreenElement === this.box ? Math.max(HEIGHT, window.innerHeight - 140) : HEIGHT;
  }

  /** Ask for the curves of the part that is looked at, as fine as they can be drawn. */
  async load() {
    this.asked = true;
    const query = new URLSearchParams(runs.map(({ id }) => ["run", String(id)]));
    query.set("key", this.key);
    query.set("axis", shown.axis);
    query.set("width", String(Math.max(100, Math.min(2000, this.box.clientWidth - 80))));
    if (this.span) {
      query.set("from", String(this.span[0]));
      query.set("to", String(this.span[1]));
    }
    const wanted = String(query);
    this.wanted = wanted;
    try {
      const [found] = await api.get(`${root.dataset.compare}?${wanted}`);
      if (this.wanted !== wanted) return; // asked for something else meanwhile
      this.found = found;
      this.draw();
    } catch (error) {
      explain(error);
    }
  }

  /** @param {number[]} span */
  closer(span) {
    this.span = span;
    if (this.asked) this.load();
  }

  draw() {
    if (!this.found) return;
    const isGrouped = divide();
    const seen = drawn.map(({ members }) => isGrouped || boxes[members[0]].checked);
    const found = this.shown();
    const data = lines(found, shown, smoothed);
    const points = found.runs.filter((_, i) => seen[i]).reduce((sum, run) => sum + run.points, 0);
    const many = new Intl.NumberFormat(language).format(points);
    this.told.textContent = t("%(points)s points in %(stretches)s intervals", { points: many, stretches: this.found.x.length });
    if (this.plot) this.plot.destroy();
    this.plot = new uPlot(this.options(seen), data, this.box);
    this.plot.root.setAttribute("role", "img");
    this.plot.root.setAttribute("aria-label", this.key);
    this.plot.over.addEventListener("dblclick", loadAll); // a part was chosen in all of them together
  }

  /** @param {boolean[]} seen */
  options(seen) {
    const axis = { stroke: colour("--chart-axis"), grid: { stroke: colour("--chart-grid"), width: 1 }, ticks: { show: false }, font: "11px sans-serif" };
    const along = shown.axis === "time" ? { values: (_, ticks) => ticks.map((tick) => duration(tick)) } : {};
    const edges = shown.bands && !shown.smooth;
    const series = drawn.flatMap(({ name }, i) => {
      const line = { label: name, stroke: strokeOf(i), width: 1.6, dash: dashOf(i), spanGaps: true, show: seen[i], points: { show: (_, __, from, to) => to - from < 40 } };
      const edge = { show: seen[i], stroke: "transparent", spanGaps: true, points: { show: false } };
      return edges ? [line, edge, edge] : [line];
    });
    const bands = edges ? drawn.map((_, i) => ({ series: [3 * i + 3, 3 * i + 2], fill: `${strokeOf(i)}26` })).filter((_, i) => seen[i]) : [];
    return {
      width: Math.max(200, this.box.clientWidth - 26),
      height: this.height,
      scales: { x: { time: false }, y: { distr: shown.byLog ? 3 : 1 } },
      cursor: { sync: { key: shown.axis }, drag: { x: true, y: false, setScale: false } },
      legend: { show: true },
      axes: [
        { ...axis, size: 32, ...along },
        { ...axis, size: 60, values: (_, ticks) => ticks.map((tick) => (tick === null ? "" : exact.format(tick))) },
      ],
      series: [{}, ...series],
      bands,
      hooks: {
        setSelect: [
          (plot) => {
            if (plot.select.width < 4) return;
            const span = [plot.posToVal(plot.select.left, "x"), plot.posToVal(plot.select.left + plot.select.width, "x")];
            for (const card of cards.values()) card.closer(span); // one part of the axis in all of them
          },
        ],
        setCursor: [(plot) => this.say(plot)],
      },
    };
  }

  /** What each training says where the pointer is, the highest first. @param {any} plot */
  say(plot) {
    const at = plot.cursor.idx;
    if (at === null || at === undefined) return;
    const each = shown.bands && !shown.smooth ? 3 : 1;
    const values = drawn
      .map(({ name }, i) => ({ name, value: plot.series[1 + i * each]?.show ? plot.data[1 + i * each][at] : null }))
      .filter(({ value }) => value !== null && value !== undefined)
      .sort((a, b) => b.value - a.value);
    this.told.textContent = [placeWord(plot.data[0][at]), ...values.map(({ name, value }) => `${name} ${exact.format(value)}`)].join(" · ");
  }
}

const grid = /** @type {HTMLElement} */ (root.querySelector("[data-grid]"));
/** @type {string[]} */
const order = JSON.parse(document.getElementById("compared-keys")?.textContent ?? "[]"); // names may have spaces
order.sort((a, b) => Number(b.startsWith("val/")) - Number(a.startsWith("val/")) || rank(groupOf(a), groupOf(b)) || a.localeCompare(b));

// who is not looked at asks for nothing
const eyes = new IntersectionObserver((entries) => {
  for (const { isIntersecting, target } of entries) {
    const card = isIntersecting ? cards.get(/** @type {HTMLElement} */ (target).dataset.key ?? "") : null;
    if (card && !card.asked) card.load();
  }
}, { rootMargin: "200px" });
for (const key of order) {
  const card = new Card(key);
  card.box.dataset.key = key;
  cards.set(key, card);
  grid.append(card.box);
  eyes.observe(card.box);
}

const drawAll = () => {
  nameGroups();
  for (const card of cards.values()) card.draw();
};
const loadAll = () => {
  for (const card of cards.values()) {
    card.span = null;
    if (card.asked) card.load();
  }
};

/** @param {string} name @param {"byLog" | "bands"} what @param {() => void} then */
function toggle(name, what, then) {
  const button = root.querySelector(`[data-${name}]`);
  button?.addEventListener("click", () => {
    shown[what] = !shown[what];
    button.setAttribute("aria-pressed", String(shown[what]));
    then();
  });
}
toggle("log", "byLog", drawAll);
const axis = root.querySelector("[data-axis]");
axis?.addEventListener("change", () => {
  shown.axis = /** @type {HTMLSelectElement} */ (axis).value;
  loadAll();
});
toggle("band", "bands", drawAll);
const smooth = root.querySelector("#compare-smooth");
smooth?.addEventListener("input", () => {
  shown.smooth = Number(/** @type {HTMLInputElement} */ (smooth).value);
  const said = root.querySelector("output");
  if (said) said.textContent = shown.smooth.toFixed(2).replace(/\.?0+$/, "") || "0";
  drawAll();
});
for (const box of boxes) box.addEventListener("change", drawAll);
const by = root.querySelector("[data-group-by]");
by?.addEventListener("change", drawAll);
const wanted = new URLSearchParams(location.search).getAll("group").map((name) => name.replace(/^params\./, ""));
/** @type {NodeListOf<HTMLInputElement>} */
const ticks = root.querySelectorAll("[data-group-by] input");
for (const tick of ticks) tick.checked = wanted.includes(tick.value);
nameGroups();

function paintLegend() {
  for (const line of root.querySelectorAll("[data-line]")) {
    const place = Number(line.getAttribute("data-line"));
    line.setAttribute("stroke", strokeOf(place));
    line.setAttribute("stroke-dasharray", dashOf(place).join(" "));
  }
}
const repaint = () => {
  paintLegend();
  drawAll();
};
new MutationObserver(repaint).observe(document.documentElement, { attributeFilter: ["data-theme"] });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
new ResizeObserver(() => {
  for (const card of cards.values()) {
    const { plot, box } = card;
    const width = Math.max(200, box.clientWidth - 26);
    if (plot && Math.abs(plot.width - width) > 2) plot.setSize({ width, height: card.height });
  }
}).observe(grid);
paintLegend();

const differing = root.querySelector("[data-differing]");
const table = root.querySelector("[data-given]");
const fold = () => table?.classList.toggle("is-differing", differing instanceof HTMLInputElement && differing.checked);
differing?.addEventListener("change", fold);
fold();
