// The annotator's desk: what tools, panels and keys share, and every act a person can do here.
import { ask } from "../base/dialog.js";
import { t, tn } from "../base/i18n.js";
import { extents, moved, untangled } from "./geometry.js";
import { newId } from "./journal.js";
import { outline } from "./marks.js";
import { askNumbers, flawText } from "./numbers.js";
import { Renderer } from "./render.js";
import { Scene } from "./scene.js";
import { Store } from "./store.js";
import { BoxTool } from "./tools/box.js";
import { PolygonTool } from "./tools/polygon.js";
import { SelectTool } from "./tools/select.js";
import { Viewport } from "./viewport.js";

const CLIPBOARD = "aip-annotation-clipboard";
const FALLBACK = "#8891a5"; // a class this page does not know yet

export class Desk extends EventTarget {
  constructor({ labels, canvases, journal, mode }) {
    super();
    this.mode = mode; // "view", "draw" or "review"
    this.labels = labels;
    this.byLabel = new Map(labels.map((label) => [label.id, label]));
    this.label = labels[0]?.id ?? null;
    this.journal = journal;
    this.task = null;
    this.scene = new Scene();
    this.viewport = new Viewport();
    this.store = new Store(this.scene, (changes) => this.journal.record(this.task.id, changes), () => this.mayChange());
    this.renderer = new Renderer(canvases, this.scene, this.viewport, (label) => this.colourOf(label));
    this.renderer.paintActive = (context, view) => this.#paint(context, view);
    this.tools = { select: new SelectTool(this), box: new BoxTool(this), polygon: new PolygonTool(this) };
    this.tool = this.tools.select;
    this.toolName = "select";
    this.lastDrawing = null;
    this.handTool = false;
  }

  // --- what tools ask for

  get image() {
    return this.viewport.image;
  }

  get colour() {
    return this.colourOf(this.label);
  }

  labelOf(id) {
    return this.byLabel.get(id);
  }

  colourOf(id) {
    return this.byLabel.get(id)?.colour ?? FALLBACK;
  }

  refresh() {
    this.renderer.touch();
  }

  viewMoved() {
    this.renderer.moved();
    this.#tell("view");
  }

  setCursor(cursor) {
    this.#tell("cursor", this.handTool ? "grab" : cursor);
  }

  pointerLeft() {
    this.tool.cursorAt = null;
    this.refresh();
  }

  /** Whether shapes of this image cannot be changed by this person. */
  get locked() {
    return this.mode === "view" || (this.mode === "draw" && this.task?.state === "accepted");
  }

  mayChange() {
    if (!this.locked) return true;
    this.#hint(this.mode === "view" ? t("You may only look here.") : t("This image is accepted. A reviewer can send it back."));
    return false;
  }

  mayDraw() {
    if (!this.mayChange()) return false;
    if (this.task && this.label !== null) return true;
    this.#hint(this.task ? t("Choose a class first.") : t("The image is still loading."));
    return false;
  }

  /** What a tool has to say; `fix` repairs crossing lines. */
  say(code, fix = null) {
    const text =
      { corner: t("Now click the opposite corner."), small: t("Too small for a box.") }[code] ?? flawText(code);
    this.#tell("say", { text, fix });
  }

  untangled(ring) {
    const fixed = untangled(ring);
    if (!fixed) this.#hint(t("These lines are too tangled to sort out."));
    return fixed;
  }

  finish(kind, rings) {
    const shape = { id: newId(), kind, rings, label: this.label, source: "manual" };
    this.store.add(shape);
    this.#hint(t("%(name)s added.", { name: this.labelOf(this.label)?.name ?? "" }));
  }

  // --- tools and classes

  use(name) {
    this.handTool = name === "pan";
    if (!this.handTool && this.tools[name] !== this.tool) {
      this.tool.leave();
      this.tool = this.tools[name];
      this.toolName = name;
      this.tool.enter?.();
      if (name !== "select") {
        this.lastDrawing = name;
        this.scene.select([]);
      }
    }
    if (!this.handTool) this.setCursor(this.tool.cursor);
    else this.setCursor("grab");
    this.#tell("tool");
    this.refresh();
  }

