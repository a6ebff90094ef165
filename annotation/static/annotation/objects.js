// What one does to objects that are drawn: choose, look at, move, hide.
import { kindOf } from "./shapes/registry.js";

export class Objects {
  /** @param {import("./desk.js").Desk} desk */
  constructor(desk) {
    this.desk = desk;
  }

  pick(id, add) {
    const { desk } = this;
    const chosen = new Set(add ? desk.scene.selected : []);
    if (add && chosen.has(id)) chosen.delete(id);
    else chosen.add(id);
    if (desk.tool !== desk.tools.select) desk.use("select");
    desk.scene.select(chosen);
  }

  all() {
    const { desk } = this;
    desk.use("select");
    desk.scene.select(this.#shown().map(({ id }) => id));
  }

  /** Choose every object of a class. */
  allOf(label) {
    const { desk } = this;
    desk.use("select");
    desk.scene.select(this.#shown().filter((shape) => shape.label === label).map(({ id }) => id));
  }

  /** Bring an object into view, without zooming further than it takes. */
  lookAt(id) {
    const { scene, viewport } = this.desk;
    const shape = scene.get(id);
    if (!shape) return;
    this.pick(id, false);
    const { x0, y0, x1, y1 } = kindOf(shape).extents(shape.rings);
    const { width, height, scale } = viewport;
    const roomy = Math.min((0.6 * width) / Math.max(x1 - x0, 1), (0.6 * height) / Math.max(y1 - y0, 1));
    if (roomy < scale) viewport.zoomAt(width / 2, height / 2, roomy / scale);
    viewport.centreOn((x0 + x1) / 2, (y0 + y1) / 2);
    this.desk.viewMoved();
  }

  /** Move the chosen objects by pixels of the image; whether there was one to move. */
  nudge(dx, dy) {
    const { desk } = this;
    const chosen = desk.scene.selection;
    if (!chosen.length || desk.locked) return false;
    const { width, height } = desk.image;
    desk.store.commit(
      chosen.map((shape) => {
        const rings = kindOf(shape).moved(shape.rings, dx, dy, width, height);
        return { id: shape.id, before: shape, after: { ...shape, rings } };
      }),
    );
    return true;
  }

  /** Choose the next object (1) or the one before (-1) in drawing order; false past the last one. */
  cycle(step) {
    const { scene } = this.desk;
    const order = this.#shown().sort((a, b) => a.z - b.z);
    const [current] = scene.selected;
    const index = order.findIndex((shape) => shape.id === current);
    const next = current ? index + step : step > 0 ? 0 : order.length - 1;
    if (!order[next]) {
      scene.select([]);
      return false; // at the end the focus moves on, as Tab does everywhere
    }
    this.pick(order[next].id, false);
    return true;
  }

  /** Hide what is chosen; with nothing chosen, show what was hidden one by one. */
  hideChosen() {
    const { scene } = this.desk;
    const chosen = scene.selection;
    for (const { id } of chosen) scene.hide(id, true);
    if (!chosen.length) for (const id of [...scene.hidden]) scene.hide(id, false);
  }

  /** Lock what is chosen, or open it again where all of it is locked; with nothing chosen, open what is locked. */
  lockChosen() {
    const { scene } = this.desk;
    const chosen = scene.selection;
    const lock = chosen.some(({ id }) => !scene.locked.has(id));
    for (const { id } of chosen) scene.lock(id, lock);
    if (!chosen.length) for (const id of [...scene.locked]) scene.lock(id, false);
  }

  #shown() {
    const { scene } = this.desk;
    return [...scene.shapes.values()].filter((shape) => !scene.isHidden(shape));
  }
}
