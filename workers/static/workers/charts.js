// Live curves with uPlot: one card per figure, a crosshair shared by all of them.
import { api, explain } from "../base/api.js";
import { icon } from "../base/icons.js";
import { language, momentWords, t, timeMarks } from "../base/i18n.js";
import { Curves, rank } from "./curves.js";
import { save, savePng, saveSvg } from "./export.js";
import { nameOf, titleOf } from "./figures.js";

const REDRAW_MS = 250;
const HEIGHT = 220;
const exact = new Intl.NumberFormat(language, { maximumSignificantDigits: 5 });

export class Charts {
  constructor(root, socket) {
    this.root = root;
    this.url = root.dataset.chartsUrl;
    this.attempt = Number(root.dataset.chartsAttempt);
    this.grid = root.querySelector("[data-charts-grid]");
    this.curves = new Curves(root.dataset.chartsKeys.split(",").filter(Boolean));
    /** @type {Map<string, {card: HTMLElement, plot: uPlot, keys: string[], told: HTMLElement}>} */
    this.plots = new Map(); // by group
    this.lastId = 0;
    this.smooth = 0;
    this.byLog = false;
    this.byTime = false;
    this.bind(socket);
    this.load();
  }

  bind(socket) {
    const find = (name) => this.root.querySelector(`[data-charts-${name}]`);
    const shown = find("smoothed");
    find("smooth").addEventListener("input", (event) => {
      this.smooth = Number(event.target.value);
      shown.textContent = this.smooth.toFixed(2).replace(/\.?0+$/, "") || "0";
      this.redrawSoon();
    });
    find("log").addEventListener("click", (event) => this.toggle(event.currentTarget, "byLog"));
    find("time").addEventListener("click", (event) => this.toggle(event.currentTarget, "byTime"));
    find("csv").addEventListener("click", () => this.saveCsv());
    const rebuild = () => this.rebuild();
    new MutationObserver(rebuild).observe(document.documentElement, { attributeFilter: ["data-theme"] });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", rebuild);
    new ResizeObserver(() => this.resize()).observe(this.grid);

    socket.addEventListener("metrics", ({ detail }) => this.arrived(detail));
    socket.addEventListener("hello", ({ detail }) => {
      if (detail.attempt !== this.attempt || detail.last_id !== this.lastId) this.load(detail.attempt);
    });
    socket.addEventListener("state", ({ detail }) => {
      if (detail.job.attempt_number !== this.attempt) this.load(detail.job.attempt_number);
    });
  }

  toggle(button, name) {
    this[name] = !this[name];
    button.setAttribute("aria-pressed", String(this[name]));
    this.rebuild();
  }

  async load(attempt = this.attempt) {
    if (this.loading) return;
    this.loading = true;
    try {
      const found = await api.get(`${this.url}${attempt ? `?attempt=${attempt}` : ""}`);
      this.attempt = attempt;
      this.lastId = found.last_id;
      this.curves.replace(found.series, found.times);
      this.redraw();
    } catch (error) {
      if (error.status !== 404) explain(error);
    } finally {
      this.loading = false;
    }
  }

  arrived(frame) {
    if (frame.last_id <= this.lastId) return;
    if (frame.attempt !== this.attempt || frame.after !== this.lastId) {
      this.load(frame.attempt); // a gap: ask for all of it
      return;
    }
    this.lastId = frame.last_id;
    if (this.curves.append(frame.points)) this.redrawSoon();
    else this.load();
  }

  redrawSoon() {
    this.timer ??= setTimeout(() => {
      this.timer = null;
      this.redraw();
    }, REDRAW_MS);
  }

  rebuild() {
    for (const { card, plot } of this.plots.values()) {
      plot.destroy();
      card.remove();
    }
    this.plots.clear();
    this.redraw();
  }

  redraw() {
    const groups = this.curves.groups();
    this.root.querySelector("[data-charts-empty]").hidden = groups.size > 0;
    for (const [group, { card, plot, keys }] of this.plots) {
      if (String(groups.get(group)) !== String(keys)) {
        plot.destroy();
        card.remove();
        this.plots.delete(group);
      }
    }
    for (const [group, keys] of groups) {
      const tables = keys.map((key) => this.curves.columns(key, this));
      const data = tables.length === 1 ? tables[0] : uPlot.join(tables);
      const shown = this.plots.get(group);
      if (shown) shown.plot.setData(data);
      else this.build(group, keys, data);
      this.tell(group, keys);
    }
    this.fillHeadline();
    this.fillTable();
  }

  build(group, keys, data) {
    const card = document.createElement("figure");
    card.className = "card chart-card";
    const head = document.createElement("div");
    head.className = "spread";
    const words = titleOf(group, keys);
    const title = Object.assign(document.createElement("h3"), { textContent: words });
    const picture = keeper("image", t("Save %(title)s as PNG", { title: words }));
    const vector = keeper("chart", t("Save %(title)s as SVG", { title: words }));
    const acts = document.createElement("span");
    acts.append(picture, vector);
    head.append(title, acts);
    const told = Object.assign(document.createElement("ul"), { className: "plain small muted chart-told" });
    card.append(head, told);
    const place = [...this.plots.keys(), group].sort(rank).indexOf(group);
    this.grid.insertBefore(card, this.grid.children[place] || null);
    const plot = new uPlot(this.options(group, keys, card), data, card);
    picture.addEventListener("click", () => savePng(plot, words, group));
    const across = (/** @type {number} */ value) => (this.byTime ? timeMarks(plot, [value], 0, 0, 60)[0].split("\n")[0] : short(value));
    vector.addEventListener("click", () => saveSvg(plot, words, group, { x: across, y: short }));
    plot.root.setAttribute("role", "img");
    plot.root.setAttribute("aria-label", words);
    this.plots.set(group, { card, plot, keys, told });
    this.plots = new Map([...this.plots].sort(([a], [b]) => rank(a, b)));
  }

