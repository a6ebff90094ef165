// Which device a new training can use.

/**
 * Device and GPUs for a preset. A preset that computes on CPUs only takes "cpu" and no GPU; `earlier` is what was chosen
 * before such a preset, and is restored with the next preset.
 * @typedef {{ device: string, gpus: string }} Chosen
 * @param {boolean} cpuOnly
 * @param {Chosen} now
 * @param {Chosen | null} earlier
 * @returns {{ now: Chosen, earlier: Chosen | null }}
 */
export function deviceFor(cpuOnly, now, earlier) {
  if (cpuOnly) return { now: { device: "cpu", gpus: "0" }, earlier: earlier ?? now };
  return { now: earlier ?? now, earlier: null };
}
