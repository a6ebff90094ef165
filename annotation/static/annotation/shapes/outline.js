// What kinds with closed outlines share: a line that comes back, an inside, corners and edges.
import { contains, flawOf, nearestEdge } from "../geometry.js";
import { ShapeKind } from "./kind.js";

export class OutlineKind extends ShapeKind {
  path(rings) {
    const path = new Path2D();
    for (const ring of rings) {
      path.moveTo(ring[0], ring[1]);
      for (let i = 2; i < ring.length; i += 2) path.lineTo(ring[i], ring[i + 1]);
      path.closePath();
    }
    return path;
  }

  contains(rings, x, y) {
    return contains(rings, x, y);
  }

  distance(rings, x, y) {
    return nearestEdge(rings, x, y).distance;
  }

  flaw(rings) {
    return flawOf(rings);
  }
}
