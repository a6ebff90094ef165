// The page of one study: its charts, drawn again whenever the part above was fetched again.
import { api, explain } from "../base/api.js";
import { Chart } from "../base/chart.js";
import { aligned } from "../base/chart_data.js";
import { language, t } from "../base/i18n.js";
import { bars, parallel, scatter } from "./drawings.js";
import { axisOf, axisOfValues, completed, front, history } from "./figures.js";

const MAX_CURVES = 60;
const root = /** @type {HTMLElement} */ (document.querySelector("[data-study]"));
const data = JSON.parse(document.getElementById("study-data")?.textContent ?? "{}");
const exact = new Intl.NumberFormat(language, { maximumSignificantDigits: 4 });
/** @param {number} value */
const word = (value) => (value !== 0 && (Math.abs(value) < 1e-3 || Math.abs(value) >= 1e6) ? value.toExponential(1) : exact.format(value));
/** @param {string} name */
const part = (name) => /** @type {HTMLElement} */ (root.querySelector(`[data-${name}]`));
/** @param {string} name */
const drawing = (name) => /** @type {HTMLElement} */ (part(name).querySelector("[data-draw]"));
/** @type {Map<number, [number, number]>} */
const chosen = new Map();
/** @type {Map<string, Chart>} */
const charts = new Map();
let evaluator = "ped-anova";
/** @type {import("./figures.js").Trial[]} */
let trials = [];
/** @type {{number: number, state: string, points: number[][]}[]} */
let curves = [];

/** The chart of a part, made at its first use. @param {string} name @param {any} options */
function chartOf(name, options) {
  const chart = charts.get(name) ?? new Chart(options);
  if (!charts.has(name)) part(name).append(chart.element);
  charts.set(name, chart);
  return chart;
}

function drawHistory() {
  const goal = data.objectives[0];
  const chart = chartOf("history", { title: t("Best so far"), key: goal.key, x: { name: t("Trial"), word: (/** @type {number} */ value) => (Number.isInteger(value) ? String(value) : "") } });
  const [, complete, pruned, best] = history(trials, goal);
  const lines = [
    { name: t("best so far"), values: best, color: "--chart-1", width: 2, stepped: true },
    { name: t("completed"), values: complete, color: "--chart-2", dots: true },
    { name: t("pruned"), values: pruned, color: "--end", dots: true },
  ];
  chart.show(trials.map(({ number }) => number), lines.filter(({ values }) => values.some((value) => value !== null)));
}

function drawCurves() {
  const shown = curves.filter(({ points }) => points.length).slice(-MAX_CURVES);
  const chart = chartOf("curves", { title: t("Metric curves of the trials"), key: data.objectives[0].key, legend: false, x: { name: t("Step") } });
  part("curves").hidden = !shown.length;
  if (!shown.length) return;
  const tops = new Set(trials.filter((trial) => trial.best).map((trial) => trial.number));
  const { x, columns } = aligned(shown.map(({ points }) => [points.map(([step]) => step), points.map(([, value]) => value)]));
  chart.show(x, shown.map(({ number, state }, at) => {
    const color = tops.has(number) ? "--chart-1" : state === "pruned" ? "--end" : "--chart-2";
    return { name: t("Trial %(number)s", { number }), values: columns[at], color, width: tops.has(number) ? 3 : 1, dash: state === "pruned" ? [4, 3] : [] };
  }));
}

function drawFront() {
  const goals = data.objectives;
  part("front").hidden = goals.length !== 2;
  const done = completed(trials);
  if (goals.length !== 2 || !done.length) return;
  const [x, y] = goals.map((goal, place) => axisOfValues(goal, done, place));
  const dots = done.map((trial) => ({ trial, x: trial.values[0], y: trial.values[1] }));
  const line = front(trials, goals).map((trial) => ({ x: trial.values[0], y: trial.values[1] }));
  drawing("front").replaceChildren(scatter({ x, y, dots, line, word, label: t("Pareto front") }));
}

function drawSlices() {
  const done = completed(trials);
  const y = axisOfValues(data.objectives[0], done);
  const cards = data.space.map((range) => {
    const dots = done.map((trial) => ({ trial, x: trial.params[range.name], y: trial.values[0] }));
    const label = t("%(name)s vs. %(key)s", { name: range.name, key: data.objectives[0].key });
    const card = Object.assign(document.createElement("div"), { className: "card" });
    card.append(scatter({ x: axisOf(range), y, dots, word, label }));
    return card;
  });
  part("slices").replaceChildren(...cards);
}

async function drawImportance() {
  const told = /** @type {HTMLElement} */ (part("importance").querySelector("[data-told]"));
  const asked = evaluator;
  const found = await api.get(`${data.importance}?evaluator=${asked}`);
  if (asked !== evaluator) return; // the other one was asked for meanwhile
  const rows = Object.entries(found.importance);
  drawing("importance").replaceChildren(...(rows.length ? [bars(rows)] : []));
  told.textContent = rows.length ? (asked === "fanova" ? t("By fANOVA, over all values.") : t("By PED-ANOVA: importance for the best trials.")) : t("Not enough completed trials.");
}

function draw() {
  part("charts").hidden = !trials.some((trial) => trial.values.length);
  if (part("charts").hidden) return;
  drawHistory();
  drawCurves();
  drawFront();
  drawSlices();
  parallel(drawing("parallel"), trials, data.space, data.objectives, chosen, word);
}

let known = "";

async function load() {
  try {
    [trials, curves] = await Promise.all([api.get(data.trials), api.get(data.curves)]);
    draw();
    const now = JSON.stringify(completed(trials).map((trial) => [trial.number, trial.values]));
    if (now !== known) {
      await drawImportance();
      known = now; // only now: what failed is asked for again with the next change of the list
    }
  } catch (error) {
    explain(error);
  }
}

const forest = part("fanova");
forest.addEventListener("click", () => {
  evaluator = evaluator === "fanova" ? "ped-anova" : "fanova";
  forest.textContent = evaluator === "fanova" ? t("By PED-ANOVA") : t("By fANOVA");
  drawImportance().catch(explain);
});
document.addEventListener("listshown", load);
new MutationObserver(draw).observe(document.documentElement, { attributeFilter: ["data-theme"] });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
let width = 0;
new ResizeObserver(() => {
  if (Math.abs(root.clientWidth - width) < 3) return;
  width = root.clientWidth;
  draw();
}).observe(root);
load();
