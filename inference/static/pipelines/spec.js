// The spec and the layout: read into a graph, written out as the server writes them, compared.
import { t } from "../base/i18n.js";
import { Graph } from "./graph.js";
import { parted } from "./links.js";

export const ID = /^[a-z][a-z0-9_]{0,39}$/;
export const MAX_STEPS = 2000;
export const RULES = ["all_ok", "all_done", "any_failed"];
const RUN_ID = /^[a-z][a-z0-9_]{0,39}(\/[a-z][a-z0-9_]{0,39}){0,4}$/; // steps of sub-pipelines, in runs
const DEEPEST = 20;
const FURTHEST = 1_000_000;

/** @typedef {{format?: number, parameters?: Record<string, any>, steps?: Record<string, import("./graph.js").Step>}} Spec */
/** @typedef {Record<string, import("./graph.js").Place>} Layout */

/**
 * A graph of what the server gave.
 * @param {import("./catalogue.js").Catalogue} catalogue
 * @param {Spec} spec
 * @param {Layout} layout
 */
export function read(catalogue, spec, layout) {
  const graph = new Graph(catalogue);
  graph.apply(replacing(graph, spec, layout));
  graph.done = [];
  const { format, parameters, steps, ...rest } = spec;
  graph.rest = rest;
  return graph;
}

/** Changes that put another spec in the place of what a graph holds; what is equal does not move. */
export function replacing(graph, spec, layout) {
  const tables = { steps: spec.steps ?? {}, places: layout ?? {}, parameters: spec.parameters ?? {} };
  /** @type {import("./graph.js").Change[]} */
  const changes = [];
  for (const table of /** @type {const} */ (["steps", "places", "parameters"])) {
    const now = tables[table];
    for (const key of new Set([...graph[table].keys(), ...Object.keys(now)])) {
      const before = graph[table].get(key);
      let after = Object.hasOwn(now, key) ? now[key] : undefined; // a step may be called “constructor”
      if (table === "places" && !(isPlace(after) && Object.hasOwn(tables.steps, key))) after = undefined;
      if (!equal(before, after)) changes.push({ table, key, before, after });
    }
  }
  return changes;
}

/** The canonical spec of a graph: keys sorted, what is empty left out. @returns {Required<Spec>} */
export function write(graph) {
  const steps = {};
  for (const id of [...graph.steps.keys()].sort()) steps[id] = canonicalStep(graph.steps.get(id));
  const parameters = {};
  for (const name of [...graph.parameters.keys()].sort()) parameters[name] = sorted(graph.parameters.get(name));
  return sorted({ ...graph.rest, format: 1, ...(graph.parameters.size ? { parameters } : {}), steps });
}

/** Places of the steps there are, whole numbers. @returns {Layout} */
export function layoutOf(graph) {
  /** @type {Layout} */
  const layout = {};
  for (const id of [...graph.steps.keys()].sort()) {
    const place = graph.places.get(id);
    if (place) layout[id] = [Math.round(place[0]), Math.round(place[1])];
  }
  return layout;
}

/** A step without what says nothing. */
export function canonicalStep(step) {
  const made = { ...step };
  const empty = { when: "", each: "", retries: 0, rule: "all_ok", tolerate: 0, note: "" };
  for (const [key, nothing] of Object.entries(empty)) if (made[key] === nothing || made[key] === null) delete made[key];
  if (made.after) made.after = [...new Set(made.after)].sort();
  if (made.from) made.from = Object.fromEntries(Object.entries(made.from).filter(([, value]) => value?.length).map(([port, value]) => [port, oneOrMany(value)]));
  for (const key of ["with", "from", "after"]) if (made[key] && !Object.keys(made[key]).length) delete made[key];
  return sorted(made);
}

/** Outputs into one port as they are written: each once, one of them alone as a text. */
function oneOrMany(value) {
  const all = Array.isArray(value) ? [...new Set(value)] : [value];
  return all.length === 1 ? all[0] : all;
}

/** The same value with the keys of every object in order. */
export function sorted(value) {
  if (Array.isArray(value)) return value.map(sorted);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.keys(value).sort().map((key) => [key, sorted(value[key])]));
}

export const equal = (a, b) => a === b || JSON.stringify(sorted(a)) === JSON.stringify(sorted(b));

export const isPlace = (value) => Array.isArray(value) && value.length === 2 && value.every((one) => Number.isFinite(one) && Math.abs(one) <= FURTHEST);

const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
const isReference = (value) => typeof value === "string" && RUN_ID.test(parted(value)[0]) && /^[a-z][a-z0-9_]{0,39}$/.test(parted(value)[1]);

function deep(value, left = DEEPEST) {
  if (value === null || typeof value !== "object") return false;
  return left === 0 || Object.values(value).some((one) => deep(one, left - 1));
}

/** What each part of a step has to look like. @type {Record<string, (value: any) => boolean>} */
const SHAPES = {
  kind: (value) => typeof value === "string" && value.length <= 40,
  with: isObject,
  from: (value) => isObject(value) && Object.values(value).every((one) => (Array.isArray(one) ? one.every(isReference) : isReference(one))),
  when: isReference,
  each: isReference,
  after: (value) => Array.isArray(value) && value.every((one) => typeof one === "string" && RUN_ID.test(one)),
  retries: (value) => Number.isInteger(value) && value >= 0 && value <= 10,
  rule: (value) => RULES.includes(value),
  tolerate: (value) => typeof value === "number" && value >= 0 && value <= 1,
  note: (value) => typeof value === "string" && value.length <= 500,
};

/**
 * Why a pasted text cannot be taken as steps; "" where it can. It comes from anywhere, so nothing in it is believed.
 * @param {any} given
 * @param {import("./catalogue.js").Catalogue} catalogue
 */
export function unfit(given, catalogue) {
  if (!isObject(given) || !isObject(given.steps)) return t("The clipboard contains no pipeline steps.");
  if (given.format !== undefined && given.format !== 1) return t("These steps have a format that this editor does not support.");
  const steps = Object.entries(given.steps);
  if (steps.length > MAX_STEPS) return t("A pipeline can have at most %(count)s steps.", { count: MAX_STEPS });
  if (deep(given)) return t("The clipboard contains values that are nested too deeply.");
  const unknown = new Set();
  for (const [id, step] of steps) {
    const name = id.slice(0, 40);
    if (!ID.test(id)) return t("“%(name)s” is not a valid step name.", { name });
    if (!isObject(step) || step.kind === undefined) return t("Step “%(name)s” has no kind.", { name });
    for (const [key, fine] of Object.entries(SHAPES)) {
      if (step[key] !== undefined && !fine(step[key])) return t("Step “%(name)s” has an invalid part: %(part)s.", { name, part: key });
    }
    if (!catalogue.has(step.kind)) unknown.add(step.kind);
  }
  if (unknown.size) return t("Unknown step kind %(names)s, so nothing was pasted.", { names: [...unknown].slice(0, 5).join(", ") });
  return "";
}
