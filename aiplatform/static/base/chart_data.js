// What a chart computes from its lines before anything is drawn. Pure: no DOM.

const HUES = 16; // --chart-1 to --chart-16 of tokens.css
/** @type {number[][]} */
export const DASHES = [[], [7, 4], [2, 3]];
const MAX_TIP_ROWS = 12;

/** @typedef {(number | null)[]} Values  one for each place of the x-axis; null where there is no point, NaN where one is NaN or infinite */
/**
 * A line of a chart. `low` and `high` are the edges of its band; `last` and `best` are shown as numbers, by default
 * computed from `values`. `better` is 1 where more is better, -1 where less is, 0 where neither.
 * @typedef {{name: string, values: Values, low?: Values, high?: Values, last?: number | null, best?: {value: number, at: number} | null,
 *   better?: number, place?: number, color?: string, dash?: number[], width?: number, dots?: boolean, stepped?: boolean, raw?: Values}} Line
 * @typedef {{smooth?: number, byLog?: boolean, bands?: boolean}} Look
 */

/** Custom property of the color of a line by its place. Up to 16 lines differ by hue. @param {number} place */
export const hueOf = (place) => `--chart-${(place % HUES) + 1}`;

/** Lines of one hue differ by their dashes. @param {number} place */
export const dashOf = (place) => DASHES[Math.floor(place / HUES) % DASHES.length];

/**
 * Exponential mean with weight 0 to 0.99, corrected for the start.
 * @param {Values} values
 * @param {number} weight
 */
export function smoothed(values, weight) {
  if (!weight) return values;
  let mean = 0;
  let seen = 0;
  return values.map((value) => {
    if (value === null || Number.isNaN(value)) return value;
    mean = mean * weight + value * (1 - weight);
    seen += 1;
    return mean / (1 - weight ** seen);
  });
}

/**
 * Columns that are drawn for the lines: x, then for each line the edges of its band, its raw values where it is smoothed,
 * and the line itself. `roles` says of each column which line it belongs to and what it is.
 * @param {number[]} xs
 * @param {Line[]} lines
 * @param {Look} look
 * @returns {{columns: (number[] | Values)[], roles: {line: number, role: "low" | "high" | "raw" | "line"}[]}}
 */
export function columnsOf(xs, lines, { smooth = 0, byLog = false, bands = true }) {
  /** @param {Values} values */
  const fit = (values) => (byLog ? values.map((value) => (value !== null && (value > 0 || Number.isNaN(value)) ? value : null)) : values);
  const columns = /** @type {(number[] | Values)[]} */ ([xs]);
  const roles = /** @type {{line: number, role: "low" | "high" | "raw" | "line"}[]} */ ([]);
  for (const [line, { values, low, high, dots, raw }] of lines.entries()) {
    /** @param {"low" | "high" | "raw" | "line"} role @param {Values} column */
    const add = (role, column) => {
      columns.push(column);
      roles.push({ line, role });
    };
    const isSmooth = smooth > 0 && !dots;
    if (bands && low && high && !isSmooth) {
      add("low", fit(low));
      add("high", fit(high));
    }
    if (isSmooth || raw) add("raw", fit(raw ?? values));
    add("line", isSmooth ? smoothed(fit(values), smooth) : fit(values));
  }
  return { columns, roles };
}

/**
 * A column as uPlot draws it: it spans what is undefined, places where a line has no point, and leaves a gap at null.
 * @param {number[] | Values} column
 */
export const withGaps = (column) => column.map((value) => (value === null ? undefined : Number.isNaN(value) ? null : value));

/** Newest value of a line, null where it has none. @param {Values} values */
export const lastOf = (values) => values.findLast((value) => value !== null && value !== undefined) ?? null;

/**
 * The best value of a line with the place it is at; null where neither direction is better.
 * @param {number[]} xs
 * @param {Line} line
 */
