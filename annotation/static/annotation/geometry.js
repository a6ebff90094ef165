// Shapes as numbers, in pixels of the upright image. Pure: no DOM, no state.
// A ring is a flat list [x0, y0, x1, y1, …], not closed; a shape has one ring or several.
// The same rules as datasets/shapes/geometry.py and outlines.py, so that what is drawn is what the server takes.

export const MIN_AREA = 1e-6;
export const MAX_POINTS = 10000;

/** Two decimals: finer than any hand, half the bytes. */
export const round2 = (value) => Math.round(value * 100) / 100;

export const clamp = (value, low, high) => Math.min(Math.max(value, low), high);

/** @type {(point: number[], width: number, height: number) => [number, number]} */
export const clampPoint = ([x, y], width, height) => [
  round2(clamp(x, 0, width)),
  round2(clamp(y, 0, height)),
];

export const boxRing = (x0, y0, x1, y1) => {
  const left = Math.min(x0, x1);
  const right = Math.max(x0, x1);
  const top = Math.min(y0, y1);
  const bottom = Math.max(y0, y1);
  return [left, top, right, top, right, bottom, left, bottom];
};

export function signedArea(ring) {
  let total = 0;
  for (let i = 2, ax = 0, ay = 0; i < ring.length; i += 2) {
    const bx = ring[i] - ring[0];
    const by = ring[i + 1] - ring[1];
    total += ax * by - bx * ay;
    ax = bx;
    ay = by;
  }
  return total / 2;
}

export const area = (rings) => rings.reduce((sum, ring) => sum + Math.abs(signedArea(ring)), 0);

/** The smallest box around all points: {x0, y0, x1, y1}. */
export function extents(rings) {
  const box = { x0: Infinity, y0: Infinity, x1: -Infinity, y1: -Infinity };
  for (const ring of rings) {
    for (let i = 0; i < ring.length; i += 2) {
      if (ring[i] < box.x0) box.x0 = ring[i];
      if (ring[i] > box.x1) box.x1 = ring[i];
      if (ring[i + 1] < box.y0) box.y0 = ring[i + 1];
      if (ring[i + 1] > box.y1) box.y1 = ring[i + 1];
    }
  }
  return box;
}

export const overlaps = (a, b) => a.x0 <= b.x1 && b.x0 <= a.x1 && a.y0 <= b.y1 && b.y0 <= a.y1;

export const grown = (box, by) => ({ x0: box.x0 - by, y0: box.y0 - by, x1: box.x1 + by, y1: box.y1 + by });

export const union = (a, b) =>
  a && b
    ? {
        x0: Math.min(a.x0, b.x0),
        y0: Math.min(a.y0, b.y0),
        x1: Math.max(a.x1, b.x1),
        y1: Math.max(a.y1, b.y1),
      }
    : a || b;

/** Whether a point lies inside an odd number of the rings' outlines. */
export function contains(rings, x, y) {
  let inside = false;
  for (const ring of rings) {
    for (let i = 0, j = ring.length - 2; i < ring.length; j = i, i += 2) {
      const above = ring[i + 1] > y;
      if (above === ring[j + 1] > y) continue;
      const crossing = ring[i] + ((y - ring[i + 1]) / (ring[j + 1] - ring[i + 1])) * (ring[j] - ring[i]);
      if (x < crossing) inside = !inside;
    }
  }
  return inside;
}

/** The nearest point of the outline: {ring, edge, distance, x, y}; `edge` is the index of its first point. */
export function nearestEdge(rings, x, y) {
  let best = { ring: -1, edge: -1, distance: Infinity, x, y };
  rings.forEach((ring, r) => {
    for (let i = 0; i < ring.length; i += 2) {
      const j = (i + 2) % ring.length;
      const dx = ring[j] - ring[i];
      const dy = ring[j + 1] - ring[i + 1];
      const long = dx * dx + dy * dy;
      const share = long ? clamp(((x - ring[i]) * dx + (y - ring[i + 1]) * dy) / long, 0, 1) : 0;
      const px = ring[i] + share * dx;
      const py = ring[i + 1] + share * dy;
      const distance = Math.hypot(x - px, y - py);
      if (distance < best.distance) best = { ring: r, edge: i / 2, distance, x: px, y: py };
    }
  });
  return best;
}

/** The nearest corner: {ring, vertex, distance}. */
export function nearestVertex(rings, x, y) {
  let best = { ring: -1, vertex: -1, distance: Infinity };
  rings.forEach((ring, r) => {
    for (let i = 0; i < ring.length; i += 2) {
      const distance = Math.hypot(x - ring[i], y - ring[i + 1]);
      if (distance < best.distance) best = { ring: r, vertex: i / 2, distance };
    }
  });
  return best;
}

