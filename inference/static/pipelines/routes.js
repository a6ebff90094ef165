// Ways of links around steps. A link that would run through a step goes through the gaps above or below it. No DOM.
import { WIDTH } from "./geometry.js";

/** @typedef {[number, number]} Point */
/** @typedef {{left: number, top: number, right: number, bottom: number}} Box */

const PAD = 12; // between a step and a link that passes it
const HIT = 3; // a link that comes as near as this runs through it
const CELL = 280; // a step and the gap behind it
const SAMPLES = 24;
const SHORT = 72; // ends nearer than this have no step between them

/** Which steps stand where, by columns of the plane. */
export class Obstacles {
  /** @param {import("./graph.js").Graph} graph @param {{height: (id: string) => number}} sizes */
  constructor(graph, sizes) {
    /** @type {Map<number, (Box & {id: string})[]>} */
    this.cells = new Map();
    for (const [id, [left, top]] of graph.places) {
      if (!graph.steps.has(id)) continue;
      const box = { id, left, top, right: left + WIDTH, bottom: top + sizes.height(id) };
      for (let cell = Math.floor(box.left / CELL); cell <= Math.floor(box.right / CELL); cell++) {
        const known = this.cells.get(cell);
        if (known) known.push(box);
        else this.cells.set(cell, [box]);
      }
    }
  }

  /** Steps that have a part between two places from left to right, from left to right. */
  between(left, right) {
    /** @type {Set<Box & {id: string}>} */
    const found = new Set();
    for (let cell = Math.floor(left / CELL); cell <= Math.floor(right / CELL); cell++) {
      for (const box of this.cells.get(cell) ?? []) if (box.left < right && box.right > left) found.add(box);
    }
    return [...found].sort((a, b) => a.left - b.left);
  }

  /**
   * Points between the ends of a link that lead it around all steps; none where the plain curve meets no step.
   * @param {Point} from
   * @param {Point} to
   * @param {string[]} own  the steps it begins and ends at
   * @returns {Point[]}
   */
  around(from, to, own) {
    if (to[0] - from[0] < SHORT) return [];
    const inWay = this.between(from[0] + 1, to[0] - 1).filter(({ id }) => !own.includes(id));
    if (!inWay.length || !isHit(from, to, inWay)) return [];
    /** @type {Point[]} */
    const way = [];
    let last = from;
    for (const column of columns(inWay)) {
      const [left, right] = [Math.max(column.left - PAD, from[0]), Math.min(column.right + PAD, to[0])];
      if (left <= last[0] && way.length) continue;
      const share = (left - last[0]) / Math.max(1, to[0] - last[0]);
      const y = free(column.boxes, last[1] + (to[1] - last[1]) * share);
      way.push([left, y], [right, y]);
      last = [right, y];
    }
    return way;
  }
}

/** Whether the plain curve from one end to the other runs through one of these. */
function isHit(from, to, boxes) {
  const by = Math.max(40, Math.min(240, (to[0] - from[0]) / 2));
  for (let n = 1; n < SAMPLES; n++) {
    const t = n / SAMPLES;
    const u = 1 - t;
    const x = u * u * u * from[0] + 3 * u * u * t * (from[0] + by) + 3 * u * t * t * (to[0] - by) + t * t * t * to[0];
    const y = u * u * (u + 3 * t) * from[1] + t * t * (t + 3 * u) * to[1];
    for (const box of boxes) if (x > box.left - HIT && x < box.right + HIT && y > box.top - HIT && y < box.bottom + HIT) return true;
  }
  return false;
}

/** Steps that share a place from left to right, together. @param {Box[]} boxes  from left to right */
function columns(boxes) {
  /** @type {{left: number, right: number, boxes: Box[]}[]} */
  const found = [];
  for (const box of boxes) {
    const last = found.at(-1);
    if (last && box.left < last.right + 2 * PAD) {
      last.right = Math.max(last.right, box.right);
      last.boxes.push(box);
    } else found.push({ left: box.left, right: box.right, boxes: [box] });
  }
  return found;
}

/** The nearest height to `wanted` at which nothing stands. @param {Box[]} boxes */
function free(boxes, wanted) {
  const taken = boxes.map(({ top, bottom }) => [top - PAD, bottom + PAD]).sort((a, b) => a[0] - b[0]);
  /** @type {number[][]} */
  const blocks = [];
  for (const [top, bottom] of taken) {
    const last = blocks.at(-1);
    if (last && top < last[1]) last[1] = Math.max(last[1], bottom);
    else blocks.push([top, bottom]);
  }
  const block = blocks.find(([top, bottom]) => wanted > top && wanted < bottom);
  if (!block) return wanted;
  return wanted - block[0] < block[1] - wanted ? block[0] : block[1];
}
