// The annotator's desk: what tools, panels and keys share, tools and classes, and what may be changed.
import { t, tn } from "../base/i18n.js";
import { Clipboard } from "./clipboard.js";
import { untangled } from "./geometry.js";
import { outline } from "./marks.js";
import { askNumbers } from "./numbers.js";
import { Objects } from "./objects.js";
import { Renderer } from "./render.js";
import { Scene } from "./scene.js";
import { SelectTool } from "./select.js";
import { newShape, shapeFrom } from "./shape.js";
import { allKinds, kindNamed } from "./shapes/registry.js";
import { Store } from "./store.js";
import { Viewport } from "./viewport.js";

const ANY = "any"; // what a class is drawn as that takes every kind
const LONGEST = 32; // letters of a name on the image
const FALLBACK = "#8891a5"; // a class this page does not know yet

export class Desk extends EventTarget {
  /**
   * @param {object} given
   * @param {{id: number, name: string, supercategory: string, shape: string, colour: string}[]} given.labels
   * @param {number | null} given.label  the class that is drawn first
   * @param {Record<string, HTMLCanvasElement>} given.canvases  image, shapes, active
   * @param {import("./journal.js").Journal} given.journal
   * @param {"view" | "draw" | "review"} given.mode
   */
  constructor({ labels, label, canvases, journal, mode }) {
    super();
    this.mode = mode;
    this.labels = labels;
    this.byLabel = new Map(labels.map((label) => [label.id, label]));
    this.label = label ?? labels[0]?.id ?? null;
    this.journal = journal;
    /** @type {any} */
    this.task = null; // the image, as the API sends it
    this.scene = new Scene();
    this.viewport = new Viewport();
    this.store = new Store(this.scene, (changes) => this.journal.record(this.task.id, changes), () => this.mayChange());
    this.store.addEventListener("locked", () => this.hint(t("This object is locked. Unlock it in the list first.")));
    this.store.addEventListener("overtaken", () => this.hint(t("Some of this was changed by another user in the meantime; those changes are kept.")));
    const words = (shape) => ({ text: shortened(this.nameOf(shape)), colour: this.colourOf(shape.label) });
    this.renderer = new Renderer(canvases, this.scene, this.viewport, (label) => this.colourOf(label), words);
    this.renderer.paintActive = (context, view) => this.#paint(context, view);
    this.objects = new Objects(this);
    this.clipboard = new Clipboard(this);
    const drawing = allKinds().map((kind) => [kind.tool, kind.makeTool(this)]);
    /** @type {Record<string, import("./pointer.js").Tool>} */
    this.tools = { select: new SelectTool(this), ...Object.fromEntries(drawing) };
    /** @type {import("./pointer.js").Tool} */
    this.tool = this.tools.select;
    this.toolName = "select";
    this.lastDrawing = null;
    this.lastOf = new Map(); // kind → the class drawn as it last
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

  /** "cat 3": what a shape is called in the list and on the image. */
  nameOf(shape) {
    return `${this.labelOf(shape.label)?.name ?? "?"} ${shape.z}`;
  }

  /** Whether objects of a class are drawn as a kind. */
  allows(label, kind) {
    const drawn = this.labelOf(label)?.shape;
    return drawn === ANY || drawn === kind;
  }

  /** The keys go to the image again. */
  takeFocus() {
    this.#tell("focus");
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
    this.hint(this.mode === "view" ? t("You have view access only.") : t("This image is accepted. A reviewer can send it back."));
    return false;
  }

  mayDraw() {
    if (!this.mayChange()) return false;
    if (this.task && this.label !== null) return true;
    this.hint(this.task ? t("Choose a class first.") : t("The image is still loading."));
    return false;
  }

  /**
   * What a tool has to say; `fix` repairs crossing lines.
   * @param {string | null} text
   * @param {(() => void) | null} fix
   */
  say(text, fix = null) {
    this.#tell("say", { text, fix });
  }

  /** One quiet line above the image. */
  hint(text) {
    this.say(text);
  }

  untangled(ring) {
    const fixed = untangled(ring);
    if (!fixed) this.hint(t("These lines intersect too much to be untangled."));
    return fixed;
  }

  finish(kind, rings) {
    this.store.add(newShape(kind.name, rings, this.label));
    this.hint(t("%(name)s added.", { name: this.labelOf(this.label)?.name ?? "" }));
  }

  // --- tools and classes

  use(name) {
    if (!this.#classFor(allKinds().find(({ tool }) => tool === name))) return;
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
    if (this.tool.busy && this.tool.close) this.tool.close();
    else this.use(this.lastDrawing ?? this.#toolFor(this.label));
  }

  /** Give the chosen objects a class; with nothing chosen, draw it from now on with the tool it is drawn with. */
  choose(label) {
    if (!this.byLabel.has(label)) return;
    const chosen = this.tool === this.tools.select ? this.scene.selection : [];
    const drawn = allKinds().find(({ tool }) => tool === this.toolName);
    if (chosen.length) this.#reclass(chosen, label);
    else if (!this.tool.busy) this.drawNew(label);
    else if (drawn && !this.allows(label, drawn.name)) this.hint(t("Finish the shape first, or cancel it with Esc."));
    else this.label = label;
    this.#tell("label");
    this.refresh();
  }

  drawNew(label) {
    this.scene.select([]);
    this.label = label;
    this.use(this.#toolFor(label));
    this.#tell("label");
    this.#tell("focus");
  }

  #reclass(chosen, label) {
    const facts = { name: this.labelOf(label)?.name ?? "" };
    const fitting = chosen.filter(({ kind }) => this.allows(label, kind));
    if (!fitting.length) {
      const kind = kindNamed(this.labelOf(label)?.shape).label;
      this.hint(t("Objects of the class %(name)s require the shape %(kind)s.", { ...facts, kind }));
      return;
    }
    this.label = label;
    this.store.commit(fitting.map((shape) => ({ id: shape.id, before: shape, after: { ...shape, label } })));
    this.hint(tn("%(count)s object is now %(name)s.", "%(count)s objects are now %(name)s.", fitting.length, facts));
  }

  /** The tool that draws what a class is drawn as; where that may be anything, the one used last. */
  #toolFor(label) {
    const kind = kindNamed(this.labelOf(label)?.shape);
    const last = this.tools[this.lastDrawing ?? ""] ? this.lastDrawing : null;
    return kind.tool || last || allKinds()[0].tool;
  }

  /** Choose a class that is drawn as `kind`, unless the present one is; false, and said, where there is none. */
  #classFor(kind) {
    if (!kind || !this.labels.length || this.mode === "view") return true;
    if (!this.allows(this.label, kind.name)) {
      const fitting = this.labels.filter(({ id }) => this.allows(id, kind.name));
      if (!fitting.length) {
        this.hint(t("No class of this dataset has the shape %(kind)s.", { kind: kind.label }));
        return false;
      }
      this.label = this.lastOf.get(kind.name) ?? fitting[0].id;
      this.#tell("label");
    }
    this.lastOf.set(kind.name, this.label);
    return true;
  }

  // --- what means the tool while it is busy, else the image

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

  async numbers() {
    if (!this.mayDraw()) return;
    const chosen = this.scene.selection;
    const shape = chosen.length === 1 ? chosen[0] : null;
    const answer = await askNumbers({ desk: this, shape });
    this.#tell("focus");
    if (!answer) return;
    const { kind, rings, label } = answer;
    if (shape && this.scene.get(shape.id) === shape) this.store.replace(shape, { kind, rings, label });
    else if (!shape) this.store.add(newShape(kind, rings, label));
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

  #paint(context, view) {
    if (!this.task) return;
    if (this.tool === this.tools.select || this.scene.selected.size) this.tools.select.paint(context, view);
    for (const { task, theirs } of this.journal.conflicts) {
      if (task !== this.task.id || theirs.deleted) continue;
      outline(context, this.renderer.path(theirs, view.scale), view.scale, this.colourOf(theirs.label), { fill: 0, dashed: true });
    }
    if (this.tool !== this.tools.select) this.tool.paint(context, view);
  }

  #tell(name, detail) {
    this.dispatchEvent(new CustomEvent(name, { detail }));
  }
}

/** A name as it fits on the image: "a very long name of a cl… 12". */
const shortened = (name) => (name.length <= LONGEST ? name : `${name.slice(0, LONGEST - 8)}…${name.slice(-7)}`);
