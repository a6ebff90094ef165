// One chart: a card with its metric as title, its values as numbers, and lines with a crosshair, full screen and export.
import { bestOf, columnsOf, csvOf, dashOf, hueOf, lastOf, nearestPlace, placeAfter, tipRows, withGaps } from "./chart_data.js";
import { exportMenu, headButton, legendOf, make, paintTip } from "./chart_parts.js";
import { save, savePng, saveSvg } from "./chart_files.js";
import { language, t } from "./i18n.js";
import { loadPlots } from "./plots.js";

const HEIGHT_PX = 200;
const WIDE_PX = 700; // a chart across the page is higher
const SYNCED_TIP_LINES = 4; // charts with more lines show their tooltip only where the pointer is
const exact = new Intl.NumberFormat(language, { maximumSignificantDigits: 4 });

/** A value as charts write it. @param {number | null | undefined} value */
export function valueWord(value) {
  if (value === null || value === undefined) return "–";
  if (!Number.isFinite(value)) return String(value); // NaN is what a person has to see
  const size = Math.abs(value);
  return size !== 0 && (size < 0.001 || size >= 1e6) ? value.toExponential(2) : exact.format(value);
}

/** @import {Line, Look, Values} from "./chart_data.js" */
/**
 * @typedef {{title: string, key?: string, unit?: string, sync?: string, legend?: boolean, heading?: string,
 *   x: {name: string, isTime?: boolean, word?: (value: number | null) => string, marks?: (plot: any, ticks: number[], axis: number, space: number, step: number) => string[]},
 *   y?: {word?: (value: number | null) => string, range?: (low: number, high: number) => [number, number]},
 *   onZoom?: (span: [number, number] | null) => void}} Options
 *   sync: charts with the same one share their crosshair. onZoom: told of a selected part of the x-axis instead of zooming.
 */

/** All charts of the page, for changes of theme and size. @type {Set<Chart>} */
const charts = new Set();
const repaint = () => {
  for (const chart of charts) chart.rebuild();
};
if (typeof MutationObserver !== "undefined") {
  new MutationObserver(repaint).observe(document.documentElement, { attributeFilter: ["data-theme"] });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
}
const sizes = typeof ResizeObserver === "undefined" ? null : new ResizeObserver((entries) => {
  for (const { target } of entries) for (const chart of charts) if (chart.frame === target) chart.fit();
});

export class Chart {
  /** @param {Options} options */
  constructor(options) {
    this.options = options;
    this.x = /** @type {number[]} */ ([]);
    this.lines = /** @type {Line[]} */ ([]);
    this.look = /** @type {Look} */ ({});
    this.hidden = /** @type {Set<string>} */ (new Set());
    this.plot = /** @type {uPlot | null} */ (null);
    this.built = "";
    const { title, key = "", heading = "h3", unit = "" } = options;
    const name = make(heading, "chart-title", title);
    if (key !== title && key.endsWith(title)) name.append(" ", make("span", "mono small muted", key)); // no label of its own
    else name.title = key;
    this.numbers = make("p", "chart-numbers");
    this.full = headButton("expand", t("Show %(title)s in full screen", { title: key || title }), () => this.toggleFullScreen());
    this.full.hidden = !document.fullscreenEnabled;
    const acts = make("span", "chart-acts");
    acts.append(exportMenu(key || title, { PNG: () => this.savePng(), SVG: () => this.saveSvg(), CSV: () => this.saveCsv() }), this.full);
    const head = make("div", "chart-head");
    head.append(name, acts);
    this.frame = make("div", "chart-frame");
    this.frame.tabIndex = 0;
    this.frame.setAttribute("role", "group");
    this.tip = make("div", "chart-tip");
    this.tip.hidden = true;
    this.legend = make("ul", "plain chart-legend");
    this.spoken = make("p", "sr-only");
    this.spoken.setAttribute("aria-live", "polite");
    this.note = make("p", "chart-note small muted");
    this.element = make("figure", "card chart-card");
    this.element.append(head, this.numbers, this.frame, this.legend, this.note, this.spoken);
    this.unit = unit;
    this.word = options.y?.word ?? valueWord;
    this.frame.addEventListener("keydown", (event) => this.pressed(event));
    this.frame.addEventListener("blur", () => this.leave());
    this.element.addEventListener("fullscreenchange", () => this.changedFullScreen());
    charts.add(this);
    sizes?.observe(this.frame);
  }

