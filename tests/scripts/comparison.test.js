import assert from "node:assert/strict";
import { test } from "node:test";
import { alike, asCsv, dashOf, grouped, lines, shadeOf } from "../../training/static/training/comparison.js";
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

test("runs of a group are drawn as their mean with a deviation of a sample around it, by all that have a point there", () => {
  const found = grouped(FOUND, [[0, 1]]);
  assert.deepEqual(found.runs[0].mean, [2, 3, 3]);
  assert.deepEqual(found.runs[0].points, 4);
  assert.ok(Math.abs((found.runs[0].high[1] ?? 0) - (3 + Math.sqrt(8))) < 1e-12);
  assert.deepEqual([found.runs[0].low[0], found.runs[0].high[0]], [2, 2]);
  assert.deepEqual(alike(["a", "b", "a"]), [["a", [0, 2]], ["b", [1]]]);
});

test("a table of the curves holds every line, and no name that a spreadsheet would compute", () => {
  const text = asCsv(FOUND, ["=1+1", 'a "b", c'], "step");
  const [head, first, second] = text.split("\r\n");
  assert.equal(head, `step,'=1+1,'=1+1 low,'=1+1 high,"a ""b"", c","a ""b"", c low","a ""b"", c high"`);
  assert.equal(first, "1,2,1,3,,,");
  assert.equal(second, "2,1,0,2,5,5,5");
});
