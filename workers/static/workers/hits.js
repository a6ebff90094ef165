// The lines of a log that have the words somebody looks for.
import { plain } from "./ansi.js";

const ERROR = /\b(error|exception|traceback|fatal|failed|killed)\b/i;

/** The first line that looks like an error, or -1. */
export function firstError(lines) {
  for (let i = 0; i < lines.count; i += 1) if (ERROR.test(plain(lines.at(i)))) return i;
  return -1;
}

export class Hits {
  /** @param {{count: number, at: (index: number) => string}} lines */
  constructor(lines) {
    this.lines = lines;
    this.words = ""; // in small letters; "": nothing is looked for
    this.found = []; // lines
    this.now = -1; // place in `found` of the one that is shown
  }

  /** Look for words; the first hit at or after `from` is shown, else the first of all. */
  search(words, from) {
    this.words = words.toLowerCase();
    this.refresh();
    this.now = this.found.length ? this.found.findIndex((line) => line >= from) : -1;
    if (this.found.length && this.now < 0) this.now = 0;
  }

  /** Look again: lines came or went. */
  refresh() {
    this.found = [];
    for (let i = 0; this.words && i < this.lines.count; i += 1) if (this.has(this.lines.at(i))) this.found.push(i);
    this.now = Math.min(this.now, this.found.length - 1);
  }

  clear() {
    this.found = [];
  }

  has(line) {
    return Boolean(this.words) && plain(line).toLowerCase().includes(this.words);
  }

  /** Go to the next hit (1) or the one before (-1), around the ends. */
  step(by) {
    if (this.found.length) this.now = (this.now + by + this.found.length) % this.found.length;
  }

  /** The line of the hit that is shown, if there is one. */
  get line() {
    return this.found[this.now];
  }
}
