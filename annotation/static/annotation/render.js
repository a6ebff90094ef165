// Three stacked canvases: the image, the shapes at rest, and what is being done right now.
// Cost is bounded by design: moving the view shifts pictures, an edit repaints only its own
// rectangle, and a full repaint is cut into slices that fit a frame.
import { grown, union } from "./geometry.js";
import { Layer } from "./layer.js";
import { Names } from "./names.js";
import { allKinds, kindOf } from "./shapes/registry.js";

const SLICE_MS = 8; // of painting per frame while a full repaint is under way
const AT_ONCE_MS = 8; // a repaint expected to cost less than this is done in the frame itself
const REST_MS = 90; // without movement before the repaint starts

export class Renderer {
  /**
   * @param {Record<string, HTMLCanvasElement>} canvases
   * @param {import("./scene.js").Scene} scene
   * @param {import("./viewport.js").Viewport} viewport
   * @param {(label: number) => string} colours
   * @param {(shape: any) => {text: string, colour: string}} wordsOf  what is written on a shape
   */
  constructor({ image, shapes, names, active }, scene, viewport, colours, wordsOf) {
    this.scene = scene;
    this.viewport = viewport;
    this.colours = colours;
    this.image = new Layer(image);
    this.shapes = new Layer(shapes, { buffered: true });
    this.names = new Names(names, scene, wordsOf);
    this.active = new Layer(active);
    this.fill = 0.18; // of a shape's colour inside it
    this.line = 1.5; // CSS pixels
    this.bitmap = null;
    this.lifted = new Set(); // shapes drawn by the active layer meanwhile
    /** @type {(context: CanvasRenderingContext2D, view: import("./viewport.js").Viewport) => void} */
    this.paintActive = () => {};
    this.paths = new WeakMap();
    this.perShapeMs = 0.02;
    this.imageMs = 1;
    this.dirty = null;
    this.whole = true;
    this.job = null;
    this.movedAt = -Infinity;
    this.asked = false;
    this.frames = []; // durations of our own work, for the bench
    scene.addEventListener("reset", () => this.repaint());
    scene.addEventListener("visibility", () => this.repaint());
    scene.addEventListener("selection", () => {
      this.names.stale = true; // what is chosen is named first
      this.touch();
    });
    scene.addEventListener("shapes", ({ detail }) => this.#shapesChanged(detail));
  }

  resize(width, height, ratio) {
    for (const layer of [this.image, this.shapes, this.names.layer, this.active]) layer.resize(width, height, ratio);
    this.viewport.resize(width, height);
    this.job = null;
    this.repaint();
    this.#frame(performance.now());
  }

  setBitmap(bitmap) {
    this.bitmap = bitmap;
    this.image.painted = null;
    this.touch();
  }

  /** How everything looks: {fill: 0 to 1, line: CSS pixels, names: shown, filter: of the image, as CSS}. */
  look({ fill, line, names, filter }) {
    this.image.canvas.style.filter = filter;
    this.names.show(names);
    if (fill === this.fill && line === this.line) return void this.touch();
    this.fill = fill;
    this.line = line;
    this.repaint();
  }

  /** The view moved. */
  moved() {
    this.movedAt = performance.now();
    this.touch();
  }

  /** Everything at rest must be painted anew (visibility, colours, another image). */
  repaint() {
    this.whole = true;
    this.job = null;
    this.names.stale = true;
    this.touch();
  }

  /** Take shapes off the resting layer while a tool draws them; give them back with an empty list. */
  lift(ids) {
    const before = this.lifted;
    this.lifted = new Set(ids);
    for (const id of new Set([...before, ...this.lifted])) {
      if (before.has(id) !== this.lifted.has(id)) this.#soil(this.scene.box(id));
    }
    this.touch();
  }

  /** Only the active layer changed. */
  touch() {
    if (this.asked) return;
    this.asked = true;
    requestAnimationFrame((now) => this.#frame(now));
  }

  get settled() {
    return !this.asked && !this.job && this.shapes.matches(this.viewport) && this.image.matches(this.viewport) && this.names.rests(this.viewport);
  }

  path(shape, scale) {
    const kind = kindOf(shape);
    if (kind.reach) return kind.path(shape.rings, scale);
    let path = this.paths.get(shape);
    if (!path) {
      path = kind.path(shape.rings, scale);
      this.paths.set(shape, path);
    }
    return path;
  }

  #shapesChanged(changes) {
    for (const { id, before, after } of changes) {
      for (const shape of [before, after]) {
        if (!shape) continue;
        let box = this.scene.box(id);
        if (shape !== after || !box) box = kindOf(shape).extents(shape.rings);
        this.#soil(box);
      }
    }
    this.touch();
  }

  #soil(box) {
    if (!box) return;
    this.dirty = union(this.dirty, box);
    this.names.stale = true;
    if (this.job) this.job = null; // it may already have painted there: start again
  }

