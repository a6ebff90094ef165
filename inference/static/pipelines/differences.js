// What differs between two states of a pipeline, by step. No DOM.
import { equal } from "./spec.js";

/** @typedef {{path: string, mine: unknown, theirs: unknown}} Part */
/** @typedef {{step: string, how: "mine" | "theirs" | "changed", parts: Part[]}} Difference  "mine": only there */

const NESTED = new Set(["with", "from"]);

/**
 * Steps (and parameters of the pipeline, as step "") that are not the same in both.
 * @param {import("./spec.js").Spec} mine
 * @param {import("./spec.js").Spec} theirs
 * @returns {Difference[]}
 */
export function differences(mine, theirs) {
  /** @type {Difference[]} */
  const found = [];
  const ours = new Map(Object.entries(mine.steps ?? {}));
  const others = new Map(Object.entries(theirs.steps ?? {}));
  const parameters = partsOf(mine.parameters ?? {}, theirs.parameters ?? {}, "");
  if (parameters.length) found.push({ step: "", how: "changed", parts: parameters });
  for (const step of [...new Set([...ours.keys(), ...others.keys()])].sort()) {
    const a = ours.get(step);
    const b = others.get(step);
    if (!a) found.push({ step, how: "theirs", parts: [] });
    else if (!b) found.push({ step, how: "mine", parts: [] });
    else if (!equal(a, b)) found.push({ step, how: "changed", parts: partsOf(a, b, "") });
  }
  return found;
}

function partsOf(a, b, above) {
  /** @type {Part[]} */
  const parts = [];
  for (const key of [...new Set([...Object.keys(a), ...Object.keys(b)])].sort()) {
    const mine = Object.hasOwn(a, key) ? a[key] : undefined;
    const theirs = Object.hasOwn(b, key) ? b[key] : undefined;
    if (equal(mine, theirs)) continue;
    if (NESTED.has(key) && !above) parts.push(...partsOf(mine ?? {}, theirs ?? {}, `${key}.`));
    else parts.push({ path: `${above}${key}`, mine, theirs });
  }
  return parts;
}
