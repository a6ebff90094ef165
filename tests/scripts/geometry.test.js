import assert from "node:assert/strict";
import { test } from "node:test";
import * as g from "../../annotation/static/annotation/geometry.js";

const SQUARE = [0, 0, 10, 0, 10, 10, 0, 10];
const BOW = [0, 0, 10, 10, 10, 0, 0, 10]; // its lines cross once

test("area sums the parts whatever way round they were drawn", () => {
  const backwards = [20, 0, 20, 5, 25, 5, 25, 0];
  assert.equal(g.signedArea(SQUARE), 100);
  assert.equal(g.signedArea(backwards), -25);
  assert.equal(g.area([SQUARE, backwards]), 125);
});

test("boxRing starts at the upper left whichever corners are given", () => {
  assert.deepEqual(g.boxRing(10, 10, 0, 0), SQUARE);
  assert.deepEqual(g.boxRing(0, 10, 10, 0), SQUARE);
});

test("clampPoint stays inside the image and keeps two decimals", () => {
  assert.deepEqual(g.clampPoint([-3, 7.123456], 100, 50), [0, 7.12]);
  assert.deepEqual(g.clampPoint([101, 50.4], 100, 50), [100, 50]);
});

test("extents cover all rings, union and grown go with them", () => {
  const box = g.extents([SQUARE, [-5, 3, 2, 30, 4, 4]]);
  assert.deepEqual(box, { x0: -5, y0: 0, x1: 10, y1: 30 });
  assert.deepEqual(g.union(box, { x0: 0, y0: -1, x1: 50, y1: 2 }), { x0: -5, y0: -1, x1: 50, y1: 30 });
  assert.equal(g.union(null, box), box);
  assert.deepEqual(g.grown({ x0: 0, y0: 0, x1: 1, y1: 1 }, 2), { x0: -2, y0: -2, x1: 3, y1: 3 });
});

test("overlaps counts boxes that only touch", () => {
  const box = { x0: 0, y0: 0, x1: 1, y1: 1 };
  assert.ok(g.overlaps(box, { x0: 1, y0: 1, x1: 2, y1: 2 }));
  assert.ok(!g.overlaps(box, { x0: 1.01, y0: 0, x1: 2, y1: 1 }));
});

test("contains leaves out a hole", () => {
  const hole = [4, 4, 6, 4, 6, 6, 4, 6];
  assert.ok(g.contains([SQUARE, hole], 1, 1));
  assert.ok(!g.contains([SQUARE, hole], 5, 5));
  assert.ok(!g.contains([SQUARE, hole], 11, 5));
});

test("nearestEdge and nearestVertex name the ring, the place and the way there", () => {
  const far = [100, 100, 110, 100, 110, 110];
  assert.deepEqual(g.nearestEdge([far, SQUARE], 5, -2), { ring: 1, edge: 0, distance: 2, x: 5, y: 0 });
  assert.deepEqual(g.nearestVertex([far, SQUARE], 10, 13), { ring: 1, vertex: 2, distance: 3 });
});

test("moved is held back as a whole at the border", () => {
  assert.deepEqual(g.moved([SQUARE], -5, 95, 100, 100), [[0, 90, 10, 90, 10, 100, 0, 100]]);
  assert.deepEqual(g.moved([SQUARE], 1.5, 0, 100, 100)[0].slice(0, 2), [1.5, 0]);
});

test("corners are set, added and removed without touching the ring that was given", () => {
  assert.deepEqual(g.withVertex([SQUARE], 0, 1, [12, 1])[0].slice(2, 4), [12, 1]);
  assert.deepEqual(g.withVertexAfter([SQUARE], 0, 0, [5, 0])[0], [0, 0, 5, 0, 10, 0, 10, 10, 0, 10]);
  assert.deepEqual(g.withoutVertex([SQUARE], 0, 0), [[10, 0, 10, 10, 0, 10]]);
  assert.equal(g.withoutVertex([[0, 0, 1, 0, 1, 1]], 0, 0), null); // a triangle keeps its corners
  assert.deepEqual(SQUARE, [0, 0, 10, 0, 10, 10, 0, 10]);
});

test("firstCrossing finds crossing lines, untangled turns them around", () => {
  assert.equal(g.firstCrossing(SQUARE), null);
  assert.deepEqual(g.firstCrossing(BOW), [0, 2]);
  const fixed = g.untangled(BOW);
  assert.equal(g.firstCrossing(fixed), null);
  assert.deepEqual([...fixed].sort(), [...BOW].sort()); // the same points in another order
  assert.equal(g.untangled(BOW, 0), null); // no round left
});

test("flawOf says why the server would refuse", () => {
  assert.equal(g.flawOf([]), "few");
  assert.equal(g.flawOf([[0, 0, 1, 1]]), "few");
  assert.equal(g.flawOf([Array.from({ length: 2 * g.MAX_POINTS + 2 }, (_, i) => i)]), "many");
  assert.equal(g.flawOf([BOW]), "crossing");
  assert.equal(g.flawOf([[0, 0, 5, 0, 10, 0]]), "area");
  assert.equal(g.flawOf([SQUARE]), null);
});
