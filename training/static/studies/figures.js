// What the charts of a study show, computed from its trials. Pure: no DOM.

/**
 * @typedef {{key: string, direction: string, take: string}} Objective
 * @typedef {{name: string, type: string, low?: number, high?: number, log?: boolean, choices?: (string | number | boolean)[]}} Range
 * @typedef {{number: number, state: string, training: number | null, params: Record<string, string | number | boolean>, values: number[], best: boolean, name?: string, href?: string, shade?: number}} Trial
 * @typedef {{name: string, choices: string[] | null, log: boolean, low: number, high: number}} Axis
 */

/** Whether `a` is better than `b`. @param {Objective} goal @param {number} a @param {number} b */
export const better = (goal, a, b) => (goal.direction === "minimize" ? a < b : a > b);

/** Trials that completed, with a value. @param {Trial[]} trials */
export const completed = (trials) => trials.filter((trial) => trial.state === "complete" && trial.values.length > 0);

/**
 * Columns of the chart of the best so far: number, value of completed trials, of pruned ones, best so far.
 * @param {Trial[]} trials
 * @param {Objective} goal
 */
export function history(trials, goal) {
  const numbers = trials.map((trial) => trial.number);
  /** @param {string} state */
  const of = (state) => trials.map((trial) => (trial.state === state && trial.values.length ? trial.values[0] : null));
  /** @type {number | null} */
  let best = null;
  const line = trials.map((trial) => {
    const value = trial.state === "complete" && trial.values.length ? trial.values[0] : null;
    if (value !== null && (best === null || better(goal, value, best))) best = value;
    return best;
  });
  return [numbers, of("complete"), of("pruned"), line];
}

/** An axis for a parameter. @param {Range} range @returns {Axis} */
export function axisOf(range) {
  if (range.type === "categorical") {
    const choices = (range.choices ?? []).map(String);
    return { name: range.name, choices, log: false, low: 0, high: Math.max(1, choices.length - 1) };
  }
  return { name: range.name, choices: null, log: Boolean(range.log), low: Number(range.low), high: Number(range.high) };
}

/** An axis for the values of an objective. @param {Objective} goal @param {Trial[]} trials @param {number} place @returns {Axis} */
export function axisOfValues(goal, trials, place = 0) {
  const values = trials.map((trial) => trial.values[place]).filter((value) => Number.isFinite(value));
  const low = values.length ? Math.min(...values) : 0;
  const high = values.length ? Math.max(...values) : 1;
  return { name: goal.key, choices: null, log: false, low, high: high > low ? high : low + 1 };
}

/** Where a value lies on an axis: 0 at its low end, 1 at its high end; null where it has no place. @param {Axis} axis @param {unknown} value */
export function placeOf(axis, value) {
  if (axis.choices) {
    const found = axis.choices.indexOf(String(value));
    return found < 0 ? null : axis.choices.length > 1 ? found / (axis.choices.length - 1) : 0.5;
  }
  if (typeof value !== "number" || !Number.isFinite(value)) return null;
  if (axis.high === axis.low) return 0.5;
  const place = axis.log ? Math.log(value / axis.low) / Math.log(axis.high / axis.low) : (value - axis.low) / (axis.high - axis.low);
  return Number.isFinite(place) ? Math.min(1, Math.max(0, place)) : null;
}

/** What stands at an axis: [place, word]. @param {Axis} axis @param {(value: number) => string} word @returns {[number, string][]} */
export function ticksOf(axis, word) {
  if (axis.choices) return axis.choices.map((choice) => [placeOf(axis, choice) ?? 0, choice]);
  return [0, 0.5, 1].map((place) => {
    const value = axis.log ? axis.low * (axis.high / axis.low) ** place : axis.low + (axis.high - axis.low) * place;
    return [place, word(value)];
  });
}

/**
 * How good each trial is among all: 0 the worst, 4 the best fifth.
 * @param {Trial[]} trials
 * @param {Objective} goal
 * @returns {Map<number, number>}
 */
export function shades(trials, goal) {
  const order = [...trials].sort((a, b) => (better(goal, a.values[0], b.values[0]) ? 1 : better(goal, b.values[0], a.values[0]) ? -1 : 0));
  return new Map(order.map((trial, place) => [trial.number, Math.min(4, Math.floor((5 * place) / Math.max(1, order.length)))]));
}

/**
 * Whether a trial lies inside all chosen parts of the axes.
 * @param {(number | null)[]} places  of the trial, for each axis
 * @param {Map<number, [number, number]>} chosen  part of an axis by its number
 */
export const isInside = (places, chosen) =>
  [...chosen].every(([axis, [low, high]]) => {
    const place = places[axis];
    return place !== null && place >= low && place <= high;
  });

/**
 * The completed trials that no other is better than in both goals, along the first one.
 * @param {Trial[]} trials
 * @param {Objective[]} goals
 */
export function front(trials, goals) {
  const beats = (a, b) =>
    goals.every((goal, i) => !better(goal, b.values[i], a.values[i])) && goals.some((goal, i) => better(goal, a.values[i], b.values[i]));
  const all = completed(trials).filter((trial) => trial.values.length === goals.length);
  return all.filter((one) => !all.some((other) => beats(other, one))).sort((a, b) => a.values[0] - b.values[0]);
}
