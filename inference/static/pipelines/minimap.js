// All of the pipeline at once, small: a click goes there. The keyboard has F (fit) and the arrows for it.
import { el } from "./dom.js";
import { WIDTH } from "./geometry.js";

const W = 168;
const H = 104;
const EDGE = 6;
const EVERY_MS = 150; // while steps are dragged; in each frame it would cost as much as the drag

export class MiniMap {
  /** @param {import("./stage.js").Stage} stage */
  constructor(stage) {
    this.stage = stage;
    this.canvas = el("canvas", "", { width: W * 2, height: H * 2 });
    this.view = el("div", "pl-map-view");
    this.element = el("div", "pl-map", { "aria-hidden": "true" }, this.canvas, this.view);
    this.scale = 0;
    this.left = 0;
    this.top = 0;
    this.soon = 0;
    this.element.addEventListener("pointerdown", (event) => {
      event.stopPropagation();
      this.element.setPointerCapture(event.pointerId);
      this.#go(event);
    });
    this.element.addEventListener("pointermove", (event) => event.buttons && this.#go(event));
  }

  /** Draw it soon. */
  ask() {
    this.soon ||= setTimeout(() => {
      this.soon = 0;
      this.draw();
    }, EVERY_MS);
  }

  draw() {
    const { graph, sizes, states } = this.stage;
    const box = sizes.box(graph.steps.keys());
    this.element.hidden = !box;
    const paint = this.canvas.getContext("2d");
    if (!box || !paint) return;
    this.box = box;
    this.scale = Math.min((W - 2 * EDGE) / (box.right - box.left), (H - 2 * EDGE) / (box.bottom - box.top));
    this.left = (W - (box.right - box.left) * this.scale) / 2;
    this.top = (H - (box.bottom - box.top) * this.scale) / 2;
    const style = getComputedStyle(this.element);
    /** @type {Map<string, string>} */
    const colours = new Map(); // asking the style for each of a thousand steps would cost a frame
    const colour = (state) => {
      const known = colours.get(state) ?? (style.getPropertyValue(`--map-${state}`).trim() || style.color);
      colours.set(state, known);
      return known;
    };
    paint.setTransform(2, 0, 0, 2, 0, 0);
    paint.clearRect(0, 0, W, H);
    for (const [id, [x, y]] of graph.places) {
      if (!graph.steps.has(id)) continue;
      paint.fillStyle = colour(states?.get(id)?.state ?? "step");
      paint.fillRect(this.left + (x - box.left) * this.scale, this.top + (y - box.top) * this.scale, Math.max(1.5, WIDTH * this.scale), Math.max(1.5, sizes.height(id) * this.scale));
    }
    this.frame();
  }

  /** Show which part is seen. */
  frame() {
    if (!this.box || !this.scale) return;
    const { left, top, right, bottom } = this.stage.camera.seen();
    const isWhole = left <= this.box.left && top <= this.box.top && right >= this.box.right && bottom >= this.box.bottom;
    this.element.classList.toggle("is-whole", isWhole); // beside a graph that is seen as a whole it would only cover steps
    const x = this.left + (Math.max(left, this.box.left) - this.box.left) * this.scale;
    const y = this.top + (Math.max(top, this.box.top) - this.box.top) * this.scale;
    const width = Math.max(0, (Math.min(right, this.box.right) - Math.max(left, this.box.left)) * this.scale);
    const height = Math.max(0, (Math.min(bottom, this.box.bottom) - Math.max(top, this.box.top)) * this.scale);
    this.view.style.transform = `translate(${Math.round(x)}px, ${Math.round(y)}px)`;
    const size = `${Math.round(width)}px ${Math.round(height)}px`;
    if (size === this.size) return; // a size, unlike a place, costs a layout
    this.size = size;
    [this.view.style.width, this.view.style.height] = size.split(" ");
  }

  #go({ clientX, clientY }) {
    if (!this.box || !this.scale) return;
    const place = this.element.getBoundingClientRect();
    const shown = place.width / (W + 2); // smaller in a narrow window; the border counts
    const x = ((clientX - place.left) / shown - this.left) / this.scale + this.box.left;
    const y = ((clientY - place.top) / shown - this.top) / this.scale + this.box.top;
    this.stage.camera.goTo(x, y);
    this.stage.look();
  }
}
