// What a kind of shape is in the annotator: how it is drawn, found, shown, changed and judged.
// The methods here suit points that are each on their own; outline.js has those of closed outlines.
import { t, tn } from "../../base/i18n.js";
import { extents, moved, nearestVertex, withVertex } from "../geometry.js";
import { handle } from "../marks.js";
import { pointFields } from "./fields.js";

/**
 * What the pointer holds of a shape, or would hold; a kind fills in what it needs to go on.
 * @typedef {object} Grip
 * @property {string} kind  "vertex", "edge", "side", or "body", which no kind has to know
 * @property {number} [ring]
 * @property {number} [vertex]
 * @property {number} [edge]
 * @property {number[]} [side]
 * @property {number} [x]
 * @property {number} [y]
 * @property {any} [shape]
 */

export class ShapeKind {
  /** CSS pixels the shape is painted beyond its extents, for kinds whose looks do not grow with the zoom. */
  reach = 0;

  /**
   * What the server's registry says of it: datasets/shapes/.
   * @param {{name: string, label: string, tool: string, key: string, hint: string, filled: boolean}} facts
   */
  constructor({ name, label, tool, key, hint, filled }) {
    this.name = name;
    this.label = label;
    this.tool = tool;
    this.key = key;
    this.hint = hint;
    this.filled = filled;
  }

  /**
   * The tool that draws one: see pointer.js for what it is told, box.js for an example.
   * @returns {import("../pointer.js").Tool}
   */
  makeTool(_desk) {
    throw new Error(`${this.name} has no tool`);
  }

  // --- looking

  /** The drawn line, in pixels of the image; `scale` matters to kinds with a reach only. */
  path(rings, _scale) {
    const path = new Path2D();
    for (const ring of rings) {
      path.moveTo(ring[0], ring[1]);
      for (let i = 2; i < ring.length; i += 2) path.lineTo(ring[i], ring[i + 1]);
    }
    return path;
  }

  extents(rings) {
    return extents(rings);
  }

  contains(_rings, _x, _y) {
    return false;
  }

  /** Pixels of the image from a point to the drawn line. */
  distance(rings, x, y) {
    return nearestVertex(rings, x, y).distance;
  }

  /** What the list of objects says about its size. */
  size(rings, _box) {
    const points = rings.reduce((sum, ring) => sum + ring.length / 2, 0);
    return tn("%(count)s point", "%(count)s points", points);
  }

  // --- changing

  /** The shape moved by (dx, dy), held back as a whole at the borders of the image. */
  moved(rings, dx, dy, width, height) {
    return moved(rings, dx, dy, width, height);
  }

  /**
   * What a pointer at (x, y) takes hold of, or null; its body is not asked for here.
   * @returns {Grip | null}
   */
  gripAt(rings, x, y, reach) {
    const corner = nearestVertex(rings, x, y);
    return corner.distance <= reach ? { kind: "vertex", ...corner } : null;
  }

  /** The rings while a grip is dragged to a point. */
  dragged(rings, grip, point) {
    return withVertex(rings, grip.ring, grip.vertex, point);
  }

  /**
   * The rings after a double click on a grip that is no corner; null where that means nothing.
   * @returns {number[][] | null}
   */
  added(_rings, _grip, _point) {
    return null;
  }

  /**
   * The rings without a corner; null where it cannot be missed.
   * @returns {number[][] | null}
   */
  removed(_rings, _grip) {
    return null;
  }

  cursor(_grip, _alt) {
    return "grab";
  }

  /**
   * The handles of a chosen shape.
   * @param {CanvasRenderingContext2D} context
   * @param {number[][]} rings
   * @param {object} how
   * @param {import("../viewport.js").Viewport} how.view
   * @param {string} how.colour
   * @param {Grip | null} how.hover  the grip under the pointer
   * @param {boolean} how.resting  nothing is dragged
   */
  paintHandles(context, rings, { view, colour, hover }) {
    const { x0, y0, x1, y1 } = view.visible;
    let shown = 0;
    for (const [r, ring] of rings.entries()) {
      for (let i = 0; i < ring.length && shown < 2000; i += 2) {
        if (ring[i] < x0 || ring[i] > x1 || ring[i + 1] < y0 || ring[i + 1] > y1) continue;
        const hot = hover?.kind === "vertex" && hover.ring === r && hover.vertex === i / 2;
        handle(context, ring[i], ring[i + 1], view.scale, colour, { round: true, strong: hot });
        shown++;
      }
    }
  }

  // --- judging

  /**
   * Why the server would refuse these rings: a code, or null.
   * @returns {string | null}
   */
  flaw(_rings) {
    return null;
  }

  /** A sentence for a code, or null. */
  sentence(code) {
    return {
      many: t("A polygon can have at most 10,000 corners."),
      area: t("The shape has no area."),
      crossing: t("The lines of the polygon intersect."),
    }[code] ?? null;
  }

  // --- by numbers

  /**
   * A part of the form that draws without a pointer.
   * @returns {{part: HTMLElement, inputs: HTMLElement[], rings: () => number[][]}}
   */
  fields(rings) {
    return pointFields(rings);
  }
}
