// The editor: ties canvas, forms, list, problems and draft to one graph. Mouse, keys and list do the same things to it.
import { t, tn } from "../base/i18n.js";
import { Bar } from "./bar.js";
import { Catalogue } from "./catalogue.js";
import { Draft } from "./draft.js";
import { button, el, freshName, once } from "./dom.js";
import * as edits from "./edits.js";
import { WIDTH } from "./geometry.js";
import { Issues } from "./issues.js";
import { Keys } from "./keys.js";
import { fitting, linkKey } from "./links.js";
import { List } from "./list.js";
import { Palette } from "./palette.js";
import { Panel } from "./panel.js";
import { askLink } from "./asklink.js";
import { pick } from "./picker.js";
import { Pointers } from "./pointer.js";
import { placed } from "./problems.js";
import { read, unfit } from "./spec.js";
import { Stage } from "./stage.js";
import { askVersion, saveVersion } from "./version.js";

const LARGEST_PASTE = 2 << 20; // characters
const GRID = 20;
const FITTED = { steps: 24, zoom: 0.2 }; // pipelines of so many steps, templates among them, open whole
const NARROW = "(max-width: 900px)";

/** Both ends of a link, as people read them. */
const ends = (link) => ({ from: [link.from, link.out].filter(Boolean).join("."), to: [link.to, link.into].join(".") });

/**
 * @typedef {object} Given
 * @property {import("./catalogue.js").GivenCatalogue} catalogue
 * @property {import("./spec.js").Spec} spec
 * @property {import("./spec.js").Layout} [layout]
 * @property {number} [revision]  of the draft
 * @property {{draft?: string, check?: string, versions?: string, run?: string, page?: string}} [urls]  what is not there is not offered
 * @property {boolean} [readOnly]
 * @property {string | number} [owner]  whose draft it is
 */

export class Editor extends EventTarget {
  /** @param {HTMLElement} root @param {Given} given */
  constructor(root, { catalogue, spec, layout = {}, revision = 0, urls = {}, readOnly = false, owner = "" }) {
    super();
    this.root = root;
    this.readOnly = readOnly;
    this.urls = urls;
    this.graph = read(new Catalogue(catalogue), spec, layout);
    this.held = ""; // what was copied last, as JSON
    this.pastes = 0;
    this.snap = false;
    root.classList.add("pl");
    this.datalist = el("datalist", "", { id: freshName("places") });
    this.hint = el("p", "pl-hint", { role: "status", "aria-live": "polite" });
    const canvas = el("div", "", { id: "pipeline-canvas" });
    this.stage = new Stage(canvas, this.graph, { readOnly, label: t("Canvas of the pipeline. Arrow keys follow the connections, question mark shows all shortcuts.") });
    const bare = [...this.graph.steps.keys()].some((id) => !this.graph.places.has(id));
    if (bare) edits.arrange(this.graph, this.stage.sizes, this.graph.places.size === 0);
    this.graph.done = [];
    this.list = new List(this);
    this.panel = new Panel(this);
    this.bar = new Bar(this, urls);
    const empty = el("div", "pl-empty", {}, el("p", "", {}, readOnly ? t("This pipeline has no steps.") : t("No steps yet. Drag one here, or press N.")));
    if (!readOnly) empty.append(button({ icon: "plus", text: t("Add a step"), className: "btn", act: () => this.askKind() }));
    this.main = el("div", "pl-main", {}, canvas, empty, this.list.element, this.hint);
    this.issues = new Issues(this, urls.check ?? "");
    this.side = el("aside", "pl-side", { "aria-label": t("Form of the step") }, this.issues.element, this.panel.element);
    this.palette = new Palette(this);
    root.replaceChildren(this.bar.element, ...(readOnly ? [] : [this.palette.element]), this.main, this.side, this.datalist);
    root.classList.toggle("is-read-only", readOnly);
    new Pointers(this.stage, this);
    new Keys(this);
    this.look = once(() => this.#look());
    this.graph.watch(() => this.look());
    this.stage.addEventListener("choose", () => this.look());
    this.stage.addEventListener("view", () => this.bar.zoomed());
    this.stage.flush();
    this.draft = urls.draft && !readOnly ? new Draft(this, { url: urls.draft, revision, owner }) : null;
    this.#look();
    this.showList(matchMedia(NARROW).matches, { focus: false });
    this.stage.open(this.graph.steps.size <= FITTED.steps ? FITTED.zoom : undefined);
  }

  #look() {
    this.bar.look();
    this.panel.look();
    const places = this.placesFor("");
    if (places.join() !== this.offered) this.datalist.replaceChildren(...places.map((value) => el("option", "", { value })));
    this.offered = places.join();
  }

