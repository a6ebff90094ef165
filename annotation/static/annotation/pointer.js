// Mouse, pen and fingers on the stage, turned into what tools understand. Panning (space, middle
// button, hand tool), wheel zoom and pinch are handled here, whatever the tool.

/**
 * Where the pointer is: on the stage in CSS pixels, on the image in its own.
 * @typedef {{screen: [number, number], image: [number, number], shift: boolean, alt: boolean, touch: boolean, pressed: boolean}} Place
 */

/**
 * What a tool can do; `at` is a Place.
 * @typedef {object} Tool
 * @property {string} cursor
 * @property {boolean} busy  a shape is half made
 * @property {() => void} leave
 * @property {() => boolean} cancel  whether there was something to give up
 * @property {(at: Place) => void} down
 * @property {(at: Place) => void} move
 * @property {(at: Place) => void} up
 * @property {(context: CanvasRenderingContext2D, view: import("./viewport.js").Viewport) => void} paint
 * @property {() => void} [enter]
 * @property {(at: Place) => void} [doubleClick]
 * @property {() => void} [close]  what is drawn is complete
 * @property {() => boolean} [stepBack]  whether there was a point to take back
 * @property {() => boolean} [stepForward]
 * @property {number[] | null} [cursorAt]  where guides cross
 */

export class Pointers {
  /**
   * @param {HTMLElement} stage
   * @param {import("./desk.js").Desk} desk
   */
  constructor(stage, desk) {
    this.stage = stage;
    this.desk = desk;
    this.fingers = new Map();
    this.panning = null;
    this.space = false;
    this.lastClick = null;
    const on = (name, act, options) => stage.addEventListener(name, act, options);
    on("pointerdown", (event) => this.#down(event));
    on("pointermove", (event) => this.#move(event));
    on("pointerup", (event) => this.#up(event));
    on("pointercancel", (event) => this.#cancelled(event));
    on("pointerleave", () => this.desk.pointerLeft());
    on("wheel", (event) => this.#wheel(event), { passive: false });
    on("contextmenu", (event) => event.preventDefault());
    on("auxclick", (event) => event.preventDefault());
    addEventListener("keydown", (event) => this.#spaced(event, true));
    addEventListener("keyup", (event) => this.#spaced(event, false));
    addEventListener("blur", () => this.#release());
  }

  /** @returns {Place} */
  #at(event) {
    const box = this.stage.getBoundingClientRect();
    /** @type {[number, number]} */
    const screen = [event.clientX - box.left, event.clientY - box.top];
    return {
      screen,
      image: this.desk.viewport.toImage(...screen),
      shift: event.shiftKey,
      alt: event.altKey,
      touch: event.pointerType === "touch",
      pressed: (event.buttons & 1) === 1,
    };
  }

  #down(event) {
    this.stage.focus({ preventScroll: true });
    this.stage.setPointerCapture(event.pointerId);
    const at = this.#at(event);
    if (at.touch) {
      this.fingers.set(event.pointerId, at.screen);
      if (this.fingers.size === 2) {
        this.desk.tool.cancel();
        this.pinch = this.#pinchNow();
        return;
      }
      if (this.fingers.size > 2) return;
    }
    if (event.button === 1 || this.space || this.desk.handTool) {
      this.panning = at.screen;
      this.desk.setCursor("grabbing");
      event.preventDefault();
      return;
    }
    if (event.button !== 0) return;
    if (this.#isDouble(event)) {
      this.desk.tool.doubleClick?.(at);
      this.lastClick = null;
      return;
    }
    this.lastClick = { time: event.timeStamp, x: event.clientX, y: event.clientY };
    this.desk.tool.down(at);
  }

  #move(event) {
    const at = this.#at(event);
    if (this.fingers.has(event.pointerId)) this.fingers.set(event.pointerId, at.screen);
    if (this.pinch && this.fingers.size >= 2) {
      const now = this.#pinchNow();
      this.desk.viewport.panBy(now.x - this.pinch.x, now.y - this.pinch.y);
      this.desk.viewport.zoomAt(now.x, now.y, now.apart / this.pinch.apart);
      this.pinch = now;
      this.desk.viewMoved();
      return;
    }
    if (this.panning) {
      this.desk.viewport.panBy(at.screen[0] - this.panning[0], at.screen[1] - this.panning[1]);
      this.panning = at.screen;
      this.desk.viewMoved();
      return;
    }
    if (this.pinched) return;
    this.desk.tool.move(at);
  }

  #up(event) {
    const at = this.#at(event);
    if (this.fingers.delete(event.pointerId) && (this.pinch || this.pinched)) {
      this.pinch = null;
      this.pinched = this.fingers.size > 0; // the second finger of a pinch must not draw
      return;
    }
    if (this.panning) {
      this.panning = null;
      this.#idleCursor();
      return;
    }
    if (event.button === 0) this.desk.tool.up(at);
  }

  #cancelled(event) {
    this.fingers.delete(event.pointerId);
    this.#release();
    this.desk.tool.cancel();
  }

  #release() {
    this.panning = null;
    this.pinch = null;
    this.pinched = false;
    this.space = false;
    this.#idleCursor();
  }

  #wheel(event) {
    event.preventDefault();
    const { screen } = this.#at(event);
    const lines = event.deltaMode === 1 ? 16 : event.deltaMode === 2 ? 400 : 1;
    if (event.shiftKey && !event.ctrlKey) {
      this.desk.viewport.panBy(-(event.deltaX || event.deltaY) * lines, 0);
    } else {
      const strength = event.ctrlKey ? 0.01 : 0.0016; // trackpad pinches come as small ctrl-wheels
      this.desk.viewport.zoomAt(...screen, Math.exp(-event.deltaY * lines * strength));
    }
    this.desk.viewMoved();
  }

  #spaced(event, down) {
    if (event.key !== " " || event.target.closest?.("button, a, input, textarea, select, summary, dialog")) return;
    event.preventDefault();
    if (this.space === down) return;
    this.space = down;
    if (!this.panning) this.#idleCursor();
  }

  #idleCursor() {
    this.desk.setCursor(this.space || this.desk.handTool ? "grab" : this.desk.tool.cursor);
  }

  #isDouble(event) {
    const last = this.lastClick;
    if (!last || event.timeStamp - last.time > 350) return false;
    return Math.hypot(event.clientX - last.x, event.clientY - last.y) < 5;
  }

  #pinchNow() {
    const [a, b] = [...this.fingers.values()];
    return { x: (a[0] + b[0]) / 2, y: (a[1] + b[1]) / 2, apart: Math.max(1, Math.hypot(a[0] - b[0], a[1] - b[1])) };
  }
}
