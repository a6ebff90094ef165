import assert from "node:assert/strict";
import { test } from "node:test";
import { Scene } from "../../annotation/static/annotation/scene.js";
import { allKinds, kindNamed, kindOf } from "../../annotation/static/annotation/shapes/registry.js";
import { loadDrawn } from "./kinds.js";

await loadDrawn();
const RING = [0, 0, 10, 0, 10, 20, 0, 20];
const box = kindNamed("bbox");
const polygon = kindNamed("polygon");

test("kinds come in the order the page was given them", () => {
  assert.deepEqual(allKinds().map(({ tool }) => tool), ["box", "polygon"]);
});

test("a box is taken by its sides and stays a box", () => {
  assert.deepEqual(box.gripAt([RING], 5, 20.5, 1), { kind: "side", side: [0.5, 1] });
  assert.deepEqual(box.dragged([RING], { kind: "side", side: [1, 1] }, [-4, 30]), [[-4, 0, 0, 0, 0, 30, -4, 30]]);
  assert.equal(box.gripAt([RING], 5, 10, 1), null);
  assert.equal(box.cursor({ side: [0, 1] }), "nesw-resize");
  assert.equal(box.size([RING], { x0: 0, y0: 0, x1: 10, y1: 20 }), "10×20");
});

test("a polygon is taken by corners before edges, gets corners and loses all but three", () => {
  assert.equal(polygon.gripAt([RING], 0.5, 0, 2).kind, "vertex");
  const edge = polygon.gripAt([RING], 5, 0.5, 2);
  assert.deepEqual([edge.kind, edge.edge], ["edge", 0]);
  const more = polygon.added([RING], edge, [5, -3]);
  assert.deepEqual(more, [[0, 0, 5, -3, 10, 0, 10, 20, 0, 20]]);
  const fewer = polygon.removed([RING], { ring: 0, vertex: 3 });
  assert.deepEqual(fewer, [[0, 0, 10, 0, 10, 20]]);
  assert.equal(polygon.removed(fewer, { ring: 0, vertex: 0 }), null);
  assert.equal(polygon.sentence("few"), "A polygon must have at least 3 corners.");
});

test("outlines are judged, moved and kept inside the image", () => {
  assert.equal(polygon.flaw([[0, 0, 10, 10, 10, 0, 0, 10]]), "crossing");
  assert.equal(box.flaw([RING]), null);
  assert.deepEqual(polygon.moved([RING], -5, 100, 40, 30), [[0, 10, 10, 10, 10, 30, 0, 30]]);
});

test("a shape of a kind this page does not know is seen all the same", () => {
  const shape = { id: "1", kind: "star", label: 1, rings: [RING] };
  const scene = new Scene({ width: 40, height: 30 });
  scene.apply([{ id: "1", before: null, after: shape }]);

  assert.equal(scene.at(5, 5, 1), shape);
  assert.equal(scene.at(30, 5, 1), null);
  assert.equal(kindOf(shape).gripAt(shape.rings, 0, 0, 1).kind, "vertex");
});