  /** Texts that may stand for a value in a step. */
  placesFor(id) {
    const each = this.graph.steps.get(id)?.each ? [placed("item")] : [];
    return [...each, ...[...this.graph.parameters.keys()].map(placed)];
  }

  /** Say something, for the eye and the ear. */
  tell(text, wrong = false) {
    clearTimeout(this.fading);
    this.hint.textContent = text;
    this.hint.classList.toggle("is-wrong", wrong);
    this.hint.classList.toggle("is-shown", Boolean(text));
    this.fading = setTimeout(() => this.hint.classList.remove("is-shown"), wrong ? 8000 : 3000);
  }

  keyOf(link) {
    return linkKey(link);
  }

  chosen() {
    const focused = this.list.open ? this.list.focused : this.stage.focused;
    if (this.list.open) return focused ? [focused] : [];
    return this.stage.chosen.size ? [...this.stage.chosen] : focused ? [focused] : [];
  }

  // --- changing

  /** @param {string} kind @param {import("./graph.js").Place} [at] @param {object} [join] */
  add(kind, at, join) {
    if (this.readOnly) return;
    const [x, y] = at ?? this.#free();
    const { id, refused } = edits.add(this.graph, kind, [x - (at && !join ? WIDTH / 2 : 0), y - (at ? 16 : 0)], join);
    if (refused) return this.tell(refused, true);
    this.tell(t("%(name)s added.", { name: id }));
    this.#goToStep(id);
  }

