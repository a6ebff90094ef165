// Groups of runs and their curves. Pure: no DOM.

/**
 * @typedef {{points: number, low: (number | null)[], mean: (number | null)[], high: (number | null)[]}} Line
 * @typedef {{x: number[], runs: Line[]}} Found  what the server says of one figure
 */

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
