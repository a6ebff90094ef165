// Where each line of a log lies. A line is one row high, or several where long lines are wrapped.
import { plain } from "./ansi.js";
import { columns } from "./lines.js";

export const ROW = 18; // px, as job.css

export class Rows {
  /**
   * @param {{count: number, at: (index: number) => string}} lines
   * @param {() => number} across  letters that fit into one row now
   */
  constructor(lines, across) {
    this.lines = lines;
    this.across = across;
    this.wrap = false;
    this.tops = null; // with wrapping: first row of each line, and the sum at the end
  }

  /** Lines or the width changed: count again when somebody asks. */
  changed() {
    this.tops = null;
  }

  /** Pixels above a line; above all of them for one past the end. */
  topOf(index) {
    const tops = this.#tops();
    return (tops ? tops[Math.min(index, this.lines.count)] : index) * ROW;
  }

  /** The line at a pixel, the first or the last one beyond them. */
  lineAt(pixel) {
    const row = Math.max(0, Math.floor(pixel / ROW));
    const tops = this.#tops();
    if (!tops) return Math.min(row, Math.max(0, this.lines.count - 1));
    let low = 0;
    let high = this.lines.count - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (tops[middle] <= row) low = middle;
      else high = middle - 1;
    }
    return Math.max(0, low);
  }

  #tops() {
    if (!this.wrap) return null;
    if (this.tops) return this.tops;
    const across = Math.max(10, this.across());
    const tops = new Uint32Array(this.lines.count + 1);
    for (let i = 0; i < this.lines.count; i += 1) {
      tops[i + 1] = tops[i] + Math.max(1, Math.ceil(columns(plain(this.lines.at(i))) / across));
    }
    this.tops = tops;
    return tops;
  }
}
