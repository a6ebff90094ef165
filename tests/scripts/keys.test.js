import assert from "node:assert/strict";
import { test } from "node:test";
import { keyMap, readable, written } from "../../annotation/static/annotation/keys.js";
import { clashes, effective, give, isKept, nine, reset, swap } from "../../annotation/static/annotation/ownkeys.js";
import { loadDrawn } from "./kinds.js";

await loadDrawn();
const MAP = keyMap();
const entry = (id) => MAP.find((one) => one.id === id);
const pressed = (key, more = {}) => written({ key, code: "", ctrlKey: false, metaKey: false, altKey: false, shiftKey: false, ...more });

test("key map gives no key to two acts", () => {
  const keys = MAP.flatMap(({ keys: own, also = [] }) => [...own, ...also]);
  assert.deepEqual(keys.filter((key, place) => keys.indexOf(key) !== place), []);
});

test("a keydown is written as the map writes it, on every keyboard", () => {
  assert.equal(pressed("z", { ctrlKey: true }), "Ctrl+Z");
  assert.equal(pressed("z", { metaKey: true, shiftKey: true }), "Ctrl+Shift+Z");
  assert.equal(pressed("!", { shiftKey: true, code: "Digit1" }), "Shift+1");
  assert.equal(pressed("?", { shiftKey: true, code: "Slash" }), "?"); // the sign says that Shift is down
  assert.equal(pressed("∫", { altKey: true, code: "KeyB" }), "Alt+B"); // Option+B on a Mac
  assert.equal(readable("Shift+ArrowLeft"), "Shift+←");
});

test("an own key takes the key from the act that had it", () => {
  const own = give({}, MAP, entry("box"), 0, "P");
  assert.deepEqual(own, { box: ["P"] });
  assert.deepEqual(effective(entry("polygon"), own, MAP).keys, []);
  assert.deepEqual(clashes("box", ["P"], {}, MAP).map(({ id }) => id), ["polygon"]);
});

test("swapping gives the other act the key given up", () => {
  assert.deepEqual(swap({}, MAP, entry("box"), 0, "P", entry("polygon")), { box: ["P"], polygon: ["R"] });
});

test("a choice that equals the map is not kept", () => {
  assert.deepEqual(give({ box: ["X"] }, MAP, entry("box"), 0, "R"), {});
});

test("reset frees the map's keys of an act from those that hold them", () => {
  const own = { box: ["P"], polygon: ["R"], select: ["X"] };
  const { own: left, ids } = reset(own, MAP, "box");
  assert.deepEqual(left, { select: ["X"] });
  assert.deepEqual(ids.sort(), ["box", "polygon"]);
  assert.deepEqual(reset({ polygon: ["X"], select: ["Y"] }, MAP, "polygon"), { own: { select: ["Y"] }, ids: ["polygon"] });
});

test("nine keys follow from one, and the page keeps its own", () => {
  assert.deepEqual(nine("Alt+3").slice(0, 2), ["Alt+1", "Alt+2"]);
  assert.equal(give({}, MAP, entry("digit"), 0, "Alt+5").digit.length, 9);
  assert.ok(isKept("Escape") && isKept("Shift+Tab") && !isKept("Q"));
});
