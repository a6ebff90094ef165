import assert from "node:assert/strict";
import { test } from "node:test";
import { Catalogue } from "../../inference/static/pipelines/catalogue.js";
import { differences } from "../../inference/static/pipelines/differences.js";
import * as edits from "../../inference/static/pipelines/edits.js";
import { Sizes, distance } from "../../inference/static/pipelines/geometry.js";
import { landings, refusal, sources, targets } from "../../inference/static/pipelines/links.js";
import { placed, problemsOf } from "../../inference/static/pipelines/problems.js";
import { Obstacles } from "../../inference/static/pipelines/routes.js";
import { layoutOf, read, unfit, write } from "../../inference/static/pipelines/spec.js";

const port = (text) => {
  const [name, type] = text.split(":");
  return { name: name.replace(/[?*]/, ""), label: name, type, optional: name.includes("?"), many: name.includes("*") };
};
const kind = (name, inputs, outputs, params = []) => ({ name, label: name, group: "data", inputs: inputs.map(port), outputs: outputs.map(port), params });
const catalogue = new Catalogue({
  types: { dataset: { label: "Dataset" }, model: { label: "Model" }, figures: { label: "Figures" }, signal: { label: "Answer" }, list: { label: "List" } },
  groups: [{ name: "data", label: "Data" }],
  kinds: [
    kind("dataset", [], ["data:dataset"], [{ name: "dataset", label: "Dataset", form: "text", required: true }]),
    kind("train", ["data:dataset", "weights?:model"], ["model:model", "figures:figures"], [{ name: "epochs", label: "Epochs", form: "whole", low: 1, high: 9 }]),
    kind("evaluate", ["model:model", "data:dataset"], ["figures:figures"]),
    kind("gate", ["figures*:figures"], ["passed:signal", "refused:signal"]),
    kind("items", [], ["items:list"]),
    kind("command", ["input?:any"], [], [{ name: "command", label: "Command", form: "long" }]),
  ],
});
const SPEC = {
  format: 1,
  later: { top: true },
  parameters: { preset: { default: "small", note: "which" } },
  steps: {
    cells: { kind: "dataset", with: { dataset: `BCCD ${placed("preset")} $${placed("preset")}` } },
    judge: { from: { data: "cells.data", model: "train.model" }, kind: "evaluate", unknown: [1, { b: 1 }] },
    ok: { from: { figures: ["judge.figures", "train.figures"] }, kind: "gate", note: "why" },
    run: { after: ["cells", "train"], each: "things.items", kind: "command", retries: 2, rule: "all_done", tolerate: 0.5, when: "ok.passed", with: { command: placed("item") } },
    things: { kind: "items" },
    train: { from: { data: "cells.data" }, kind: "train", with: { epochs: 3 } },
  },
};
const LAYOUT = { cells: [0, 0], judge: [2, 3], ok: [4, 5], run: [6, 7], things: [8, 9], train: [-1, 20] };
const opened = (spec = SPEC, layout = LAYOUT) => read(catalogue, structuredClone(spec), structuredClone(layout));
const text = (graph) => JSON.stringify([write(graph), layoutOf(graph)]);

test("a spec comes out as it went in, with parts this editor does not know", () => {
  const graph = opened();

  assert.deepEqual(write(graph), SPEC);
  assert.deepEqual(layoutOf(graph), LAYOUT);
  const spread = { steps: { b: { with: {}, kind: "gate", from: { figures: ["a.figures"] }, retries: 0, rule: "all_ok", after: ["z", "a", "z"], note: "", when: "" }, a: { kind: "train" } } };
  assert.equal(JSON.stringify(write(opened(spread, {}))), '{"format":1,"steps":{"a":{"kind":"train"},"b":{"after":["a","z"],"from":{"figures":"a.figures"},"kind":"gate"}}}');
});

test("a name that objects have anyway is a name of a step", () => {
  const graph = opened({ steps: { constructor: { kind: "train" } } }, {});
  edits.replace(graph, { steps: { train: { kind: "train" } } }, {});

  assert.deepEqual([...graph.steps.keys()], ["train"]);
});

