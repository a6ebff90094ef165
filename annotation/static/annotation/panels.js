// The right side: classes grouped by parent type, and all objects in a list that only builds the
// rows one can see, so that ten thousand objects cost what twenty cost.
import { icon } from "../base/icons.js";
import { ask } from "../base/dialog.js";
import { t, tn } from "../base/i18n.js";
import { fullName } from "./labels.js";
import { kindOf } from "./shapes/registry.js";

const ROW = 32; // CSS pixels; annotator.css says the same
const MOST = 120; // rows built at a time, however tall the window
const SVG = "http://www.w3.org/2000/svg";

function element(tag, className, ...children) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  made.append(...children);
  return made;
}

function button(name, label, act, pressed) {
  const made = element("button", "btn btn-quiet btn-icon btn-small", icon(name));
  made.type = "button";
  made.title = label;
  made.setAttribute("aria-label", label);
  if (pressed !== undefined) made.setAttribute("aria-pressed", String(pressed));
  made.addEventListener("click", act);
  return made;
}

function dot(colour) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", "0 0 12 12");
  svg.setAttribute("class", "class-dot");
  svg.setAttribute("aria-hidden", "true");
  const circle = document.createElementNS(SVG, "circle");
  for (const [name, value] of Object.entries({ cx: 6, cy: 6, r: 5, fill: colour })) circle.setAttribute(name, value);
  svg.append(circle);
  return svg;
}

export class ClassPanel {
  /**
   * @param {HTMLElement} root
   * @param {import("./desk.js").Desk} desk
   */
  constructor(root, desk) {
    this.root = root;
    this.desk = desk;
    this.rows = new Map();
    this.#build();
    for (const name of ["reset", "shapes", "visibility"]) desk.scene.addEventListener(name, () => this.soon());
    desk.addEventListener("label", () => this.soon());
    this.refresh();
  }

  focus() {
    (this.rows.get(this.desk.label)?.choose ?? this.root.querySelector("button"))?.focus();
  }

  soon() {
    this.asked ??= requestAnimationFrame(() => {
      this.asked = null;
      this.refresh();
    });
  }

  refresh() {
    const { scene, label } = this.desk;
    for (const [id, row] of this.rows) {
      const hidden = scene.hiddenClasses.has(id);
      const count = scene.counts.get(id) ?? 0;
      row.choose.setAttribute("aria-pressed", String(id === label && this.desk.mode !== "view"));
      row.count.textContent = count || "";
      row.eye.setAttribute("aria-pressed", String(hidden));
      row.eye.replaceChildren(icon(hidden ? "eye-off" : "eye"));
      row.bin.disabled = !count;
      row.root.classList.toggle("is-hidden", hidden);
    }
  }

  #build() {
    const { labels } = this.desk;
    if (!labels.length) {
      this.root.append(element("p", "muted annotator-none", t("No classes yet. The owner of the project adds them.")));
      return;
    }
    const groups = new Map();
    labels.forEach((label, index) => {
      if (!groups.has(label.supercategory)) groups.set(label.supercategory, []);
      groups.get(label.supercategory).push([label, index]);
    });
    for (const [parent, members] of groups) {
      const list = element("ul", "plain");
      if (parent) {
        list.setAttribute("aria-label", parent);
        this.root.append(element("p", "annotator-parent", parent));
      }
      this.root.append(list);
      for (const [label, index] of members) list.append(this.#row(label, index));
    }
  }

  #row(label, index) {
    const { desk } = this;
    const count = element("span", "num muted");
    const digit = element("kbd", "", index < 9 ? String(index + 1) : "");
    const looks = desk.mode === "view";
    digit.hidden = looks || index >= 9;
    const choose = element("button", "annotator-choose", dot(label.colour), element("span", "cut", label.name), count, digit);
    choose.type = "button";
    choose.title = fullName(label);
    choose.addEventListener("click", () => desk.choose(label.id));
    const names = { name: label.name };
    const plus = button("plus", t("Add one %(name)s", names), () => desk.drawNew(label.id));
    const eye = button("eye", t("Hide or show all %(name)s", names), () => {
      desk.scene.hideClass(label.id, !desk.scene.hiddenClasses.has(label.id));
    });
    const bin = button("trash", t("Delete all %(name)s", names), () => this.#clear(label));
    choose.disabled = looks;
    const root = element("li", "annotator-row", choose, ...(looks ? [eye] : [plus, eye, bin]));
    this.rows.set(label.id, { root, choose, count, eye, bin });
    return root;
  }

