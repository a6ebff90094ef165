// The canvas: HTML steps over one SVG of links, one transform of the world, and only what is seen is painted.
import { t } from "../base/i18n.js";
import { Camera } from "./camera.js";
import { Card } from "./card.js";
import { el, once } from "./dom.js";
import { Sizes, WIDTH } from "./geometry.js";
import { fromIds } from "./links.js";
import { MiniMap } from "./minimap.js";
import { Wires } from "./wires.js";

const MARGIN = 200; // pixels around the window in which steps are kept ready
const LEAST = 0.5; // an opened pipeline is not shown smaller, unless one asks for all of it
const READABLE = 0.7; // at which a long one begins
const EDGE = 60; // of the ground around the steps
const STILL_MS = 150; // after this long without a move links are led around the steps again
const FAR = 0.45; // below this zoom ports cannot be read, and are not drawn
const TINY = 0.2; // below this zoom no word can be read

const SYMBOLS = { waiting: "wait", asking: "person", started: "running", ok: "ok", cached: "archive", failed: "fail", skipped: "minus", cancelled: "stop" };

export class Stage extends EventTarget {
  /**
   * @param {HTMLElement} root  an empty element that becomes the canvas
   * @param {import("./graph.js").Graph} graph
   * @param {{readOnly?: boolean, states?: Map<string, any> | null, label?: string}} [options]
   */
  constructor(root, graph, { readOnly = false, states = null, label = t("Canvas") } = {}) {
    super();
    this.root = root;
    this.graph = graph;
    this.readOnly = readOnly;
    this.states = states;
    this.sizes = new Sizes(graph, states !== null);
    /** @type {Map<string, import("./problems.js").Problem[]>} */
    this.problems = new Map();
    /** @type {Map<string, Card>} */
    this.cards = new Map();
    /** @type {Set<string>} */
    this.chosen = new Set();
    this.stop = ""; // the step that Tab leads to
    root.classList.add("pl-canvas");
    root.setAttribute("role", "application");
    root.setAttribute("aria-label", label);
    root.tabIndex = 0;
    this.camera = new Camera(root);
    this.wires = new Wires(this);
    this.world = el("div", "pl-world");
    this.ground = el("div", "pl-ground");
    this.world.append(this.ground, this.wires.element);
    this.map = new MiniMap(this);
    root.append(this.world, this.map.element);
    this.dirty = new Set();
    this.shifted = new Set();
    this.drawn = false;
    this.culled = { x: 0, y: 0, zoom: 0 }; // the view when steps were shown and hidden last
    this.ask = once(() => this.flush());
    this.settling = 0;
    graph.watch((changes) => this.#changed(changes));
    for (const id of graph.steps.keys()) this.dirty.add(id);
    new ResizeObserver(() => this.resized()).observe(root);
    root.addEventListener("focusin", (event) => this.#focused(/** @type {HTMLElement} */ (event.target)));
    this.flush();
  }

  symbol(state) {
    return SYMBOLS[state] ?? "dot";
  }

  // --- following the graph

  #changed(changes) {
    for (const { table, key, before, after } of changes) {
      if (table === "places") this.shifted.add(key);
      if (table !== "steps") continue;
      this.dirty.add(key);
      for (const step of [before, after]) for (const source of step ? fromIds(step) : []) this.dirty.add(source);
    }
    this.ask();
  }

  /** Draw what changed since the last time. */
  flush() {
    if (!this.dirty.size && !this.shifted.size && this.drawn) return;
    this.drawn = true;
    for (const id of this.dirty) {
      const card = this.cards.get(id);
      if (!this.graph.steps.has(id)) this.#drop(id, card);
      else card?.draw(card.hasBody);
      this.wires.update(id);
    }
    for (const id of new Set([...this.shifted, ...this.dirty])) {
      const place = this.graph.places.get(id);
      if (!place) continue;
      this.cards.get(id)?.move(place);
      for (const link of this.graph.linksOf(id)) this.wires.moved(link);
    }
    const whole = this.dirty.size > 0 || !this.culled.zoom;
    const moved = [...this.shifted];
    this.dirty.clear();
    this.shifted.clear();
    this.#stir();
    if (!this.graph.steps.has(this.stop)) this.stop = this.graph.order()[0] ?? "";
    this.root.classList.toggle("is-empty", this.graph.steps.size === 0);
    if (whole) this.cull();
    else this.#see(moved);
    this.map.ask();
  }

  /** Links take the plain way while steps move, and are led around them when they stand. */
  #stir() {
    clearTimeout(this.settling);
    this.wires.stir();
    if (!this.cards.size) this.#settle(); // nothing is drawn yet
    else this.settling = setTimeout(() => this.#settle(), STILL_MS);
  }

  #settle() {
    this.wires.settle();
    if (this.cards.size) this.wires.cull(this.camera.seen(MARGIN));
    const box = this.sizes.box(this.graph.steps.keys()) ?? { left: 0, top: 0, right: 0, bottom: 0 };
    Object.assign(this.ground.style, { left: `${box.left - EDGE}px`, top: `${box.top - EDGE}px`, width: `${box.right - box.left + 2 * EDGE}px`, height: `${box.bottom - box.top + 2 * EDGE}px` });
  }