  #frame(now) {
    this.asked = false;
    const started = performance.now();
    const view = this.viewport;
    const resting = now - this.movedAt >= REST_MS;
    this.#imageFrame(view, resting);
    this.#shapesFrame(view, resting);
    this.names.frame(view, resting);
    this.paintActive(this.active.begin(view), view);
    this.active.finished(view);
    this.frames.push(performance.now() - started);
    if (this.frames.length > 600) this.frames.splice(0, 300);
    if (this.job || !this.shapes.matches(view) || !this.image.matches(view) || !this.names.rests(view)) this.touch();
  }

  #imageFrame(view, resting) {
    const layer = this.image;
    if (layer.matches(view)) return;
    if (layer.painted && !resting && this.imageMs > AT_ONCE_MS) {
      layer.follow(view);
      return;
    }
    const started = performance.now();
    const context = layer.begin(view);
    if (this.bitmap) {
      context.imageSmoothingEnabled = view.scale < 3;
      context.imageSmoothingQuality = "medium";
      context.drawImage(this.bitmap, 0, 0, view.image.width, view.image.height);
    }
    layer.finished(view);
    this.imageMs = performance.now() - started;
  }

  #shapesFrame(view, resting) {
    const layer = this.shapes;
    if (layer.matches(view) && !this.whole) {
      if (this.dirty) this.#paintDirty(view);
      return;
    }
    const context = /** @type {CanvasRenderingContext2D} */ (layer.buffer?.getContext("2d"));
    if (this.job && !sameView(this.job.view, view)) this.job = null;
    if (!this.job) {
      const guess = this.scene.grid.boxes.size * this.perShapeMs;
      if (layer.painted && !this.whole && !resting && guess > AT_ONCE_MS) {
        layer.follow(view);
        return;
      }
      this.job = { view: view.state, shapes: this.scene.within(view.visible), next: 0, ms: 0 };
      layer.begin(view, context);
      this.dirty = null;
      this.whole = true;
    }
    layer.follow(view);
    const job = this.job;
    const started = performance.now();
    while (job.next < job.shapes.length) {
      this.#paint(context, job.shapes[job.next++], view.scale);
      if (job.next % 16 === 0 && performance.now() - started > SLICE_MS) break;
    }
    job.ms += performance.now() - started;
    if (job.next < job.shapes.length) return;
    layer.swap(view);
    if (job.shapes.length > 50) this.perShapeMs = job.ms / job.shapes.length;
    this.job = null;
    this.whole = false;
  }

  #paintDirty(view) {
    const reach = Math.max(0, ...allKinds().map((kind) => kind.reach));
    const box = grown(this.dirty, (this.line + 1 + reach) / view.scale);
    this.dirty = null;
    const context = this.shapes.context;
    this.shapes.aim(view);
    context.save();
    context.beginPath();
    context.rect(box.x0, box.y0, box.x1 - box.x0, box.y1 - box.y0);
    context.clip();
    context.clearRect(box.x0, box.y0, box.x1 - box.x0, box.y1 - box.y0);
    for (const shape of this.scene.within(box)) this.#paint(context, shape, view.scale);
    context.restore();
  }

  #paint(context, shape, scale) {
    if (this.lifted.has(shape.id)) return;
    const colour = this.colours(shape.label);
    const box = this.scene.box(shape.id);
    const kind = kindOf(shape);
    if (!kind.reach && (box.x1 - box.x0) * scale < 3 && (box.y1 - box.y0) * scale < 3) {
      context.fillStyle = colour;
      context.fillRect(box.x0, box.y0, Math.max(box.x1 - box.x0, 1 / scale), Math.max(box.y1 - box.y0, 1 / scale));
      return;
    }
    const path = this.path(shape, scale);
    if (kind.filled && this.fill) {
      context.globalAlpha = this.fill;
      context.fillStyle = colour;
      context.fill(path, "evenodd");
      context.globalAlpha = 1;
    }
    context.lineWidth = this.line / scale;
    context.strokeStyle = colour;
    context.stroke(path);
  }
}

const sameView = (a, b) => a.scale === b.scale && a.x === b.x && a.y === b.y;
