import assert from "node:assert/strict";
import { test } from "node:test";
import { Grid } from "../../annotation/static/annotation/grid.js";
import { Scene } from "../../annotation/static/annotation/scene.js";
import { MAX_SCALE, Viewport } from "../../annotation/static/annotation/viewport.js";

const viewport = () => {
  const made = new Viewport();
  made.resize(1000, 500);
  made.show({ width: 2000, height: 500 });
  return made;
};
const box = (x0, y0, x1, y1) => ({ x0, y0, x1, y1 });
const shape = (id, x, y, size, label = 1) => ({ id, kind: "bbox", label, rings: [[x, y, x + size, y, x + size, y + size, x, y + size]] });

test("viewport fits an image with a margin and in the middle", () => {
  const view = viewport();
  assert.equal(view.scale, 952 / 2000);
  assert.deepEqual(view.toScreen(1000, 250), [500, 250]);
  assert.ok(view.fitted);
});

test("viewport zooms around the point under the pointer", () => {
  const view = viewport();
  const before = view.toImage(100, 240);
  view.zoomAt(100, 240, 3);
  const after = view.toImage(100, 240);
  assert.ok(Math.abs(before[0] - after[0]) < 1e-9 && Math.abs(before[1] - after[1]) < 1e-9);
  assert.ok(!view.fitted);
});

test("viewport zooms no further than single pixels and a quarter of the window", () => {
  const view = viewport();
  view.zoomAt(500, 250, 1e9);
  assert.equal(view.scale, MAX_SCALE);
  view.zoomAt(500, 250, 1e-9);
  assert.equal(view.scale, view.fitScale / 4);
});

test("viewport lets no image be pushed out of the window", () => {
  const view = viewport();
  view.panBy(1e6, -1e6);
  const { x1, y0 } = view.visible;
  assert.ok(x1 > 0 && y0 < 500);
});

test("viewport keeps the middle when the window changes, and fits again where it fitted", () => {
  const fitted = viewport();
  fitted.resize(500, 500);
  assert.equal(fitted.scale, fitted.fitScale);
  const zoomed = viewport();
  zoomed.oneToOne();
  const middle = zoomed.toImage(500, 250);
  zoomed.resize(600, 300);
  assert.deepEqual(zoomed.toImage(300, 150), middle);
  assert.equal(zoomed.scale, 1);
});

test("grid finds what touches a box, also shapes over many cells", () => {
  const grid = new Grid(640, 640);
  grid.put("small", box(10, 10, 20, 20));
  grid.put("large", box(0, 0, 640, 640));
  grid.put("away", box(600, 600, 610, 610));
  assert.deepEqual([...grid.query(box(20, 20, 30, 30))].sort(), ["large", "small"]);
  assert.equal(grid.query(box(-100, -100, 1000, 1000)).size, 3);
});

test("grid forgets what was moved or removed", () => {
  const grid = new Grid(640, 640);
  grid.put("a", box(10, 10, 20, 20));
  grid.put("a", box(300, 300, 310, 310));
  assert.equal(grid.query(box(0, 0, 50, 50)).size, 0);
  grid.remove("a");
  assert.equal(grid.query(box(0, 0, 640, 640)).size, 0);
});

test("scene means the smallest shape under a point, and none that is hidden", () => {
  const scene = new Scene({ width: 100, height: 100 });
  scene.apply([shape("big", 0, 0, 80), shape("small", 10, 10, 10, 2)].map((after) => ({ id: after.id, before: null, after })));
  assert.equal(scene.at(15, 15, 1).id, "small");
  scene.hideClass(2, true);
  assert.equal(scene.at(15, 15, 1).id, "big");
  assert.equal(scene.at(95, 95, 1), null);
  assert.equal(scene.at(81, 40, 2).id, "big"); // an outline within reach
});

test("scene counts classes and drops what is deleted from the choice", () => {
  const scene = new Scene({ width: 100, height: 100 });
  const [a, b] = [shape("a", 0, 0, 5), shape("b", 0, 0, 5)];
  scene.apply([a, b].map((after) => ({ id: after.id, before: null, after })));
  scene.select(["a", "b", "unknown"]);
  assert.equal(scene.counts.get(1), 2);
  scene.apply([{ id: "a", before: a, after: null }, { id: "b", before: b, after: { ...b, label: 2 } }]);
  assert.deepEqual(scene.selection.map(({ id }) => id), ["b"]);
  assert.deepEqual([scene.counts.get(1), scene.counts.get(2)], [0, 1]);
  assert.equal(scene.get("b").z, 2); // a changed shape keeps its place
});
