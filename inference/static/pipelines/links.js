// Links between steps, as the spec writes them: data into a port, a signal into `when`, a list into `each`, and `after`.
import { t } from "../base/i18n.js";
import { LIST, SIGNAL, fits } from "./catalogue.js";

/** @typedef {"data" | "when" | "each" | "after"} Sort */
/** @typedef {{from: string, out: string, to: string, into: string, sort: Sort}} Link  `out` is empty for `after` */

/** "train.model" → ["train", "model"]; the ids of a run hold slashes, never a dot. */
export function parted(reference) {
  const dot = reference.lastIndexOf(".");
  return dot < 0 ? [reference, ""] : [reference.slice(0, dot), reference.slice(dot + 1)];
}

const listed = (value) => (Array.isArray(value) ? value : [value]);

/** @param {string} id @param {import("./graph.js").Step} step @returns {Link[]} */
export function linksInto(id, step) {
  /** @type {Link[]} */
  const links = [];
  const add = (reference, into, sort) => {
    const [from, out] = parted(reference);
    links.push({ from, out, to: id, into, sort });
  };
  for (const [port, value] of Object.entries(step.from ?? {})) for (const one of listed(value)) add(one, port, "data");
  if (step.when) add(step.when, "when", "when");
  if (step.each) add(step.each, "each", "each");
  for (const from of step.after ?? []) links.push({ from, out: "", to: id, into: "after", sort: "after" });
  return links;
}

/** Ids of the steps that a step names. @param {import("./graph.js").Step} step */
export const fromIds = (step) => linksInto("", step).map(({ from }) => from);

export const linkKey = (link) => `${link.sort} ${link.from}.${link.out}>${link.to}.${link.into}`;
export const sameLink = (a, b) => linkKey(a) === linkKey(b);

/** The step with a link into it; what stood at an input that takes one goes. @returns {import("./graph.js").Step} */
export function withLink(step, link, many = false) {
  const reference = `${link.from}.${link.out}`;
  if (link.sort === "when" || link.sort === "each") return { ...step, [link.sort]: reference };
  if (link.sort === "after") return { ...step, after: [...new Set([...(step.after ?? []), link.from])].sort() };
  const old = step.from?.[link.into];
  const value = many && old ? [...new Set([...listed(old), reference])] : reference;
  return { ...step, from: { ...step.from, [link.into]: value } };
}

/** The step without a link; parts that are empty then go, too. @returns {import("./graph.js").Step} */
export function withoutLink(step, link) {
  const made = { ...step };
  if (link.sort === "when" || link.sort === "each") delete made[link.sort];
  else if (link.sort === "after") made.after = (step.after ?? []).filter((id) => id !== link.from);
  else {
    const from = { ...step.from };
    const left = listed(from[link.into]).filter((one) => one !== `${link.from}.${link.out}`);
    if (left.length) from[link.into] = Array.isArray(step.from?.[link.into]) && left.length > 1 ? left : left[0];
    else delete from[link.into];
    made.from = from;
    if (!Object.keys(from).length) delete made.from;
  }
  if (made.after && !made.after.length) delete made.after;
  return made;
}

/** The step with every name in its links looked up in `names`; those that are not there stay. */
export function renamed(step, names) {
  const id = (one) => names.get(one) ?? one;
  const reference = (one) => {
    const [from, out] = parted(one);
    return `${id(from)}.${out}`;
  };
  const made = { ...step };
  if (step.from) made.from = Object.fromEntries(Object.entries(step.from).map(([port, value]) => [port, Array.isArray(value) ? value.map(reference) : reference(value)]));
  if (step.when) made.when = reference(step.when);
  if (step.each) made.each = reference(step.each);
  if (step.after) made.after = [...new Set(step.after.map(id))].sort();
  return made;
}

/**
 * Why this link cannot be; "" where it can. A step with `each` gives each of its outputs as a list.
 * @param {import("./graph.js").Graph} graph
 * @param {Link} link
 * @param {Set<string>} [following]  of the step it ends at, where that is known already
 */
