// What is on the image now: shapes, what is hidden, what is selected. Shapes are never changed in
// place, always replaced, so a drawn path can be kept for as long as its shape lives.
import { Grid } from "./grid.js";
import { kindOf } from "./shapes/registry.js";

export class Scene extends EventTarget {
  image = { width: 1, height: 1 };
  shapes = new Map();
  grid = new Grid(1, 1);
  hidden = new Set();
  hiddenClasses = new Set();
  allHidden = false;
  locked = new Set(); // ids nothing happens to by accident
  selected = new Set();
  counts = new Map(); // of shapes by class
  last = 0; // place in drawing order

  constructor(image = { width: 1, height: 1 }) {
    super();
    this.reset(image, []);
  }

  reset(image, shapes) {
    this.image = image;
    this.shapes = new Map();
    this.grid = new Grid(image.width, image.height);
    this.hidden = new Set();
    this.hiddenClasses = new Set();
    this.allHidden = false;
    this.locked = new Set();
    this.selected = new Set();
    this.counts = new Map();
    this.last = 0;
    for (const shape of shapes) this.#put(shape);
    this.#tell("reset");
  }

  get(id) {
    return this.shapes.get(id);
  }

  box(id) {
    return this.grid.boxes.get(id);
  }

  /** Apply [{id, before, after}]; `after` null deletes. */
  apply(changes) {
    for (const { id, after } of changes) {
      if (after) this.#put(after);
      else this.#drop(id);
    }
    this.#tell("shapes", changes);
  }

  isHidden(shape) {
    return this.allHidden || this.hidden.has(shape.id) || this.hiddenClasses.has(shape.label);
  }

  hide(id, hide) {
    if (hide) this.hidden.add(id);
    else this.hidden.delete(id);
    if (hide) this.selected.delete(id);
    this.#tell("visibility");
  }

  lock(id, lock) {
    if (lock) this.locked.add(id);
    else this.locked.delete(id);
    this.#tell("locks");
  }

  hideClass(label, hide) {
    if (hide) this.hiddenClasses.add(label);
    else this.hiddenClasses.delete(label);
    this.#dropHiddenSelection();
    this.#tell("visibility");
  }

  /** Hide all `labels` but one. */
  showAlone(label, labels) {
    this.hiddenClasses = new Set(labels.filter((other) => other !== label));
    this.allHidden = false;
    this.#dropHiddenSelection();
    this.#tell("visibility");
  }

  hideAll(hide) {
    this.allHidden = hide;
    this.#dropHiddenSelection();
    this.#tell("visibility");
  }

  select(ids) {
    this.selected = new Set([...ids].filter((id) => this.shapes.has(id)));
    this.#tell("selection");
  }

  get selection() {
    return [...this.selected].map((id) => this.shapes.get(id));
  }

  /** The shapes drawn within a box, in drawing order. */
  within(box) {
    const found = [];
    for (const id of this.grid.query(box)) {
      const shape = this.shapes.get(id);
      if (!this.isHidden(shape)) found.push(shape);
    }
    return found.sort((a, b) => a.z - b.z);
  }

  /**
   * The shape meant by a point: the smallest one under it, or an outline within `reach` pixels. Locked ones are
   * looked through.
   * @returns {any}
   */
  at(x, y, reach) {
    let best = null;
    let bestArea = Infinity;
    for (const id of this.grid.query({ x0: x - reach, y0: y - reach, x1: x + reach, y1: y + reach })) {
      const shape = this.shapes.get(id);
      if (this.isHidden(shape) || this.locked.has(id)) continue;
      const box = this.box(id);
      const size = (box.x1 - box.x0) * (box.y1 - box.y0);
      if (size >= bestArea) continue;
      const kind = kindOf(shape);
      if (kind.contains(shape.rings, x, y) || kind.distance(shape.rings, x, y) <= reach) {
        best = shape;
        bestArea = size;
      }
    }
    return best;
  }

  #put(shape) {
    const before = this.shapes.get(shape.id);
    if (before) this.#count(before.label, -1);
    shape.z ??= before?.z ?? ++this.last;
    this.last = Math.max(this.last, shape.z);
    this.shapes.set(shape.id, shape);
    this.grid.put(shape.id, kindOf(shape).extents(shape.rings));
    this.#count(shape.label, 1);
  }

  #drop(id) {
    const before = this.shapes.get(id);
    if (!before) return;
    this.#count(before.label, -1);
    this.shapes.delete(id);
    this.grid.remove(id);
    this.selected.delete(id);
    this.hidden.delete(id);
    this.locked.delete(id);
  }

  #count(label, by) {
    this.counts.set(label, (this.counts.get(label) ?? 0) + by);
  }

  #dropHiddenSelection() {
    this.selected = new Set([...this.selected].filter((id) => !this.isHidden(this.shapes.get(id))));
  }

  #tell(name, detail) {
    this.dispatchEvent(new CustomEvent(name, { detail }));
  }
}
