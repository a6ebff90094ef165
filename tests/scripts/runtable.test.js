import assert from "node:assert/strict";
import { test } from "node:test";
import { groups, metricsFirst, nextSort, short, sparkPoints, stat, stretch } from "../../training/static/experiments/runtable.js";

const COLUMNS = [
  { name: "params.lr", label: "lr", kind: "number", values: [0.1, 0.1, 0.01, 0.1] },
  { name: "params.opt", label: "opt", kind: "text", values: ["adam", "sgd", "adam", "adam"] },
  { name: "best(val/acc)", label: "Accuracy", kind: "number", values: [0.5, 0.7, null, 0.7] },
];

test("a group holds every run, and says how many have a figure", () => {
  const [first, second, third] = groups(COLUMNS, ["params.lr", "params.opt"], 4);
  assert.deepEqual([first.values, first.members], [[0.1, "adam"], [0, 3]]);
  assert.deepEqual([second.members, third.members], [[1], [2]]);
  const told = first.stats.get("best(val/acc)");
  assert.equal(told?.n, 2);
  assert.ok(Math.abs((told?.mean ?? 0) - 0.6) < 1e-12);
  assert.ok(Math.abs((told?.deviation ?? 0) - 0.1414213562) < 1e-9);
  assert.equal(third.stats.get("best(val/acc)"), undefined);
});

test("mean and deviation of large numbers that differ by little are exact", () => {
  const told = stat([1e9 + 4, 1e9 + 7, 1e9 + 13, 1e9 + 16, "x", null, NaN]);
  assert.deepEqual([told?.n, told?.mean, told?.low, told?.high], [4, 1e9 + 10, 1e9 + 4, 1e9 + 16]);
  assert.ok(Math.abs((told?.deviation ?? 0) - Math.sqrt(30)) < 1e-6);
  assert.equal(stat([null]), null);
});

test("only the rows in the window are drawn, with some around", () => {
  assert.deepEqual(stretch(1000, 0, 370, 37), { first: 0, end: 20 });
  assert.deepEqual(stretch(1000, 3700, 370, 37), { first: 90, end: 120 });
  assert.deepEqual(stretch(5, 9999, 370, 37), { first: 5, end: 5 });
});

test("columns are called what they hold, and a head pressed twice turns the order round", () => {
  assert.deepEqual(["best(val/ap (1))", "params.a.b", "state"].map(short), ["val/ap (1)", "a.b", "state"]);
  assert.equal(nextSort("-created", "name"), "-name");
  assert.equal(nextSort("-name", "name"), "name");
});

test("a sparkline spans its view, and a curve without change is a line in its middle", () => {
  assert.equal(sparkPoints([null, 0, 1, null]), "2,22.0 94,2.0");
  assert.equal(sparkPoints([3, 3]), "2,12.0 94,12.0");
  assert.equal(sparkPoints([null, 3]), "");
});

test("runs without metrics come last, live ones keep their place", () => {
  const state = { name: "state", label: "State", kind: "state", values: ["succeeded", "running", "succeeded", "failed"] };
  const metric = { name: "best(val/acc)", label: "Accuracy", kind: "number", values: [null, null, 0.7, 0.5] };
  assert.deepEqual(metricsFirst([state, metric], 4, ["running"]), [1, 2, 3, 0]);
  assert.deepEqual(metricsFirst([state], 4, ["running"]), [0, 1, 2, 3]);
});
