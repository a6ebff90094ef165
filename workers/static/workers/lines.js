// The lines of a log: grown at both ends, progress bars drawn with "\r" collapsed to their last state.

export const LONGEST = 20000;
export const MOST = 250000;

/** What a terminal would leave standing of a line with carriage returns: the last part that has text. */
export function collapse(raw) {
  if (!raw.includes("\r")) return raw;
  const parts = raw.split("\r");
  for (let i = parts.length - 1; i >= 0; i -= 1) if (parts[i]) return parts[i];
  return "";
}

// how programs that start several processes mark whose line it is: the platform and PyTorch, torchrun, mpirun
const CARD = /^\[(?:rank(\d+)\]:|default(\d+)\]:|\d+,(\d+)\]<(?:stdout|stderr)>:)/;

/** The process that a line says it comes from; -1 where it says nothing. @param {string} line */
export function cardOf(line) {
  const found = line.startsWith("[") ? CARD.exec(line) : null;
  return found ? Number(found[1] ?? found[2] ?? found[3]) : -1;
}

export class Lines {
  /** @type {string[]} */
  list = [];
  open = ""; // the last line while it has no end yet
  dropped = 0; // lines forgotten at the top
  /** The processes that lines say they come from, forgotten lines included. @type {Set<number>} */
  processes = new Set();

  clear() {
    this.processes.clear();
    this.list = [];
    this.open = "";
    this.dropped = 0;
  }

  /** All lines, the open one included. */
  get count() {
    return this.list.length + (this.open ? 1 : 0);
  }

  at(index) {
    return index < this.list.length ? this.list[index] : collapse(this.open);
  }

  /** Add text at the end. Returns how many lines were forgotten at the top to make room. */
  append(text) {
    const parts = (this.open + text).split("\n");
    this.open = parts.pop() ?? "";
    if (this.open.length > 4 * LONGEST) this.open = shortOpen(this.open);
    for (const part of parts) this.list.push(this.#noted(finished(part)));
    const over = this.list.length - MOST;
    if (over <= 0) return 0;
    const drop = over + MOST / 10; // in larger steps, so that it costs little
    this.list.splice(0, drop);
    this.dropped += drop;
    return drop;
  }

  /** Add whole lines at the top; returns how many. */
  prepend(text) {
    const parts = text.split("\n");
    if (parts[parts.length - 1] === "") parts.pop();
    this.list = parts.map((part) => this.#noted(finished(part))).concat(this.list);
    return parts.length;
  }

  /** @param {string} line */
  #noted(line) {
    const process = cardOf(line);
    if (process >= 0) this.processes.add(process);
    return line;
  }
}

function finished(raw) {
  const line = collapse(raw.endsWith("\r") ? raw.slice(0, -1) : raw);
  return line.length > LONGEST ? `${line.slice(0, LONGEST)}\u2026` : line;
}

/** A line without end is kept short: the beginning, and what follows the last carriage return. */
function shortOpen(raw) {
  const last = raw.lastIndexOf("\r");
  return last >= 0 && raw.length - last < LONGEST ? raw.slice(last) : raw.slice(0, LONGEST + 1);
}

/** Whether a line was cut for the screen. */
export function isCut(line) {
  return line.length > LONGEST;
}

/** Columns that text takes in a fixed-width font: wide characters count twice, a tab goes to the next eight. */
export function columns(text) {
  if (/^[\x20-\x7e]*$/.test(text)) return text.length;
  let wide = 0;
  for (const sign of text) {
    const code = sign.codePointAt(0);
    if (code === 9) wide += 8 - (wide % 8);
    else if (code >= 0x1100 && (code <= 0x115f || (code >= 0x2e80 && code <= 0xa4cf) || (code >= 0xac00 && code <= 0xd7a3) || (code >= 0xf900 && code <= 0xfaff) || (code >= 0xfe30 && code <= 0xfe6f) || (code >= 0xff00 && code <= 0xff60) || (code >= 0xffe0 && code <= 0xffe6) || code >= 0x1f300)) wide += 2;
    else wide += 1;
  }
  return wide;
}
