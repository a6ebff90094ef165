// Links as curves of one SVG. A curve is drawn when it comes into view, and again only when an end of it moved.
import { svg } from "./dom.js";
import { curve, distance } from "./geometry.js";
import { linkKey } from "./links.js";
import { Obstacles } from "./routes.js";

const NEAR = 7; // pixels of the window from a curve that still mean it

/** @typedef {[number, number]} Point */
/** @typedef {{link: import("./links.js").Link, path: SVGElement | null, ends: [Point, Point], through: Point[], isLed: boolean, fresh: boolean}} Wire  isLed: its way is known */

export class Wires {
  /** @param {import("./stage.js").Stage} stage */
  constructor(stage) {
    this.stage = stage;
    this.element = svg("svg", "pl-wires");
    this.element.setAttribute("aria-hidden", "true");
    /** @type {Map<string, Wire>} */
    this.wires = new Map();
    /** @type {Map<string, Set<string>>} step → keys of the links into it */
    this.into = new Map();
    this.chosen = "";
    /** @type {Obstacles | null} */
    this.obstacles = null; // null: steps are on the move, links take the plain way
  }

  /** Read again what goes into a step. */
  update(id) {
    const { graph } = this.stage;
    const now = new Set();
    for (const link of graph.linksTo(id)) {
      if (!graph.steps.has(link.from)) continue;
      const key = linkKey(link);
      now.add(key);
      if (!this.wires.has(key)) this.wires.set(key, { link, path: null, ends: this.stage.sizes.ends(link), through: [], isLed: false, fresh: false });
    }
    for (const key of this.into.get(id) ?? []) if (!now.has(key)) this.#remove(key);
    if (now.size) this.into.set(id, now);
    else this.into.delete(id);
  }

  #remove(key) {
    this.wires.get(key)?.path?.remove();
    this.wires.delete(key);
    if (this.chosen === key) this.chosen = "";
  }

  /** The ends of a link moved. */
  moved(link) {
    const wire = this.wires.get(linkKey(link));
    if (!wire) return;
    wire.ends = this.stage.sizes.ends(link);
    wire.through = [];
    wire.isLed = false;
    wire.fresh = false;
  }

  /** Steps are on the move: until `settle`, no link is led around them. */
  stir() {
    this.obstacles = null;
  }

  /** Steps stand where they stand: lead every link around them, as soon as it is seen. */
  settle() {
    this.obstacles = new Obstacles(this.stage.graph, this.stage.sizes);
    for (const wire of this.wires.values()) wire.isLed = false;
  }

  #lead(wire) {
    if (wire.isLed || !this.obstacles) return;
    const { from, to } = wire.link;
    const through = this.obstacles.around(wire.ends[0], wire.ends[1], [from, to]);
    wire.isLed = true;
    if (through.join() === wire.through.join()) return;
    wire.through = through;
    wire.fresh = false;
  }

  /** Draw what is seen, hide what is not. */
  cull({ left, top, right, bottom }) {
    for (const [key, wire] of this.wires) this.#see(key, wire, left, top, right, bottom);
  }

  /** The same for the links of some steps alone. @param {Iterable<string>} ids */
  see(ids, { left, top, right, bottom }) {
    for (const id of ids) {
      for (const link of this.stage.graph.linksOf(id)) {
        const key = linkKey(link);
        const wire = this.wires.get(key);
        if (wire) this.#see(key, wire, left, top, right, bottom);
      }
    }
  }

  #see(key, wire, left, top, right, bottom) {
    const [[x1, y1], [x2, y2]] = wire.ends;
    const sideways = Math.max(x1, x2) + 40 < left || Math.min(x1, x2) - 40 > right;
    if (!sideways) this.#lead(wire);
    let [high, low] = y1 < y2 ? [y1, y2] : [y2, y1];
    for (const [, y] of wire.through) [high, low] = [Math.min(high, y), Math.max(low, y)];
    if (sideways || low < top || high > bottom) {
      if (wire.path && wire.path.style.display !== "none") wire.path.style.display = "none";
      return;
    }
    if (!wire.path) wire.path = this.#draw(key, wire);
    if (wire.path.style.display === "none") wire.path.style.display = "";
    if (wire.fresh) return;
    wire.path.setAttribute("d", curve(wire.ends[0], wire.ends[1], wire.through));
    wire.fresh = true;
  }

  #draw(key, { link }) {
    const path = svg("path", `pl-wire pl-wire-${link.sort}`);
    path.dataset.link = key;
    const source = this.stage.graph.steps.get(link.from);
    const type = link.sort === "data" && source ? this.stage.graph.catalogue.output(source.kind, link.out)?.type : "";
    if (type) path.dataset.type = type;
    path.classList.toggle("is-chosen", key === this.chosen);
    this.element.append(path);
    return path;
  }

  /** The link under a point of the world. */
  at(point) {
    let [best, nearest] = ["", NEAR / this.stage.camera.zoom];
    for (const [key, { ends, path, through }] of this.wires) {
      if (!path || path.style.display === "none") continue;
      const away = distance(point, ends[0], ends[1], through);
      if (away < nearest) [best, nearest] = [key, away];
    }
    return best;
  }

  choose(key) {
    this.wires.get(this.chosen)?.path?.classList.remove("is-chosen");
    this.chosen = this.wires.has(key) ? key : "";
    this.wires.get(this.chosen)?.path?.classList.add("is-chosen");
  }

  get chosenLink() {
    return this.wires.get(this.chosen)?.link ?? null;
  }
}