  /** N: close what is being drawn, else draw another one. */
  repeat() {
    if (this.tool === this.tools.polygon && this.tool.busy) this.tool.close();
    else this.use(this.lastDrawing ?? (this.labelOf(this.label)?.shape === "bbox" ? "box" : "polygon"));
  }

  choose(label) {
    if (!this.byLabel.has(label)) return;
    this.label = label;
    const chosen = this.tool === this.tools.select ? this.scene.selection : [];
    if (chosen.length) {
      this.store.commit(chosen.map((shape) => ({ id: shape.id, before: shape, after: { ...shape, label } })));
      const facts = { name: this.labelOf(label).name };
      this.#hint(tn("%(count)s object is now %(name)s.", "%(count)s objects are now %(name)s.", chosen.length, facts));
    } else if (this.tool !== this.tools.select && !this.tool.busy) {
      this.use(this.labelOf(label).shape === "bbox" ? "box" : "polygon");
    }
    this.#tell("label");
    this.refresh();
  }

  drawNew(label) {
    this.scene.select([]);
    this.label = label;
    this.use(this.labelOf(label).shape === "bbox" ? "box" : "polygon");
    this.#tell("label");
    this.#tell("focus");
  }

  // --- objects

  pick(id, add) {
    const chosen = new Set(add ? this.scene.selected : []);
    if (add && chosen.has(id)) chosen.delete(id);
    else chosen.add(id);
    if (this.tool !== this.tools.select) this.use("select");
    this.scene.select(chosen);
  }

  /** Bring an object into view, without zooming further than it takes. */
  lookAt(id) {
    const shape = this.scene.get(id);
    if (!shape) return;
    this.pick(id, false);
    const { x0, y0, x1, y1 } = extents(shape.rings);
    const { width, height, scale } = this.viewport;
    const roomy = Math.min((0.6 * width) / Math.max(x1 - x0, 1), (0.6 * height) / Math.max(y1 - y0, 1));
    if (roomy < scale) this.viewport.zoomAt(width / 2, height / 2, roomy / scale);
    this.viewport.centreOn((x0 + x1) / 2, (y0 + y1) / 2);
    this.viewMoved();
  }

  cancel() {
    if (this.tool.busy && this.tool.cancel()) return;
    if (this.handTool) this.use(this.toolName);
    else if (this.tool !== this.tools.select) this.use("select");
    else this.scene.select([]);
  }

  undo() {
    if (this.tool.stepBack?.()) return;
    if (this.tool.busy) this.tool.cancel();
    else this.store.undo();
  }

  redo() {
    if (!this.tool.stepForward?.()) this.store.redo();
  }

  remove() {
    if (this.tool.busy) this.tool.stepBack?.() || this.tool.cancel();
    else if (this.scene.selected.size) this.store.remove(this.scene.selection);
  }

  nudge(dx, dy) {
    const chosen = this.scene.selection;
    if (!chosen.length || this.locked) return false;
    const { width, height } = this.image;
    this.store.commit(
      chosen.map((shape) => ({ id: shape.id, before: shape, after: { ...shape, rings: moved(shape.rings, dx, dy, width, height) } })),
    );
    return true;
  }

  cycle(step) {
    const order = [...this.scene.shapes.values()].filter((shape) => !this.scene.isHidden(shape)).sort((a, b) => a.z - b.z);
    const [current] = this.scene.selected;
    const index = order.findIndex((shape) => shape.id === current);
    const next = current ? index + step : step > 0 ? 0 : order.length - 1;
    if (!order[next]) {
      this.scene.select([]);
      return false; // at the end the focus moves on, as Tab does everywhere
    }
    this.pick(order[next].id, false);
    return true;
  }

  hideChosen() {
    const chosen = this.scene.selection;
    if (chosen.length) chosen.forEach((shape) => this.scene.hide(shape.id, true));
    else [...this.scene.hidden].forEach((id) => this.scene.hide(id, false));
  }

