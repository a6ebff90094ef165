// The lines of a log that somebody wants to see: of some phases, or ordered by card. Looks like `Lines` to who shows them.
import { cardOf } from "./lines.js";
import { PRINTED, phaseWord, readLine, said } from "./phases.js";

export class Shown {
  /** @param {import("./lines.js").Lines} lines */
  constructor(lines) {
    this.lines = lines;
    this.phases = new Set(); // empty: all
    this.byCard = false;
    this.process = -1; // -1: of all
    this.chosen = null; // places in `lines`, once somebody wants some of them
  }

  /** Lines came or went, or others are wanted. */
  changed() {
    this.chosen = null;
  }

  get count() {
    return this.#plain ? this.lines.count : this.#chosen().length;
  }

  get dropped() {
    return this.lines.dropped;
  }

  /** The line as people read it. @param {number} index */
  at(index) {
    const line = this.lines.at(this.placeOf(index));
    const own = readLine(line);
    return own ? `[${phaseWord(own.phase)}] ${said(own)}` : line;
  }

  /** The phase of a line of the platform's own, "" for what a program printed. @param {number} index */
  tagAt(index) {
    return readLine(this.lines.at(this.placeOf(index)))?.phase ?? "";
  }

  /** Where a line stands in the log. @param {number} index */
  placeOf(index) {
    return this.#plain ? index : this.#chosen()[index];
  }

  /** How many of the shown lines stand before a place in `lines`, as they were before `changed`. @param {number} place */
  before(place) {
    return this.#plain ? place : this.#chosen().filter((one) => one < place).length;
  }

  /** The processes that lines say they come from, by number; none where all come from one. @returns {number[]} */
  get processes() {
    const { processes } = this.lines;
    return processes.size > 1 ? [...processes].sort((a, b) => a - b) : [];
  }

  get #plain() {
    return !this.phases.size && !this.byCard && this.process < 0;
  }

  #chosen() {
    if (this.chosen) return this.chosen;
    const found = [];
    for (let i = 0; i < this.lines.count; i += 1) {
      const line = this.lines.at(i);
      if (this.process >= 0 && cardOf(line) !== this.process) continue;
      if (!this.phases.size || this.phases.has(readLine(line)?.phase ?? PRINTED)) found.push(i);
    }
    if (this.byCard) {
      const cards = new Map(found.map((i) => [i, cardOf(this.lines.at(i))]));
      found.sort((a, b) => (cards.get(a) ?? -1) - (cards.get(b) ?? -1) || a - b);
    }
    this.chosen = found;
    return found;
  }
}
