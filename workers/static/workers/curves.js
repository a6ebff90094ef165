// The points of a job's figures, and what is computed from them for drawing. Pure: no DOM.
import { groupOf } from "./figures.js";

const EPOCHS = ["epoch", "train/epoch", "trainer/epoch", "epochs"]; // as in training/experiments/figure_sql.py
export const MOST = 4000; // points per curve in memory; beyond it they are asked for again, thinned

/** @typedef {{x: number[], y: number[], at: number[]}} Curve  steps, values, moments in seconds */

export class Curves {
  /** @param {string[]} prefixes  beginnings of the keys that are wanted; none: all are */
  constructor(prefixes) {
    this.prefixes = prefixes;
    this.all = /** @type {Map<string, Curve>} */ (new Map());
  }

  get size() {
    return this.all.size;
  }

  /**
   * Begin anew with all points that the server has.
   * @param {Record<string, [number, number | null][]>} series  [step, value] by key; null: NaN or infinite
   * @param {Record<string, number[]>} times
   */
  replace(series, times) {
    this.all.clear();
    for (const [key, points] of Object.entries(series)) {
      if (this.#wanted(key)) this.all.set(key, { x: points.map((p) => p[0]), y: points.map((p) => p[1] ?? Number.NaN), at: times[key].slice() });
    }
  }

  /**
   * Add points; false where a curve has too many now.
   * @param {Record<string, [number, number | null, number][]>} added  [step, value, moment] by key
   */
  append(added) {
    for (const [key, points] of Object.entries(added)) {
      if (!this.#wanted(key)) continue;
      const curve = this.all.get(key) ?? { x: [], y: [], at: [] };
      this.all.set(key, curve);
      for (const [step, value, at] of points) {
        curve.x.push(step);
        curve.y.push(value ?? Number.NaN);
        curve.at.push(at);
      }
      if (curve.x.length > MOST) return false;
    }
    return true;
  }

  /** Keys by the chart they are drawn on, in order; epochs are an axis and no chart. */
  groups() {
    const groups = /** @type {Map<string, string[]>} */ (new Map());
    for (const key of [...this.all.keys()].filter((one) => !EPOCHS.includes(one)).sort()) {
      const group = groupOf(key);
      groups.set(group, [...(groups.get(group) ?? []), key]);
    }
    return groups;
  }

  /**
   * [x, y] of one curve, x ascending and each once. By epochs it has no points where the run reports none.
   * @param {string} key
   * @param {"step" | "epoch" | "time"} axis
   * @returns {[number[], number[]]}
   */
  columns(key, axis) {
    const curve = this.all.get(key) ?? { x: [], y: [], at: [] };
    const along = axis === "time" ? curve.at : axis === "epoch" ? this.#epochs(curve.x) : curve.x;
    const order = along.map((_, i) => i).filter((i) => Number.isFinite(along[i]));
    order.sort((a, b) => along[a] - along[b] || a - b);
    const x = /** @type {number[]} */ ([]);
    const y = /** @type {number[]} */ ([]);
    for (const i of order) {
      if (x.length && x[x.length - 1] === along[i]) y[y.length - 1] = curve.y[i]; // the newer value of a step counts
      else {
        x.push(along[i]);
        y.push(curve.y[i]);
      }
    }
    return [x, y];
  }

  /** @param {number[]} steps */
  #epochs(steps) {
    const key = EPOCHS.find((one) => this.all.has(one));
    return key ? epochsAt(steps, ...this.columns(key, "step")) : steps.map(() => Number.NaN);
  }

  /** Newest step and value of every curve: [key, step, value]. */
  newest() {
    return [...this.all]
      .sort(([a], [b]) => a.localeCompare(b))
      .map(([key, { x, y }]) => /** @type {[string, number, number]} */ ([key, x[x.length - 1], y[y.length - 1]]));
  }

  /**
   * Newest value of a curve, and its best with the step it came at; `best` is null where neither end is better.
   * @param {string} key
   * @returns {{last: number, best: {value: number, step: number} | null} | null}
   */
  summary(key) {
    const curve = this.all.get(key);
    if (!curve?.y.length) return null;
    const sign = betterBy(key);
    let at = 0;
    for (let i = 1; i < curve.y.length; i += 1) if (Number.isNaN(curve.y[at]) || sign * curve.y[i] > sign * curve.y[at]) at = i;
    const [, y] = this.columns(key, "step");
    return { last: y[y.length - 1] ?? Number.NaN, best: sign && !Number.isNaN(curve.y[at]) ? { value: curve.y[at], step: curve.x[at] } : null };
  }

  /** Keys of the figures that say how good the model is, the most telling first; without those of single classes. */
  headline() {
    const told = [
      ...["mask_ap50", "ap50", "mask_ap", "ap", "miou", "pck05", "nme", "recall_1", "map", "accuracy"],
      ...["balanced_accuracy", "auroc", "f1", "macro_f1", "loss"],
    ];
    /** @param {string} key */
    const place = (key) => told.indexOf(key.split("/")[1] ?? "") * 2 + Number(!key.startsWith("val/"));
    return [...this.all.keys()]
      .filter((key) => /^(val|test)\/[^/]+$/.test(key) && place(key) >= 0)
      .sort((a, b) => place(a) - place(b))
      .slice(0, 4);
  }

  csv() {
    const lines = ["key,step,time,value"];
    for (const [key, { x, y, at }] of this.all) {
      const name = /^[=+\-@\t\r]/.test(key) ? `'${key}` : key; // a spreadsheet must not read it as a formula
      for (let i = 0; i < x.length; i += 1) {
        lines.push(`"${name.replace(/"/g, '""')}",${x[i]},${new Date(at[i] * 1000).toISOString()},${y[i]}`);
      }
    }
    return `${lines.join("\n")}\n`;
  }

  /** @param {string} key */
  #wanted(key) {
    return !this.prefixes.length || this.prefixes.some((prefix) => key.startsWith(prefix));
  }
}

