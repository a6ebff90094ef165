// What a dataset is called after the files that people chose.
import assert from "node:assert/strict";
import { test } from "node:test";
import { titleOf } from "../../datasets/static/datasets/choosing.js";

const named = (...paths) => titleOf(paths.map((path) => ({ path })));

test("title of an archive or a folder is its name", () => {
  assert.equal(named("blood cells.tar.gz"), "blood cells");
  assert.equal(named("cells/a.jpg", "cells/b/c.jpg"), "cells");
  assert.equal(named("细胞.zip"), "细胞");
});

test("title of loose images is what their names have in common", () => {
  assert.equal(named("BloodImage_00000.jpg", "BloodImage_00013.jpg"), "BloodImage");
  assert.equal(named("IMG-1.png", "IMG-22.png"), "IMG");
});

test("title of images that have nothing in common is the first one's name", () => {
  assert.equal(named("cat.jpg", "dog.jpg"), "cat");
  assert.equal(named("0001.jpg", "0002.jpg"), "0001");
});

test("title holds only what a name may hold", () => {
  assert.equal(named("[draft] my: cells?.zip"), "draft my cells");
  assert.equal(named(`${"x".repeat(80)}.zip`).length, 50);
  assert.equal(named("….zip"), "");
});