  /**
   * Draw lines over `x`; a chart with the same lines as before only gets their new values.
   * @param {number[]} x
   * @param {Line[]} lines
   * @param {Look} [look]
   */
  async show(x, lines, look = {}) {
    Object.assign(this, { x, lines, look });
    this.describe();
    await loadPlots();
    if (this.lines === lines) this.draw();
  }

  draw() {
    if (!this.frame.clientWidth) return; // not on the page, or its tab is not open; drawn by `fit` once it is
    const { columns: withPoints, roles } = columnsOf(this.x, this.lines, this.look);
    const columns = withPoints.map(withGaps);
    const shape = JSON.stringify([roles, this.lines.map(({ name, place, dots, width, dash, color }) => [name, place, dots, width, dash, color]), this.look.byLog, this.options.x.name, this.options.x.isTime, [...this.hidden]]);
    if (this.plot && shape === this.built) {
      this.plot.setData(columns);
      return;
    }
    this.plot?.destroy();
    this.roles = roles;
    this.built = shape;
    this.plot = new uPlot(this.plotOptions(columns), columns, this.frame);
    this.plot.over.append(this.tip);
    if (this.options.onZoom) this.plot.over.addEventListener("dblclick", () => this.options.onZoom?.(null));
    this.tip.hidden = true;
  }

  rebuild() {
    this.built = "";
    if (this.plot) this.draw();
    if (this.lines.length) this.describe();
  }

  get isFull() {
    return document.fullscreenElement === this.element;
  }

  get height() {
    const usual = this.frame.clientWidth > WIDE_PX ? 1.5 * HEIGHT_PX : HEIGHT_PX;
    return this.isFull ? Math.max(HEIGHT_PX, window.innerHeight - this.frame.offsetTop - this.legend.offsetHeight - this.note.offsetHeight - 56) : usual;
  }

  fit() {
    const width = this.frame.clientWidth;
    if (!width || !this.lines.length || typeof uPlot === "undefined") return;
    if (!this.plot) this.draw();
    else if (Math.abs(this.plot.width - width) > 2 || this.plot.height !== this.height) this.plot.setSize({ width, height: this.height });
  }

  /** @param {number} at @param {string} [alpha] two hexadecimal digits */
  color(at, alpha = "") {
    const { color = hueOf(this.lines[at].place ?? at) } = this.lines[at];
    return `${getComputedStyle(document.documentElement).getPropertyValue(color).trim()}${alpha}`;
  }

  /** @param {(number[] | Values)[]} columns */
  plotOptions(columns) {
    const style = getComputedStyle(document.documentElement);
    /** @param {string} name */
    const token = (name) => style.getPropertyValue(name).trim();
    const axis = { stroke: token("--chart-axis"), grid: { stroke: token("--chart-grid"), width: 1 }, ticks: { show: false }, font: "11px sans-serif", labelFont: "11px sans-serif", labelSize: 14, labelGap: 0 };
    const { x, y = {}, sync, onZoom } = this.options;
    const marks = x.marks ?? (x.word ? (_plot, ticks) => ticks.map((/** @type {number} */ tick) => x.word?.(tick)) : undefined);
    const percent = this.unit === "%";
    const roles = this.roles ?? [];
    const bands = roles.flatMap(({ role, line }, at) => (role === "high" && !this.hidden.has(this.lines[line].name) ? [{ series: [at + 1, at], fill: this.color(line, "26") }] : []));
    return {
      width: this.frame.clientWidth,
      height: this.height,
      legend: { show: false },
      scales: { x: { time: Boolean(x.isTime) }, y: { distr: this.look.byLog ? 3 : 1, ...(y.range ? { range: (_plot, low, high) => y.range?.(low, high) } : {}) } },
      cursor: {
        ...(sync ? { sync: { key: sync, setSeries: false } } : {}),
        y: false,
        drag: { x: true, y: false, setScale: !onZoom },
        focus: { prox: this.lines.length > 1 ? 24 : -1 },
        dataIdx: (plot, series, at) => (series ? (nearestPlace(plot.data[series], at) ?? at) : at),
      },
      focus: { alpha: 0.25 },
      axes: [
        { ...axis, size: x.isTime ? 32 : 24, ...(marks ? { values: marks } : {}), ...(x.isTime ? {} : { label: x.name }) },
        { ...axis, size: 54, values: (_plot, ticks) => ticks.map((tick) => (tick === null ? "" : `${this.word(tick)}${percent ? " %" : ""}`)), ...(this.unit && !percent ? { label: this.unit } : {}) },
      ],
      series: [{}, ...roles.map((role) => this.series(role, columns[0].length))],
      bands,
      hooks: {
        setCursor: [() => this.moved()],
        setSelect: [(plot) => onZoom && plot.select.width >= 4 && onZoom([plot.posToVal(plot.select.left, "x"), plot.posToVal(plot.select.left + plot.select.width, "x")])],
      },
    };
  }

