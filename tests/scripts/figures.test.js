import assert from "node:assert/strict";
import { test } from "node:test";
import { bytes, duration, momentWords, t, timeMarks, tn } from "../../aiplatform/static/base/i18n.js";
import { Curves, MOST, betterBy, epochsAt, rank } from "../../workers/static/workers/curves.js";
import { groupOf, nameOf, titleOf, unitOf } from "../../workers/static/workers/figures.js";

test("bytes and durations read as the templates write them", () => {
  assert.deepEqual([0, 1023, 1536, 200 * 1024, 3 * 1024 ** 4].map(bytes), ["0 B", "1023 B", "1.5 KiB", "200 KiB", "3.0 TiB"]);
  assert.deepEqual([0.44, 250, 7200, 183600].map(duration), ["0.4 s", "4 min 10 s", "2 h", "2 d 3 h"]);
  assert.equal(duration(Number.NaN), "–");
});

test("texts take their facts, and leave places they have none for", () => {
  assert.equal(t("%(name)s of %(count)s", { name: "A" }), "A of %(count)s");
  assert.equal(tn("%(count)s image", "%(count)s images", 1), "1 image");
  assert.equal(tn("%(count)s image", "%(count)s images", 2), "2 images");
});

test("marks of a time axis name the day where it begins", () => {
  const midnight = Date.UTC(2026, 0, 2) / 1000;
  assert.deepEqual(timeMarks(null, [midnight - 3600, midnight, midnight + 3600], 0, 0, 3600), ["23:00\nJan 1", "00:00\nJan 2", "01:00"]);
  assert.deepEqual(timeMarks(null, [midnight], 0, 0, 86400), ["Jan 2"]);
  assert.equal(momentWords(null), "–");
});

test("curves are sorted, and the newer value of a step counts", () => {
  const curves = new Curves([]);
  curves.append({ loss: [[2, 0.5, 20], [1, 0.9, 10], [2, 0.4, 30]] });
  assert.deepEqual(curves.columns("loss", "step"), [[1, 2], [0.9, 0.4]]);
  assert.deepEqual(curves.columns("loss", "time"), [[10, 20, 30], [0.9, 0.5, 0.4]]);
});

test("curves by epoch follow the epochs that a run reports, beyond them at the mean rate", () => {
  const curves = new Curves([]);
  curves.append({ loss: [[0, 3, 1], [5, 2, 2], [10, 1, 3], [30, 0.5, 4]] });
  assert.deepEqual(curves.columns("loss", "epoch"), [[], []]);
  curves.append({ epoch: [[10, 1, 3], [20, 2, 4]] });
  assert.deepEqual(curves.columns("loss", "epoch"), [[0, 0.5, 1, 3], [3, 2, 1, 0.5]]);
  assert.deepEqual(epochsAt([2], [], []), [Number.NaN]);
});

test("a chart of the system names its unit", () => {
  assert.deepEqual(["system/cpu", "system/memory_mib", "step_ms", "loss"].map(unitOf), ["%", "MiB", "ms", ""]);
});

test("curves keep wanted keys only, and say when they are too long", () => {
  const curves = new Curves(["train/"]);
  curves.replace({ "train/loss": [[1, 2]], "system/cpu": [[1, 2]] }, { "train/loss": [7], "system/cpu": [7] });
  assert.deepEqual(curves.newest(), [["train/loss", 1, 2]]);
  const many = Array.from({ length: MOST }, (_, i) => [i, 0, i]);
  assert.equal(curves.append({ "train/loss": many }), false);
  assert.equal(curves.append({ "val/loss": many }), true);
});

test("curves as CSV disarm formulas and double quotes", () => {
  const curves = new Curves([]);
  curves.append({ '=cmd("x")': [[1, 0.5, 0]] });
  assert.equal(curves.csv(), 'key,step,time,value\n"\'=cmd(""x"")",1,1970-01-01T00:00:00.000Z,0.5\n');
});

