// The box: drag from corner to corner, or click one corner and then the other; eight handles.
import { t } from "../../base/i18n.js";
import { boxRing, clampPoint, round2 } from "../geometry.js";
import { guides, handle, outline } from "../marks.js";
import { numberFields } from "./fields.js";
import { OutlineKind } from "./outline.js";

const DRAG = 4; // CSS pixels of movement that make a press a drag
const SIDES = [
  [0, 0], [0.5, 0], [1, 0], [1, 0.5], [1, 1], [0.5, 1], [0, 1], [0, 0.5],
];

export default class BoxKind extends OutlineKind {
  makeTool(desk) {
    return new BoxTool(desk, this);
  }

  size(_rings, box) {
    return `${Math.round(box.x1 - box.x0)}×${Math.round(box.y1 - box.y0)}`;
  }

  gripAt(rings, x, y, reach) {
    const [x0, y0, , , x1, y1] = rings[0];
    const side = SIDES.find(([u, v]) => {
      const gap = Math.max(Math.abs(x - x0 - u * (x1 - x0)), Math.abs(y - y0 - v * (y1 - y0)));
      return gap <= reach;
    });
    return side ? { kind: "side", side } : null;
  }

  dragged(rings, { side: [u, v] }, [x, y]) {
    const [x0, y0, , , x1, y1] = rings[0];
    return [boxRing(u === 0 ? x : x0, v === 0 ? y : y0, u === 1 ? x : x1, v === 1 ? y : y1)];
  }

  cursor({ side: [u, v] }) {
    if (u === 0.5) return "ns-resize";
    if (v === 0.5) return "ew-resize";
    return u === v ? "nwse-resize" : "nesw-resize";
  }

  paintHandles(context, rings, { view, colour }) {
    const [x0, y0, , , x1, y1] = rings[0];
    for (const [u, v] of SIDES) handle(context, x0 + u * (x1 - x0), y0 + v * (y1 - y0), view.scale, colour);
  }

  fields(rings) {
    const box = rings?.[0];
    const { part, inputs, number } = numberFields([
      ["x", t("Left"), box ? box[0] : 0],
      ["y", t("Top"), box ? box[1] : 0],
      ["width", t("Width"), box ? round2(box[2] - box[0]) : ""],
      ["height", t("Height"), box ? round2(box[5] - box[1]) : ""],
    ]);
    const corners = () => {
      const [x, y] = [number("x"), number("y")];
      return boxRing(x, y, x + number("width"), y + number("height")).map(round2);
    };
    return { part, inputs, rings: () => [corners()] };
  }
}

class BoxTool {
  cursor = "crosshair";

  /**
   * @param {import("../desk.js").Desk} desk
   * @param {import("./kind.js").ShapeKind} kind
   */
  constructor(desk, kind) {
    this.desk = desk;
    this.kind = kind;
    /** @type {[number, number] | null} */
    this.start = null; // the first corner
    /** @type {[number, number]} */
    this.here = [0, 0]; // the other one
  }

  get busy() {
    return this.start !== null;
  }

  enter() {
    this.cancel();
  }

  leave() {
    this.cancel();
  }

  cancel() {
    const was = this.start !== null;
    this.start = null;
    this.dragging = false;
    this.desk.refresh();
    return was;
  }

  down(at) {
    if (this.start) return; // the second click of two
    if (!this.desk.mayDraw()) return;
    this.start = this.#inside(at.image);
    this.pressed = at.screen;
    this.here = this.start;
    this.desk.refresh();
  }

  move(at) {
    this.here = this.#inside(at.image);
    this.cursorAt = at.image;
    if (this.start && at.pressed && this.pressed) {
      const way = Math.hypot(at.screen[0] - this.pressed[0], at.screen[1] - this.pressed[1]);
      if (way > DRAG) this.dragging = true;
    }
    this.desk.refresh();
  }

  up(at) {
    if (!this.start) return;
    this.here = this.#inside(at.image);
    const first = this.pressed && !this.dragging;
    this.pressed = null;
    if (first) {
      this.desk.say(t("Now click the opposite corner."));
      return;
    }
    const ring = boxRing(...this.start, ...this.here);
    const wide = (ring[2] - ring[0]) * this.desk.viewport.scale;
    const high = (ring[5] - ring[1]) * this.desk.viewport.scale;
    this.start = null;
    this.dragging = false;
    if (wide >= 2 && high >= 2) this.desk.finish(this.kind, [ring]);
    else this.desk.say(t("Too small for a box."));
    this.desk.refresh();
  }

  paint(context, view) {
    const colour = this.desk.colour;
    if (this.cursorAt) guides(context, ...this.cursorAt, view.image, view.scale);
    if (!this.start) return;
    const ring = boxRing(...this.start, ...this.here);
    const path = new Path2D();
    path.rect(ring[0], ring[1], ring[2] - ring[0], ring[5] - ring[1]);
    outline(context, path, view.scale, colour);
    handle(context, ...this.start, view.scale, colour);
  }

  #inside(point) {
    return clampPoint(point, this.desk.image.width, this.desk.image.height);
  }
}
