// The polygon, drawn point by point. Enter, F, N, a double click or a click on the first point closes
// it; Backspace takes the last point back. Dragging leaves points along the way. Corners can be moved,
// added on an edge, and taken away.
import { t } from "../../base/i18n.js";
import { clampPoint, nearestEdge, withVertexAfter, withoutVertex } from "../geometry.js";
import { guides, handle, outline } from "../marks.js";
import { OutlineKind } from "./outline.js";

const CLOSE = 9; // CSS pixels around the first point that close the polygon
const SPACING = 10; // CSS pixels between the points of a dragged line

export default class PolygonKind extends OutlineKind {
  makeTool(desk) {
    return new PolygonTool(desk, this);
  }

  /** @returns {import("./kind.js").Grip | null} */
  gripAt(rings, x, y, reach) {
    const corner = super.gripAt(rings, x, y, reach);
    if (corner) return corner;
    const edge = nearestEdge(rings, x, y);
    return edge.distance <= reach / 2 ? { kind: "edge", ...edge } : null;
  }

  dragged(rings, grip, point) {
    return grip.kind === "edge" ? this.added(rings, grip, point) : super.dragged(rings, grip, point);
  }

  added(rings, grip, point) {
    return withVertexAfter(rings, grip.ring, grip.edge, point);
  }

  removed(rings, grip) {
    return withoutVertex(rings, grip.ring, grip.vertex);
  }

  cursor(grip, alt) {
    if (grip.kind === "edge") return "copy";
    return alt ? "not-allowed" : "grab";
  }

  paintHandles(context, rings, { view, colour, hover, resting }) {
    super.paintHandles(context, rings, { view, colour, hover, resting });
    if (hover?.kind === "edge" && resting) {
      handle(context, hover.x, hover.y, view.scale, colour, { round: true, faint: true });
    }
  }

  sentence(code) {
    return code === "few" ? t("A polygon must have at least 3 corners.") : super.sentence(code);
  }
}

class PolygonTool {
  cursor = "crosshair";

  /**
   * @param {import("../desk.js").Desk} desk
   * @param {import("./kind.js").ShapeKind} kind
   */
  constructor(desk, kind) {
    this.desk = desk;
    this.kind = kind;
    /** @type {number[]} */
    this.points = [];
    /** @type {number[][]} */
    this.undone = [];
  }

  get busy() {
    return this.points.length > 0;
  }

  enter() {
    this.cancel();
  }

  leave() {
    this.cancel();
  }

  cancel() {
    const was = this.busy;
    this.points = [];
    this.undone = [];
    this.desk.refresh();
    return was;
  }

  down(at) {
    if (!this.busy && !this.desk.mayDraw()) return;
    const point = this.#inside(at.image);
    if (this.points.length >= 6 && this.#nearFirst(at.screen)) {
      this.close();
      return;
    }
    this.lastScreen = at.screen;
    this.drawing = true;
    this.#add(point);
  }

  move(at) {
    this.here = this.#inside(at.image);
    this.cursorAt = at.image;
    if (this.drawing && at.pressed && this.lastScreen) {
      const way = Math.hypot(at.screen[0] - this.lastScreen[0], at.screen[1] - this.lastScreen[1]);
      if (way >= SPACING) {
        this.lastScreen = at.screen;
        this.#add(this.here);
      }
    }
    this.closing = this.points.length >= 6 && this.#nearFirst(at.screen);
    this.desk.refresh();
  }

  up() {
    this.drawing = false;
  }

  doubleClick() {
    if (this.points.length >= 6) this.close();
  }

  /** Take the last point back; true when there was one. */
  stepBack() {
    if (!this.busy) return false;
    this.undone.push(this.points.splice(-2));
    this.desk.refresh();
    return true;
  }

  stepForward() {
    const point = this.undone.pop();
    if (!point) return false;
    this.points.push(...point);
    this.desk.refresh();
    return true;
  }

  close() {
    const flaw = this.kind.flaw([this.points]);
    if (flaw) {
      this.desk.say(this.kind.sentence(flaw), flaw === "crossing" ? () => this.#untangle() : null);
      return;
    }
    const ring = this.points;
    this.points = [];
    this.undone = [];
    this.closing = false;
    this.desk.finish(this.kind, [ring]);
  }

  paint(context, view) {
    const colour = this.desk.colour;
    if (this.cursorAt) guides(context, ...this.cursorAt, view.image, view.scale);
    if (!this.busy) return;
    const path = new Path2D();
    path.moveTo(this.points[0], this.points[1]);
    for (let i = 2; i < this.points.length; i += 2) path.lineTo(this.points[i], this.points[i + 1]);
    if (this.here) {
      const [x, y] = this.closing ? this.points : this.here;
      path.lineTo(x, y);
    }
    outline(context, path, view.scale, colour, { fill: 0.15 });
    for (let i = 0; i < this.points.length; i += 2) {
      const first = i === 0 && this.points.length >= 6;
      handle(context, this.points[i], this.points[i + 1], view.scale, colour, {
        round: true,
        strong: first,
        faint: !first,
      });
    }
  }

  #add([x, y]) {
    const count = this.points.length;
    if (count && this.points[count - 2] === x && this.points[count - 1] === y) return;
    this.points.push(x, y);
    this.undone = [];
    this.desk.refresh();
  }

  #untangle() {
    const ring = this.desk.untangled(this.points);
    if (!ring) return;
    this.points = ring;
    this.close();
  }

  #nearFirst([x, y]) {
    const [fx, fy] = this.desk.viewport.toScreen(this.points[0], this.points[1]);
    return Math.hypot(x - fx, y - fy) <= CLOSE;
  }

  #inside(point) {
    return clampPoint(point, this.desk.image.width, this.desk.image.height);
  }
}
