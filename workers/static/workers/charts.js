// Live curves of a job: one chart for each group of metrics, those of the system in a tab of their own.
import { api, explain } from "../base/api.js";
import { Chart, valueWord } from "../base/chart.js";
import { aligned, splitUnit } from "../base/chart_data.js";
import { save } from "../base/chart_files.js";
import { ChartTools, tabOf } from "../base/chart_tools.js";
import { duration, grouped, momentWords, t, timeMarks } from "../base/i18n.js";
import { waits } from "../base/skeletons.js";
import { betterBy, Curves, rank } from "./curves.js";
import { nameOf, titleOf, unitOf } from "./figures.js";

const REDRAW_MS = 250;

export class Charts {
  constructor(root, socket) {
    this.root = root;
    this.url = root.dataset.chartsUrl;
    this.attempt = Number(root.dataset.chartsAttempt);
    this.curves = new Curves(root.dataset.chartsKeys.split(",").filter(Boolean));
    this.charts = /** @type {Map<string, Chart>} */ (new Map()); // by group
    this.lastId = 0;
    const draw = () => this.redraw();
    this.tools = new ChartTools(root, { look: draw, axis: draw, tab: draw });
    root.querySelector("[data-charts-csv]").addEventListener("click", () => this.saveCsv());
    this.bind(socket);
    waits(root.querySelector("[data-chart-grid=model]"), "chart", this.load());
  }

  bind(socket) {
    socket.addEventListener("metrics", ({ detail }) => this.arrived(detail));
    socket.addEventListener("hello", ({ detail }) => {
      if (detail.attempt !== this.attempt || detail.last_id !== this.lastId) this.load(detail.attempt);
    });
    socket.addEventListener("state", ({ detail }) => {
      if (detail.job.attempt_number !== this.attempt) this.load(detail.job.attempt_number);
    });
  }

  async load(attempt = this.attempt) {
    if (this.loading) return;
    this.loading = true;
    try {
      const answer = await api.get(`${this.url}${attempt ? `?attempt=${attempt}` : ""}`);
      this.attempt = attempt;
      this.lastId = answer.last_id;
      this.curves.replace(answer.series, answer.times);
      this.redraw();
    } catch (error) {
      if (error.status !== 404) explain(error);
      else this.redraw();
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

  redraw() {
    const groups = this.curves.groups();
    this.tools.offer([...groups.keys()]);
    const { tab } = this.tools.view;
    const shown = [...groups].filter(([group]) => tabOf(group) === tab).sort(([a], [b]) => rank(a, b));
    this.root.querySelector("[data-charts-empty]").hidden = shown.length > 0;
    for (const [group, chart] of this.charts) {
      if (!groups.has(group)) {
        chart.destroy();
        this.charts.delete(group);
      }
    }
    for (const [place, [group, keys]] of shown.entries()) this.draw(group, keys, place);
    this.fillHeadline();
    this.fillTable();
  }

  /** @param {string} group @param {string[]} keys @param {number} place  of the chart in its grid */
  draw(group, keys, place) {
    const axis = group.startsWith("system/") && this.tools.view.axis !== "time" ? "step" : this.tools.view.axis;
    const chart = this.charts.get(group) ?? this.build(group, keys, place);
    chart.options.x = axisOf(axis, group);
    chart.options.sync = `${this.url}${axis}${tabOf(group)}`;
    const { x, columns } = aligned(keys.map((key) => this.curves.columns(key, axis)));
    const lines = keys.map((key, at) => ({ name: labelOf(key, group), values: columns[at], better: betterBy(key) }));
    chart.show(x, lines, this.tools.view);
  }

  /** @param {string} group @param {string[]} keys @param {number} place */
  build(group, keys, place) {
    const [title] = splitUnit(titleOf(group, keys));
    const chart = new Chart({ title, key: keys.length === 1 && !nameOf(keys[0]) ? keys[0] : "", unit: unitOf(group), x: axisOf("step", group) });
    const grid = this.tools.gridOf(group);
    grid.insertBefore(chart.element, grid.children[place] ?? null);
    this.charts.set(group, chart);
    return chart;
  }

  /** Metrics of how good the model is, above the curves. */
  fillHeadline() {
    const box = this.root.querySelector("[data-charts-headline]");
    const tiles = this.curves.headline().map((key) => {
      const { last, best } = this.curves.summary(key) ?? { last: null, best: null };
      const tile = Object.assign(document.createElement("div"), { className: "card stat" });
      const label = Object.assign(document.createElement("span"), { className: "label", textContent: nameOf(key) || key });
      const big = Object.assign(document.createElement("span"), { className: "big", textContent: valueWord(last) });
      tile.append(label, big);
      if (best) {
        const words = t("best %(best)s at step %(step)s", { best: valueWord(best.value), step: grouped(best.step) });
        tile.append(Object.assign(document.createElement("span"), { className: "muted small", textContent: words }));
      }
      return tile;
    });
    box.hidden = !tiles.length || this.tools.view.tab !== "model";
    box.replaceChildren(...tiles);
  }

  fillTable() {
    const box = this.root.querySelector("[data-charts-values]");
    box.hidden = this.curves.size === 0;
    const rows = this.curves.newest().map(([key, step, value]) => {
      const row = document.createElement("tr");
      const name = Object.assign(document.createElement("th"), { scope: "row", textContent: nameOf(key) });
      name.append(...(nameOf(key) ? [" "] : []), Object.assign(document.createElement("span"), { className: "mono small muted", textContent: key }));
      const cells = [String(step), valueWord(value)].map((textContent) => Object.assign(document.createElement("td"), { className: "num", textContent }));
      row.append(name, ...cells);
      return row;
    });
    box.querySelector("tbody").replaceChildren(...rows);
  }

  saveCsv() {
    save(new Blob([this.curves.csv()], { type: "text/csv" }), `job-${this.root.dataset.charts}-metrics.csv`);
  }
}

/** The x-axis of a chart. Steps of system metrics are seconds. @param {string} axis @param {string} group */
function axisOf(axis, group) {
  if (axis === "time") return { name: t("Time"), isTime: true, marks: timeMarks, word: momentWords };
  if (group.startsWith("system/")) return { name: t("Run time"), word: duration };
  return { name: axis === "epoch" ? t("Epoch") : t("Step"), word: valueWord };
}

/** The name of a curve in its chart: its class, else its name, else its key. @param {string} key @param {string} group */
function labelOf(key, group) {
  const isClass = !group.startsWith("system/") && key.startsWith(`${group}/`);
  return (isClass ? key.slice(group.length + 1) : nameOf(key)) || key;
}
