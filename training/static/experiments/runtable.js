// What the table of runs shows, as plain values. Pure: no DOM.

/**
 * @typedef {{name: string, label: string, kind: string, values: any[]}} Column
 * @typedef {{values: any[], members: number[], stats: Map<string, Stat>}} Group
 * @typedef {{n: number, mean: number, deviation: number, low: number, high: number}} Stat
 */

/**
 * Number, mean and standard deviation (of a sample, n − 1) of the numbers among `values`; null where there are none.
 * By Welford's method, which stays exact for large values that differ by little.
 * @param {any[]} values
 * @returns {Stat | null}
 */
export function stat(values) {
  let n = 0;
  let mean = 0;
  let squares = 0;
  let low = Infinity;
  let high = -Infinity;
  for (const value of values) {
    if (typeof value !== "number" || !Number.isFinite(value)) continue;
    n += 1;
    const off = value - mean;
    mean += off / n;
    squares += off * (value - mean);
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  return n ? { n, mean, deviation: n > 1 ? Math.sqrt(squares / (n - 1)) : 0, low, high } : null;
}

/**
 * Rows that have the same values of some columns, in the order of their first members.
 * @param {Column[]} columns
 * @param {string[]} names  of the columns to group by
 * @param {number} count  of rows
 * @returns {Group[]}
 */
export function groups(columns, names, count) {
  const by = names.map((name) => columns.find((column) => column.name === name)).filter((column) => column !== undefined);
  /** @type {Map<string, Group>} */
  const found = new Map();
  for (let row = 0; row < count; row += 1) {
    const values = by.map((column) => column.values[row] ?? null);
    const key = JSON.stringify(values);
    /** @type {Group} */
    const own = found.get(key) ?? { values, members: [], stats: new Map() };
    own.members.push(row);
    found.set(key, own);
  }
  for (const own of found.values()) {
    for (const column of columns) {
      if (column.kind !== "number" && column.kind !== "duration") continue;
      const told = stat(own.members.map((row) => column.values[row]));
      if (told) own.stats.set(column.name, told);
    }
  }
  return [...found.values()];
}

/** Part of a list that is to be drawn, with some rows around it. @param {number} count @param {number} from pixels @param {number} seen pixels @param {number} each pixels of a row */
export function stretch(count, from, seen, each) {
  const around = 10;
  const first = Math.max(0, Math.min(count, Math.floor(from / each) - around));
  return { first, end: Math.min(count, Math.ceil((from + seen) / each) + around) };
}

/**
 * Rows in their order, those without any metric (custom jobs) last; runs that are live keep their place.
 * @param {Column[]} columns
 * @param {number} count  of rows
 * @param {string[]} live  states of runs that may still report metrics
 */
export function metricsFirst(columns, count, live) {
  const metrics = columns.filter(({ name }) => /^(?:best|last|min|max)\(/.test(name));
  const rows = Array.from({ length: count }, (_, row) => row);
  if (!metrics.length) return rows;
  const states = columns.find(({ name }) => name === "state")?.values ?? [];
  const isFirst = (/** @type {number} */ row) => live.includes(states[row]) || metrics.some(({ values }) => typeof values[row] === "number");
  return [...rows.filter(isFirst), ...rows.filter((row) => !isFirst(row))];
}

/** Name of a column as its head says it: `best(val/ap)` → `val/ap`, `params.lr` → `lr`. @param {string} name */
export const short = (name) => name.replace(/^(?:best|last|min|max)\((.*)\)$/, "$1").replace(/^(?:params|tags)\./, "");

/** The next order when a head is pressed: downwards first, then upwards. @param {string} sort @param {string} name */
export const nextSort = (sort, name) => (sort === `-${name}` ? name : `-${name}`);

/**
 * Points of a polyline in a view of 96 × 24, from the values of a curve; "" of fewer than two.
 * @param {(number | null)[]} values
 */
export function sparkPoints(values) {
  const there = values.filter((value) => value !== null);
  if (there.length < 2) return "";
  const [low, high] = [Math.min(...there), Math.max(...there)];
  return there.map((value, at) => `${Math.round(2 + (92 * at) / (there.length - 1))},${(22 - 20 * (high > low ? (value - low) / (high - low) : 0.5)).toFixed(1)}`).join(" ");
}