/**
 * 1 where more is better, -1 where less is, 0 where neither.
 * @param {string} key
 */
export function betterBy(key) {
  if (key.startsWith("system/")) return 0;
  const figure = key.split("/")[1] ?? key;
  if (/loss|error|^(box|class|fit|mask|soft|nme)$/i.test(figure)) return -1;
  return /^((mask_|m)?ap\d*|ar\d*|((pixel|class|knn|balanced)_)?accuracy|map_r|pck\d+|precision|recall(_\d+)?|(macro_)?f1|auroc|m?iou|dice)$/i.test(figure) ? 1 : 0;
}

/**
 * Order of cards: what says how good the model is first, the machine's last.
 * @param {string} a
 * @param {string} b
 */
export function rank(a, b) {
  const order = ["mask_ap", "ap", "miou", "pck", "nme", "recall", "map", "accuracy", "auroc", "f1", "loss", "lr", "step_ms"];
  /** @param {string} group */
  const place = (group) => (group.startsWith("system/") ? 200 : order.includes(group) ? order.indexOf(group) : 100);
  return place(a) - place(b) || a.localeCompare(b);
}

/**
 * Epochs at steps: between two reports in proportion, outside of them at the mean rate, as training/experiments/comparison.py has them.
 * @param {number[]} steps
 * @param {number[]} at  steps with a report, ascending
 * @param {number[]} epochs
 */
export function epochsAt(steps, at, epochs) {
  const last = at.length - 1;
  if (last < 0) return steps.map(() => Number.NaN);
  const rate = at[last] > at[0] ? (epochs[last] - epochs[0]) / (at[last] - at[0]) : 0;
  return steps.map((step) => {
    if (step >= at[last]) return epochs[last] + (step - at[last]) * rate;
    if (step <= at[0]) return Math.max(epochs[0] - (at[0] - step) * rate, Math.min(epochs[0], 0));
    let [low, high] = [0, last];
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (at[middle] <= step) low = middle;
      else high = middle;
    }
    return epochs[low] + ((epochs[high] - epochs[low]) * (step - at[low])) / (at[high] - at[low]);
  });
}
