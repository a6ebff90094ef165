// What kinds of steps there are: their ports, their parameters, and what fits what. No DOM.
import { t } from "../base/i18n.js";

/** @typedef {{name: string, label: string, type: string, optional?: boolean, many?: boolean}} Port */
/**
 * @typedef {object} Param
 * @property {string} name
 * @property {string} label
 * @property {"text" | "long" | "number" | "whole" | "yesno" | "choice" | "json" | "secret" | "secrets"} form
 * @property {unknown} [default]
 * @property {boolean} [required]
 * @property {[string, string][] | null} [choices]
 * @property {number | null} [low]
 * @property {number | null} [high]
 * @property {string} [help]
 */
/**
 * @typedef {object} Kind
 * @property {string} name
 * @property {string} label
 * @property {string} [about]
 * @property {string} group
 * @property {string} [icon]
 * @property {Port[]} inputs
 * @property {Port[]} outputs
 * @property {Param[]} params
 * @property {boolean} [unknown]  the server has no such kind (any more)
 */
/**
 * @typedef {object} GivenCatalogue
 * @property {Record<string, {label: string}>} types
 * @property {{name: string, label: string}[]} groups
 * @property {Kind[]} kinds
 * @property {string[]} [secrets]  names of the reader's
 */

export const SIGNAL = "signal";
export const LIST = "list";
const ANY = "any"; // an input that takes everything but a signal

export class Catalogue {
  /** @param {GivenCatalogue} given */
  constructor(given) {
    this.types = given.types;
    this.secrets = given.secrets ?? [];
    this.groups = given.groups;
    /** @type {Map<string, Kind>} */
    this.kinds = new Map(given.kinds.map((kind) => [kind.name, kind]));
    /** @type {Map<string, Kind>} */
    this.unknown = new Map();
  }

  has(name) {
    return this.kinds.has(name);
  }

  /** The kind of that name; one without ports where the server has none. @returns {Kind} */
  kind(name) {
    const known = this.kinds.get(name) ?? this.unknown.get(name);
    if (known) return known;
    const made = { name, label: name, about: "", group: "", icon: "warning", inputs: [], outputs: [], params: [], unknown: true };
    this.unknown.set(name, made);
    return made;
  }

  /** @returns {Port | undefined} */
  input(kind, name) {
    return this.kind(kind).inputs.find((port) => port.name === name);
  }

  /** @returns {Port | undefined} */
  output(kind, name) {
    return this.kind(kind).outputs.find((port) => port.name === name);
  }

  /** The word of a port type. */
  typeLabel(type) {
    return type === ANY ? t("Any type") : (this.types[type]?.label ?? type);
  }

  /** Kinds whose name, label or sentence holds every word of `words`; those whose label begins with it first. */
  search(words) {
    const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
    const rank = ({ label, name }) => (wanted.length && !label.toLowerCase().startsWith(wanted[0]) && !name.startsWith(wanted[0]) ? 1 : 0);
    return [...this.kinds.values()]
      .filter((kind) => wanted.every((word) => `${kind.label} ${kind.name} ${kind.about ?? ""}`.toLowerCase().includes(word)))
      .sort((a, b) => rank(a) - rank(b));
  }
}

/** Whether what an output of type `given` gives may go into an input of type `taken`. */
export const fits = (given, taken) => given === taken || (taken === ANY && given !== SIGNAL);