test("cards stand in order: own figures, others by name, the machine's last", () => {
  assert.deepEqual(["system/cpu", "zeta", "accuracy", "loss", "alpha"].sort(rank), ["accuracy", "loss", "alpha", "zeta", "system/cpu"]);
});

test("figures share a card across splits, nodes and cards", () => {
  assert.equal(groupOf("train/loss"), groupOf("val/loss"));
  assert.equal(groupOf("val/ap50"), "ap");
  assert.equal(groupOf("val/ap/cat"), "val/ap");
  assert.equal(groupOf("system/node3/gpu1_util"), "system/gpu_util");
  assert.equal(titleOf("val/ap"), "AP on validation, by class");
  assert.equal(nameOf("system/node3/gpu1_util"), "GPU utilization (%) · node 3 · GPU 1");
  assert.equal(nameOf("my_own_figure"), "");
});

test("both directions of disk and network share a card, and are told apart on it", () => {
  assert.equal(groupOf("system/disk_read_mib_s"), groupOf("system/node2/disk_write_mib_s"));
  assert.equal(titleOf(groupOf("system/disk_read_mib_s")), "Disk (MiB/s)");
  assert.equal(nameOf("system/node2/disk_write_mib_s"), "Disk (MiB/s) · written · node 2");
  assert.equal(nameOf("system/machine_net_in_mib_s"), "Host network (MiB/s) · received");
});

test("figures of masks, points and neighbours share cards too, and a card of one curve is called like it", () => {
  assert.deepEqual(["val/mask_ap", "val/mask_ap75", "val/pck05", "test/pck10", "val/recall_1", "val/recall_5"].map(groupOf), ["mask_ap", "mask_ap", "pck", "pck", "recall", "recall"]);
  assert.equal(titleOf(groupOf("val/mask_ap50/nut")), "Mask AP50 on validation, by class");
  assert.equal(titleOf("macro_f1", ["val/macro_f1"]), "Mean class F1 on validation");
  assert.equal(titleOf("my_figure", ["own/my_figure"]), "my figure");
});

test("a curve tells its last and its best value, whichever way is better", () => {
  const curves = new Curves([]);
  curves.append({
    "val/ap50": [[10, 0.4, 1], [20, 0.7, 2], [30, 0.6, 3]],
    "val/loss": [[10, 0.4, 1], [20, 0.7, 2]],
    "train/lr": [[10, 0.1, 1]],
  });
  assert.deepEqual(curves.summary("val/ap50"), { last: 0.6, best: { value: 0.7, step: 20 } });
  assert.deepEqual(curves.summary("val/loss"), { last: 0.7, best: { value: 0.4, step: 10 } });
  assert.deepEqual(curves.summary("train/lr"), { last: 0.1, best: null });
  assert.equal(curves.summary("nothing"), null);
  assert.deepEqual(["system/cpu", "train/box", "train/dice_loss", "test/recall_5", "val/ap50/cell", "val/pixel_accuracy", "val/nme", "val/pck05"].map(betterBy), [0, -1, -1, 1, 1, 1, -1, 1]);
  assert.deepEqual(["val/mask_ap50", "val/map", "val/balanced_accuracy", "val/macro_f1", "val/auroc", "train/mask"].map(betterBy), [1, 1, 1, 1, 1, -1]);
});

test("the headline is how good the model is on data it is scored on, without single classes", () => {
  const curves = new Curves([]);
  for (const key of ["train/loss", "val/loss", "val/ap", "val/ap50", "val/ap50/cell", "test/ap50", "system/cpu"]) {
    curves.append({ [key]: [[1, 1, 1]] });
  }
  assert.deepEqual(curves.headline(), ["val/ap50", "test/ap50", "val/ap", "val/loss"]);
  for (const key of ["val/map", "val/mask_ap50"]) curves.append({ [key]: [[1, 1, 1]] });
  assert.deepEqual(curves.headline(), ["val/mask_ap50", "val/ap50", "test/ap50", "val/ap"]);
});
