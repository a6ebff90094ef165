import assert from "node:assert/strict";
import { test } from "node:test";
import { alongRecall, placeOf, rates } from "../../inference/static/inference/rates.js";

// of two classes, by inference/evaluation/presentation/curves.py: see tests/inference/test_telling_curves.py
const MEANS = [
  { recall: 1, precision: 0.375, answered: 2 },
  { recall: 0.875, precision: 0.625, answered: 2 },
  { recall: 0.625, precision: 1, answered: 2 },
  { recall: 0, precision: 0, answered: 0 },
];

test("figures count nothing as zero", () => {
  assert.deepEqual(rates(0, 0, 0), { precision: 0, recall: 0, f1: 0 });
  assert.equal(rates(3, 1, 4).f1, 0.75);
});

test("an evaluation opens at its own threshold, also at that of a classifier", () => {
  assert.equal(placeOf([0, 0.5, 1], 0), 0);
  assert.equal(placeOf([0, 0.5, 1], 0.5001), 1);
});

test("the curve of all classes goes through the point of every threshold", () => {
  const means = MEANS;
  const recalls = [0, 0.25, 0.5, 0.75, 1];

  const [places, mean] = alongRecall(recalls, means, []);

  const drawn = places.map((recall, at) => [recall, mean[at]]).filter(([, precision]) => precision !== null);
  assert.deepEqual(drawn, [...means].reverse().filter((one) => one.answered).map((one) => [one.recall, one.precision]));
  assert.deepEqual(places, [...places].sort((a, b) => a - b));
  assert.deepEqual(drawn[0], [(0.25 + 1) / 2, 1]); // at the highest threshold nothing is answered, and nothing drawn
});

test("the curve of a class keeps its values at its places", () => {
  const own = [1, 0.9, 0.8, 0.7, 0.6];

  const [places, , values] = alongRecall([0, 0.25, 0.5, 0.75, 1], MEANS, [own]);

  assert.deepEqual(values.filter((one) => one !== null), own);
  assert.equal(places[values.indexOf(0.8)], 0.5);
});
