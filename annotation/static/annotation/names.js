// The classes written on the shapes: a layer of its own, painted when the view rests. A name is left out where another
// one stands already or its shape is too small to point at, so a full image costs what a screen of words costs.
import { Layer } from "./layer.js";

const MOST = 400; // names on the screen
const HIGH = 16; // CSS pixels of one
const PAD = 4;
const CELL = 24; // CSS pixels; two names never share one
const LEAST = 10; // CSS pixels a shape has on its longer side to be named

export class Names {
  /**
   * @param {HTMLCanvasElement} canvas
   * @param {import("./scene.js").Scene} scene
   * @param {(shape: any) => {text: string, colour: string}} wordsOf
   */
  constructor(canvas, scene, wordsOf) {
    this.layer = new Layer(canvas);
    this.scene = scene;
    this.wordsOf = wordsOf;
    this.shown = false;
    this.stale = true;
    this.widths = new Map(); // of texts
    /** @type {Set<string>} */
    this.written = new Set(); // ids of the shapes whose names are on the screen
  }

  show(shown) {
    this.shown = shown;
    this.stale = true;
  }

  /** Whether the layer says what it should for this view. */
  rests(view) {
    return !this.stale && Boolean(this.layer.matches(view));
  }

  /** @param {import("./viewport.js").Viewport} view */
  frame(view, resting) {
    if (this.rests(view)) return;
    if (this.shown && this.layer.painted && !resting) {
      this.layer.follow(view);
      return;
    }
    const context = this.layer.begin(view);
    this.written = new Set();
    if (this.shown) this.#paint(context, view);
    this.layer.finished(view);
    this.stale = false;
  }

  #paint(context, view) {
    const { scene } = this;
    const { ratio } = this.layer;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.font = "11px sans-serif";
    context.textBaseline = "middle";
    const shapes = scene.within(view.visible).reverse(); // what was drawn last lies on top
    const taken = new Set();
    for (const shape of [...scene.selection, ...shapes]) {
      if (this.written.size >= MOST) break;
      if (scene.isHidden(shape) || this.written.has(shape.id)) continue;
      const box = scene.box(shape.id);
      const tall = Math.max(box.x1 - box.x0, box.y1 - box.y0);
      if (tall && tall * view.scale < LEAST) continue;
      const { text, colour } = this.wordsOf(shape);
      const wide = this.#width(context, text);
      const [left, top] = view.toScreen(box.x0, box.y0);
      const x = Math.round(Math.max(0, Math.min(left, view.width - wide)));
      const y = Math.round(top >= HIGH ? top - HIGH : Math.max(0, top));
      if (y > view.height || !claimed(taken, x, y, wide)) continue;
      this.written.add(shape.id);
      context.fillStyle = colour;
      context.fillRect(x, y, wide, HIGH);
      context.fillStyle = inkOn(colour);
      context.fillText(text, x + PAD, y + HIGH / 2);
    }
  }

  #width(context, text) {
    let wide = this.widths.get(text);
    if (wide === undefined) {
      wide = Math.ceil(context.measureText(text).width) + 2 * PAD;
      this.widths.set(text, wide);
    }
    return wide;
  }
}

/** Claim the cells a name covers; false where one of them is another name's. */
function claimed(taken, x, y, wide) {
  const cells = [];
  for (let row = Math.floor(y / HIGH); row <= Math.floor((y + HIGH - 1) / HIGH); row++) {
    for (let column = Math.floor(x / CELL); column <= Math.floor((x + wide - 1) / CELL); column++) {
      const cell = `${row} ${column}`;
      if (taken.has(cell)) return false;
      cells.push(cell);
    }
  }
  for (const cell of cells) taken.add(cell);
  return true;
}

/** Black or white, whichever reads better on a colour like #1c7ed6. */
export function inkOn(colour) {
  const [red, green, blue] = [1, 3, 5].map((at) => Number.parseInt(colour.slice(at, at + 2), 16) / 255);
  const linear = (value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
  const light = 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue);
  return light > 0.179 ? "#000000" : "#ffffff";
}