  async #clear(label) {
    const { scene, store } = this.desk;
    const shapes = [...scene.shapes.values()].filter((shape) => shape.label === label.id);
    const sure = await ask({
      title: t("Delete all %(name)s on this image", { name: label.name }),
      text: tn("%(count)s object goes. Undo brings it back.", "%(count)s objects go. Undo brings them back.", shapes.length),
      act: t("Delete"),
      danger: true,
    });
    if (sure) store.remove(shapes);
  }
}

export class ObjectPanel {
  /**
   * @param {HTMLElement} root
   * @param {HTMLElement} count
   * @param {import("./desk.js").Desk} desk
   */
  constructor(root, count, desk) {
    this.root = root;
    this.countText = count;
    this.desk = desk;
    this.space = element("div", "annotator-space");
    this.list = element("ul", "plain annotator-window");
    this.empty = element("p", "muted annotator-none", t("Nothing drawn yet."));
    this.space.append(this.list);
    root.append(this.empty, this.space);
    /** @type {any[] | null} */
    this.order = []; // shapes as the list shows them; null: to be sorted anew
    root.addEventListener("scroll", () => this.soon(), { passive: true });
    new ResizeObserver(() => this.soon()).observe(root);
    const { scene } = desk;
    for (const name of ["reset", "shapes"]) scene.addEventListener(name, () => this.#stale());
    scene.addEventListener("visibility", () => this.soon());
    scene.addEventListener("selection", () => {
      this.#reveal();
      this.soon();
    });
    this.#stale();
  }

  #stale() {
    this.order = null;
    this.soon();
  }

  soon() {
    this.asked ??= requestAnimationFrame(() => {
      this.asked = null;
      this.refresh();
    });
  }

  #sorted() {
    this.order ??= [...this.desk.scene.shapes.values()].sort((a, b) => b.z - a.z);
    return this.order;
  }

  /** Bring the chosen object into the list's window, unless the choice was made in the list. */
  #reveal() {
    const [id] = this.desk.scene.selected;
    if (!id || this.desk.scene.selected.size > 1 || this.root.contains(document.activeElement)) return;
    const index = this.#sorted().findIndex((shape) => shape.id === id);
    const top = index * ROW;
    if (top < this.root.scrollTop) this.root.scrollTop = top;
    else if (top + ROW > this.root.scrollTop + this.root.clientHeight) {
      this.root.scrollTop = top + ROW - this.root.clientHeight;
    }
  }

  refresh() {
    const shapes = this.#sorted();
    this.countText.textContent = String(shapes.length);
    this.empty.hidden = shapes.length > 0;
    this.space.style.height = `${shapes.length * ROW}px`;
    const first = Math.max(0, Math.floor(this.root.scrollTop / ROW) - 4);
    const below = Math.ceil((this.root.scrollTop + this.root.clientHeight) / ROW) + 4;
    const last = Math.min(shapes.length, below, first + MOST);
    this.list.style.transform = `translateY(${first * ROW}px)`;
    const focused = /** @type {HTMLElement | null} */ (document.activeElement)?.dataset?.key;
    this.list.replaceChildren(...shapes.slice(first, last).map((shape) => this.#row(shape)));
    if (focused) this.list.querySelector(`[data-key="${focused}"]`)?.focus({ preventScroll: true });
  }

  #row(shape) {
    const { desk } = this;
    const { scene } = desk;
    const label = desk.labelOf(shape.label);
    const name = `${label?.name ?? "?"} ${shape.z}`;
    const chosen = scene.selected.has(shape.id);
    const hidden = scene.isHidden(shape);
    const size = element("span", "num muted small", kindOf(shape).size(shape.rings, scene.box(shape.id)));
    const choose = element("button", "annotator-choose", dot(desk.colourOf(shape.label)), element("span", "cut", name), size);
    choose.type = "button";
    choose.dataset.key = `choose-${shape.id}`;
    choose.setAttribute("aria-pressed", String(chosen));
    choose.addEventListener("click", (event) => desk.objects.pick(shape.id, event.shiftKey || event.ctrlKey || event.metaKey));
    choose.addEventListener("dblclick", () => desk.objects.lookAt(shape.id));
    const eye = button(hidden ? "eye-off" : "eye", t("Hide or show %(name)s", { name }), () => scene.hide(shape.id, !scene.hidden.has(shape.id)), hidden);
    eye.dataset.key = `eye-${shape.id}`;
    const bin = button("trash", t("Delete %(name)s", { name }), () => desk.store.remove([scene.get(shape.id)]));
    bin.dataset.key = `bin-${shape.id}`;
    const row = element("li", "annotator-row", choose, eye, ...(desk.mode === "view" ? [] : [bin]));
    row.classList.toggle("is-chosen", chosen);
    row.classList.toggle("is-hidden", hidden);
    return row;
  }
}