/** Rings moved by (dx, dy), held back as a whole at the borders of the image. */
export function moved(rings, dx, dy, width, height) {
  const box = extents(rings);
  const byX = clamp(dx, -box.x0, width - box.x1);
  const byY = clamp(dy, -box.y0, height - box.y1);
  return rings.map((ring) => ring.map((value, i) => round2(value + (i % 2 ? byY : byX))));
}

/** @type {(rings: number[][], r: number, vertex: number, point: number[]) => number[][]} */
export const withVertex = (rings, r, vertex, [x, y]) =>
  rings.map((ring, index) => {
    if (index !== r) return ring;
    const copy = ring.slice();
    copy[2 * vertex] = x;
    copy[2 * vertex + 1] = y;
    return copy;
  });

/** @type {(rings: number[][], r: number, vertex: number, point: number[]) => number[][]} */
export const withVertexAfter = (rings, r, vertex, [x, y]) =>
  rings.map((ring, index) =>
    index === r ? [...ring.slice(0, 2 * vertex + 2), x, y, ...ring.slice(2 * vertex + 2)] : ring,
  );

/** Without one corner; null when fewer than three would be left. */
export const withoutVertex = (rings, r, vertex) =>
  rings[r].length <= 6
    ? null
    : rings.map((ring, index) =>
        index === r ? [...ring.slice(0, 2 * vertex), ...ring.slice(2 * vertex + 2)] : ring,
      );

const turn = (ax, ay, bx, by, cx, cy) => {
  const first = (bx - ax) * (cy - ay);
  const second = (by - ay) * (cx - ax);
  return Math.abs(first - second) <= 1e-12 * (Math.abs(first) + Math.abs(second)) ? 0 : first - second;
};

/** The first pair of edges [i, j] that cross in their insides, or null for a simple ring. */
export function firstCrossing(ring) {
  const count = ring.length / 2;
  if (count < 4) return null;
  const left = (i) => Math.min(ring[2 * i], ring[(2 * i + 2) % ring.length]);
  const right = (i) => Math.max(ring[2 * i], ring[(2 * i + 2) % ring.length]);
  const order = Array.from({ length: count }, (_, i) => i).sort((a, b) => left(a) - left(b));
  for (let n = 0; n < count; n++) {
    const i = order[n];
    const [ax, ay] = [ring[2 * i], ring[2 * i + 1]];
    const [bx, by] = [ring[(2 * i + 2) % ring.length], ring[(2 * i + 3) % ring.length]];
    const reach = right(i);
    for (let m = n + 1; m < count && left(order[m]) <= reach; m++) {
      const j = order[m];
      const [cx, cy] = [ring[2 * j], ring[2 * j + 1]];
      const [dx, dy] = [ring[(2 * j + 2) % ring.length], ring[(2 * j + 3) % ring.length]];
      if (Math.max(ay, by) < Math.min(cy, dy) || Math.max(cy, dy) < Math.min(ay, by)) continue;
      if (
        turn(ax, ay, bx, by, cx, cy) * turn(ax, ay, bx, by, dx, dy) < 0 &&
        turn(cx, cy, dx, dy, ax, ay) * turn(cx, cy, dx, dy, bx, by) < 0
      ) {
        return i < j ? [i, j] : [j, i];
      }
    }
  }
  return null;
}

/** The same points in an order whose lines do not cross: each crossing is turned around (2-opt). */
export function untangled(ring, rounds = 2000) {
  let points = ring.slice();
  for (let round = 0; round < rounds; round++) {
    const crossing = firstCrossing(points);
    if (!crossing) return points;
    const [i, j] = crossing;
    const between = [];
    for (let n = j; n > i; n--) between.push(points[2 * n], points[2 * n + 1]);
    points = [...points.slice(0, 2 * i + 2), ...between, ...points.slice(2 * j + 2)];
  }
  return null;
}

/** Why the server would refuse these rings: "few", "many", "area", "crossing", or null. */
export function flawOf(rings) {
  if (!rings.length || rings.some((ring) => ring.length < 6)) return "few";
  if (rings.reduce((sum, ring) => sum + ring.length, 0) > 2 * MAX_POINTS) return "many";
  if (rings.some((ring) => firstCrossing(ring))) return "crossing";
  if (rings.some((ring) => Math.abs(signedArea(ring)) <= MIN_AREA)) return "area";
  return null;
}
