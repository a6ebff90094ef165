// What people do to a pipeline, each as one list of changes. Functions give back "" or why it cannot be.
import { t } from "../base/i18n.js";
import { layered } from "./layout.js";
import { fromIds, linksInto, refusal, renamed, withLink, withoutLink } from "./links.js";
import { ID, MAX_STEPS, isPlace, replacing } from "./spec.js";

/** @typedef {import("./graph.js").Graph} Graph */
/** @typedef {import("./graph.js").Change} Change */
/** @typedef {import("./graph.js").Place} Place */

const change = (table, key, before, after) => /** @type {Change} */ ({ table, key, before, after });

/** A name no step has yet: "train", then "train_2". @param {Graph} graph @param {string} wanted @param {Set<string>} [taken] */
export function freshId(graph, wanted, taken = new Set()) {
  const stem = wanted.replace(/_\d+$/, "").slice(0, 35);
  let name = stem;
  for (let n = 2; graph.steps.has(name) || taken.has(name); n++) name = `${stem}_${n}`;
  return name;
}

/**
 * Put a new step, linked at once where `join` says to what.
 * @param {Graph} graph
 * @param {string} kind
 * @param {Place} place
 * @param {{from?: string, to?: string, out?: string, into?: string, sort?: import("./links.js").Sort}} [join]
 */
export function add(graph, kind, place, join) {
  if (graph.steps.size >= MAX_STEPS) return { id: "", refused: t("A pipeline can have at most %(count)s steps.", { count: MAX_STEPS }) };
  const id = freshId(graph, kind);
  /** @type {import("./graph.js").Step} */
  let step = { kind };
  const changes = [];
  const sort = join?.sort ?? "data";
  if (join?.from !== undefined) {
    const link = { from: join.from, out: join.out ?? "", to: id, into: join.into ?? "", sort };
    step = withLink(step, link, graph.catalogue.input(kind, link.into)?.many);
  }
  changes.push(change("steps", id, undefined, step), change("places", id, undefined, whole(place)));
  if (join?.to !== undefined) {
    const target = graph.steps.get(join.to);
    const link = { from: id, out: join.out ?? "", to: join.to, into: join.into ?? "", sort };
    if (target) changes.push(change("steps", join.to, target, withLink(target, link, graph.catalogue.input(target.kind, link.into)?.many)));
  }
  graph.apply(changes);
  return { id, refused: "" };
}

const whole = ([x, y]) => /** @type {Place} */ ([Math.round(x), Math.round(y)]);

/** Put steps where `places` says, on a grid of `snap`. @param {Graph} graph @param {Iterable<[string, Place]>} places */
export function move(graph, places, merge = "", snap = 1) {
  const changes = [];
  for (const [id, [x, y]] of places) {
    const before = graph.places.get(id);
    const after = [Math.round(x / snap) * snap, Math.round(y / snap) * snap];
    if (graph.steps.has(id) && (before?.[0] !== after[0] || before?.[1] !== after[1])) changes.push(change("places", id, before, after));
  }
  graph.apply(changes, merge);
}

/** Move steps by a distance. @param {Graph} graph @param {Iterable<string>} ids */
export function nudge(graph, ids, dx, dy) {
  const chosen = [...ids];
  const places = chosen.flatMap((id) => {
    const place = graph.places.get(id);
    return place ? [/** @type {[string, Place]} */ ([id, [place[0] + dx, place[1] + dy]])] : [];
  });
  move(graph, places, `nudge ${chosen.join(" ")}`);
}

/** Take steps out, and every link to them first. @param {Graph} graph @param {Iterable<string>} ids */
export function remove(graph, ids) {
  const gone = new Set([...ids].filter((id) => graph.steps.has(id)));
  const changes = [];
  const users = new Set([...gone].flatMap((id) => [...(graph.users.get(id) ?? [])]).filter((id) => !gone.has(id)));
  for (const user of users) {
    const before = graph.steps.get(user);
    if (!before) continue;
    const after = linksInto(user, before).filter(({ from }) => gone.has(from)).reduce(withoutLink, before);
    changes.push(change("steps", user, before, after));
  }
  for (const id of gone) {
    changes.push(change("steps", id, graph.steps.get(id)));
    if (graph.places.has(id)) changes.push(change("places", id, graph.places.get(id)));
  }
  graph.apply(changes);
}