  /** @param {{line: number, role: string}} role @param {number} count */
  series({ line, role }, count) {
    const { name, width = 1.6, dots, stepped, dash, place = line } = this.lines[line];
    const base = { label: role === "raw" ? "" : name, show: !this.hidden.has(name), points: { show: false } };
    if (role === "low" || role === "high") return { ...base, stroke: "transparent" };
    if (role === "raw") return { ...base, stroke: this.color(line, "40"), width: 1 };
    const stroke = this.color(line);
    if (dots) return { ...base, stroke, width: 0, paths: () => null, points: { show: true, size: 6, fill: stroke } };
    const points = stepped ? { show: false } : { show: count < 40 || ((_plot, _series, from, to) => to - from < 40) };
    return { ...base, stroke, width, dash: dash ?? dashOf(place), points, ...(stepped ? { paths: uPlot.paths.stepped({ align: 1 }) } : {}) };
  }

  /** Numbers, legend and the summary for screen readers. */
  describe() {
    const facts = this.lines.map((line) => ({ line, last: line.last ?? lastOf(line.values), best: bestOf(this.x, line) }));
    const xWord = this.options.x.word ?? valueWord;
    const unit = this.unit && this.unit.length < 5 ? ` ${this.unit}` : "";
    /** @param {{best: {value: number, at: number} | null}} fact */
    const bestWords = ({ best }) => (best ? t("best %(best)s at %(place)s", { best: this.word(best.value), place: xWord(best.at) }) : "");
    const summary = facts.map((fact) => [fact.line.name, `${this.word(fact.last)}${unit}`, bestWords(fact)].filter(Boolean).join(" ")).join("; ");
    this.frame.setAttribute("aria-label", `${this.options.title}: ${summary}`);
    const isAlone = this.lines.length === 1;
    this.numbers.hidden = !isAlone;
    if (isAlone) this.numbers.replaceChildren(make("strong", "", `${this.word(facts[0].last)}${unit}`), make("span", "small muted", bestWords(facts[0])));
    this.element.classList.toggle("has-own-legend", this.options.legend !== false);
    this.legend.hidden = isAlone;
    if (isAlone) return;
    legendOf(this.legend, facts.map((fact, at) => ({ name: fact.line.name, last: this.word(fact.last), best: fact.best ? this.word(fact.best.value) : "", title: bestWords(fact), color: this.color(at), dash: fact.line.dash ?? dashOf(fact.line.place ?? at), isHidden: this.hidden.has(fact.line.name) })), {
      toggle: (name) => this.toggle(name),
      highlight: (at) => this.highlight(at),
    });
  }

  /** Show or hide a line. @param {string} name */
  toggle(name) {
    if (!this.hidden.delete(name)) this.hidden.add(name);
    const hides = this.hidden.has(name);
    for (const button of this.legend.querySelectorAll("button")) if (button.dataset.line === name) button.setAttribute("aria-pressed", String(!hides));
    this.built = "";
    if (this.plot) this.draw();
  }

