// Choose, move and reshape: handles of the chosen shape first, then its outline, then any body.
import {
  boxRing,
  clampPoint,
  contains,
  flawOf,
  moved,
  nearestEdge,
  nearestVertex,
  withVertex,
  withVertexAfter,
  withoutVertex,
} from "../geometry.js";
import { handle, outline } from "../marks.js";

const REACH = 8; // CSS pixels around a corner or an outline
const DRAG = 3;
const SIDES = [
  [0, 0], [0.5, 0], [1, 0], [1, 0.5], [1, 1], [0.5, 1], [0, 1], [0, 0.5],
];

export class SelectTool {
  cursor = "default";

  constructor(desk) {
    this.desk = desk;
    this.grip = null;
    this.preview = null;
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
    const way = Math.hypot(at.screen[0] - this.grip.screen[0], at.screen[1] - this.grip.screen[1]);
    if (!this.preview && way < DRAG) return;
    if (!this.preview) this.desk.renderer.lift(this.desk.scene.selected);
    this.preview = new Map(this.desk.scene.selection.map((shape) => [shape.id, this.#changed(shape, at)]));
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
      const flaw = flawOf(rings);
      if (flaw) {
        const fix = flaw === "crossing" ? () => this.#commitUntangled(id, rings) : null;
        this.desk.say(flaw, fix);
        return;
      }
      const before = this.desk.scene.get(id);
      changes.push({ id, before, after: { ...before, rings } });
    }
    this.desk.store.commit(changes);
  }

  /** A double click on an outline adds a corner there; on a corner it removes it. */
  doubleClick(at) {
    const grip = this.#gripAt(at);
    if (grip?.kind === "vertex") this.removeVertex(grip);
    else if (grip?.kind === "edge") {
      const { shape, ring, edge } = grip;
      const rings = withVertexAfter(shape.rings, ring, edge, this.#inside(at.image));
      this.desk.store.replace(shape, { rings, kind: "polygon" });
    }
  }

  removeVertex({ shape, ring, vertex }) {
    const rings = withoutVertex(shape.rings, ring, vertex);
    if (!rings) this.desk.say("few");
    else if (flawOf(rings)) this.desk.say(flawOf(rings));
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
      outline(context, renderer.path(now), view.scale, colour);
      if (alone && !this.desk.locked) this.#paintHandles(context, now, view, colour);
    }
  }

  #paintHandles(context, shape, view, colour) {
    if (shape.kind === "bbox") {
      const [x0, y0, , , x1, y1] = shape.rings[0];
      for (const [u, v] of SIDES) handle(context, x0 + u * (x1 - x0), y0 + v * (y1 - y0), view.scale, colour);
      return;
    }
    const { x0, y0, x1, y1 } = view.visible;
    let shown = 0;
    for (const [r, ring] of shape.rings.entries()) {
      for (let i = 0; i < ring.length && shown < 2000; i += 2) {
        if (ring[i] < x0 || ring[i] > x1 || ring[i + 1] < y0 || ring[i + 1] > y1) continue;
        const hot = this.hover?.kind === "vertex" && this.hover.ring === r && this.hover.vertex === i / 2;
        handle(context, ring[i], ring[i + 1], view.scale, colour, { round: true, strong: hot });
        shown++;
      }
    }
    if (this.hover?.kind === "edge" && !this.preview) {
      handle(context, this.hover.x, this.hover.y, view.scale, colour, { round: true, faint: true });
    }
  }

  #gripAt(at) {
    const { scene, viewport } = this.desk;
    if (scene.selected.size !== 1 || this.desk.locked) return null;
    const [shape] = scene.selection;
    if (scene.isHidden(shape)) return null;
    const reach = (at.touch ? 2 : 1) * (REACH / viewport.scale);
    const [x, y] = at.image;
    if (shape.kind === "bbox") {
      const [x0, y0, , , x1, y1] = shape.rings[0];
      const side = SIDES.find(([u, v]) => {
        const gap = Math.max(Math.abs(x - x0 - u * (x1 - x0)), Math.abs(y - y0 - v * (y1 - y0)));
        return gap <= reach;
      });
      return side ? { kind: "side", shape, side } : null;
    }
    const corner = nearestVertex(shape.rings, x, y);
    if (corner.distance <= reach) return { kind: "vertex", shape, ...corner };
    const edge = nearestEdge(shape.rings, x, y);
    if (edge.distance <= reach / 2) return { kind: "edge", shape, ...edge };
    return null;
  }

  #changed(shape, at) {
    const { image } = this.desk;
    const [x, y] = this.#inside(at.image);
    const grip = this.grip;
    if (grip.kind === "vertex") return withVertex(shape.rings, grip.ring, grip.vertex, [x, y]);
    if (grip.kind === "edge") return withVertexAfter(shape.rings, grip.ring, grip.edge, [x, y]);
    if (grip.kind === "side") {
      const [x0, y0, , , x1, y1] = shape.rings[0];
      const [u, v] = grip.side;
      return [boxRing(u === 0 ? x : x0, v === 0 ? y : y0, u === 1 ? x : x1, v === 1 ? y : y1)];
    }
    const dx = at.image[0] - grip.from[0];
    const dy = at.image[1] - grip.from[1];
    return moved(shape.rings, dx, dy, image.width, image.height);
  }

  #commitUntangled(id, rings) {
    const fixed = rings.map((ring) => this.desk.untangled(ring));
    const before = this.desk.scene.get(id);
    if (before && fixed.every(Boolean)) this.desk.store.replace(before, { rings: fixed });
  }

  #cursorOf(grip, at) {
    if (!grip) {
      const [shape] = this.desk.scene.selection;
      return shape && contains(shape.rings, ...at.image) ? "move" : "default";
    }
    if (grip.kind === "body") return "move";
    if (grip.kind === "edge") return "copy";
    if (grip.kind === "vertex") return at.alt ? "not-allowed" : "grab";
    const [u, v] = grip.side;
    if (u === 0.5) return "ns-resize";
    if (v === 0.5) return "ew-resize";
    return u === v ? "nwse-resize" : "nesw-resize";
  }

  #inside(point) {
    return clampPoint(point, this.desk.image.width, this.desk.image.height);
  }
}
