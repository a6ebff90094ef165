import assert from "node:assert/strict";
import { test } from "node:test";
import { axisOf, axisOfValues, front, history, isInside, placeOf, shades, ticksOf } from "../../training/static/studies/figures.js";

const LOW = { key: "loss", direction: "minimize", take: "last" };
const HIGH = { key: "speed", direction: "maximize", take: "last" };
const trial = (number, values, state = "complete") => ({ number, state, training: number, params: { x: number }, values, best: false });

test("the best so far falls with completed trials alone", () => {
  const trials = [trial(0, [3]), trial(1, [1], "pruned"), trial(2, [2]), trial(3, [], "failed"), trial(4, [5])];
  assert.deepEqual(history(trials, LOW), [[0, 1, 2, 3, 4], [3, null, 2, null, 5], [null, 1, null, null, null], [3, 3, 2, 2, 2]]);
  assert.deepEqual(history(trials, HIGH)[3], [3, 3, 3, 3, 5]);
});

test("a value has its place by number, by magnitude or by choice", () => {
  assert.equal(placeOf(axisOf({ name: "x", type: "float", low: 0, high: 10 }), 5), 0.5);
  assert.ok(Math.abs((placeOf(axisOf({ name: "lr", type: "float", low: 0.001, high: 0.1, log: true }), 0.01) ?? 0) - 0.5) < 1e-9);
  const modes = axisOf({ name: "mode", type: "categorical", choices: ["a", true, 3] });
  assert.deepEqual([placeOf(modes, "a"), placeOf(modes, true), placeOf(modes, 3), placeOf(modes, "z")], [0, 0.5, 1, null]);
  assert.equal(placeOf(axisOf({ name: "x", type: "int", low: 4, high: 4 }), 4), 0.5);
  assert.equal(placeOf(axisOf({ name: "x", type: "float", low: 0, high: 1 }), Number.NaN), null);
  assert.deepEqual(ticksOf(axisOf({ name: "x", type: "float", low: 0, high: 4 }), String), [[0, "0"], [0.5, "2"], [1, "4"]]);
});

test("an axis of values that are all the same has a length", () => {
  assert.deepEqual(axisOfValues(LOW, [trial(0, [2])]), { name: "loss", choices: null, log: false, low: 2, high: 3 });
  assert.deepEqual(axisOfValues(LOW, []), { name: "loss", choices: null, log: false, low: 0, high: 1 });
});

test("the best fifth is the darkest, whichever direction is wanted", () => {
  const trials = [0, 1, 2, 3, 4].map((n) => trial(n, [n]));
  assert.deepEqual([...shades(trials, LOW)].sort(), [[0, 4], [1, 3], [2, 2], [3, 1], [4, 0]]);
  assert.equal(shades(trials, HIGH).get(4), 4);
});

test("chosen parts of axes leave only what lies in all of them", () => {
  const chosen = new Map([[0, [0.2, 0.4]], [2, [0, 1]]]);
  assert.equal(isInside([0.3, null, 0.5], chosen), true);
  assert.equal(isInside([0.5, 0.3, 0.5], chosen), false);
  assert.equal(isInside([0.3, 0.3, null], chosen), false);
  assert.equal(isInside([null], new Map()), true);
});

test("the front holds what nothing beats in both goals", () => {
  const trials = [trial(0, [1, 1]), trial(1, [2, 5]), trial(2, [3, 4]), trial(3, [0.5, 0.5]), trial(4, [9, 9], "pruned")];
  assert.deepEqual(front(trials, [LOW, HIGH]).map(({ number }) => number), [3, 0, 1]);
});
