// What the charts of runs show, computed from the columns of their table. Pure: no DOM.
import { shades } from "../studies/figures.js";
import { short } from "./runtable.js";

const MAX_WORDS = 20; // of an axis

/**
 * @typedef {import("./runtable.js").Column} Column
 * @typedef {import("../studies/figures.js").Trial} Trial
 * @typedef {import("../studies/figures.js").Axis} Axis
 * @typedef {import("../studies/figures.js").Range} Range
 */

/**
 * What can be drawn of what a table knows: figures, and what stands against them, parameters that differ first.
 * @param {{name: string, label: string, values: number}[]} known
 * @returns {{figures: [string, string][], others: [string, string][]}}
 */
export function options(known) {
  /** @type {[string, string][]} */
  const figures = known.filter(({ name }) => name.startsWith("best(")).map(({ name, label }) => [name, label]);
  /** @type {[string, string][]} */
  const params = known.filter(({ name, values }) => name.startsWith("params.") && values > 1).map(({ name }) => [name, short(name)]);
  return { figures, others: params.length ? [...params, ...figures] : [] };
}

/**
 * Runs that have the figure, as charts take them; of many those that are chosen, where any are.
 * @param {{runs: {id: number, name: string}[], columns: Column[]}} table
 * @param {{figure: string, hue: string, chosen: Set<number>, direction: string, address: string}} how
 * @returns {Trial[]}
 */
export function entries({ runs, columns }, { figure, hue, chosen, direction, address }) {
  const values = columns.find(({ name }) => name === figure)?.values ?? [];
  const shades5 = columns.find(({ name }) => name === hue)?.values;
  const params = columns.filter(({ name }) => name !== figure);
  const rows = runs.map((run, row) => ({ run, row })).filter(({ run, row }) => Number.isFinite(values[row]) && (!chosen.size || chosen.has(run.id)));
  const made = rows.map(({ run, row }) => ({
    number: row,
    name: run.name,
    href: `${address}${run.id}/`,
    state: "complete",
    training: null,
    params: Object.fromEntries(params.map((column) => [short(column.name), column.values[row]])),
    values: [values[row]],
    best: false,
  }));
  const goal = { key: figure, direction, take: "best" };
  const order = shades5 ? shadesOf(made, (trial) => shades5[trial.number]) : shades(made, goal);
  const least = Math.min(...made.map(({ values: [own] }) => own));
  const most = Math.max(...made.map(({ values: [own] }) => own));
  const top = direction === "minimize" ? least : most;
  return made.map((trial) => ({ ...trial, shade: order.get(trial.number), best: trial.values[0] === top }));
}

/** A shade from 0 to 4 for each, by the rank of its value; words by their order. @param {Trial[]} trials @param {(trial: Trial) => any} of */
function shadesOf(trials, of) {
  const known = trials.filter((trial) => of(trial) !== null && of(trial) !== undefined);
  const distinct = [...new Set(known.map(of))].sort((a, b) => (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b))));
  const last = Math.max(1, distinct.length - 1);
  return new Map(known.map((trial) => [trial.number, Math.round((4 * distinct.indexOf(of(trial))) / last)]));
}

/** Axes for parameters that differ among these runs. @param {Column[]} columns @param {Trial[]} rows @returns {Range[]} */
export function axes(columns, rows) {
  return columns.flatMap((column) => {
    const range = rangeOf(column, rows.map(({ number }) => column.values[number]));
    return range ? [range] : [];
  });
}

/** @param {Column} column @param {any[]} values @returns {Range | null} */
function rangeOf(column, values) {
  const there = values.filter((value) => value !== null && value !== undefined);
  const distinct = [...new Set(there)];
  if (distinct.length < 2) return null;
  if (there.every((value) => Number.isFinite(value))) {
    const [low, high] = [Math.min(...there), Math.max(...there)];
    return { name: short(column.name), type: "float", low, high, log: low > 0 && high / low >= 100 };
  }
  return distinct.length <= MAX_WORDS ? { name: short(column.name), type: "categorical", choices: distinct.map(String).sort() } : null;
}

/**
 * Both axes and the dots of a scatter chart.
 * @param {Column} across
 * @param {Column} up
 * @param {Trial[]} rows
 * @returns {{x: Axis, y: Axis, dots: {trial: Trial, x: any, y: any}[]}}
 */
export function placed(across, up, rows) {
  const dots = rows.map((trial) => ({ trial, x: across.values[trial.number], y: up.values[trial.number] }));
  return { x: axisFor(across, dots.map(({ x }) => x)), y: axisFor(up, dots.map(({ y }) => y)), dots };
}

/** @param {Column} column @param {any[]} values @returns {Axis} */
function axisFor(column, values) {
  const range = rangeOf(column, values);
  const name = short(column.name);
  if (!range) {
    const only = values.find((value) => value !== null && value !== undefined);
    return Number.isFinite(only) ? { name, choices: null, log: false, low: only, high: only } : { name, choices: only === undefined ? [] : [String(only)], log: false, low: 0, high: 1 };
  }
  if (range.choices) return { name, choices: range.choices.map(String), log: false, low: 0, high: Math.max(1, range.choices.length - 1) };
  return { name, choices: null, log: Boolean(range.log), low: Number(range.low), high: Number(range.high) };
}
