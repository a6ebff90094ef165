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
