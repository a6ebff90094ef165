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

  /** Make changes [{id, before, after}] one step that can be undone. */
  commit(changes) {
    const real = changes.filter(({ before, after }) => before !== after);
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
    if (!this.mayChange()) return false;
    const step = this.done.pop();
    if (!step) return false;
    this.undone.push(step);
    this.#play(step.map(({ id, before, after }) => ({ id, before: after, after: before })).reverse());
    return true;
  }

  redo() {
    if (!this.mayChange()) return false;
    const step = this.undone.pop();
    if (!step) return false;
    this.done.push(step);
    this.#play(step);
    return true;
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
