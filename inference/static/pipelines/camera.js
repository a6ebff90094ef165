// Which part of the world is seen, and how large.

const SMALLEST = 0.04;
const LARGEST = 2;

export class Camera {
  width = 0;
  height = 0;
  x = 40;
  y = 40;
  zoom = 1;

  /** @param {HTMLElement} canvas */
  constructor(canvas) {
    this.canvas = canvas;
    this.measure();
  }

  /** Read the size of the canvas; asking the page for it in every frame would cost a layout. */
  measure() {
    this.width = this.canvas.clientWidth;
    this.height = this.canvas.clientHeight;
  }

  /** Point of the world under a point of the window. @returns {[number, number]} */
  toWorld({ clientX, clientY }) {
    const box = this.canvas.getBoundingClientRect();
    return [(clientX - box.left - this.x) / this.zoom, (clientY - box.top - this.y) / this.zoom];
  }

  /** Middle of what is seen. @returns {[number, number]} */
  get middle() {
    return [(this.width / 2 - this.x) / this.zoom, (this.height / 2 - this.y) / this.zoom];
  }

  /** The part of the world that is seen, `margin` pixels of the window wider on each side. */
  seen(margin = 0) {
    return {
      left: (-this.x - margin) / this.zoom,
      top: (-this.y - margin) / this.zoom,
      right: (this.width - this.x + margin) / this.zoom,
      bottom: (this.height - this.y + margin) / this.zoom,
    };
  }

  pan(dx, dy) {
    this.x += dx;
    this.y += dy;
  }

  /** Zoom so that the point (px, py) of the canvas stays. */
  zoomAt(px, py, factor) {
    const zoom = Math.min(LARGEST, Math.max(SMALLEST, this.zoom * factor));
    this.x = px - ((px - this.x) / this.zoom) * zoom;
    this.y = py - ((py - this.y) / this.zoom) * zoom;
    this.zoom = zoom;
  }

  /** Show all of a box. */
  fit({ left, top, right, bottom }, margin = 40) {
    this.zoom = Math.max(SMALLEST, Math.min(1, (this.width - 2 * margin) / (right - left), (this.height - 2 * margin) / (bottom - top)));
    this.goTo((left + right) / 2, (top + bottom) / 2);
  }

  /** Put a point of the world into the middle. */
  goTo(x, y) {
    this.x = this.width / 2 - x * this.zoom;
    this.y = this.height / 2 - y * this.zoom;
  }
}