  /** Where a step goes that is put without a place: behind the chosen one, else into the middle. @returns {import("./graph.js").Place} */
  #free() {
    const [id, ...more] = this.list.open ? [] : this.stage.chosen;
    const [x, y] = this.stage.camera.width ? this.stage.camera.middle : [0, 0];
    const behind = id && !more.length ? this.graph.places.get(id) : undefined;
    return this.stage.sizes.free(behind ? [behind[0] + WIDTH + 72, behind[1]] : [x - WIDTH / 2, y - 60]);
  }

  #goToStep(id) {
    if (this.list.open) this.list.goTo(id, "id");
    else this.stage.focus(id);
  }

  connect(link, held) {
    if (held) return this.rewire(held, link);
    const refused = edits.connect(this.graph, link);
    this.tell(refused || t("Connected: %(from)s to %(to)s.", ends(link)), Boolean(refused));
    return refused;
  }

  rewire(now, link) {
    if (!now && !link) return "";
    const refused = edits.rewire(this.graph, now, link);
    if (refused) this.tell(refused, true);
    else this.tell(link ? t("Connected: %(from)s to %(to)s.", ends(link)) : t("Connection removed."));
    return refused;
  }

  disconnect(link) {
    edits.disconnect(this.graph, link);
    this.tell(t("Connection removed."));
  }

  drag(places) {
    edits.move(this.graph, places, "drag", this.snap ? GRID : 1);
  }

  nudge(dx, dy) {
    if (!this.readOnly) edits.nudge(this.graph, this.chosen(), dx, dy);
  }

  remove(ids) {
    const gone = [...ids].filter((id) => this.graph.steps.has(id));
    if (!gone.length || this.readOnly) return;
    edits.remove(this.graph, gone);
    this.tell(tn("%(count)s step removed. Undo restores it.", "%(count)s steps removed. Undo restores them.", gone.length));
  }

  removeChosen() {
    const link = this.stage.wires.chosenLink;
    if (link && !this.readOnly) this.disconnect(link);
    else this.remove(this.chosen());
  }

  undo() {
    this.#turned(this.graph.undo(), t("Undone."), t("Nothing to undo."));
  }

  redo() {
    this.#turned(this.graph.redo(), t("Redone."), t("Nothing to redo."));
  }

  #turned(ids, done, nothing) {
    this.tell(ids ? done : nothing);
    if (!ids) return;
    this.stage.flush();
    if (!document.activeElement || document.activeElement === document.body) this.focusCanvas();
  }

  arrange() {
    if (this.readOnly) return;
    edits.arrange(this.graph, this.stage.sizes);
    this.stage.flush();
    this.stage.fit();
    this.tell(t("Arranged."));
  }

  setSnap(on) {
    this.snap = on;
    this.bar.snap.setAttribute("aria-pressed", String(on));
  }

  renamed(old, id) {
    const chosen = this.stage.chosen.has(old);
    this.stage.flush();
    if (chosen) this.stage.choose([id]);
    this.tell(t("%(old)s is now %(name)s.", { old, name: id }));
    if (this.list.open) this.list.goTo(id, "id");
    else this.panel.goTo(id, "id");
  }

  // --- clipboard

  copy(cut = false) {
    const ids = this.chosen();
    if (!ids.length) return false;
    this.held = JSON.stringify(edits.part(this.graph, ids), null, 1);
    this.pastes = 0;
    this.tell(tn("%(count)s step copied.", "%(count)s steps copied.", ids.length));
    if (cut) this.remove(ids);
    return true;
  }

  copyByButton() {
    if (this.copy()) navigator.clipboard?.writeText(this.held).catch(() => {}); // the browser may refuse; here it is kept
  }

  async pasteByButton() {
    const text = await navigator.clipboard?.readText?.().catch(() => "");
    this.paste(text || this.held);
  }

  /** Put in what a text holds. It may come from anywhere. */
  paste(text) {
    if (this.readOnly) return;
    /** @type {any} */
    let given = null;
    try {
      given = text.length <= LARGEST_PASTE ? JSON.parse(text) : null;
    } catch {
      given = null;
    }
    const refused = unfit(given, this.graph.catalogue);
    if (refused) return this.tell(refused, true);
    const [dx, dy] = this.#shift(given);
    const made = edits.insert(this.graph, given, dx, dy);
    if (made.refused) return this.tell(made.refused, true);
    this.stage.flush();
    this.stage.choose(made.ids);
    if (made.ids.length) this.#goToStep(made.ids[0]);
    this.stage.choose(made.ids);
    this.tell(tn("%(count)s step pasted.", "%(count)s steps pasted.", made.ids.length));
  }

  /** Beside the first of them while that is seen, else into the middle. */
  #shift({ layout = {} }) {
    const places = Object.values(layout ?? {}).filter((place) => Array.isArray(place));
    const by = 40 * ++this.pastes;
    const [x, y] = [Math.min(...places.map(([px]) => px)), Math.min(...places.map(([, py]) => py))];
    const seen = this.stage.camera.seen();
    if (x + by > seen.left && x + by < seen.right && y + by > seen.top && y + by < seen.bottom) return [by, by];
    const [mx, my] = this.stage.camera.width ? this.stage.camera.middle : [0, 0];
    return Number.isFinite(x) && Number.isFinite(y) ? [mx - x + by - 40, my - y + by - 40] : [mx, my];
  }

  duplicate(ids) {
    if (!ids.length || this.readOnly) return;
    const made = edits.insert(this.graph, edits.part(this.graph, ids), 40, 40);
    if (made.refused) return this.tell(made.refused, true);
    this.#goToStep(made.ids[0]);
    this.stage.choose(made.ids);
  }

  // --- asking

  #kindChoice(kind, value) {
    const group = this.graph.catalogue.groups.find(({ name }) => name === kind.group)?.label ?? "";
    return { value, label: kind.label, icon: kind.icon || "tasks", about: group, words: [kind.name, kind.about].join(" ") };
  }

  /** Choose a kind by its name and put a step of it. */
  async askKind() {
    if (this.readOnly) return;
    const kinds = this.graph.catalogue.search("").map((kind) => this.#kindChoice(kind, kind.name));
    const kind = await pick(t("Add a step"), kinds, { placeholder: t("Search steps"), none: t("No kind of step matches.") });
    if (kind) this.add(kind);
  }

  /** A link was let go over nothing: offer steps it could go on to. */
  async offer({ id, port, side }, point) {
    const { catalogue } = this.graph;
    const kind = this.graph.steps.get(id)?.kind ?? "";
    const type = (side === "out" ? catalogue.output(kind, port) : catalogue.input(kind, port))?.type;
    const found = !port && side === "out" ? [...catalogue.kinds.values()].map((one) => ({ kind: one, link: { port: "after", sort: "after" } })) : type ? fitting(catalogue, type, side) : [];
    const chosen = await pick(side === "out" ? t("Next step") : t("Previous step"), found.map((one) => this.#kindChoice(one.kind, one)));
    if (!chosen) return this.focusCanvas();
    const join = side === "out" ? { from: id, out: port, into: chosen.link.port, sort: chosen.link.sort } : { to: id, out: chosen.link.port, into: port, sort: chosen.link.sort };
    this.add(chosen.kind.name, [point[0] - (side === "in" ? WIDTH : 0), point[1]], join);
  }

  async askLink() {
    const [id] = this.chosen();
    if (!id || this.readOnly) return this.tell(t("Select a step first."));
    const link = await askLink(this.graph, id);
    if (link) this.connect(link);
  }

  async askStep() {
    const { graph } = this;
    const id = await pick(t("Go to a step"), graph.order().map((one) => ({ value: one, label: one, about: graph.catalogue.kind(graph.steps.get(one)?.kind ?? "").label })));
    if (id) this.#goToStep(id);
  }

  askVersion() {
    askVersion(this, this.urls.versions ?? "");
  }

  /** What is drawn becomes a version (the one there is, if it means the same), and that is run. */
  async run() {
    const { run = "", versions = "" } = this.urls;
    if (this.readOnly || !versions) return location.assign(run);
    await this.issues.check();
    if (this.issues.errors.length) {
      this.tell(t("Resolve the problems first: they are listed at the side."), true);
      return this.issues.open();
    }
    try {
      const { number } = await saveVersion(this, versions, "");
      location.assign(`${run}?version=${number}`);
    } catch (error) {
      this.tell(error.message, true);
    }
  }

  // --- moving about

  chooseAll() {
    this.stage.choose(this.graph.steps.keys());
    this.tell(tn("%(count)s step selected.", "%(count)s steps selected.", this.graph.steps.size));
  }

  chooseLink(key) {
    this.stage.wires.choose(key);
    this.look();
    const link = this.stage.wires.chosenLink;
    if (link) this.tell(t("Connection from %(from)s to %(to)s. Delete removes it.", { from: link.from, to: link.to }));
  }

  escape(onCanvas) {
    if (onCanvas) this.stage.choose([]);
    else this.focusCanvas();
  }

  focusCanvas() {
    if (this.list.open) return this.list.search.focus();
    const [id] = this.chosen();
    if (id) this.stage.focus(id, { choose: false });
    else this.stage.root.focus({ preventScroll: true });
  }

  showList(on, { focus = true } = {}) {
    this.root.classList.toggle("is-list", on);
    this.list.show(on);
    this.bar.listed(on);
    this.stage.root.hidden = on;
    if (!on) this.stage.resized();
    if (focus) this.focusCanvas();
    this.panel.look();
  }

  /** Lead to a step, and to one of its fields. */
  goTo(id, field = "") {
    if (this.list.open) return this.list.goTo(id, field);
    this.stage.choose([id]);
    this.stage.reveal(id);
    this.panel.goTo(id, field);
  }

  problemsAt(id) {
    return this.stage.problems.get(id) ?? [];
  }

  problemsFound(all) {
    this.stage.showProblems(all);
    this.list.showProblems();
    this.panel.show();
  }
}
