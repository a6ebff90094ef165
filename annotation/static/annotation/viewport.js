// Where the image lies on the screen. Screen = image × scale + offset, all in CSS pixels.
import { clamp } from "./geometry.js";

export const MAX_SCALE = 64;

export class Viewport {
  constructor() {
    this.width = 1;
    this.height = 1;
    this.image = { width: 1, height: 1 };
    this.scale = 1;
    this.x = 0;
    this.y = 0;
    this.fitted = true;
  }

  resize(width, height) {
    const centre = this.toImage(this.width / 2, this.height / 2);
    this.width = Math.max(1, width);
    this.height = Math.max(1, height);
    if (this.fitted) this.fit();
    else this.centreOn(...centre);
  }

  /**
   * Another image. With `keep` the zoom stays, and the middle of the window shows the same part of it; an image that
   * is fitted is fitted again.
   */
  show(image, { keep = false } = {}) {
    const [x, y] = this.toImage(this.width / 2, this.height / 2);
    const part = [x / this.image.width, y / this.image.height];
    this.image = image;
    if (keep && !this.fitted) this.centreOn(part[0] * image.width, part[1] * image.height);
    else this.fit();
  }

  get fitScale() {
    const margin = Math.min(24, this.width / 20);
    const across = (this.width - 2 * margin) / this.image.width;
    const down = (this.height - 2 * margin) / this.image.height;
    return Math.max(1e-4, Math.min(across, down));
  }

  fit() {
    this.scale = this.fitScale;
    this.centreOn(this.image.width / 2, this.image.height / 2);
    this.fitted = true;
  }

  oneToOne() {
    this.zoomAt(this.width / 2, this.height / 2, 1 / this.scale);
  }

  centreOn(x, y) {
    this.x = this.width / 2 - x * this.scale;
    this.y = this.height / 2 - y * this.scale;
    this.fitted = false;
  }

  panBy(dx, dy) {
    this.x += dx;
    this.y += dy;
    this.fitted = false;
    this.#keepInReach();
  }

  /** Zoom by a factor; the image point under the screen point (x, y) stays where it is. */
  zoomAt(x, y, factor) {
    const smallest = Math.min(this.fitScale / 4, 1);
    const scale = clamp(this.scale * factor, smallest, MAX_SCALE);
    this.x = x - ((x - this.x) * scale) / this.scale;
    this.y = y - ((y - this.y) * scale) / this.scale;
    this.scale = scale;
    this.fitted = false;
    this.#keepInReach();
  }

  /** @returns {[number, number]} */
  toImage(x, y) {
    return [(x - this.x) / this.scale, (y - this.y) / this.scale];
  }

  /** @returns {[number, number]} */
  toScreen(x, y) {
    return [x * this.scale + this.x, y * this.scale + this.y];
  }

  /** The part of image space on the screen. */
  get visible() {
    const [x0, y0] = this.toImage(0, 0);
    const [x1, y1] = this.toImage(this.width, this.height);
    return { x0, y0, x1, y1 };
  }

  get state() {
    return { scale: this.scale, x: this.x, y: this.y };
  }

  #keepInReach() {
    const reach = 48;
    this.x = clamp(this.x, reach - this.image.width * this.scale, this.width - reach);
    this.y = clamp(this.y, reach - this.image.height * this.scale, this.height - reach);
  }
}
