// How curves of several trainings become lines. Pure: no DOM.

const SHADES = 8;
/** @type {number[][]} */
const DASHES = [[], [7, 4], [2, 3]];

/**
 * @typedef {{points: number, low: (number | null)[], mean: (number | null)[], high: (number | null)[]}} Line
 * @typedef {{x: number[], runs: Line[]}} Found  what the server says of one figure
 */

/** Number of the colour of a line, from 1. @param {number} place */
export const shadeOf = (place) => (place % SHADES) + 1;

/** Lines of one colour are told apart by their dashes. @param {number} place */
export const dashOf = (place) => DASHES[Math.floor(place / SHADES) % DASHES.length];

/**
 * Lines of groups of runs, such as those that differ by their seed alone: at each place the mean of all runs that have a
 * point there, and one standard deviation (of a sample) above and below it. No run is left out.
 * @param {Found} found
 * @param {number[][]} groups  places of the runs of each group
 * @returns {Found}
 */
export function grouped(found, groups) {
  const runs = groups.map((members) => {
    /** @type {Line} */
    const line = { points: 0, low: [], mean: [], high: [] };
    for (const at of members) line.points += found.runs[at].points;
    for (let place = 0; place < found.x.length; place += 1) {
      const values = members.map((at) => found.runs[at].mean[place]).filter((value) => value !== null);
      const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
      const squares = values.reduce((sum, value) => sum + (value - mean) ** 2, 0);
      const off = values.length > 1 ? Math.sqrt(squares / (values.length - 1)) : 0;
      line.mean.push(values.length ? mean : null);
      line.low.push(values.length ? mean - off : null);
      line.high.push(values.length ? mean + off : null);
    }
    return line;
  });
  return { ...found, runs };
}

/** Places of runs with the same text, by their first, with that text. @param {string[]} words @returns {[string, number[]][]} */
export function alike(words) {
  /** @type {Map<string, number[]>} */
  const found = new Map();
  for (const [place, word] of words.entries()) found.set(word, [...(found.get(word) ?? []), place]);
  return [...found];
}

/** One table of all lines, where any of them has a point: x, then mean, lowest and highest of each. @param {Found} found @param {string[]} names @param {string} axis */
export function asCsv(found, names, axis) {
  /** @param {unknown} value */
  const cell = (value) => {
    const text = value === null || value === undefined ? "" : String(value);
    const safe = /^[=+@\t\r]|^-(?![\d.])/.test(text) ? `'${text}` : text; // no spreadsheet takes a name for a formula
    return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  };
  const head = [axis, ...names.flatMap((name) => [name, `${name} low`, `${name} high`])];
  const rows = found.x.map((x, at) => [x, ...found.runs.flatMap(({ mean, low, high }) => [mean[at], low[at], high[at]])]).filter((row) => row.slice(1).some((value) => value !== null));
  return [head, ...rows].map((row) => row.map(cell).join(",")).join("\r\n");
}

/**
 * Columns to draw: x, then for each training its mean and, as edges of its band, its lowest and highest. A smoothed line
 * has no band.
 * @param {Found} found
 * @param {{smooth: number, byLog: boolean, bands: boolean}} how
 * @param {(values: (number | null)[], weight: number) => (number | null)[]} smoothed
 */
export function lines(found, { smooth, byLog, bands }, smoothed) {
  /** @param {(number | null)[]} values */
  const fit = (values) => (byLog ? values.map((value) => (value !== null && value > 0 ? value : null)) : values);
  const edges = bands && !smooth;
  const columns = found.runs.flatMap(({ low, mean, high }) => {
    const line = smoothed(fit(mean), smooth);
    return edges ? [line, fit(low), fit(high)] : [line];
  });
  return [found.x, ...columns];
}
