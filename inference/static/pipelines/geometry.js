// Where ports and links of a step are. Ports are placed by arithmetic, so no row of a step may wrap.

export const WIDTH = 208;
export const HEAD = 30;
const LINE = 20; // of the kind, of the state
const PAD = 6;
export const ROW = 22;

/** Sizes of steps: with a line for the state, where a run is shown. */
export class Sizes {
  constructor(graph, withState = false) {
    this.graph = graph;
    this.top = HEAD + LINE + (withState ? LINE : 0) + PAD;
  }

  get width() {
    return WIDTH;
  }

  height(id) {
    const kind = this.graph.catalogue.kind(this.graph.steps.get(id)?.kind ?? "");
    return this.top + Math.max(kind.inputs.length, kind.outputs.length) * ROW + PAD;
  }

  /** Where a link ends: at a port, else at the head of the step. @returns {[number, number]} */
  end(id, side, port) {
    const [x, y] = this.graph.places.get(id) ?? [0, 0];
    const kind = this.graph.catalogue.kind(this.graph.steps.get(id)?.kind ?? "");
    const row = (side === "in" ? kind.inputs : kind.outputs).findIndex(({ name }) => name === port);
    return [side === "in" ? x : x + WIDTH, row < 0 ? y + HEAD / 2 : y + this.top + ROW * row + ROW / 2];
  }

  /** Both ends of a link. @param {import("./links.js").Link} link @returns {[[number, number], [number, number]]} */
  ends(link) {
    return [this.end(link.from, "out", link.out), this.end(link.to, "in", link.sort === "data" ? link.into : "")];
  }

  /** The next place below where a step hides no other. @returns {[number, number]} */
  free([x, y]) {
    const tall = 150;
    const near = [...this.graph.places].filter(([id, [px]]) => this.graph.steps.has(id) && Math.abs(px - x) < WIDTH + 16);
    const taken = near.map(([id, [, py]]) => [py - tall, py + this.height(id) + 16]).sort((a, b) => a[0] - b[0]);
    let free = y;
    for (const [top, bottom] of taken) if (free > top && free < bottom) free = bottom;
    return [x, free];
  }

  /** Smallest box that holds these steps, null without any. */
  box(ids) {
    let [left, top, right, bottom] = [Infinity, Infinity, -Infinity, -Infinity];
    for (const id of ids) {
      const place = this.graph.places.get(id);
      if (!place) continue;
      left = Math.min(left, place[0]);
      top = Math.min(top, place[1]);
      right = Math.max(right, place[0] + WIDTH);
      bottom = Math.max(bottom, place[1] + this.height(id));
    }
    return left === Infinity ? null : { left, top, right, bottom };
  }
}

/** @param {[number, number]} a @param {[number, number]} b */
const bend = ([x1], [x2]) => Math.max(40, Math.min(240, Math.abs(x2 - x1) / 2));

/** The line from an output to an input, through the points between them. @param {[number, number][]} [through] */
export function curve(from, to, through = []) {
  let text = `M${from[0]} ${from[1]}`;
  for (const [a, b] of legs(from, to, through)) {
    const by = through.length ? (b[0] - a[0]) / 2 : bend(a, b);
    text += `C${a[0] + by} ${a[1]} ${b[0] - by} ${b[1]} ${b[0]} ${b[1]}`;
  }
  return text;
}

/** @param {[number, number]} from @param {[number, number]} to @param {[number, number][]} through @returns {[[number, number], [number, number]][]} */
function legs(from, to, through) {
  const points = [from, ...through, to];
  return points.slice(1).map((point, n) => [points[n], point]);
}

/** How far a point is from that line. @param {[number, number][]} [through] */
export function distance(point, from, to, through = []) {
  return Math.min(...legs(from, to, through).map(([a, b]) => apart(point, a, b, through.length ? (b[0] - a[0]) / 2 : bend(a, b))));
}

function apart([x, y], from, to, by) {
  let nearest = Infinity;
  for (let n = 0; n <= 24; n++) {
    const t = n / 24;
    const u = 1 - t;
    const px = u * u * u * from[0] + 3 * u * u * t * (from[0] + by) + 3 * u * t * t * (to[0] - by) + t * t * t * to[0];
    const py = u * u * (u + 3 * t) * from[1] + t * t * (t + 3 * u) * to[1];
    nearest = Math.min(nearest, Math.hypot(px - x, py - y));
  }
  return nearest;
}
