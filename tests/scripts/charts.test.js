import assert from "node:assert/strict";
import { test } from "node:test";
import { aligned, bestOf, columnsOf, csvOf, dashOf, hueOf, lastOf, nearestPlace, placeAfter, smoothed, splitUnit, tipRows } from "../../aiplatform/static/base/chart_data.js";
import { tabOf } from "../../aiplatform/static/base/chart_tools.js";

const X = [1, 2, 3];
const LINES = [
  { name: "a", values: [2, 1, 3], low: [1, 0, 1], high: [3, 2, 4], better: 1 },
  { name: "b", values: [null, 5, null], better: -1 },
];

test("smoothing is a mean that is right from the first value on", () => {
  assert.deepEqual(smoothed([4, 4, 4], 0.9).map((value) => Math.round(Number(value) * 1e9) / 1e9), [4, 4, 4]);
  assert.deepEqual(smoothed([1, 3], 0.5), [1, (0.25 + 1.5) / 0.75]);
  assert.deepEqual(smoothed([1, null, 1], 0.5), [1, null, 1]);
  const values = [1, 2];
  assert.equal(smoothed(values, 0), values);
});

test("a line is drawn with the edges of its band, a line without one alone", () => {
  const { columns, roles } = columnsOf(X, LINES, {});
  assert.deepEqual(columns, [X, [1, 0, 1], [3, 2, 4], [2, 1, 3], [null, 5, null]]);
  assert.deepEqual(roles.map(({ line, role }) => `${line} ${role}`), ["0 low", "0 high", "0 line", "1 line"]);
  assert.equal(columnsOf(X, LINES, { bands: false }).columns.length, 3);
});

test("a smoothed line has its raw values behind it and no band", () => {
  const { columns, roles } = columnsOf(X, LINES, { smooth: 0.5 });
  assert.deepEqual(roles.map(({ line, role }) => `${line} ${role}`), ["0 raw", "0 line", "1 raw", "1 line"]);
  assert.deepEqual(columns[1], [2, 1, 3]);
  assert.deepEqual(columns[2], smoothed([2, 1, 3], 0.5));
  assert.deepEqual(columnsOf(X, [{ ...LINES[0], dots: true }], { smooth: 0.5 }).columns[3], [2, 1, 3]);
});

test("a logarithm has no value at zero", () => {
  assert.deepEqual(columnsOf(X, LINES, { byLog: true }).columns[1], [1, null, 1]);
});

test("twenty runs differ by hue or dashes, the first sixteen by hue alone", () => {
  const looks = Array.from({ length: 20 }, (_, place) => `${hueOf(place)} ${dashOf(place)}`);
  assert.equal(new Set(looks).size, 20);
  assert.equal(new Set(looks.slice(0, 16).map((look) => look.split(" ")[0])).size, 16);
});

test("the last value is the newest there is, the best one goes by the direction that is better", () => {
  assert.equal(lastOf([null, 5, null]), 5);
  assert.equal(lastOf([null]), null);
  assert.deepEqual(bestOf(X, LINES[0]), { value: 3, at: 3 });
  assert.deepEqual(bestOf(X, { ...LINES[0], better: -1 }), { value: 1, at: 2 });
  assert.equal(bestOf(X, { ...LINES[0], better: 0 }), null);
  assert.equal(bestOf(X, { ...LINES[0], best: null }), null);
});

test("a tooltip lists visible lines, the highest first, and counts what it has no room for", () => {
  assert.deepEqual(tipRows(LINES, [1, 5], new Set()).rows.map(({ name }) => name), ["b", "a"]);
  assert.deepEqual(tipRows(LINES, [1, 5], new Set(["b"])).rows.map(({ name }) => name), ["a"]);
  const many = Array.from({ length: 20 }, (_, at) => ({ name: String(at), values: [] }));
  const { rows, more } = tipRows(many, many.map((_, at) => at), new Set());
  assert.deepEqual([rows[0].name, rows.length, more], ["19", 12, 8]);
});

test("a line that reports seldom shows its nearest value, not one from far away", () => {
  const values = new Array(100).fill(null);
  values[50] = 1;
  assert.deepEqual([50, 53, 45, 56].map((at) => nearestPlace(values, at)), [50, 50, 50, null]);
});

test("keys move the crosshair inside of the axis", () => {
  assert.deepEqual(["ArrowRight", "ArrowLeft", "Home", "End", "x"].map((key) => placeAfter(key, false, null, 5)), [0, 4, 0, 4, null]);
  assert.equal(placeAfter("ArrowRight", true, 2, 50), 12);
  assert.equal(placeAfter("ArrowRight", false, 4, 5), 4);
  assert.equal(placeAfter("End", false, null, 0), null);
});

test("the unit leaves the title for the axis", () => {
  assert.deepEqual(splitUnit("GPU memory (MiB)"), ["GPU memory", "MiB"]);
  assert.deepEqual(splitUnit("显存（MiB）"), ["显存", "MiB"]);
  assert.deepEqual(splitUnit("Loss"), ["Loss", ""]);
});

test("a table of a chart holds every line, and no name that a spreadsheet would compute", () => {
  const text = csvOf(X, [{ ...LINES[0], name: "=1+1" }, { ...LINES[1], name: 'a "b", c' }], "step");
  const [head, first, second] = text.split("\r\n");
  assert.equal(head, `step,'=1+1,'=1+1 low,'=1+1 high,"a ""b"", c"`);
  assert.equal(first, "1,2,1,3,");
  assert.equal(second, "2,1,0,2,5");
});

test("lines with steps of their own are put on one axis", () => {
  assert.deepEqual(aligned([[[1, 3], [5, 6]], [[2], [7]]]), { x: [1, 2, 3], columns: [[5, null, 6], [null, 7, null]] });
  const own = /** @type {[number[], number[]]} */ ([[1], [2]]);
  assert.equal(aligned([own]).columns[0], own[1]);
});

test("what nodes use is apart from what programs report", () => {
  assert.deepEqual(["system/cpu", "val/ap50", "system"].map(tabOf), ["system", "model", "model"]);
});