export function bestOf(xs, { values, best, better = 0 }) {
  if (best !== undefined) return best;
  if (!better) return null;
  let at = -1;
  for (let i = 0; i < values.length; i += 1) {
    const [value, top] = [values[i], at < 0 ? null : values[at]];
    if (value !== null && value !== undefined && !Number.isNaN(value) && (top === null || better * value > better * top)) at = i;
  }
  return at < 0 ? null : { value: Number(values[at]), at: xs[at] };
}

/**
 * What a tooltip lists at a place: visible lines with a value there, the highest first, and how many more there are.
 * @param {Line[]} lines
 * @param {(number | null | undefined)[]} values  of each line at the place
 * @param {Set<string>} hidden
 */
export function tipRows(lines, values, hidden) {
  const rows = lines.flatMap(({ name }, line) => {
    const value = values[line];
    return value === null || value === undefined || hidden.has(name) ? [] : [{ line, name, value }];
  });
  rows.sort((a, b) => b.value - a.value);
  return { rows: rows.slice(0, MAX_TIP_ROWS), more: Math.max(0, rows.length - MAX_TIP_ROWS) };
}

/**
 * The next place of the crosshair for a key; null for a key that does not move it.
 * @param {string} key
 * @param {boolean} isFast
 * @param {number | null} at
 * @param {number} count
 */
export function placeAfter(key, isFast, at, count) {
  const step = isFast ? 10 : 1;
  const from = at ?? (key === "ArrowLeft" ? count : -1);
  const places = { ArrowLeft: from - step, ArrowRight: from + step, Home: 0, End: count - 1 };
  return count && key in places ? Math.max(0, Math.min(count - 1, places[/** @type {keyof typeof places} */ (key)])) : null;
}

/** "GPU memory (MiB)" → ["GPU memory", "MiB"]. @param {string} title @returns {[string, string]} */
export function splitUnit(title) {
  const match = /^(.+?)\s*[(（]([^()（）]{1,24})[)）]$/.exec(title);
  return match ? [match[1], match[2]] : [title, ""];
}

/** A cell of a CSV file that no spreadsheet takes for a formula. @param {unknown} value */
export function csvCell(value) {
  const text = value === null || value === undefined ? "" : String(value);
  const safe = /^[=+@\t\r]|^-(?![\d.])/.test(text) ? `'${text}` : text;
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/**
 * One table of all lines where any of them has a point: x, then the value of each, and its lowest and highest where it has a band.
 * @param {number[]} xs
 * @param {Line[]} lines
 * @param {string} axis
 */
export function csvOf(xs, lines, axis) {
  const head = [axis, ...lines.flatMap(({ name, low }) => (low ? [name, `${name} low`, `${name} high`] : [name]))];
  const rows = xs
    .map((x, at) => [x, ...lines.flatMap(({ values, low, high }) => (low && high ? [values[at], low[at], high[at]] : [values[at]]))])
    .filter((row) => row.slice(1).some((value) => value !== null && value !== undefined));
  return [head, ...rows].map((row) => row.map(csvCell).join(",")).join("\r\n");
}

/**
 * Tables of [x, y] on one x-axis, each place once and ascending; null where a table has no point.
 * @param {[number[], Values][]} tables
 * @returns {{x: number[], columns: Values[]}}
 */
export function aligned(tables) {
  if (tables.length === 1) return { x: tables[0][0], columns: [tables[0][1]] };
  const x = [...new Set(tables.flatMap(([own]) => own))].sort((a, b) => a - b);
  const at = new Map(x.map((place, index) => [place, index]));
  const columns = tables.map(([own, values]) => {
    const column = /** @type {Values} */ (new Array(x.length).fill(null));
    for (const [index, place] of own.entries()) column[at.get(place) ?? 0] = values[index];
    return column;
  });
  return { x, columns };
}

/**
 * The place nearest to `at` where a line has a value, within a twentieth of the axis: lines report at steps of their own.
 * @param {Values} values
 * @param {number} at
 */
export function nearestPlace(values, at) {
  const reach = Math.ceil(values.length / 20);
  for (let off = 0; off <= reach; off += 1) {
    for (const place of [at - off, at + off]) if (values[place] !== null && values[place] !== undefined) return place;
  }
  return null;
}
