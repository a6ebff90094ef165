import assert from "node:assert/strict";
import { test } from "node:test";
import { Scene } from "../../annotation/static/annotation/scene.js";
import { Store } from "../../annotation/static/annotation/store.js";
import { inkOn } from "../../annotation/static/annotation/names.js";
import { Settings } from "../../annotation/static/annotation/settings.js";
import { Viewport } from "../../annotation/static/annotation/viewport.js";

const shape = (id, x = 0) => ({ id, kind: "polygon", label: 1, rings: [[x, 0, x + 5, 0, x + 5, 5]] });

function drawn(...shapes) {
  const scene = new Scene({ width: 100, height: 100 });
  const written = [];
  const store = new Store(scene, (changes) => written.push(changes), () => true);
  for (const one of shapes) store.add(one);
  return { scene, store, written };
}

test("undo takes back own work and leaves what somebody else changed since", () => {
  const { scene, store } = drawn(shape("a"), shape("b"));
  store.commit(["a", "b"].map((id) => ({ id, before: scene.get(id), after: shape(id, 10) })));
  scene.apply([{ id: "a", before: scene.get("a"), after: shape("a", 50) }]); // theirs
  let said = 0;
  store.addEventListener("overtaken", () => said++);

  assert.equal(store.undo(), true);

  assert.deepEqual([scene.get("a").rings[0][0], scene.get("b").rings[0][0], said], [50, 0, 1]);
  assert.equal(store.redo(), true);
  assert.deepEqual([scene.get("a").rings[0][0], scene.get("b").rings[0][0], said], [50, 10, 1]);
});

test("undo of nothing but overtaken work changes nothing and is dropped", () => {
  const { scene, store, written } = drawn(shape("a"));
  scene.apply([{ id: "a", before: scene.get("a"), after: null }]); // theirs
  const before = written.length;

  assert.equal(store.undo(), false);

  assert.deepEqual([written.length, store.done.length, store.undone.length, scene.shapes.size], [before, 0, 0, 0]);
});

test("undo knows a shape again that was kept as a copy", () => {
  const { scene, store } = drawn(shape("a"));
  store.open(structuredClone({ done: store.done, undone: [] }));

  assert.equal(store.undo(), true);
  assert.equal(scene.shapes.size, 0);
});

test("a locked shape is not changed and not found by a point", () => {
  const { scene, store } = drawn(shape("a"));
  scene.lock("a", true);
  let said = 0;
  store.addEventListener("locked", () => said++);

  store.remove([scene.get("a")]);

  assert.deepEqual([scene.shapes.size, said, scene.at(4, 1, 1)], [1, 1, null]);
  scene.lock("a", false);
  store.remove([scene.get("a")]);
  assert.equal(scene.shapes.size, 0);
});

test("names are black or white, whichever reads better", () => {
  assert.deepEqual(["#e0b000", "#911eb4", "#ffffff", "#000000"].map(inkOn), ["#000000", "#ffffff", "#000000", "#ffffff"]);
});

test("the view keeps zoom and place at the next image, unless it is fitted", () => {
  const view = new Viewport();
  view.resize(800, 600);
  view.show({ width: 100, height: 100 });
  view.show({ width: 200, height: 100 }, { keep: true });
  assert.ok(view.fitted);
  view.zoomAt(400, 300, 4);
  const scale = view.scale;
  view.centreOn(50, 25);
  view.show({ width: 400, height: 200 }, { keep: true });
  assert.deepEqual([view.scale, view.toImage(400, 300)], [scale, [100, 50]]);
  view.show({ width: 400, height: 200 });
  assert.ok(view.fitted);
});

test("settings are kept per person, hold within their ranges, and survive nonsense", () => {
  localStorage.clear();
  const mine = new Settings(1);
  for (let n = 0; n < 99; n++) mine.step("fill", 1);
  mine.toggle("strip");
  assert.deepEqual([mine.get("fill"), new Settings(1).get("fill"), new Settings(1).get("strip")], [90, 90, true]);
  assert.equal(new Settings(2).get("fill"), 18);
  localStorage.setItem("aip-annotator-1", '{"fill": "much", "line": 99, "strip": 1, "other": true}');
  const read = new Settings(1);
  assert.deepEqual([read.get("fill"), read.get("line"), read.get("strip")], [18, 6, false]);
  localStorage.setItem("aip-annotator-1", "no JSON");
  assert.equal(new Settings(1).get("fill"), 18);
});