test("undo of a removed step brings back its links, and redo takes both again", () => {
  const graph = opened();
  const before = text(graph);

  edits.remove(graph, ["train"]);

  assert.deepEqual(write(graph).steps.judge.from, { data: "cells.data" });
  assert.deepEqual(write(graph).steps.run.after, ["cells"]);
  const after = text(graph);
  assert.deepEqual(graph.undo().sort(), ["judge", "ok", "run", "train"]);
  assert.equal(text(graph), before);
  graph.redo();
  assert.equal(text(graph), after);
});

test("a rename follows every link, and of a parameter every place but those that are no place", () => {
  const graph = opened();

  assert.equal(edits.rename(graph, "train", "fit"), "");
  assert.equal(edits.rename(graph, "things", "boxes"), "");
  assert.equal(edits.rename(graph, "ok", "gate"), "");
  assert.equal(edits.renameParameter(graph, "preset", "kind"), "");

  const { judge, run, gate, cells } = write(graph).steps;
  assert.deepEqual([judge.from.model, gate.from.figures, run.after, run.each, run.when], ["fit.model", ["judge.figures", "fit.figures"], ["cells", "fit"], "boxes.items", "gate.passed"]);
  assert.equal(cells.with.dataset, `BCCD ${placed("kind")} $${placed("preset")}`);
  assert.match(edits.rename(graph, "fit", "cells"), /already/);
  assert.match(edits.rename(graph, "fit", "Fit"), /lowercase letter/);
  for (let n = 0; n < 4; n++) graph.undo();
  assert.deepEqual(write(graph), SPEC);
});

test("a link of the wrong type or in a circle is refused in a sentence, and what is offered fits", () => {
  const graph = opened();
  const link = (from, out, to, into, sort = "data") => ({ from, out, to, into, sort });

  assert.match(edits.connect(graph, link("cells", "data", "judge", "model")), /requires Model.*provides Dataset/);
  assert.match(edits.connect(graph, link("judge", "figures", "train", "data")), /cycle/);
  assert.match(edits.connect(graph, link("run", "", "cells", "after", "after")), /cycle/);
  assert.match(edits.connect(graph, link("ok", "passed", "run", "input")), /requires Any type/);
  assert.match(edits.connect(graph, link("train", "", "train", "after", "after")), /itself/);
  assert.equal(graph.done.length, 0);
  const offered = [...sources(graph, "judge", "data", "data"), ...targets(graph, "train", "model"), ...landings(graph, "things", "items", "run")];
  assert.ok(offered.length > 3);
  assert.deepEqual(offered.map((one) => refusal(graph, one)).filter(Boolean), []);
  assert.deepEqual(sources(graph, "train", "data", "data").map(({ from }) => from), ["cells"]);
});

test("an input that takes one is fed anew, one that takes many is fed more", () => {
  const graph = opened();

  assert.equal(edits.connect(graph, { from: "train", out: "model", to: "run", into: "input", sort: "data" }), "");
  assert.equal(edits.connect(graph, { from: "cells", out: "data", to: "run", into: "input", sort: "data" }), "");
  edits.disconnect(graph, { from: "judge", out: "figures", to: "ok", into: "figures", sort: "data" });

  const { run, ok } = write(graph).steps;
  assert.deepEqual([run.from.input, ok.from.figures], ["cells.data", "train.figures"]);
  edits.connect(graph, { from: "judge", out: "figures", to: "ok", into: "figures", sort: "data" });
  assert.deepEqual(write(graph).steps.ok.from.figures, ["train.figures", "judge.figures"]);
});

test("one drag or one word is one entry of the history", () => {
  const graph = opened();
  for (let n = 1; n < 9; n++) edits.move(graph, [["cells", [n, n]], ["train", [n, 0]]], "drag");
  graph.close();
  for (const note of ["w", "wh", "why"]) edits.setPart(graph, "train", "note", note);

  assert.equal(graph.done.length, 2);
  graph.undo();
  graph.undo();
  assert.deepEqual([write(graph), layoutOf(graph)], [SPEC, LAYOUT]);
});

