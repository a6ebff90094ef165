// Charts of the run table, from its columns.
import assert from "node:assert/strict";
import test from "node:test";

import { axes, entries, options, placed } from "../../training/static/experiments/runfigures.js";

const table = {
  runs: [{ id: 7, name: "a" }, { id: 8, name: "b" }, { id: 9, name: "c" }, { id: 10, name: "d" }],
  columns: [
    { name: "best(val/ap)", label: "AP", kind: "number", values: [0.5, 0.9, null, 0.7] },
    { name: "params.lr", label: "lr", kind: "number", values: [0.001, 0.1, 0.01, null] },
    { name: "params.mode", label: "mode", kind: "text", values: ["x", "y", "x", "x"] },
    { name: "params.same", label: "same", kind: "number", values: [1, 1, 1, 1] },
  ],
};
const how = { figure: "best(val/ap)", hue: "", chosen: new Set(), direction: "maximize", address: "/r/" };

test("parameters that differ stand first, and nothing is offered without any", () => {
  const known = [
    { name: "best(val/ap)", label: "AP", values: 1 },
    { name: "params.lr", label: "lr", values: 3 },
    { name: "params.same", label: "same", values: 1 },
    { name: "tags.x", label: "x", values: 1 },
  ];

  assert.deepEqual(options(known), { figures: [["best(val/ap)", "AP"]], others: [["params.lr", "lr"], ["best(val/ap)", "AP"]] });
  assert.deepEqual(options(known.slice(0, 1)).others, []);
});

test("runs without the figure are left out, the best is marked, and chosen ones are drawn alone", () => {
  const all = entries(table, how);
  const low = entries(table, { ...how, direction: "minimize" });
  const some = entries(table, { ...how, chosen: new Set([7, 9]) });

  assert.deepEqual(all.map(({ name, best, href }) => [name, best, href]), [["a", false, "/r/7/"], ["b", true, "/r/8/"], ["d", false, "/r/10/"]]);
  assert.deepEqual(low.map(({ best }) => best), [true, false, false]);
  assert.deepEqual(some.map(({ name }) => name), ["a"]);
});

test("shades go by the figure, or by the order of another column", () => {
  assert.deepEqual(entries(table, how).map(({ shade }) => shade), [0, 3, 1]);
  assert.deepEqual(entries(table, { ...how, hue: "params.lr" }).map(({ shade }) => shade), [0, 4, undefined]);
  assert.deepEqual(entries(table, { ...how, hue: "params.mode" }).map(({ shade }) => shade), [0, 4, 0]);
});

test("an axis is a number, by its magnitude where it spans one, or words; not what is the same for all", () => {
  const rows = entries(table, how);

  assert.deepEqual(axes(table.columns.slice(1), rows), [
    { name: "lr", type: "float", low: 0.001, high: 0.1, log: true },
    { name: "mode", type: "categorical", choices: ["x", "y"] },
  ]);
});

test("both axes of a scatter chart hold all of its dots, one value alone too", () => {
  const rows = entries(table, how);
  const { x, y, dots } = placed(table.columns[3], table.columns[0], rows);
  const words = placed(table.columns[2], table.columns[0], rows);

  assert.deepEqual([x.low, x.high, y.low, y.high], [1, 1, 0.5, 0.9]);
  assert.deepEqual(dots.map(({ x: a, y: b }) => [a, b]), [[1, 0.5], [1, 0.9], [1, 0.7]]);
  assert.deepEqual(words.x.choices, ["x", "y"]);
});
