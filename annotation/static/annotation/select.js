// Choose, move and reshape: handles of the chosen shape first, then its outline, then any body.
import { clampPoint } from "./geometry.js";
import { outline } from "./marks.js";
import { kindOf } from "./shapes/registry.js";

const REACH = 8; // CSS pixels around a corner or an outline
const DRAG = 3;

/**
 * A grip that is held, and where it was taken: on the image and on the stage.
 * @typedef {import("./shapes/kind.js").Grip & {from: [number, number], screen: [number, number]}} Held
 */

export class SelectTool {
  cursor = "default";

  /** @param {import("./desk.js").Desk} desk */
  constructor(desk) {
    this.desk = desk;
    /** @type {Held | null} */
    this.grip = null;
    /** @type {Map<string, number[][]> | null} */
    this.preview = null;
    /** @type {import("./shapes/kind.js").Grip | null} */
    this.hover = null;
  }

  get busy() {
    return this.grip !== null;
  }

  enter() {}

  leave() {
    this.cancel();
  }

  cancel() {
    const was = this.preview !== null;
    this.grip = null;
    this.preview = null;
    this.desk.renderer.lift([]);
    return was;
  }

  down(at) {
    const { scene } = this.desk;
    const grip = this.#gripAt(at);
    if (grip?.kind === "vertex" && at.alt) {
      this.removeVertex(grip);
      return;
    }
    if (grip) {
      this.grip = { ...grip, from: at.image, screen: at.screen };
      return;
    }
    const shape = scene.at(...at.image, REACH / this.desk.viewport.scale);
    if (!shape) {
      if (!at.shift) scene.select([]);
      this.grip = null;
      return;
    }
    if (at.shift) {
      const chosen = new Set(scene.selected);
      if (!chosen.delete(shape.id)) chosen.add(shape.id);
      scene.select(chosen);
      return;
    }
    if (!scene.selected.has(shape.id)) scene.select([shape.id]);
    if (!this.desk.locked) this.grip = { kind: "body", from: at.image, screen: at.screen };
  }

  move(at) {
    this.hover = this.grip ?? this.#gripAt(at);
    this.desk.setCursor(this.#cursorOf(this.hover, at));
    if (!this.grip || !at.pressed) {
      this.desk.refresh();
      return;
    }
    const { grip } = this;
    const way = Math.hypot(at.screen[0] - grip.screen[0], at.screen[1] - grip.screen[1]);
    if (!this.preview && way < DRAG) return;
    if (!this.preview) this.desk.renderer.lift(this.desk.scene.selected);
    this.preview = new Map(this.desk.scene.selection.map((shape) => [shape.id, this.#changed(grip, shape, at)]));
    this.desk.refresh();
  }

  up() {
    const preview = this.preview;
    this.grip = null;
    this.preview = null;
    this.desk.renderer.lift([]);
    if (!preview) return;
    const changes = [];
    for (const [id, rings] of preview) {
      const before = this.desk.scene.get(id);
      const kind = kindOf(before);
      const flaw = kind.flaw(rings);
      if (flaw) {
        const fix = flaw === "crossing" ? () => this.#commitUntangled(id, rings) : null;
        this.desk.say(kind.sentence(flaw), fix);
        return;
      }
      changes.push({ id, before, after: { ...before, rings } });
    }
    this.desk.store.commit(changes);
  }

  /** A double click on an outline adds a corner there; on a corner it removes it. */
  doubleClick(at) {
    const grip = this.#gripAt(at);
    if (grip?.kind === "vertex") this.removeVertex(grip);
    else if (grip) {
      const rings = kindOf(grip.shape).added(grip.shape.rings, grip, this.#inside(at.image));
      if (rings) this.desk.store.replace(grip.shape, { rings });
    }
  }

  removeVertex(grip) {
    const { shape } = grip;
    const kind = kindOf(shape);
    const rings = kind.removed(shape.rings, grip);
    const flaw = rings ? kind.flaw(rings) : "few";
    if (flaw) this.desk.say(kind.sentence(flaw));
    else this.desk.store.replace(shape, { rings });
  }

  paint(context, view) {
    const { scene, renderer } = this.desk;
    const alone = scene.selected.size === 1;
    let painted = 0;
    for (const shape of scene.selection) {
      if (painted++ > 500) break;
      if (scene.isHidden(shape)) continue;
      const now = this.preview?.has(shape.id) ? { ...shape, rings: this.preview.get(shape.id) } : shape;
      const colour = this.desk.colourOf(shape.label);
      const kind = kindOf(now);
      outline(context, renderer.path(now, view.scale), view.scale, colour, { fill: kind.filled ? Math.min(0.28, 2 * renderer.fill) : 0, line: Math.max(2, renderer.line) });
      if (!alone || this.desk.locked || scene.locked.has(shape.id)) continue;
      kind.paintHandles(context, now.rings, { view, colour, hover: this.hover, resting: !this.preview });
    }
  }

  /** @returns {import("./shapes/kind.js").Grip | null} */
  #gripAt(at) {
    const { scene, viewport } = this.desk;
    if (scene.selected.size !== 1 || this.desk.locked) return null;
    const [shape] = scene.selection;
    if (scene.isHidden(shape) || scene.locked.has(shape.id)) return null;
    const reach = (at.touch ? 2 : 1) * (REACH / viewport.scale);
    const [x, y] = at.image;
    const grip = kindOf(shape).gripAt(shape.rings, x, y, reach);
    return grip && { ...grip, shape };
  }

  /** @param {Held} grip */
  #changed(grip, shape, at) {
    const { image } = this.desk;
    const kind = kindOf(shape);
    if (grip.kind !== "body") return kind.dragged(shape.rings, grip, this.#inside(at.image));
    const dx = at.image[0] - grip.from[0];
    const dy = at.image[1] - grip.from[1];
    return kind.moved(shape.rings, dx, dy, image.width, image.height);
  }

  #commitUntangled(id, rings) {
    const fixed = rings.map((ring) => this.desk.untangled(ring));
    const before = this.desk.scene.get(id);
    if (before && fixed.every(Boolean)) this.desk.store.replace(before, { rings: fixed });
  }

  #cursorOf(grip, at) {
    if (!grip) {
      const [shape] = this.desk.scene.selection;
      return shape && kindOf(shape).contains(shape.rings, ...at.image) ? "move" : "default";
    }
    return grip.kind === "body" ? "move" : kindOf(grip.shape).cursor(grip, at.alt);
  }

  #inside(point) {
    return clampPoint(point, this.desk.image.width, this.desk.image.height);
  }
}
