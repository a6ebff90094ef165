// The pipeline as data: steps, their places, parameters, and every change that can be taken back. No DOM.
//
// A step is the very object of the spec, and is never changed, only replaced: what this editor does not know stays in it.
import { fromIds, linksInto } from "./links.js";

/**
 * @typedef {object} Step
 * @property {string} kind
 * @property {Record<string, unknown>} [with]
 * @property {Record<string, string | string[]>} [from]
 * @property {string} [when]
 * @property {string[]} [after]
 * @property {string} [each]
 * @property {number} [retries]
 * @property {string} [rule]
 * @property {number} [tolerate]
 * @property {string} [note]
 */
/** @typedef {[number, number]} Place */
/** @typedef {"steps" | "places" | "parameters"} Table */
/** @typedef {{table: Table, key: string, before?: any, after?: any}} Change  no `after`: it goes; no `before`: it is new */

const MAX_HISTORY = 500; // entries of the history

export class Graph {
  /** @param {import("./catalogue.js").Catalogue} catalogue */
  constructor(catalogue) {
    this.catalogue = catalogue;
    /** @type {Map<string, Step>} */
    this.steps = new Map();
    /** @type {Map<string, Place>} */
    this.places = new Map();
    /** @type {Map<string, {default?: unknown, note?: string}>} */
    this.parameters = new Map();
    /** @type {Record<string, unknown>} what else stands at the top of the spec */
    this.rest = {};
    /** @type {Map<string, Set<string>>} step → steps that name it */
    this.users = new Map();
    /** @type {{changes: Change[], merge: string}[]} */
    this.done = [];
    /** @type {{changes: Change[], merge: string}[]} */
    this.undone = [];
    /** @type {Set<(changes: Change[]) => void>} */
    this.watchers = new Set();
  }

  /** Call `watcher` with every list of changes. @param {(changes: Change[]) => void} watcher */
  watch(watcher) {
    this.watchers.add(watcher);
  }

  // --- changes and their history

  /**
   * Apply changes as one entry of the history; those with the same `merge` as the last entry join it.
   * @param {Change[]} changes
   * @param {string} [merge]
   */
  apply(changes, merge = "") {
    if (!changes.length) return;
    this.#put(changes, "after");
    this.undone = [];
    const last = this.done.at(-1);
    if (merge && last?.merge === merge) join(last.changes, changes);
    else this.done.push({ changes: [...changes], merge });
    if (this.done.length > MAX_HISTORY) this.done.shift();
  }

  /** What comes next is an entry of its own, whatever its `merge` says. */
  close() {
    const last = this.done.at(-1);
    if (last) last.merge = "";
  }

  /** Take the last entry back; the ids of the steps it was about, null where there is none. */
  undo() {
    return this.#turn(this.done, this.undone, "before");
  }

  redo() {
    return this.#turn(this.undone, this.done, "after");
  }

  #turn(source, target, side) {
    const entry = source.pop();
    if (!entry) return null;
    entry.merge = "";
    this.#put(side === "before" ? [...entry.changes].reverse() : entry.changes, side);
    target.push(entry);
    return [...new Set(entry.changes.filter(({ table }) => table !== "parameters").map(({ key }) => key))];
  }

  #put(changes, side) {
    for (const change of changes) {
      const { table, key, [side]: value } = change;
      const old = /** @type {any} */ (this[table].get(key));
      if (table === "steps") this.#index(key, old, value);
      if (value === undefined) this[table].delete(key);
      else this[table].set(key, value);
    }
    for (const watcher of this.watchers) watcher(changes);
  }

  #index(id, old, now) {
    for (const source of old ? fromIds(old) : []) this.users.get(source)?.delete(id);
    for (const source of now ? fromIds(now) : []) {
      const known = this.users.get(source);
      if (known) known.add(id);
      else this.users.set(source, new Set([id]));
    }
  }

  // --- reading

  /** Links that end at a step. @param {string} id */
  linksTo(id) {
    const step = this.steps.get(id);
    return step ? linksInto(id, step) : [];
  }

  /** Links that begin at a step. @param {string} id */
  linksFrom(id) {
    return [...(this.users.get(id) ?? [])].flatMap((user) => this.linksTo(user)).filter((link) => link.from === id);
  }

  linksOf(id) {
    return [...this.linksTo(id), ...this.linksFrom(id)];
  }

  /** Every step that needs `id`, directly or not, and `id` itself. */
  following(id) {
    const found = new Set([id]);
    for (const one of found) for (const user of this.users.get(one) ?? []) found.add(user); // a Set grows while it is read
    return found;
  }

  /** Ids with every step after those it needs, else by name; what stands in a circle, or after one, comes last. */
  order() {
    const ready = this.#sorted();
    const seen = new Set(ready);
    return [...ready, ...[...this.steps.keys()].filter((id) => !seen.has(id)).sort()];
  }

  /** Steps that stand in a circle or after one. */
  knots() {
    const left = new Set(this.steps.keys());
    for (const id of this.#sorted()) left.delete(id);
    return left;
  }

  #sorted() {
    const left = new Map();
    for (const [id, step] of this.steps) left.set(id, new Set(fromIds(step).filter((source) => source !== id && this.steps.has(source))).size);
    const ready = [...left].filter(([, count]) => !count).map(([id]) => id).sort();
    for (const id of ready) {
      for (const user of [...(this.users.get(id) ?? [])].sort()) {
        if (user === id || !left.has(user)) continue;
        left.set(user, left.get(user) - 1);
        if (left.get(user) === 0) ready.push(user); // an array, too, grows while it is read
      }
    }
    return ready;
  }
}

/** Put `fresh` changes behind `known` ones of the same entry; those of the same thing become one. */
function join(known, fresh) {
  const at = new Map(known.map((change) => [`${change.table} ${change.key}`, change]));
  for (const change of fresh) {
    const same = at.get(`${change.table} ${change.key}`);
    if (same) same.after = change.after;
    else known.push(change);
  }
}
