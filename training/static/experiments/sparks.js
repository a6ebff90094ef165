// Sparklines of the key metric in the table of runs: loaded for the rows in view, some runs with one request.
import { api } from "../base/api.js";
import { sparkPoints } from "./runtable.js";

const MAX_RUNS = 20; // of one request
const WIDTH_POINTS = 16;
const PAUSE_MS = 120; // while the table is scrolled nothing is asked for
const NS = "http://www.w3.org/2000/svg";

const config = JSON.parse(document.getElementById("runs-config")?.textContent ?? "{}");
/** Points of a polyline by run, key and value: a run that goes on is asked for again. @type {Map<string, string>} */
const known = new Map();
/** @type {Map<string, {run: number, key: string}>} */
const wanted = new Map();
/** @type {ReturnType<typeof setTimeout> | undefined} */
let timer;

/**
 * The sparkline of a cell; only cells of the first best metric have one.
 * @param {import("./runtable.js").Column[]} columns
 * @param {import("./runtable.js").Column} column
 * @param {number} row
 * @param {number} run
 * @returns {SVGElement[]}
 */
export function sparkOf(columns, column, row, run) {
  const value = column.values[row];
  if (typeof value !== "number" || column !== columns.find(({ name }) => name.startsWith("best("))) return [];
  const key = column.name.slice("best(".length, -1);
  const place = `${run} ${key} ${value}`;
  const svg = document.createElementNS(NS, "svg");
  for (const [name, text] of Object.entries({ class: "spark", viewBox: "0 0 96 24", "aria-hidden": "true" })) svg.setAttribute(name, text);
  svg.dataset.spark = place;
  paint(svg, known.get(place) ?? "");
  if (!known.has(place)) {
    wanted.set(place, { run, key });
    clearTimeout(timer);
    timer = setTimeout(load, PAUSE_MS);
  }
  return [svg];
}

/** @param {SVGElement} svg @param {string} points */
function paint(svg, points) {
  const line = document.createElementNS(NS, "polyline");
  line.setAttribute("points", points);
  svg.replaceChildren(line);
}

async function load() {
  const rows = [...wanted].filter(([place]) => document.querySelector(`[data-spark="${CSS.escape(place)}"]`)).slice(0, MAX_RUNS);
  if (!rows.length) return wanted.clear();
  for (const [place] of rows) {
    wanted.delete(place);
    known.set(place, "");
  }
  const query = new URLSearchParams(rows.map(([, { run }]) => ["run", String(run)]));
  query.set("key", rows[0][1].key);
  query.set("width", String(WIDTH_POINTS));
  try {
    const [answer] = await api.get(`${config.curves}?${query}`);
    for (const [at, [place]] of rows.entries()) {
      known.set(place, sparkPoints(answer.runs[at].mean));
      const svg = /** @type {SVGElement | null} */ (document.querySelector(`[data-spark="${CSS.escape(place)}"]`));
      if (svg) paint(svg, known.get(place) ?? "");
    }
  } catch {
    return undefined; // a row without a sparkline still has its value
  }
  return wanted.size ? load() : undefined;
}
