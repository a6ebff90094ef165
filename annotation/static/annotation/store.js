// The one way to change shapes: apply to the scene, remember for undo, hand to the journal.
export class Store extends EventTarget {
  /**
   * @param {import("./scene.js").Scene} scene
   * @param {(changes: object[]) => void} write  hands changes to the journal
   * @param {() => boolean} mayChange  whether the image is open to changes; it tells the person where it is not
   */
  constructor(scene, write, mayChange) {
    super();
    this.scene = scene;
    this.write = write;
    this.mayChange = mayChange;
    this.done = [];
    this.undone = [];
  }

  /** Another image: its own history, empty or as it was left. */
  open(history = { done: [], undone: [] }) {
    this.done = history.done;
    this.undone = history.undone;
    this.#tell();
  }

  /** Make changes [{id, before, after}] one step that can be undone; what is locked stays as it is. */
  commit(changes) {
    const meant = changes.filter(({ before, after }) => before !== after);
    const real = meant.filter(({ id }) => !this.scene.locked.has(id));
    if (meant.length && !real.length) this.dispatchEvent(new Event("locked"));
    if (!real.length || !this.mayChange()) return;
    this.done.push(real);
    this.undone.length = 0;
    this.#play(real);
  }

  add(shape) {
    this.commit([{ id: shape.id, before: null, after: shape }]);
  }

  replace(before, changes) {
    this.commit([{ id: before.id, before, after: { ...before, ...changes } }]);
  }

  remove(shapes) {
    this.commit(shapes.map((shape) => ({ id: shape.id, before: shape, after: null })));
  }

  undo() {
    return this.#step(this.done, this.undone, (step) => step.map(({ id, before, after }) => ({ id, before: after, after: before })).reverse());
  }

  redo() {
    return this.#step(this.undone, this.done, (step) => step);
  }

  /** Take a step from one pile to the other, but for shapes somebody else changed since: their work stays. */
  #step(from, to, played) {
    if (!this.mayChange()) return false;
    const step = from.pop();
    if (!step) return false;
    const whole = played(step);
    const own = whole.filter(({ id, before }) => sameShape(this.scene.get(id), before));
    if (own.length < whole.length) this.dispatchEvent(new Event("overtaken"));
    const ids = new Set(own.map(({ id }) => id));
    if (own.length) to.push(step.filter(({ id }) => ids.has(id)));
    if (own.length) this.#play(own);
    else this.#tell();
    return own.length > 0;
  }

  #play(changes) {
    this.scene.apply(changes);
    this.write(changes);
    this.#tell();
  }

  #tell() {
    this.dispatchEvent(new Event("history"));
  }
}

function sameShape(one, other) {
  if (one === other || !one || !other) return one === other || (!one && !other);
  return one.kind === other.kind && one.label === other.label && JSON.stringify(one.rings) === JSON.stringify(other.rings);
}
