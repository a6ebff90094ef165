// An evaluation's page: curves, a movable threshold, the class table, the confusion matrix.
// Everything is computed from counts of stored answers, so moving the threshold asks nobody.
import { legendOf } from "../base/chart_parts.js";
import { grouped, t } from "../base/i18n.js";
import { drawConfusion } from "./confusion.js";
import { alongRecall, placeOf, rates } from "./rates.js";

const data = JSON.parse(document.getElementById("evaluation-data").textContent);
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const present = data.classes.filter((c) => c.truths);

const { means } = data; // at each threshold, see inference/evaluation/presentation/curves.py
const ownPlace = placeOf(data.thresholds, data.summary.threshold);
let place = ownPlace;

// ---- charts -------------------------------------------------------------------------------------------------
const SHOWN_CLASSES = 8;
const axis = (label) => ({
  label,
  stroke: colour("--chart-axis"),
  grid: { stroke: colour("--chart-grid"), width: 1 },
  ticks: { stroke: colour("--chart-grid"), width: 1 },
  font: `12px ${colour("--font")}`,
  labelFont: `12px ${colour("--font")}`,
  labelSize: 18,
  size: 40,
});
const three = (_u, value) => (value == null ? "–" : value.toFixed(3));

function chart(id, xLabel, yLabel, xs, series, hooks = {}) {
  const box = document.getElementById(id);
  const options = {
    width: box.clientWidth,
    height: 260,
    scales: { x: { time: false, range: [0, 1] }, y: { range: [0, 1.02] } },
    axes: [axis(xLabel), axis(yLabel)],
    legend: { show: false },
    focus: { alpha: 0.25 },
    cursor: { drag: { x: false, y: false } },
    series: [{ label: xLabel, value: three }, ...series.map(({ label, stroke, width }) => ({ label, stroke, width, value: three, spanGaps: true, points: { show: false } }))],
    hooks,
  };
  const plot = new uPlot(options, [xs, ...series.map((one) => one.values)], box);
  new ResizeObserver(() => box.clientWidth && plot.setSize({ width: box.clientWidth, height: 260 })).observe(box);
  const list = document.createElement("ul");
  list.className = "plain chart-legend";
  box.after(list);
  const rows = series.map(({ label, stroke }) => ({ name: label, last: "", best: "", title: "", color: stroke, dash: [], isHidden: false }));
  const paint = () => legendOf(list, rows, {
    toggle: (name) => {
      const at = rows.findIndex((row) => row.name === name);
      rows[at].isHidden = !rows[at].isHidden;
      plot.setSeries(at + 1, { show: !rows[at].isHidden });
      paint();
    },
    highlight: (at) => plot.setSeries(at === null ? null : at + 1, { focus: true }),
  });
  paint();
  return plot;
}

const shown = present.slice(0, SHOWN_CLASSES);
if (shown.length < present.length) {
  document.getElementById("curves-shown").textContent = t("Classes shown: the first %(shown)s of %(all)s", { shown: shown.length, all: present.length });
}
const thin = shown.map((c) => ({ name: c.name, entry: c, stroke: data.colors[c.id] }));

// The mean is the way that the point takes when the threshold moves; a mean at equal recall would lie elsewhere.
const curved = thin.filter((c) => c.entry.pr);
const [places, mean, ...ofClasses] = alongRecall(data.curves.recall, means, curved.map((c) => c.entry.pr));
const prPlot = chart(
  "pr-chart",
  t("Recall"),
  t("Precision"),
  places,
  [
    { label: t("all classes"), values: mean, stroke: colour("--ink"), width: 2.5 },
    ...curved.map((c, number) => ({ label: c.name, values: ofClasses[number], stroke: c.stroke, width: 1.25 })),
  ],
  {
    draw: [
      (plot) => {
        const at = means[place];
        const x = plot.valToPos(at.recall, "x", true);
        const y = plot.valToPos(at.precision, "y", true);
        plot.ctx.save();
        plot.ctx.fillStyle = colour("--accent-fill");
        plot.ctx.beginPath();
        plot.ctx.arc(x, y, 5 * devicePixelRatio, 0, 7);
        plot.ctx.fill();
        plot.ctx.restore();
      },
    ],
  },
);