/** @param {Graph} graph @param {import("./links.js").Link} link */
export function connect(graph, link) {
  const why = refusal(graph, link);
  const before = graph.steps.get(link.to);
  if (why || !before) return why;
  graph.apply([change("steps", link.to, before, withLink(before, link, graph.catalogue.input(before.kind, link.into)?.many))]);
  return "";
}

/** @param {Graph} graph @param {import("./links.js").Link} link */
export function disconnect(graph, link) {
  const before = graph.steps.get(link.to);
  if (before) graph.apply([change("steps", link.to, before, withoutLink(before, link))]);
}

/** Put another source at an input in one entry: `now` goes, `link` comes. @param {Graph} graph */
export function rewire(graph, now, link) {
  if (link) {
    const why = refusal(graph, link);
    if (why) return why;
  }
  const before = graph.steps.get((link ?? now).to);
  if (!before) return "";
  const cleared = now ? withoutLink(before, now) : before;
  const after = link ? withLink(cleared, link, graph.catalogue.input(before.kind, link.into)?.many) : cleared;
  graph.apply([change("steps", (link ?? now).to, before, after)]);
  return "";
}

/** Give a step another name, and everything that names it. @param {Graph} graph */
export function rename(graph, old, id) {
  const step = graph.steps.get(old);
  if (!step || old === id) return "";
  if (!ID.test(id)) return t("A name starts with a lowercase letter and has only lowercase letters, digits and “_”, 40 at most.");
  if (graph.steps.has(id)) return t("A step “%(name)s” already exists.", { name: id });
  const names = new Map([[old, id]]);
  const changes = [change("steps", old, step), change("steps", id, undefined, step)];
  const place = graph.places.get(old);
  if (place) changes.push(change("places", old, place), change("places", id, undefined, place));
  for (const user of graph.users.get(old) ?? []) {
    const before = graph.steps.get(user);
    if (before && user !== old) changes.push(change("steps", user, before, renamed(before, names)));
  }
  graph.apply(changes);
  return "";
}

/** Set a part of a step ("note", "retries" …), undefined takes it out. @param {Graph} graph */
export function setPart(graph, id, part, value) {
  const before = graph.steps.get(id);
  if (!before) return;
  /** @type {any} */
  const after = { ...before, [part]: value };
  if (value === undefined) delete after[part];
  if (before[part] !== value) graph.apply([change("steps", id, before, after)], `part ${id} ${part}`);
}

/** Set a parameter of a step; undefined: its default. @param {Graph} graph */
export function setParam(graph, id, name, value) {
  const before = graph.steps.get(id);
  if (!before) return;
  const values = { ...before.with, [name]: value };
  if (value === undefined) delete values[name];
  /** @type {import("./graph.js").Step} */
  const after = { ...before, with: values };
  if (!Object.keys(values).length) delete after.with;
  graph.apply([change("steps", id, before, after)], `param ${id} ${name}`);
}

// --- parameters of the pipeline

/** @param {Graph} graph */
export function addParameter(graph) {
  let name = "parameter";
  for (let n = 2; graph.parameters.has(name); n++) name = `parameter_${n}`;
  graph.apply([change("parameters", name, undefined, { default: "" })]);
  return name;
}

/** @param {Graph} graph */
export function setParameter(graph, name, part, value) {
  const before = graph.parameters.get(name);
  const after = { ...before, [part]: value };
  if (part === "note" && !value) delete after.note;
  graph.apply([change("parameters", name, before, after)], `parameter ${name} ${part}`);
}

/** @param {Graph} graph */
export function removeParameter(graph, name) {
  graph.apply([change("parameters", name, graph.parameters.get(name))]);
}

