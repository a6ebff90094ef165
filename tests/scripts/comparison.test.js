import assert from "node:assert/strict";
import { test } from "node:test";
import { dashOf, lines, shadeOf } from "../../training/static/training/comparison.js";
import { smoothed } from "../../workers/static/workers/curves.js";

const FOUND = {
  x: [1, 2, 3],
  runs: [
    { points: 3, low: [1, 0, 1], mean: [2, 1, 3], high: [3, 2, 4] },
    { points: 1, low: [null, 5, null], mean: [null, 5, null], high: [null, 5, null] },
  ],
};
const PLAIN = { smooth: 0, byLog: false, bands: true };

test("each training is drawn by its mean and, as edges of a band, its lowest and highest", () => {
  assert.deepEqual(lines(FOUND, PLAIN, smoothed), [[1, 2, 3], [2, 1, 3], [1, 0, 1], [3, 2, 4], [null, 5, null], [null, 5, null], [null, 5, null]]);
  assert.deepEqual(lines(FOUND, { ...PLAIN, bands: false }, smoothed), [[1, 2, 3], [2, 1, 3], [null, 5, null]]);
});

test("a smoothed line has no band", () => {
  const [, mean, ...rest] = lines(FOUND, { ...PLAIN, smooth: 0.5 }, smoothed);
  assert.equal(mean.length, 3);
  assert.equal(rest.length, 1);
});

test("a logarithm has no value at nought", () => {
  assert.deepEqual(lines(FOUND, { ...PLAIN, byLog: true }, smoothed)[2], [1, null, 1]);
});

test("twenty trainings are told apart by colour and dashes", () => {
  const looks = Array.from({ length: 20 }, (_, place) => `${shadeOf(place)} ${dashOf(place)}`);
  assert.equal(new Set(looks).size, 20);
});
