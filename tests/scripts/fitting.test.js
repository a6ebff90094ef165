import assert from "node:assert/strict";
import { test } from "node:test";
import { deviceFor } from "../../training/static/training/fitting.js";

test("a preset for CPUs only takes no GPU, and the next preset gets the earlier choice back", () => {
  const gpu = { device: "gpu", gpus: "2" };
  const onCpu = deviceFor(true, gpu, null);
  assert.deepEqual(onCpu, { now: { device: "cpu", gpus: "0" }, earlier: gpu });
  assert.deepEqual(deviceFor(true, onCpu.now, onCpu.earlier).earlier, gpu);
  assert.deepEqual(deviceFor(false, onCpu.now, onCpu.earlier), { now: gpu, earlier: null });
  assert.deepEqual(deviceFor(false, gpu, null), { now: gpu, earlier: null });
});