  copy() {
    const chosen = this.scene.selection;
    if (!chosen.length) return false;
    const copied = chosen.map(({ kind, label, rings }) => ({ kind, label, rings, name: this.labelOf(label)?.name }));
    this.clipboard = { task: this.task.id, shapes: copied };
    try {
      localStorage.setItem(CLIPBOARD, JSON.stringify(this.clipboard));
    } catch {
      // too large for the browser's own store: it still pastes on this page
    }
    this.#hint(tn("%(count)s object copied.", "%(count)s objects copied.", chosen.length));
    return true;
  }

  paste() {
    let held = this.clipboard;
    try {
      held = JSON.parse(localStorage.getItem(CLIPBOARD)) ?? held;
    } catch {
      // unreadable: what this page remembers is used
    }
    if (!held || !this.task) return;
    this.#put(held.shapes, held.task === this.task.id ? 10 : 0);
  }

  duplicate() {
    this.#put(this.scene.selection, 10);
  }

  /** Add copies, moved by some pixels and kept inside; classes of another dataset are found by name. */
  #put(shapes, by) {
    const { width, height } = this.image;
    const added = [];
    for (const { kind, label, rings, name } of shapes) {
      const known = this.byLabel.has(label) ? label : (this.labels.find((entry) => entry.name === name)?.id ?? this.label);
      const box = extents(rings);
      if (known === null || box.x1 - box.x0 > width || box.y1 - box.y0 > height) continue;
      const shape = { id: newId(), kind, label: known, rings: moved(rings, by, by, width, height), source: "manual" };
      added.push({ id: shape.id, before: null, after: shape });
    }
    if (!added.length) return;
    if (this.tool !== this.tools.select) this.use("select");
    this.store.commit(added);
    this.scene.select(added.map(({ id }) => id));
  }

  async numbers() {
    if (!this.mayDraw()) return;
    const chosen = this.scene.selection;
    const shape = chosen.length === 1 ? chosen[0] : null;
    const answer = await askNumbers({ desk: this, shape });
    this.#tell("focus");
    if (!answer) return;
    const { kind, rings, label } = answer;
    if (shape && this.scene.get(shape.id) === shape) this.store.replace(shape, { kind, rings, label });
    else if (!shape) this.store.add({ id: newId(), kind, rings, label, source: "manual" });
  }

  // --- what the journal could not settle by itself

  settle(conflict, choice) {
    const theirs = this.journal.resolve(conflict.shape, choice);
    if (choice !== "theirs" || !theirs) return;
    const before = this.scene.get(conflict.shape) ?? null;
    const after = theirs.deleted ? null : shapeFrom(theirs);
    this.scene.apply([{ id: conflict.shape, before, after }]);
  }

  giveUp(refused) {
    this.journal.discard(refused);
    this.#tell("reload");
  }

  async confirmEmpty() {
    return ask({
      title: t("Nothing is drawn"),
      text: t("Is there really nothing to draw on this image? It is then marked as checked and empty."),
      act: t("Yes, it is empty"),
    });
  }

  #paint(context, view) {
    if (!this.task) return;
    if (this.tool === this.tools.select || this.scene.selected.size) this.tools.select.paint(context, view);
    for (const { task, theirs } of this.journal.conflicts) {
      if (task !== this.task.id || theirs.deleted) continue;
      outline(context, this.renderer.path(theirs), view.scale, this.colourOf(theirs.label), { fill: 0, dashed: true });
    }
    if (this.tool !== this.tools.select) this.tool.paint(context, view);
  }

  #hint(text) {
    this.#tell("say", { text, fix: null });
  }

  #tell(name, detail) {
    this.dispatchEvent(new CustomEvent(name, { detail }));
  }
}

/** A shape as the scene holds it, from one as the server sends it. */
export const shapeFrom = ({ id, kind, label, rings, source, number }) => ({ id, kind, label, rings, source, number });
