import assert from "node:assert/strict";
import { test } from "node:test";
import { colorTokenOf } from "../../aiplatform/static/base/class_colors.js";

test("the color of a class follows its place in the list, not its id", () => {
  assert.equal(colorTokenOf([11, 12, 40], 11), "--chart-1");
  assert.equal(colorTokenOf([11, 12, 40], 40), "--chart-3");
  assert.equal(colorTokenOf([0, 1, 2, 3, 4, 5, 6, 7, 8], 8), "--chart-9");
  assert.equal(colorTokenOf([], 17), "--chart-2");
});
