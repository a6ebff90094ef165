// What runs show besides curves, as numbers to draw.
import assert from "node:assert/strict";
import test from "node:test";

import { bands, opens, ridges, rows, within } from "../../training/static/training/shapes.js";

const size = { width: 100, height: 60, top: 20 };
const bell = (low, high) => ({ low, high, counts: [1, 4, 1], bands: [low, (low + high) / 2, high] });

test("ridges share one axis, and the newest stands in front at the bottom", () => {
  const { low, high, outlines } = ridges([{ step: 0, facts: bell(0, 1) }, { step: 9, facts: bell(1, 2) }], size);

  assert.deepEqual([low, high], [0, 2]);
  assert.deepEqual(outlines.map(({ step, base }) => [step, base]), [[0, 40], [9, 60]]);
  assert.deepEqual(outlines[0].points[0], [0, 40]);
  assert.deepEqual(outlines[1].points.at(-1), [100, 60]);
  assert.ok(outlines.flatMap(({ points }) => points).every(([x, y]) => x >= 0 && x <= 100 && y >= 0 && y <= 60));
});

test("ridges of values that are all one are drawn all the same", () => {
  const { outlines } = ridges([{ step: 0, facts: { low: 3, high: 3, counts: [7], bands: [3] } }], size);

  assert.ok(outlines[0].points.flat().every(Number.isFinite));
});

test("bands go from the outside in and lie on the steps", () => {
  const { areas, middle, first, last } = bands([{ step: 0, facts: bell(0, 1) }, { step: 10, facts: bell(0, 2) }], size);

  assert.deepEqual([areas.length, first, last], [1, 0, 10]);
  assert.deepEqual(middle, [[0, 45], [100, 30]]);
  assert.deepEqual(areas[0], [[0, 60], [100, 60], [100, 0], [0, 30]]);
});

const NODES = [["a/x", "Add", []], ["a/y", "Mul", [0]], ["b", "Relu", [1]], ["a/z", "Sub", [2]]];

test("a scope is one box that gets what any node in it gets", () => {
  const [a, b] = within(NODES, "");

  assert.deepEqual([a.name, a.count, [...a.inputs], opens(a)], ["a", 3, ["b"], true]);
  assert.deepEqual([b.op, [...b.inputs], opens(b)], ["Relu", ["a"], false]);
  assert.deepEqual(within(NODES, "a").map(({ label }) => label), ["x", "y", "z"]);
});

test("rows go from inputs down, also where boxes stand in a circle", () => {
  assert.deepEqual(rows(within(NODES, "a")).map((row) => row.map(({ label }) => label)), [["x", "z"], ["y"]]);
  assert.deepEqual(rows(within(NODES, "")).flat().length, 2);
});
