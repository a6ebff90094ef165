import assert from "node:assert/strict";
import { test } from "node:test";
import { alike, grouped } from "../../training/static/training/comparison.js";

const FOUND = {
  x: [1, 2, 3],
  runs: [
    { points: 3, low: [1, 0, 1], mean: [2, 1, 3], high: [3, 2, 4] },
    { points: 1, low: [null, 5, null], mean: [null, 5, null], high: [null, 5, null] },
  ],
};
test("runs of a group are drawn as their mean with a deviation of a sample around it, by all that have a point there", () => {
  const found = grouped(FOUND, [[0, 1]]);
  assert.deepEqual(found.runs[0].mean, [2, 3, 3]);
  assert.deepEqual(found.runs[0].points, 4);
  assert.ok(Math.abs((found.runs[0].high[1] ?? 0) - (3 + Math.sqrt(8))) < 1e-12);
  assert.deepEqual([found.runs[0].low[0], found.runs[0].high[0]], [2, 2]);
  assert.deepEqual(alike(["a", "b", "a"]), [["a", [0, 2]], ["b", [1]]]);
});
