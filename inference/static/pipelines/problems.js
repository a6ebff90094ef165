// What is wrong with a pipeline, as far as the browser can know: the server checks the same and more.
import { t, tn } from "../base/i18n.js";
import { refusal } from "./links.js";

/** @typedef {{step: string, field: string, message: string, level?: "error" | "warning"}} Problem  `step` is empty where it is about the whole */

/** Those that keep a pipeline from running. @param {Problem[]} found */
export const errorsOf = (found) => found.filter(({ level }) => level !== "warning");

/** "1 problem", "2 warnings": both, one or none of them. @param {Problem[]} found */
export function counted(found) {
  const errors = errorsOf(found).length;
  const warnings = found.length - errors;
  return [
    ...(errors ? [tn("%(count)s problem", "%(count)s problems", errors)] : []),
    ...(warnings ? [tn("%(count)s warning", "%(count)s warnings", warnings)] : []),
  ];
}

const HOLDS = /(?<!\$)\$\{/; // a text with a place to fill in
const PLACE = /(?<!\$)\$\{([^}]*)\}/g;

/** "preset" → the text that stands for that parameter. */
export const placed = (name) => `\${${name}}`;

/** @param {unknown} value */
export const isFilledIn = (value) => typeof value === "string" && HOLDS.test(value);

/**
 * Everything wrong with the steps, in the order they run.
 * @param {import("./graph.js").Graph} graph
 * @returns {Problem[]}
 */
export function problemsOf(graph) {
  const knots = graph.knots();
  return graph.order().flatMap((id) => problemsAt(graph, id, knots));
}

const NONE = new Set();

/** @param {import("./graph.js").Graph} graph @param {string} id @param {Set<string>} knots @returns {Problem[]} */
function problemsAt(graph, id, knots) {
  const step = graph.steps.get(id);
  if (!step) return [];
  const kind = graph.catalogue.kind(step.kind);
  if (kind.unknown) return [{ step: id, field: "kind", message: t("Unknown step kind “%(name)s”. Remove the step or choose another.", { name: step.kind }) }];
  /** @type {Problem[]} */
  const found = [];
  const say = (field, message) => found.push({ step: id, field, message });
  for (const port of kind.inputs) {
    if (!port.optional && !step.from?.[port.name]?.length) say(`from.${port.name}`, t("“%(port)s” requires a connection from a step that provides %(type)s.", { port: port.label, type: graph.catalogue.typeLabel(port.type) }));
  }
  for (const link of graph.linksTo(id)) {
    const field = link.sort === "data" ? `from.${link.into}` : link.sort;
    const why = refusal(graph, link, knots.has(id) && knots.has(link.from) ? undefined : NONE); // circles are looked for only where one can be
    if (why) say(field, why);
  }
  for (const param of kind.params) {
    const why = valueProblem(param, step.with?.[param.name]);
    if (why) say(`with.${param.name}`, why);
  }
  for (const name of placesIn(step.with)) {
    const [first] = name.split(".");
    if (first === "item" && !step.each) say("each", t("“%(place)s” is used here, but this step does not run for a list. Choose one under “For each”.", { place: placed("item") }));
    else if (first !== "item" && !graph.parameters.has(name)) say(fieldOf(step.with, name), t("The pipeline has no parameter “%(name)s”.", { name }));
  }
  return found;
}

function fieldOf(values, name) {
  const found = Object.entries(values).find(([, value]) => placesIn(value).has(name));
  return found ? `with.${found[0]}` : "with";
}

/** Names between `${` and `}` in every text of a value. @returns {Set<string>} */
function placesIn(value, names = new Set()) {
  if (typeof value === "string") for (const [, name] of value.matchAll(PLACE)) names.add(name.trim());
  else if (value !== null && typeof value === "object") for (const one of Object.values(value)) placesIn(one, names);
  return names;
}

/**
 * Why a value cannot be that of a parameter; "" where it can.
 * @param {import("./catalogue.js").Param} param
 * @param {unknown} value
 */
export function valueProblem(param, value) {
  const name = param.label;
  if (value === undefined || value === null || value === "") return param.required && isNothing(param.default) ? t("“%(name)s” is required.", { name }) : "";
  if (isFilledIn(value)) return "";
  if (param.form === "number" || param.form === "whole") return numberProblem(param, value);
  if (param.form === "yesno" && typeof value !== "boolean") return t("“%(name)s” must be yes or no.", { name });
  if (param.form === "choice" && param.choices?.length && !param.choices.some(([one]) => one === value)) return t("“%(value)s” is not one of the choices of “%(name)s”.", { name, value: String(value).slice(0, 60) });
  if (param.form === "json" && typeof value === "string" && /^\s*[[{]/.test(value)) return t("“%(name)s” is not valid JSON yet.", { name });
  return "";
}

const isNothing = (value) => value === undefined || value === null || value === "";

function numberProblem(param, value) {
  const name = param.label;
  if (typeof value !== "number" || !Number.isFinite(value)) return t("“%(name)s” must be a number, or a text such as %(place)s.", { name, place: placed("name") });
  if (param.form === "whole" && !Number.isInteger(value)) return t("“%(name)s” must be an integer.", { name });
  const { low, high } = param;
  const tooLow = typeof low === "number" && value < low;
  const tooHigh = typeof high === "number" && value > high;
  if (!tooLow && !tooHigh) return "";
  if (typeof low === "number" && typeof high === "number") return t("“%(name)s” must be from %(low)s to %(high)s.", { name, low, high });
  return tooLow ? t("“%(name)s” must be at least %(low)s.", { name, low: Number(low) }) : t("“%(name)s” must be at most %(high)s.", { name, high: Number(high) });
}