export function refusal(graph, link, following) {
  const source = graph.steps.get(link.from);
  const target = graph.steps.get(link.to);
  if (!source || !target) return t("Step not found.");
  if (link.from === link.to) return t("A step cannot be connected to itself.");
  if ((following ?? graph.following(link.to)).has(link.from)) return t("%(to)s already runs before %(from)s: this would create a cycle.", { to: link.to, from: link.from });
  if (link.sort === "after") return "";
  const { catalogue } = graph;
  const given = catalogue.output(source.kind, link.out);
  if (!given) return t("%(step)s has no output “%(port)s”.", { step: link.from, port: link.out });
  const input = link.sort === "data" ? catalogue.input(target.kind, link.into) : undefined;
  const wanted = link.sort === "data" ? input?.type : link.sort === "when" ? SIGNAL : LIST;
  if (!wanted) return t("%(step)s has no input “%(port)s”.", { step: link.to, port: link.into });
  if (link.sort === "each" && catalogue.kind(target.kind).outputs.some(({ type }) => type === SIGNAL)) return t("A gate runs once, not per item.");
  const paired = target.each === `${link.from}.${link.out}`; // it runs for each item of this very output
  if (source.each && (link.sort === "when" || (link.sort === "data" && !input?.many && !paired))) return t("“%(out)s” of %(step)s exists once per item. Run this step for each of them first (More), or use an input that accepts several.", { out: link.out, step: link.from });
  if (fits(given.type, wanted) || (link.sort === "each" && source.each)) return "";
  return t("“%(port)s” of %(step)s requires %(wanted)s. “%(out)s” provides %(given)s.", {
    port: link.into, step: link.to, wanted: catalogue.typeLabel(wanted), out: link.out, given: catalogue.typeLabel(given.type),
  });
}

/** What could feed an input of a step: an own port, or `when`, `each`, `after`. @returns {Link[]} */
export function sources(graph, to, into, sort) {
  const following = graph.following(to);
  const found = [];
  for (const [from, step] of graph.steps) {
    if (following.has(from)) continue;
    const outs = sort === "after" ? [""] : graph.catalogue.kind(step.kind).outputs.map(({ name }) => name);
    for (const out of outs) {
      const link = { from, out, to, into, sort };
      if (!refusal(graph, link, following)) found.push(link);
    }
  }
  return found;
}

/** What an output may be linked to in the step `to`, the free input first; "" as `out` is the step's end. @returns {Link[]} */
export function landings(graph, from, out, to, following) {
  const step = graph.steps.get(to);
  if (!step) return [];
  /** @type {Link[]} */
  const links = out === "" ? [{ from, out, to, into: "after", sort: "after" }] : [];
  if (out !== "") {
    for (const { name } of graph.catalogue.kind(step.kind).inputs) links.push({ from, out, to, into: name, sort: "data" });
    links.push({ from, out, to, into: "when", sort: "when" }, { from, out, to, into: "each", sort: "each" });
  }
  const fed = (link) => (link.sort === "data" ? step.from?.[link.into] : step[link.sort]) ? 1 : 0;
  return links.filter((link) => !refusal(graph, link, following)).sort((a, b) => fed(a) - fed(b));
}

/** Every place an output of a step may be linked to. @returns {Link[]} */
export function targets(graph, from, out) {
  const before = new Set();
  const open = [from];
  for (const id of open) {
    const step = graph.steps.get(id);
    for (const source of step ? fromIds(step) : []) {
      if (before.has(source)) continue;
      before.add(source);
      open.push(source);
    }
  }
  const none = new Set(); // circles are looked for once, above
  return [...graph.steps.keys()].filter((id) => id !== from && !before.has(id)).flatMap((id) => landings(graph, from, out, id, none));
}

/** Kinds a link that is dropped on the empty canvas could go on to, with the port it would use. */
export function fitting(catalogue, type, side) {
  const found = [];
  for (const kind of catalogue.kinds.values()) {
    const ports = side === "out" ? kind.inputs : kind.outputs;
    const port = ports.find((one) => (side === "out" ? fits(type, one.type) : fits(one.type, type)));
    if (port) found.push({ kind, link: { port: port.name, sort: /** @type {Sort} */ ("data") } });
    else if (side === "out" && type === SIGNAL) found.push({ kind, link: { port: "when", sort: /** @type {Sort} */ ("when") } });
    else if (side === "out" && type === LIST) found.push({ kind, link: { port: "each", sort: /** @type {Sort} */ ("each") } });
  }
  return found;
}
