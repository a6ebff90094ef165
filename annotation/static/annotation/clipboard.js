// Copies of objects, on this image or another one; kept by the browser, so also between tabs.
import { tn } from "../base/i18n.js";
import { newShape } from "./shape.js";
import { kindNamed } from "./shapes/registry.js";

const NAME = "aip-annotation-clipboard";

export class Clipboard {
  /** @param {import("./desk.js").Desk} desk */
  constructor(desk) {
    this.desk = desk;
    this.held = null; // {task, shapes}
  }

  /** Whether there was something to copy. */
  copy() {
    const { desk } = this;
    const chosen = desk.scene.selection;
    if (!chosen.length) return false;
    const copied = chosen.map(({ kind, label, rings }) => ({ kind, label, rings, name: desk.labelOf(label)?.name }));
    this.held = { task: desk.task.id, shapes: copied };
    try {
      localStorage.setItem(NAME, JSON.stringify(this.held));
    } catch {
      // too large for the browser's own store: it still pastes on this page
    }
    desk.hint(tn("%(count)s object copied.", "%(count)s objects copied.", chosen.length));
    return true;
  }

  paste() {
    const { task } = this.desk;
    let { held } = this;
    try {
      held = JSON.parse(localStorage.getItem(NAME) ?? "null") ?? held;
    } catch {
      // unreadable: what this page remembers is used
    }
    if (!held || !task) return;
    this.put(held.shapes, held.task === task.id ? 10 : 0);
  }

  duplicate() {
    this.put(this.desk.scene.selection, 10);
  }

  /**
   * Add copies, moved by some pixels and kept inside; classes of another dataset are found by name, and a class that
   * is drawn otherwise takes none. Returns how many there are now.
   */
  put(shapes, by = 0) {
    const { desk } = this;
    const { width, height } = desk.image;
    const added = [];
    for (const { kind, label, rings, name } of shapes) {
      const here = desk.byLabel.has(label);
      const known = here ? label : (desk.labels.find((entry) => entry.name === name)?.id ?? desk.label);
      const does = kindNamed(kind);
      const box = does.extents(rings);
      if (known === null || !desk.allows(known, kind)) continue;
      if (box.x1 - box.x0 > width || box.y1 - box.y0 > height) continue;
      const shape = newShape(kind, does.moved(rings, by, by, width, height), known);
      added.push({ id: shape.id, before: null, after: shape });
    }
    if (!added.length) return 0;
    if (desk.tool !== desk.tools.select) desk.use("select");
    desk.store.commit(added);
    desk.scene.select(added.map(({ id }) => id));
    return added.length;
  }
}
