// The point in the annotator: a click makes one.
import { clampPoint } from "../geometry.js";
import { ShapeKind } from "./kind.js";

const RADIUS = 4; // CSS pixels

export default class PointKind extends ShapeKind {
  reach = RADIUS;

  makeTool(desk) {
    return new PointTool(desk, this);
  }

  path(rings, scale) {
    const path = new Path2D();
    for (const [x, y] of rings) {
      path.moveTo(x + RADIUS / scale, y);
      path.arc(x, y, RADIUS / scale, 0, 2 * Math.PI);
    }
    return path;
  }
}

class PointTool {
  cursor = "crosshair";
  busy = false;

  constructor(desk, kind) {
    this.desk = desk;
    this.kind = kind;
  }

  down(at) {
    const { width, height } = this.desk.image;
    if (this.desk.mayDraw()) this.desk.finish(this.kind, [clampPoint(at.image, width, height)]);
  }

  enter() {}
  leave() {}
  cancel() {}
  move() {}
  up() {}
  paint() {}
}
