// What machines did over hours and weeks: one chart per group of figures, a shared crosshair, a choice of span.
import { api, explain } from "../base/api.js";
import { momentWords, t, timeMarks } from "../base/i18n.js";
import { loadPlots, whenNear } from "../base/plots.js";

const HEIGHT = 200;
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
    this.plots = new Map();
    this.span = "1h";
    for (const button of root.querySelectorAll("[data-history-span]")) {
      button.addEventListener("click", () => this.choose(button.dataset.historySpan));
    }
    const rebuild = () => this.plots.size && this.load();
    new MutationObserver(rebuild).observe(document.documentElement, { attributeFilter: ["data-theme"] });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", rebuild);
    new ResizeObserver(() => this.resize()).observe(this.grid);
    whenNear(root, () => this.load());
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
      if (machines.times.length > 1) await loadPlots();
      if (asked !== this.span) return;
      this.draw(machines, clusters);
    } catch (error) {
      explain(error);
    }
    this.timer = setTimeout(() => this.load(), AGAIN_MS[asked]);
  }

  draw(machines, clusters) {
    for (const { plot, card } of this.plots.values()) {
      plot.destroy();
      card.remove();
    }
    this.plots.clear();
    this.empty.hidden = machines.times.length > 1;
    if (machines.times.length < 2) return;
    for (const [name, group] of Object.entries(GROUPS)) {
      const keys = group.keys.filter((key) => machines.series[key]?.some((value) => value !== null && (name !== "cards" || value > 0)));
      if (!keys.length) continue;
      if (name === "cards" && !keys.includes("gpus_held")) keys.unshift("gpus_held");
      this.build(name, group.title(), group, keys.map((key) => NAMES[key]()), [machines.times, ...keys.map((key) => machines.series[key])]);
    }
    const used = clusters ? Object.entries(clusters.series).filter(([, values]) => values.some((value) => value > 0)) : [];
    if (used.length) {
      this.build("clusters", t("GPUs in use by cluster"), GROUPS.cards, used.map(([name]) => name), [clusters.times, ...used.map(([, values]) => values)]);
    }
  }

  build(name, title, group, labels, data) {
    const card = document.createElement("figure");
    card.className = "card chart-card";
    card.append(Object.assign(document.createElement("h3"), { textContent: title }));
    this.grid.append(card);
    const style = getComputedStyle(this.root);
    const colour = (token) => style.getPropertyValue(token).trim();
    const axis = { stroke: colour("--chart-axis"), grid: { stroke: colour("--chart-grid"), width: 1 }, ticks: { show: false }, font: "11px sans-serif" };
    const plot = new uPlot(
      {
        width: Math.max(200, card.clientWidth - 26),
        height: HEIGHT,
        scales: { x: { time: true }, y: { range: (_, low, high) => [0, group.top ?? Math.max(1, (high ?? low ?? 1) * 1.1)] } },
        cursor: { sync: { key: "history" }, drag: { x: true, y: false } },
        axes: [{ ...axis, size: 32, values: timeMarks }, { ...axis, size: 64, values: (_, ticks) => ticks.map(group.words) }],
        series: [
          { label: t("Time"), value: (_, moment) => momentWords(moment) },
          ...labels.map((label, i) => ({
            label,
            stroke: colour(`--chart-${(i % 8) + 1}`),
            width: 1.5,
            points: { show: false },
            value: (_, value) => (value === null || value === undefined ? "–" : group.words(value)),
          })),
        ],
      },
      data,
      card,
    );
    plot.root.setAttribute("role", "img");
    plot.root.setAttribute("aria-label", `${title}: ${labels.map((label, i) => `${label} ${last(data[i + 1], group.words)}`).join(", ")}`);
    this.plots.set(name, { plot, card });
  }

  resize() {
    for (const { card, plot } of this.plots.values()) {
      const width = Math.max(200, card.clientWidth - 26);
      if (Math.abs(plot.width - width) > 2) plot.setSize({ width, height: HEIGHT });
    }
  }
}

function last(values, words) {
  const value = values.findLast((one) => one !== null);
  return value === undefined ? "–" : words(value);
}

for (const root of document.querySelectorAll("[data-history-url]")) new History(root);