  #drop(id, card) {
    this.chosen.delete(id);
    if (!card) return;
    if (card.element.contains(document.activeElement)) this.root.focus({ preventScroll: true }); // or the keyboard dies with the step
    card.element.remove();
    this.cards.delete(id);
  }

  // --- what is seen

  resized() {
    const { width, height } = this.camera;
    this.camera.measure();
    if (this.camera.width === width && this.camera.height === height && this.culled.zoom) return;
    this.culled.zoom = 0;
    this.look();
    if (this.opensSoon) this.open(this.opensSoon);
  }

  look() {
    const { x, y, zoom } = this.camera;
    this.world.style.transform = `translate(${x}px, ${y}px) scale(${zoom})`;
    this.world.classList.toggle("is-far", zoom < FAR);
    this.world.classList.toggle("is-tiny", zoom < TINY);
    const { culled } = this;
    if (zoom !== culled.zoom || Math.abs(x - culled.x) > MARGIN / 2 || Math.abs(y - culled.y) > MARGIN / 2) this.cull(); // else what is ready is enough
    this.map.frame();
    this.dispatchEvent(new CustomEvent("view"));
  }

  /** Steps far outside are not painted; the focused one stays, so that the keyboard never loses it. */
  cull() {
    if (!this.camera.width) return;
    this.culled = { x: this.camera.x, y: this.camera.y, zoom: this.camera.zoom };
    const seen = this.camera.seen(MARGIN);
    for (const id of this.graph.steps.keys()) this.#show(id, seen);
    this.wires.cull(seen);
  }

  /** The same for some steps that moved. */
  #see(ids) {
    if (!this.camera.width) return;
    const seen = this.camera.seen(MARGIN);
    for (const id of ids) if (this.graph.steps.has(id)) this.#show(id, seen);
    this.wires.see(ids, seen);
  }

  #show(id, { left, top, right, bottom }) {
    const place = this.graph.places.get(id);
    const away = !place || place[0] + WIDTH < left || place[0] > right || place[1] + this.sizes.height(id) < top || place[1] > bottom;
    const card = this.cards.get(id);
    if (away) {
      if (card && !card.element.hidden && !card.element.contains(document.activeElement)) card.element.hidden = true;
      return;
    }
    const shown = card ?? this.#make(id);
    if (this.camera.zoom >= FAR && !shown.hasBody) shown.draw(true);
    if (shown.element.hidden) shown.element.hidden = false;
  }

  /** @returns {Card} */
  #make(id) {
    const card = new Card(this, id);
    this.cards.set(id, card);
    card.draw(this.camera.zoom >= FAR);
    card.move(this.graph.places.get(id) ?? [0, 0]);
    card.element.classList.toggle("is-chosen", this.chosen.has(id));
    if (this.stop === id) card.element.tabIndex = 0;
    this.world.append(card.element);
    return card;
  }

  card(id) {
    return this.cards.get(id) ?? (this.graph.steps.has(id) ? this.#make(id) : null);
  }

  fit(ids = this.graph.steps.keys()) {
    this.camera.measure();
    const box = this.sizes.box(ids);
    if (!box || !this.camera.width) return;
    this.camera.fit(box);
    this.culled.zoom = 0;
    this.look();
  }

  /** Show all of it, but no smaller than can be read: a long pipeline is shown from its beginning on. */
  open(least = LEAST) {
    this.camera.measure();
    // a canvas that is hidden, or has no height before the styles around it came, is opened when it has its size
    this.opensSoon = this.camera.width && this.camera.height ? 0 : least;
    const box = this.sizes.box(this.graph.steps.keys());
    if (!box || this.opensSoon) return;
    this.camera.fit(box);
    if (this.camera.zoom < least) this.#begin(box);
    this.culled.zoom = 0;
    this.look();
  }

  /** Put what stands farthest to the left at the left, in the middle of the height. */
  #begin({ left, top, bottom }) {
    const { camera, graph } = this;
    camera.zoom = READABLE;
    const first = [...graph.steps.keys()].filter((id) => (graph.places.get(id)?.[0] ?? Infinity) < left + WIDTH);
    const box = (bottom - top) * READABLE > camera.height - 80 ? this.sizes.box(first.slice(0, 1)) : { top, bottom };
    camera.x = 40 - left * READABLE;
    camera.y = camera.height / 2 - (((box?.top ?? top) + (box?.bottom ?? bottom)) / 2) * READABLE;
  }

  zoom(factor, [px, py] = [this.camera.width / 2, this.camera.height / 2]) {
    this.camera.zoomAt(px, py, factor);
    this.look();
  }

  pan(dx, dy) {
    this.camera.pan(dx, dy);
    this.look();
  }

  /** Move the view so that a step is seen. */
  reveal(id) {
    const box = this.sizes.box([id]);
    if (!box) return;
    const seen = this.camera.seen(-16);
    if (box.left >= seen.left && box.right <= seen.right && box.top >= seen.top && box.bottom <= seen.bottom) return;
    this.camera.goTo((box.left + box.right) / 2, (box.top + box.bottom) / 2);
    this.look();
  }

  // --- choosing and focus

  choose(ids, { quiet = false } = {}) {
    const now = new Set([...ids].filter((id) => this.graph.steps.has(id)));
    for (const id of this.chosen) if (!now.has(id)) this.#mark(id, false);
    for (const id of now) this.#mark(id, true);
    this.chosen = now;
    this.wires.choose("");
    if (!quiet) this.dispatchEvent(new CustomEvent("choose", { detail: { ids: [...now] } }));
  }

  #mark(id, on) {
    const element = this.cards.get(id)?.element;
    element?.classList.toggle("is-chosen", on);
    if (on) element?.setAttribute("aria-current", "true");
    else element?.removeAttribute("aria-current");
  }

  /** The keyboard goes to a step. */
  focus(id, { choose = true } = {}) {
    this.flush();
    const card = this.card(id);
    if (!card) return;
    this.#stopAt(id);
    card.element.hidden = false;
    this.reveal(id);
    card.element.focus({ preventScroll: true });
    if (choose) this.choose([id]);
  }

  #stopAt(id) {
    const old = this.cards.get(this.stop);
    if (old) old.element.tabIndex = -1;
    this.stop = id;
    const card = this.cards.get(id);
    if (card) card.element.tabIndex = 0;
  }

  #focused(target) {
    const id = target.closest(".pl-step")?.dataset.id;
    if (id) this.#stopAt(id);
  }

  /** The step that has the keyboard, "" where none has. */
  get focused() {
    return document.activeElement?.closest?.(".pl-step")?.dataset.id ?? "";
  }

  /** The step that lies in a direction from another: along a link to the left and right, else the nearest. */
  neighbour(id, [dx, dy]) {
    const links = dx > 0 ? this.graph.linksFrom(id) : dx < 0 ? this.graph.linksTo(id) : [];
    const linked = dx > 0 ? links[0]?.to : links[0]?.from;
    if (linked && this.graph.steps.has(linked)) return linked;
    const [x, y] = this.graph.places.get(id) ?? [0, 0];
    let [best, least] = ["", Infinity];
    for (const [other, place] of this.graph.places) {
      const [ox, oy] = [place[0] - x, place[1] - y];
      const ahead = ox * dx + oy * dy;
      const cost = ahead + 2 * Math.abs(ox * dy + oy * dx);
      if (ahead > 0 && other !== id && cost < least) [best, least] = [other, cost];
    }
    return best;
  }

  /** Problems to show at the steps. @param {import("./problems.js").Problem[]} problems */
  showProblems(problems) {
    const before = this.problems;
    this.problems = new Map();
    for (const one of problems) {
      const known = this.problems.get(one.step);
      if (known) known.push(one);
      else this.problems.set(one.step, [one]);
    }
    for (const [id, card] of this.cards) {
      if (!this.graph.steps.has(id)) continue; // it goes with the next frame
      const now = this.problems.get(id);
      if (now || before.has(id)) card.problems(now ?? []);
    }
  }
}
