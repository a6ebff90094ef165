// History of nodes over hours and weeks: one chart for each group of metrics, for a period.
import { api, explain } from "../base/api.js";
import { momentWords, t, timeMarks } from "../base/i18n.js";
import { whenNear } from "../base/plots.js";
import { waits } from "../base/skeletons.js";

/** @import {Chart} from "../base/chart.js" */

const AGAIN_MS = { "1h": 10_000, "6h": 60_000, "1d": 60_000, "7d": 600_000, "30d": 600_000 };
const KIB = 1024;
const percent = (value) => `${Math.round(value)} %`;
const plain = (value) => String(Math.round(value * 10) / 10);
const rate = (value) => {
  let size = value;
  for (const unit of ["B/s", "KiB/s", "MiB/s"]) {
    if (size < KIB) return `${size < 10 ? size.toFixed(1).replace(/\.0$/, "") : Math.round(size)} ${unit}`;
    size /= KIB;
  }
  return `${size.toFixed(1)} GiB/s`;
};
const GROUPS = {
  load: { title: () => t("Load"), keys: ["cpu", "gpu_util"], words: percent, top: 100 },
  memory: { title: () => t("Memory and disk"), keys: ["memory", "gpu_memory", "disk"], words: percent, top: 100 },
  cards: { title: () => t("GPUs in use"), keys: ["gpus_held", "gpus"], words: plain },
  net: { title: () => t("Network"), keys: ["net_in", "net_out"], words: rate },
};
const NAMES = {
  cpu: () => t("CPU"),
  gpu_util: () => t("GPUs"),
  memory: () => t("Memory"),
  gpu_memory: () => t("GPU memory"),
  disk: () => t("Disk used"),
  gpus_held: () => t("In use"),
  gpus: () => t("All GPUs"),
  net_in: () => t("In"),
  net_out: () => t("Out"),
};

class History {
  constructor(root) {
    this.root = root;
    this.grid = root.querySelector("[data-history-grid]");
    this.empty = root.querySelector("[data-history-empty]");
    this.charts = /** @type {Map<string, Chart>} */ (new Map());
    this.Chart = /** @type {typeof Chart | null} */ (null); // loaded with the first data
    this.span = "1h";
    for (const button of root.querySelectorAll("[data-history-span]")) {
      button.addEventListener("click", () => this.choose(button.dataset.historySpan));
    }
    whenNear(root, () => waits(this.grid, "chart", this.load()));
  }

  choose(span) {
    this.span = span;
    for (const button of this.root.querySelectorAll("[data-history-span]")) {
      button.setAttribute("aria-pressed", String(button.dataset.historySpan === span));
    }
    this.load();
  }

  async load() {
    clearTimeout(this.timer);
    const asked = this.span;
    const node = this.root.dataset.historyNode;
    const query = `span=${asked}${node ? `&node=${node}` : ""}`;
    try {
      const [machines, clusters] = await Promise.all([
        api.get(`${this.root.dataset.historyUrl}?${query}`),
        node ? null : api.get(`${this.root.dataset.historyUrl}?of=clusters&span=${asked}`),
      ]);
      if (machines.times.length > 1) this.Chart ??= (await import("../base/chart.js")).Chart;
      if (asked !== this.span) return;
      this.draw(machines, clusters);
    } catch (error) {
      explain(error);
    }
    this.timer = setTimeout(() => this.load(), AGAIN_MS[asked]);
  }

  draw(machines, clusters) {
    const isEmpty = machines.times.length < 2;
    this.empty.hidden = !isEmpty;
    const wanted = new Set();
    /** @param {string} name @param {string} title @param {any} group @param {string[]} labels @param {number[]} x @param {any[]} columns */
    const show = (name, title, group, labels, x, columns) => {
      wanted.add(name);
      const chart = this.charts.get(name) ?? this.build(name, title, group);
      chart.show(x, labels.map((label, at) => ({ name: label, values: columns[at] })));
    };
    for (const [name, group] of isEmpty ? [] : Object.entries(GROUPS)) {
      const keys = group.keys.filter((key) => machines.series[key]?.some((value) => value !== null && (name !== "cards" || value > 0)));
      if (!keys.length) continue;
      if (name === "cards" && !keys.includes("gpus_held")) keys.unshift("gpus_held");
      show(name, group.title(), group, keys.map((key) => NAMES[key]()), machines.times, keys.map((key) => machines.series[key]));
    }
    const used = clusters && !isEmpty ? Object.entries(clusters.series).filter(([, values]) => values.some((value) => value > 0)) : [];
    if (used.length) show("clusters", t("GPUs in use by cluster"), GROUPS.cards, used.map(([name]) => name), clusters.times, used.map(([, values]) => values));
    for (const [name, chart] of this.charts) {
      if (!wanted.has(name)) {
        chart.destroy();
        this.charts.delete(name);
      }
    }
  }

  /** @param {string} name @param {string} title @param {any} group */
  build(name, title, group) {
    const range = (/** @type {number} */ low, /** @type {number} */ high) => /** @type {[number, number]} */ ([0, group.top ?? Math.max(1, (high ?? low ?? 1) * 1.1)]);
    const Made = /** @type {typeof Chart} */ (this.Chart);
    const chart = new Made({ title, sync: "history", x: { name: t("Time"), isTime: true, marks: timeMarks, word: momentWords }, y: { word: group.words, range } });
    this.grid.append(chart.element);
    this.charts.set(name, chart);
    return chart;
  }
}

for (const root of document.querySelectorAll("[data-history-url]")) new History(root);