  /** Last and best value of each curve of a card. */
  tell(group, keys) {
    const lines = keys.map((key) => {
      const { last, best } = this.curves.summary(key) ?? { last: Number.NaN, best: null };
      const facts = { name: labelOf(key, group), last: exact.format(last) };
      const words = best
        ? t("%(name)s: last %(last)s, best %(best)s at step %(step)s", { ...facts, best: exact.format(best.value), step: best.step })
        : t("%(name)s: last %(last)s", facts);
      return Object.assign(document.createElement("li"), { textContent: words });
    });
    this.plots.get(group)?.told.replaceChildren(...lines);
  }

  /** The figures that say how good the model is, above the curves. */
  fillHeadline() {
    const box = this.root.querySelector("[data-charts-headline]");
    const tiles = this.curves.headline().map((key) => {
      const { last, best } = this.curves.summary(key) ?? { last: Number.NaN, best: null };
      const tile = Object.assign(document.createElement("div"), { className: "card stat" });
      const label = Object.assign(document.createElement("span"), { className: "label", textContent: nameOf(key) || key });
      const big = Object.assign(document.createElement("span"), { className: "big", textContent: exact.format(last) });
      tile.append(label, big);
      if (best) {
        const words = t("best %(best)s at step %(step)s", { best: exact.format(best.value), step: best.step });
        tile.append(Object.assign(document.createElement("span"), { className: "muted small", textContent: words }));
      }
      return tile;
    });
    box.hidden = !tiles.length;
    box.replaceChildren(...tiles);
  }

  options(group, keys, card) {
    const style = getComputedStyle(this.root);
    const colour = (name) => style.getPropertyValue(name).trim();
    const axis = { stroke: colour("--chart-axis"), grid: { stroke: colour("--chart-grid"), width: 1 }, ticks: { show: false } };
    const seconds = group.startsWith("system/") && !this.byTime;
    const xName = this.byTime ? t("Time") : seconds ? t("Seconds") : t("Step");
    return {
      width: Math.max(200, card.clientWidth - 26),
      height: HEIGHT,
      scales: { x: { time: this.byTime }, y: { distr: this.byLog ? 3 : 1 } },
      cursor: { sync: { key: `${this.url}${this.byTime ? "time" : seconds ? "seconds" : "step"}` }, drag: { x: true, y: false } },
      axes: [
        { ...axis, size: 32, font: "11px sans-serif", ...(this.byTime ? { values: timeMarks } : {}) },
        { ...axis, size: 56, font: "11px sans-serif", values: (_, ticks) => ticks.map((tick) => (tick === null ? "" : short(tick))) },
      ],
      series: [
        { label: xName, ...(this.byTime ? { value: (_, moment) => momentWords(moment) } : {}) },
        ...keys.map((key, i) => ({
          label: labelOf(key, group),
          stroke: colour(`--chart-${(i % 8) + 1}`),
          width: 1.5,
          spanGaps: true,
          points: { show: (_, __, from, to) => to - from < 40 },
          value: (_, value) => (value === null || value === undefined ? "–" : exact.format(value)),
        })),
      ],
    };
  }

  resize() {
    for (const { card, plot } of this.plots.values()) {
      const width = Math.max(200, card.clientWidth - 26);
      if (Math.abs(plot.width - width) > 2) plot.setSize({ width, height: HEIGHT });
    }
  }

  fillTable() {
    const box = this.root.querySelector("[data-charts-values]");
    box.hidden = this.curves.size === 0;
    const rows = this.curves.newest().map(([key, step, value]) => {
      const row = document.createElement("tr");
      const name = Object.assign(document.createElement("th"), { scope: "row", textContent: nameOf(key) });
      name.append(...(nameOf(key) ? [" "] : []), Object.assign(document.createElement("span"), { className: "mono small muted", textContent: key }));
      const cells = [String(step), exact.format(value)].map((textContent) => Object.assign(document.createElement("td"), { className: "num", textContent }));
      row.append(name, ...cells);
      return row;
    });
    box.querySelector("tbody").replaceChildren(...rows);
  }

  saveCsv() {
    save(new Blob([this.curves.csv()], { type: "text/csv" }), `job-${this.root.dataset.charts}-metrics.csv`);
  }
}

/** A small button that saves a chart. @param {string} sign @param {string} label */
function keeper(sign, label) {
  const made = Object.assign(document.createElement("button"), { type: "button", className: "btn btn-quiet btn-icon btn-small", title: label });
  made.setAttribute("aria-label", label);
  made.append(icon(sign));
  return made;
}

/** A curve in the legend: its name for people, and the key that scripts know. */
function labelOf(key, group) {
  const ofClass = !group.startsWith("system/") && key.startsWith(`${group}/`);
  const name = ofClass ? key.slice(group.length + 1) : nameOf(key);
  return name ? `${name} (${key})` : key;
}

function short(value) {
  const size = Math.abs(value);
  if (size !== 0 && (size < 0.001 || size >= 1e6)) return value.toExponential(0);
  return exact.format(value);
}
