// Live curves with uPlot: one card per figure, a crosshair shared by all of them.
import { api, explain } from "../base/api.js";
import { icon } from "../base/icons.js";
import { language, momentWords, t, timeMarks } from "../base/i18n.js";
import { groupOf, nameOf, titleOf } from "./figures.js";

const MOST = 4000; // points per curve in memory; beyond it they are asked for again, thinned
const REDRAW_MS = 250;
const HEIGHT = 220;
const exact = new Intl.NumberFormat(language, { maximumSignificantDigits: 5 });

export class Charts {
  constructor(root, socket) {
    this.root = root;
    this.url = root.dataset.chartsUrl;
    this.attempt = Number(root.dataset.chartsAttempt);
    this.prefixes = root.dataset.chartsKeys.split(",").filter(Boolean);
    this.grid = root.querySelector("[data-charts-grid]");
    this.curves = new Map(); // key → {x, y, at}
    this.plots = new Map(); // group → {card, plot, keys}
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
      this.curves.clear();
      for (const [key, points] of Object.entries(found.series)) {
        if (!this.wanted(key)) continue;
        this.curves.set(key, { x: points.map((p) => p[0]), y: points.map((p) => p[1]), at: found.times[key].slice() });
      }
      this.redraw();
    } catch (error) {
      if (error.status !== 404) explain(error);
    } finally {
      this.loading = false;
    }
  }

  wanted(key) {
    return !this.prefixes.length || this.prefixes.some((prefix) => key.startsWith(prefix));
  }

  arrived(frame) {
    if (frame.last_id <= this.lastId) return;
    if (frame.attempt !== this.attempt || frame.after !== this.lastId) {
      this.load(frame.attempt); // a gap: ask for all of it
      return;
    }
    this.lastId = frame.last_id;
    for (const [key, points] of Object.entries(frame.points)) {
      if (!this.wanted(key)) continue;
      if (!this.curves.has(key)) this.curves.set(key, { x: [], y: [], at: [] });
      const curve = this.curves.get(key);
      for (const [step, value, at] of points) {
        curve.x.push(step);
        curve.y.push(value);
        curve.at.push(at);
      }
      if (curve.x.length > MOST) {
        this.load();
        return;
      }
    }
    this.redrawSoon();
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
    const groups = new Map();
    for (const key of [...this.curves.keys()].sort()) {
      const group = groupOf(key);
      groups.set(group, [...(groups.get(group) || []), key]);
    }
    this.root.querySelector("[data-charts-empty]").hidden = groups.size > 0;
    for (const [group, { card, plot, keys }] of this.plots) {
      if (String(groups.get(group)) !== String(keys)) {
        plot.destroy();
        card.remove();
        this.plots.delete(group);
      }
    }
    for (const [group, keys] of groups) {
      const data = this.data(keys);
      if (this.plots.has(group)) this.plots.get(group).plot.setData(data);
      else this.plots.set(group, this.build(group, keys, data));
    }
    this.fillTable();
  }

  /** Columns for uPlot: x, then one per key. */
  data(keys) {
    const tables = keys.map((key) => {
      const curve = this.curves.get(key);
      const order = curve.x.map((_, i) => i);
      const along = this.byTime ? curve.at : curve.x;
      order.sort((a, b) => along[a] - along[b] || a - b);
      const x = [];
      const y = [];
      for (const i of order) {
        const value = this.byLog && curve.y[i] <= 0 ? null : curve.y[i];
        if (x.length && x[x.length - 1] === along[i]) y[y.length - 1] = value; // the newer value of a step counts
        else {
          x.push(along[i]);
          y.push(value);
        }
      }
      return [x, smoothed(y, this.smooth)];
    });
    return tables.length === 1 ? tables[0] : uPlot.join(tables);
  }

  build(group, keys, data) {
    const card = document.createElement("figure");
    card.className = "card chart-card";
    const head = document.createElement("div");
    head.className = "spread";
    const title = Object.assign(document.createElement("h3"), { textContent: titleOf(group) });
    const save = document.createElement("button");
    save.type = "button";
    save.className = "btn btn-quiet btn-icon btn-small";
    save.title = t("Save as PNG");
    save.setAttribute("aria-label", t("Save %(title)s as PNG", { title: titleOf(group) }));
    save.append(icon("image"));
    save.addEventListener("click", () => savePng(this.plots.get(group).plot, titleOf(group), group));
    head.append(title, save);
    card.append(head);
    const place = [...this.plots.keys(), group].sort(rank).indexOf(group);
    this.grid.insertBefore(card, this.grid.children[place] || null);
    const plot = new uPlot(this.options(group, keys, card), data, card);
    plot.root.setAttribute("role", "img");
    plot.root.setAttribute("aria-label", titleOf(group));
    this.plots = new Map([...this.plots, [group, { card, plot, keys }]].sort(([a], [b]) => rank(a, b)));
    return this.plots.get(group);
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
    const rows = [...this.curves].sort(([a], [b]) => a.localeCompare(b)).map(([key, { x, y }]) => {
      const row = document.createElement("tr");
      const name = Object.assign(document.createElement("th"), { scope: "row", textContent: nameOf(key) });
      name.append(...(nameOf(key) ? [" "] : []), Object.assign(document.createElement("span"), { className: "mono small muted", textContent: key }));
      const step = Object.assign(document.createElement("td"), { className: "num", textContent: String(x[x.length - 1]) });
      const value = Object.assign(document.createElement("td"), { className: "num", textContent: exact.format(y[y.length - 1]) });
      row.append(name, step, value);
      return row;
    });
    box.querySelector("tbody").replaceChildren(...rows);
  }

  saveCsv() {
    const lines = ["key,step,time,value"];
    for (const [key, { x, y, at }] of this.curves) {
      const name = /^[=+\-@\t\r]/.test(key) ? `'${key}` : key;
      for (let i = 0; i < x.length; i += 1) {
        lines.push(`"${name.replace(/"/g, '""')}",${x[i]},${new Date(at[i] * 1000).toISOString()},${y[i]}`);
      }
    }
    save(new Blob([`${lines.join("\n")}\n`], { type: "text/csv" }), `job-${this.root.dataset.charts}-metrics.csv`);
  }
}

