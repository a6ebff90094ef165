// A uniform grid over the image: which shapes may touch a box, without looking at all of them.
const CELLS = 64;
const LARGE = 400; // cells; a shape over more of them is kept in one list instead

export class Grid {
  constructor(width, height) {
    this.size = Math.max(width, height, 1) / CELLS;
    this.cells = new Map();
    this.large = new Map();
    this.boxes = new Map();
  }

  put(id, box) {
    this.remove(id);
    this.boxes.set(id, box);
    const span = this.#span(box);
    if ((span.x1 - span.x0 + 1) * (span.y1 - span.y0 + 1) > LARGE) {
      this.large.set(id, box);
      return;
    }
    this.#each(span, (key) => {
      const cell = this.cells.get(key) ?? new Set();
      this.cells.set(key, cell.add(id));
    });
  }

  remove(id) {
    const box = this.boxes.get(id);
    if (!box) return;
    this.boxes.delete(id);
    if (this.large.delete(id)) return;
    this.#each(this.#span(box), (key) => this.cells.get(key)?.delete(id));
  }

  /** The ids of all shapes whose box touches this one, each once, in no order. */
  query(box) {
    const span = this.#span(box);
    const all = (span.x1 - span.x0 + 1) * (span.y1 - span.y0 + 1) >= CELLS * CELLS;
    const found = new Set();
    const look = (id) => {
      const other = this.boxes.get(id);
      if (other.x0 <= box.x1 && box.x0 <= other.x1 && other.y0 <= box.y1 && box.y0 <= other.y1) found.add(id);
    };
    if (all) {
      for (const id of this.boxes.keys()) look(id);
      return found;
    }
    for (const id of this.large.keys()) look(id);
    this.#each(span, (key) => this.cells.get(key)?.forEach(look));
    return found;
  }

  #span(box) {
    const cell = (value) => Math.min(Math.max(Math.floor(value / this.size), 0), CELLS - 1);
    return { x0: cell(box.x0), y0: cell(box.y0), x1: cell(box.x1), y1: cell(box.y1) };
  }

  #each(span, visit) {
    for (let y = span.y0; y <= span.y1; y++) for (let x = span.x0; x <= span.x1; x++) visit(y * CELLS + x);
  }
}