  /** Bring one line to the front by fading the others. @param {number | null} line */
  highlight(line) {
    if (!this.plot) return;
    const at = (this.roles ?? []).findIndex((one) => one.line === line && one.role === "line");
    this.plot.setSeries(at < 0 ? null : at + 1, { focus: true });
  }

  /** The crosshair moved: here, or in another chart of the same group. */
  moved() {
    const { plot, tip } = this;
    const at = plot?.cursor.idx;
    const isHere = this.frame.matches(":hover, :focus-within");
    if (!plot || at === null || at === undefined || (plot.cursor.left ?? -1) < 0 || (!isHere && this.lines.length > SYNCED_TIP_LINES)) {
      tip.hidden = true;
      return;
    }
    const values = this.lines.map((_, line) => {
      const column = 1 + (this.roles ?? []).findIndex((one) => one.line === line && one.role === "line");
      const place = nearestPlace(plot.data[column], at);
      return place === null ? null : plot.data[column][place];
    });
    const { rows, more } = tipRows(this.lines, values, this.hidden);
    const { word = valueWord, name } = this.options.x;
    const unit = this.unit && this.unit.length < 5 ? ` ${this.unit}` : "";
    const place = this.options.x.isTime ? word(plot.data[0][at]) : `${name} ${word(plot.data[0][at])}`;
    paintTip(tip, place, rows.map((row) => ({ name: this.lines.length > 1 ? row.name : "", value: `${this.word(row.value)}${unit}`, color: this.color(row.line) })), more);
    tip.hidden = !rows.length;
    const left = plot.cursor.left ?? 0;
    const isLeft = left + tip.offsetWidth + 24 > plot.over.clientWidth && left > tip.offsetWidth;
    tip.style.transform = `translate(${Math.round(isLeft ? left - tip.offsetWidth - 12 : left + 12)}px, 4px)`;
    this.said = [place, ...rows.map((row) => `${row.name} ${this.word(row.value)}${unit}`)].join(", ");
  }

  /** Arrow keys, Home and End move the crosshair; Escape removes it. @param {KeyboardEvent} event */
  pressed(event) {
    const { plot } = this;
    if (!plot || event.target !== this.frame) return;
    const place = placeAfter(event.key, event.shiftKey, plot.cursor.idx ?? null, this.x.length);
    if (event.key === "Escape" && !this.isFull) this.leave();
    if (place === null) return;
    event.preventDefault();
    plot.setCursor({ left: plot.valToPos(this.x[place], "x"), top: plot.over.clientHeight / 2 });
    this.spoken.textContent = this.said ?? "";
  }

  leave() {
    this.plot?.setCursor({ left: -10, top: -10 });
    this.spoken.textContent = "";
  }

  toggleFullScreen() {
    if (this.isFull) document.exitFullscreen();
    else this.element.requestFullscreen();
  }

  changedFullScreen() {
    const title = this.options.key || this.options.title;
    const label = this.isFull ? t("Leave full screen") : t("Show %(title)s in full screen", { title });
    this.full.setAttribute("aria-label", label);
    this.full.title = label;
    this.fit();
  }

  get fileName() {
    return this.options.key || this.options.title;
  }

  savePng() {
    if (this.plot) savePng(this.plot, this.options.title, this.fileName);
  }

  saveSvg() {
    if (this.plot) saveSvg(this.plot, this.options.title, this.fileName, { x: this.options.x.word ?? valueWord, y: this.word });
  }

  saveCsv() {
    const lines = this.lines.filter(({ name }) => !this.hidden.has(name));
    save(new Blob([csvOf(this.x, lines, this.options.x.name.toLowerCase())], { type: "text/csv" }), `${this.fileName.replace(/\W+/g, "-")}.csv`);
  }

  destroy() {
    charts.delete(this);
    sizes?.unobserve(this.frame);
    this.plot?.destroy();
    this.element.remove();
  }
}
