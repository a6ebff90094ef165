// The points of a job's figures, and what is computed from them for drawing. Pure: no DOM.
import { groupOf } from "./figures.js";

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
   * @param {Record<string, [number, number][]>} series  [step, value] by key
   * @param {Record<string, number[]>} times
   */
  replace(series, times) {
    this.all.clear();
    for (const [key, points] of Object.entries(series)) {
      if (this.#wanted(key)) this.all.set(key, { x: points.map((p) => p[0]), y: points.map((p) => p[1]), at: times[key].slice() });
    }
  }

  /**
   * Add points; false where a curve has too many now.
   * @param {Record<string, [number, number, number][]>} added  [step, value, moment] by key
   */
  append(added) {
    for (const [key, points] of Object.entries(added)) {
      if (!this.#wanted(key)) continue;
      const curve = this.all.get(key) ?? { x: [], y: [], at: [] };
      this.all.set(key, curve);
      for (const [step, value, at] of points) {
        curve.x.push(step);
        curve.y.push(value);
        curve.at.push(at);
      }
      if (curve.x.length > MOST) return false;
    }
    return true;
  }

  /** Keys by the card they are drawn on, in order. */
  groups() {
    const groups = /** @type {Map<string, string[]>} */ (new Map());
    for (const key of [...this.all.keys()].sort()) {
      const group = groupOf(key);
      groups.set(group, [...(groups.get(group) ?? []), key]);
    }
    return groups;
  }

  /**
   * [x, y] of one curve, x ascending and each once; null where a logarithm has no value.
   * @param {string} key
   * @param {{byTime: boolean, byLog: boolean, smooth: number}} drawn
   * @returns {[number[], (number | null)[]]}
   */
  columns(key, { byTime, byLog, smooth }) {
    const curve = this.all.get(key) ?? { x: [], y: [], at: [] };
    const along = byTime ? curve.at : curve.x;
    const order = curve.x.map((_, i) => i).sort((a, b) => along[a] - along[b] || a - b);
    const x = /** @type {number[]} */ ([]);
    const y = /** @type {(number | null)[]} */ ([]);
    for (const i of order) {
      const value = byLog && curve.y[i] <= 0 ? null : curve.y[i];
      if (x.length && x[x.length - 1] === along[i]) y[y.length - 1] = value; // the newer value of a step counts
      else {
        x.push(along[i]);
        y.push(value);
      }
    }
    return [x, smoothed(y, smooth)];
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
    for (let i = 1; i < curve.y.length; i += 1) if (sign * curve.y[i] > sign * curve.y[at]) at = i;
    const [, y] = this.columns(key, { byTime: false, byLog: false, smooth: 0 });
    return { last: y[y.length - 1] ?? Number.NaN, best: sign ? { value: curve.y[at], step: curve.x[at] } : null };
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
 * Exponential mean with weight 0 to 0.99, corrected for the start.
 * @param {(number | null)[]} values
 * @param {number} weight
 */
export function smoothed(values, weight) {
  if (!weight) return values;
  let mean = 0;
  let seen = 0;
  return values.map((value) => {
    if (value === null) return null;
    mean = mean * weight + value * (1 - weight);
    seen += 1;
    return mean / (1 - weight ** seen);
  });
}
