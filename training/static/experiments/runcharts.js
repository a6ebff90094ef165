// Charts of the runs in the table: a figure against anything, all parameters beside each other, and what mattered.
import { api, explain } from "../base/api.js";
import { language, t, tn } from "../base/i18n.js";
import { bars, parallel, scatter } from "../studies/drawings.js";
import { made } from "./runcells.js";
import { axes, entries, options, placed } from "./runfigures.js";
import { short } from "./runtable.js";

const MAX_AXES = 12;
// the sheet of the drawings, which the table alone does not need
document.head.append(made("link", { rel: "stylesheet", href: new URL("../studies/studies.css", import.meta.url).href }));
const config = JSON.parse(document.getElementById("runs-config")?.textContent ?? "{}");
const root = /** @type {HTMLDetailsElement} */ (document.querySelector("[data-run-charts]"));
/** @param {string} name @returns {any} */
const part = (name) => root.querySelector(`[data-${name}]`);
const exact = new Intl.NumberFormat(language, { maximumSignificantDigits: 4 });
/** @param {number} value */
const word = (value) => (value !== 0 && (Math.abs(value) < 1e-3 || Math.abs(value) >= 1e6) ? value.toExponential(1) : exact.format(value));

/** What the table shows: its filter, what it knows, and which runs are chosen. @type {{filter: string, archived: boolean, known: any[], chosen: Set<number>} | null} */
let shown = null;
/** The runs with all the columns that charts need. @type {{runs: any[], columns: import("./runtable.js").Column[]} | null} */
let found = null;
/** @type {{direction: string, runs: number, importance: Record<string, number>}} */
let told = { direction: "maximize", runs: 0, importance: {} };
/** @type {Map<number, [number, number]>} */
const stretches = new Map();
let loaded = "";

const wanted = () => ({ figure: part("figure").value, across: part("across").value, hue: part("hue").value });

/** Offer what there is, and keep what was chosen. @param {string} name @param {[string, string][]} rows */
function offer(name, rows) {
  const box = part(name);
  const before = box.value;
  box.replaceChildren(...rows.map(([value, text]) => made("option", { value, textContent: text })));
  if (rows.some(([value]) => value === before)) box.value = before;
}

async function load() {
  if (!shown) return;
  const { figures, others } = options(shown.known);
  offer("figure", figures);
  offer("across", others);
  offer("hue", [["", t("the metric")], ...others]);
  const none = !figures.length || !others.length;
  part("drawn").hidden = none;
  part("told").textContent = none ? t("These runs have no metric and parameter to draw.") : "";
  if (none) return;
  const { figure, across, hue } = wanted();
  const columns = [...new Set([figure, across, ...(hue ? [hue] : []), ...others.map(([name]) => name).filter((name) => name.startsWith("params.")).slice(0, MAX_AXES)])];
  const query = new URLSearchParams(shown.filter ? { filter: shown.filter } : {});
  if (shown.archived) query.set("archived", "true");
  const asked = `${query} ${columns}`;
  if (asked !== loaded) {
    loaded = asked;
    root.setAttribute("aria-busy", "true");
    try {
      const table = new URLSearchParams(query);
      for (const name of columns) table.append("column", name);
      const answers = await Promise.all([api.get(`${config.url}?${table}`), api.get(`${config.importance}?${new URLSearchParams([...query, ["figure", figure]])}`)]);
      if (asked !== loaded) return;
      [found, told] = answers;
      stretches.clear();
    } catch (error) {
      loaded = "";
      explain(error);
      return;
    } finally {
      root.removeAttribute("aria-busy");
    }
  }
  draw();
}

function draw() {
  if (!found || !shown || !root.open) return;
  const { figure, across, hue } = wanted();
  const rows = entries(found, { figure, hue, chosen: shown.chosen, direction: told.direction, address: config.run });
  const names = found.columns.map(({ name }) => name);
  const drawnOnes = tn("%(count)s run with this metric", "%(count)s runs with this metric", rows.length);
  part("told").textContent = rows.length < found.runs.length ? t("%(drawn)s, of %(count)s in the table", { drawn: drawnOnes, count: found.runs.length }) : drawnOnes;
  const column = found.columns[names.indexOf(figure)];
  const beside = found.columns[names.indexOf(across)];
  const spaces = axes(found.columns.filter(({ name }) => name.startsWith("params.")), rows);
  const goal = { key: short(figure), direction: told.direction, take: "best" };
  part("scatter").replaceChildren(scatter({ ...placed(beside, column, rows), label: t("%(name)s vs. %(key)s", { name: short(across), key: short(figure) }), word }));
  parallel(part("parallel"), rows, spaces, [goal], stretches, word, t("All parameters of each run"));
  const shares = Object.entries(told.importance).map(([name, share]) => /** @type {[string, number]} */ ([short(name), share]));
  part("importance").replaceChildren(...(shares.length ? [bars(shares)] : []));
  part("mattered").textContent = shares.length ? tn("By PED-ANOVA over %(count)s run: importance for the best runs.", "By PED-ANOVA over %(count)s runs: importance for the best runs.", told.runs) : t("Not enough runs have this metric and all of these parameters.");
}

/** Draw charts of what the table shows. @param {NonNullable<typeof shown>} table */
export function show(table) {
  shown = table;
  if (root.open) load();
}

for (const name of ["figure", "across", "hue"]) part(name).addEventListener("change", load);
let width = 0;
new ResizeObserver(() => {
  if (Math.abs(root.clientWidth - width) < 3) return;
  width = root.clientWidth;
  draw();
}).observe(root);
