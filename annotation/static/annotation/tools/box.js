// Draw a box: drag from corner to corner, or click one corner and then the other.
import { boxRing, clampPoint } from "../geometry.js";
import { guides, handle, outline } from "../marks.js";

const DRAG = 4; // CSS pixels of movement that make a press a drag

export class BoxTool {
  cursor = "crosshair";
  kind = "bbox";

  constructor(desk) {
    this.desk = desk;
    this.start = null;
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
    if (!this.desk.mayDraw("bbox")) return;
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
      this.desk.say("corner");
      return;
    }
    const ring = boxRing(...this.start, ...this.here);
    const wide = (ring[2] - ring[0]) * this.desk.viewport.scale;
    const high = (ring[5] - ring[1]) * this.desk.viewport.scale;
    this.start = null;
    this.dragging = false;
    if (wide >= 2 && high >= 2) this.desk.finish("bbox", [ring]);
    else this.desk.say("small");
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