test("what is pasted from anywhere is looked at, and gets fresh names", () => {
  const bad = (given) => unfit(given, catalogue);
  assert.match(bad(null), /no pipeline steps/);
  assert.match(bad(JSON.parse('{"steps": {"__proto__": {"kind": "train"}}}')), /not a valid/);
  assert.match(bad({ steps: { a: { kind: "evil" } } }), /Unknown step kind evil/);
  assert.match(bad({ steps: { a: { kind: "train", from: { data: "<b>.x" } } } }), /invalid part: from/);
  assert.match(bad({ steps: { a: { kind: "train", retries: 1e9 } } }), /invalid part: retries/);
  assert.match(bad({ steps: Object.fromEntries(Array.from({ length: 2001 }, (_, n) => [`a${n}`, { kind: "train" }])) }), /at most 2000/);
  let deep = {};
  for (let n = 0; n < 5000; n++) deep = { deep };
  assert.match(bad({ steps: { a: { kind: "train", with: deep } } }), /too deep/);
  const graph = opened();
  const circle = { steps: { a: { kind: "command", after: ["b"] }, b: { kind: "command", after: ["a"] } } };
  assert.equal(bad(circle), "");
  assert.match(edits.insert(graph, circle, 0, 0).refused, /cycle/);

  const copied = JSON.parse(JSON.stringify(edits.part(graph, ["judge", "train"])));
  assert.equal(bad(copied), "");
  const { ids } = edits.insert(graph, copied, 10, 10);

  assert.deepEqual(ids, ["judge_2", "train_2"]);
  assert.deepEqual(write(graph).steps.judge_2.from, { model: "train_2.model" });
  assert.deepEqual(layoutOf(graph).train_2, [9, 30]);
  graph.undo();
  assert.deepEqual(write(graph), SPEC);
});

test("problems name the step and the field", () => {
  const graph = opened({
    steps: {
      a: { kind: "dataset" }, b: { kind: "train", with: { epochs: "many" } }, c: { kind: "train", from: { data: "gone.data" }, with: { epochs: 99 } },
      d: { kind: "command", with: { command: `${placed("item")} ${placed("lost")} $${placed("fine")}` } }, e: { kind: "nothing" }, f: { kind: "train", from: { data: "a.data" }, with: { epochs: placed("lost.x") } },
    },
  }, {});

  assert.deepEqual(problemsOf(graph).map(({ step, field }) => `${step} ${field}`).sort(), [
    "a with.dataset", "b from.data", "b with.epochs", "c from.data", "c with.epochs", "d each", "d with.command", "e kind", "f with.epochs",
  ]);
  assert.deepEqual(problemsOf(opened()), []);
  const circle = opened({ steps: { a: { kind: "command", after: ["b"] }, b: { kind: "command", after: ["a"] }, c: { kind: "command", after: ["b"] } } }, {});
  assert.deepEqual(problemsOf(circle).map(({ step, field }) => `${step} ${field}`), ["a after", "b after"]);
});

test("two states differ by step and by part", () => {
  const theirs = structuredClone(SPEC);
  theirs.steps.train.with.epochs = 5;
  delete theirs.steps.ok;
  theirs.steps.more = { kind: "items" };

  assert.deepEqual(differences(SPEC, theirs), [
    { step: "more", how: "theirs", parts: [] },
    { step: "ok", how: "mine", parts: [] },
    { step: "train", how: "changed", parts: [{ path: "with.epochs", mine: 3, theirs: 5 }] },
  ]);
});

test("the layout goes to the right along every link, without two steps in one place", () => {
  const graph = opened(SPEC, {});
  edits.arrange(graph, new Sizes(graph));

  const places = layoutOf(graph);
  const backwards = [...graph.steps.keys()].flatMap((id) => graph.linksTo(id)).filter(({ from, to }) => places[from][0] >= places[to][0]);
  assert.deepEqual(backwards, []);
  assert.equal(new Set(Object.values(places).map(String)).size, Object.keys(SPEC.steps).length);
});

test("a link is led around steps in its way, and goes straight where none is", () => {
  const graph = opened();
  edits.replace(graph, { steps: { a: { kind: "train" }, b: { kind: "train" }, c: { kind: "train" } } }, { a: [0, 0], b: [280, 0], c: [560, 0] });
  const sizes = new Sizes(graph);
  const [from, to] = [[208, 60], [560, 60]];
  const way = new Obstacles(graph, sizes).around(from, to, ["a", "c"]);

  assert.equal(way.length, 2);
  const [[left, y], [right]] = way;
  assert.ok(left < 280 && right > 488 && (y < 0 || y > sizes.height("b")), JSON.stringify(way));
  assert.ok(distance([384, y], from, to, way) < 1); // it is chosen where it is seen
  edits.move(graph, [["b", [280, 600]]]);
  assert.deepEqual(new Obstacles(graph, sizes).around(from, to, ["a", "c"]), []);
});