const f1Plot = chart(
  "f1-chart",
  t("Confidence threshold"),
  "F1",
  data.thresholds,
  [
    { label: t("all classes"), values: means.map((m) => m.f1), stroke: colour("--ink"), width: 2.5 },
    ...thin.map((c) => ({
      label: c.name,
      values: data.thresholds.map((_, i) => rates(c.entry.tp[i], c.entry.fp[i], c.entry.truths).f1),
      stroke: c.stroke,
      width: 1.25,
    })),
  ],
  {
    draw: [
      (plot) => {
        const x = plot.valToPos(data.thresholds[place], "x", true);
        plot.ctx.save();
        plot.ctx.strokeStyle = colour("--accent-fill");
        plot.ctx.lineWidth = 2 * devicePixelRatio;
        plot.ctx.beginPath();
        plot.ctx.moveTo(x, plot.bbox.top);
        plot.ctx.lineTo(x, plot.bbox.top + plot.bbox.height);
        plot.ctx.stroke();
        plot.ctx.restore();
      },
    ],
  },
);
f1Plot.over.addEventListener("click", () => {
  if (f1Plot.cursor.idx != null) moveTo(f1Plot.cursor.idx);
});

// ---- class table --------------------------------------------------------------------------------------------
/** @type {HTMLTableElement} */
const table = document.getElementById("class-table");
const columns = [...table.querySelectorAll("th")].map((th) => th.dataset.key ?? "");
let order = { key: "", up: true }; // as in the dataset and the matrix, until a head is pressed

function rowOf(entry) {
  const [tp, fp] = [entry.tp[place], entry.fp[place]];
  const figures = rates(tp, fp, entry.truths);
  return { ...entry, ...figures, precision: tp + fp ? figures.precision : null }; // as in the mean: none where nothing is answered
}

function drawTable() {
  const rows = data.classes.map(rowOf);
  const { key, up } = order;
  const rank = (value) => (value == null ? -1 : value);
  if (key) {
    rows.sort((a, b) => {
      const by = key === "name" ? a.name.localeCompare(b.name) : rank(a[key]) - rank(b[key]);
      return up ? by : -by;
    });
  }
  const body = table.tBodies[0];
  body.replaceChildren(
    ...rows.map((row) => {
      const tr = document.createElement("tr");
      for (const column of columns) {
        const td = document.createElement("td");
        const value = row[column];
        if (column === "name") td.textContent = value;
        else {
          td.className = "num";
          if (column === "precision" && value == null) td.title = t("No predictions of this class.");
          td.textContent = value == null ? "–" : column === "truths" ? grouped(value) : value.toFixed(3);
        }
        tr.append(td);
      }
      return tr;
    }),
  );
  for (const th of table.querySelectorAll("th")) {
    if (th.dataset.key === key) th.setAttribute("aria-sort", up ? "ascending" : "descending");
    else th.removeAttribute("aria-sort");
  }
}

table.tHead?.addEventListener("click", (event) => {
  const key = /** @type {Element} */ (event.target).closest("th")?.dataset.key;
  if (!key) return;
  order = { key, up: order.key === key ? !order.up : key === "name" };
  drawTable();
});

// ---- threshold ----------------------------------------------------------------------------------------------
/** @type {HTMLInputElement} */
const slider = document.getElementById("threshold");
const said = document.getElementById("threshold-value");
const conditions = document.getElementById("figures-conditions");
const storedConditions = conditions.textContent;

function hideBelow(root) {
  for (const box of root.querySelectorAll(".box-answer")) {
    box.classList.toggle("is-below", Number(box.dataset.score) < data.thresholds[place]);
  }
}

function moveTo(next) {
  place = next;
  slider.value = String(next);
  said.textContent = data.thresholds[place].toFixed(2);
  const moved = t("Precision, recall and F1: at the confidence threshold %(threshold)s of the slider.", { threshold: said.textContent });
  conditions.textContent = place === ownPlace ? storedConditions : moved;
  const now = means[place];
  for (const key of ["precision", "recall", "f1"]) {
    const tile = document.querySelector(`[data-live="${key}"]`);
    const none = key === "precision" && !now.answered;
    tile.textContent = none ? "–" : now[key].toFixed(3);
    tile.title = none ? t("No predictions above this threshold.") : "";
  }
  drawTable();
  prPlot.redraw(false);
  f1Plot.redraw(false);
  hideBelow(document.getElementById("gallery"));
}

slider.max = String(data.thresholds.length - 1);
slider.addEventListener("input", () => moveTo(Number(slider.value)));
document.getElementById("threshold-best").addEventListener("click", () => moveTo(bestOf()));
document.getElementById("gallery").addEventListener("htmx:afterSwap", (event) => hideBelow(event.currentTarget));

/** Where the mean F1 is highest; of equal places the one that the scoring names, else the first. */
function bestOf() {
  const best = means.reduce((high, one, i) => (one.f1 > means[high].f1 + 1e-12 ? i : high), 0);
  return means[ownPlace].f1 > means[best].f1 - 1e-12 ? ownPlace : best;
}

drawConfusion(data.confusion);
moveTo(ownPlace); // the page opens with the values that the API, the report and the CLI state
