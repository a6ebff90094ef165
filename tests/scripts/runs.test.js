import assert from "node:assert/strict";
import { test } from "node:test";
import { eachStretch, lengthsOf } from "../../inference/static/inference/runs.js";

// Written by pycocotools: rows 1 and 2 of columns 1 to 4 of a 4×6 mask, and all of column 5.
const MASK = { size: [4, 6], counts: "52200000O2" };

test("runs of a compressed mask are read, also where one is shorter than the one before the last", () => {
  assert.deepEqual(lengthsOf(MASK.counts), [5, 2, 2, 2, 2, 2, 2, 2, 1, 4]);
  assert.deepEqual(lengthsOf(""), []);
});

test("runs of many pixels take several letters", () => {
  // 300×200: rows 100 to 249 of columns 50 to 119, rows 10 to 19 of column 150
  const lengths = lengthsOf(`lg>f4f4${"0".repeat(137)}^f8dKPi5`);

  assert.deepEqual(lengths.slice(0, 3), [15100, 150, 150]);
  assert.equal(lengths.at(-2), 10);
  assert.equal(lengths.reduce((sum, length) => sum + length, 0), 300 * 200);
});

test("runs are stretches of single columns", () => {
  const covered = [];
  eachStretch(MASK, (column, top, bottom) => covered.push([column, top, bottom]));

  assert.deepEqual(covered, [[1, 1, 3], [2, 1, 3], [3, 1, 3], [4, 1, 3], [5, 0, 4]]);

  const tall = [];
  eachStretch({ size: [3, 3], counts: "18" }, (...one) => tall.push(one)); // a run over the end of a column
  assert.deepEqual(tall, [[0, 1, 3], [1, 0, 3], [2, 0, 3]]);
});