/** Give a parameter another name, in every text that holds it. @param {Graph} graph */
export function renameParameter(graph, old, name) {
  if (old === name) return "";
  if (!ID.test(name)) return t("A name starts with a lowercase letter and has only lowercase letters, digits and “_”, 40 at most.");
  if (name === "item") return t("“item” is reserved for the items of a list. Use another name.");
  if (graph.parameters.has(name)) return t("A parameter “%(name)s” already exists.", { name });
  const value = graph.parameters.get(old);
  const changes = [change("parameters", old, value), change("parameters", name, undefined, value)];
  for (const [id, before] of graph.steps) {
    if (!before.with) continue;
    const values = mapped(before.with, (text) => text.replaceAll(/(\$*)\$\{(\w+)\}/g, (all, dollars, found) => (found === old && dollars.length % 2 === 0 ? `${dollars}\${${name}}` : all)));
    if (JSON.stringify(values) !== JSON.stringify(before.with)) changes.push(change("steps", id, before, { ...before, with: values }));
  }
  graph.apply(changes);
  return "";
}

/** The value with every text in it changed by `act`. */
function mapped(value, act) {
  if (typeof value === "string") return act(value);
  if (Array.isArray(value)) return value.map((one) => mapped(one, act));
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, mapped(one, act)]));
}

// --- many at once

/** Put every step in its place of the layered layout; `all` false: only those that have none. @param {Graph} graph */
export function arrange(graph, size, all = true) {
  const places = layered(graph, size);
  const changes = [];
  for (const [key, after] of places) {
    const before = graph.places.get(key);
    if ((all || !before) && (before?.[0] !== after[0] || before?.[1] !== after[1])) changes.push(change("places", key, before, after));
  }
  graph.apply(changes);
}

/** The chosen steps as the clipboard holds them, with the links among them. @param {Graph} graph */
export function part(graph, ids) {
  const chosen = [...ids].filter((id) => graph.steps.has(id)).sort();
  const inside = new Set(chosen);
  const steps = Object.fromEntries(chosen.map((id) => [id, only(/** @type {any} */ (graph.steps.get(id)), inside)]));
  const layout = Object.fromEntries(chosen.flatMap((id) => (graph.places.has(id) ? [[id, graph.places.get(id)]] : [])));
  return { format: 1, steps, layout };
}

/** A step with only the links that begin in `inside`. */
const only = (step, inside) => linksInto("", step).filter(({ from }) => !inside.has(from)).reduce(withoutLink, step);

/** Put in steps under fresh names, `unfit` has looked at them before; the new names. @param {Graph} graph */
export function insert(graph, given, dx, dy) {
  if (graph.steps.size + Object.keys(given.steps).length > MAX_STEPS) {
    return { ids: [], refused: t("A pipeline can have at most %(count)s steps.", { count: MAX_STEPS }) };
  }
  const names = new Map();
  for (const id of Object.keys(given.steps)) names.set(id, freshId(graph, id, new Set(names.values())));
  const inside = new Set(names.keys());
  const changes = [];
  for (const [old, id] of names) {
    const place = given.layout && Object.hasOwn(given.layout, old) && isPlace(given.layout[old]) ? given.layout[old] : [0, 0];
    changes.push(change("steps", id, undefined, renamed(only(given.steps[old], inside), names)), change("places", id, undefined, whole([place[0] + dx, place[1] + dy])));
  }
  const refused = circle(names, given) ? t("The pasted steps form a cycle, so nothing was pasted.") : "";
  if (!refused) graph.apply(changes);
  return { ids: refused ? [] : [...names.values()], refused };
}

/** Whether the links among steps that come from outside make a circle. */
function circle(names, given) {
  const left = new Map([...names.keys()].map((id) => [id, new Set(fromIds(given.steps[id]).filter((source) => names.has(source)))]));
  for (let size = -1; size !== left.size; ) {
    size = left.size;
    for (const [id, sources] of left) {
      for (const source of sources) if (!left.has(source)) sources.delete(source);
      if (!sources.size) left.delete(id);
    }
  }
  return left.size > 0;
}

/** Put another state in the place of this one, as one entry that can be taken back. @param {Graph} graph */
export function replace(graph, spec, layout) {
  graph.close();
  graph.apply(replacing(graph, spec, layout));
}

