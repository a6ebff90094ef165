import assert from "node:assert/strict";
import { test } from "node:test";
import { marks, svgOf } from "../../aiplatform/static/base/chart_svg.js";

const CHART = {
  title: "val/ap <&>", xs: [0, 1, 2], x: [0, 2], y: [0, 1], byLog: false, bands: [],
  lines: [{ label: "a <b>", stroke: "#123456", width: 2, dash: [4, 2], values: [0, null, 1] }],
  ink: "#000", grid: "#ccc", paper: "#fff", words: { x: String, y: String },
};

test("marks are round numbers between both ends, powers of ten on a logarithmic axis", () => {
  assert.deepEqual(marks(0, 1, false), [0, 0.2, 0.4, 0.6, 0.8, 1]);
  assert.deepEqual(marks(-3, 7, false), [-2, 0, 2, 4, 6]);
  assert.deepEqual(marks(0.001, 1, true), [0.001, 0.01, 0.1, 1]);
  assert.deepEqual(marks(2, 3, true), marks(2, 3, false)); // less than a power apart
  assert.deepEqual(marks(5, 5, false), [5]);
});

test("a chart is one SVG of its own, with every word escaped and gaps joined", () => {
  const text = svgOf(CHART);
  assert.match(text, /^<svg xmlns="http:\/\/www\.w3\.org\/2000\/svg"/);
  assert.match(text, /<title>val\/ap &#60;&#38;&#62;<\/title>/);
  assert.match(text, /a &#60;b&#62;/);
  assert.match(text, /d="M64 386L944 34" fill="none" stroke="#123456" stroke-width="2" stroke-dasharray="4 2"/);
  assert.doesNotMatch(text, /NaN|undefined|Infinity/);
});

test("what has no place on a logarithmic axis is left out, one point alone is a dot, and a band goes round", () => {
  const lines = [{ label: "a", stroke: "red", width: 1, dash: [], values: [0, null, 1] }];
  const bands = [{ upper: [2, 2, 2], lower: [1, 1, 1], fill: "blue" }];
  const text = svgOf({ ...CHART, byLog: true, y: [0.1, 10], lines, bands });
  assert.match(text, /<circle cx="944" cy="210" r="3" fill="red"/);
  assert.equal((text.match(/<path/g) ?? []).length, 1);
  assert.match(text, /Z" fill="blue"/);
});