/** A curve in the legend: its name for people, and the key that scripts know. */
function labelOf(key, group) {
  const ofClass = !group.startsWith("system/") && key.startsWith(`${group}/`);
  const name = ofClass ? key.slice(group.length + 1) : nameOf(key);
  return name ? `${name} (${key})` : key;
}

/** Own figures first, the machine's last. */
function rank(a, b) {
  const order = ["loss", "ap", "accuracy", "lr", "step_ms"];
  const place = (group) => (group.startsWith("system/") ? 200 : order.includes(group) ? order.indexOf(group) : 100);
  return place(a) - place(b) || a.localeCompare(b);
}

/** Exponential mean with weight 0 to 0.99, corrected for the start. */
function smoothed(values, weight) {
  if (!weight) return values;
  let mean = 0;
  let seen = 0;
  return values.map((value) => {
    if (value === null) return null;
    mean = mean * weight + value * (1 - weight);
    seen += 1;
    return mean / (1 - weight ** seen);
  });
}

function short(value) {
  const size = Math.abs(value);
  if (size !== 0 && (size < 0.001 || size >= 1e6)) return value.toExponential(0);
  return exact.format(value);
}

function savePng(plot, title, name) {
  const canvas = document.createElement("canvas");
  const source = plot.ctx.canvas;
  const ratio = window.devicePixelRatio || 1;
  const style = getComputedStyle(document.documentElement);
  canvas.width = source.width;
  canvas.height = source.height + 28 * ratio;
  const pen = canvas.getContext("2d");
  pen.fillStyle = style.getPropertyValue("--surface").trim();
  pen.fillRect(0, 0, canvas.width, canvas.height);
  pen.fillStyle = style.getPropertyValue("--ink").trim();
  pen.font = `${14 * ratio}px sans-serif`;
  pen.fillText(title, 8 * ratio, 19 * ratio);
  pen.drawImage(source, 0, 28 * ratio);
  canvas.toBlob((blob) => save(blob, `${name.replace(/\W+/g, "-")}.png`));
}

function save(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
