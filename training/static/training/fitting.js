// Which presets and which device a new training can use.

/**
 * Names of the presets to show: those that can learn from the chosen data, and always the checked one and own code.
 * @param {string[]} names all presets
 * @param {string | undefined} fits names of the fitting ones, separated by spaces; empty or undefined: no data is chosen
 * @param {string | undefined} checked
 */
export function presetsToShow(names, fits, checked) {
  const fitting = (fits ?? "").split(" ").filter(Boolean);
  return fitting.length ? names.filter((name) => name === "own" || name === checked || fitting.includes(name)) : names;
}

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
