// All objects in a list that only builds the rows one can see, so that ten thousand objects cost what twenty cost;
// narrowed down by words, in the order one likes.
import { t } from "../base/i18n.js";
import { fullName } from "./labels.js";
import { kindOf } from "./shapes/registry.js";
import { button, dot, element } from "./widgets.js";

const ROW = 32; // CSS pixels; annotator.css says the same
const MOST = 120; // rows built at a time, however tall the window

export class ObjectPanel {
  /**
   * @param {HTMLElement} root
   * @param {object} given
   * @param {HTMLElement} given.count
   * @param {HTMLInputElement} given.words  what the list is narrowed down by
   * @param {HTMLSelectElement} given.sort
   * @param {import("./desk.js").Desk} given.desk
   * @param {import("./settings.js").Settings} given.settings
   */
  constructor(root, { count, words, sort, desk, settings }) {
    this.root = root;
    this.countText = count;
    this.words = words;
    this.sort = sort;
    this.desk = desk;
    this.settings = settings;
    this.space = element("div", "annotator-space");
    this.list = element("ul", "plain annotator-window");
    this.empty = element("p", "muted annotator-none");
    this.space.append(this.list);
    root.append(this.empty, this.space);
    /** @type {any[] | null} */
    this.order = []; // shapes as the list shows them; null: to be sorted anew
    root.addEventListener("scroll", () => this.soon(), { passive: true });
    new ResizeObserver(() => this.soon()).observe(root);
    const { scene } = desk;
    for (const name of ["reset", "shapes"]) scene.addEventListener(name, () => this.#stale());
    for (const name of ["visibility", "locks"]) scene.addEventListener(name, () => this.soon());
    words.addEventListener("input", () => this.#narrowed());
    words.addEventListener("keydown", (event) => this.#typed(event));
    sort.value = settings.get("sort");
    sort.addEventListener("change", () => settings.set("sort", sort.value));
    settings.addEventListener("change", ({ detail }) => {
      if (detail !== "sort") return;
      sort.value = settings.get("sort");
      this.#narrowed();
    });
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

  /** Go to the words the list is narrowed down by. */
  focus() {
    this.words.focus();
    this.words.select();
  }

  /** The next order of the list. */
  sortNext() {
    const orders = [...this.sort.options].map(({ value }) => value);
    this.settings.set("sort", orders[(orders.indexOf(this.sort.value) + 1) % orders.length]);
    this.desk.hint(t("Sort objects by: %(order)s", { order: this.sort.selectedOptions[0]?.textContent ?? "" }));
  }

  #narrowed() {
    this.root.scrollTop = 0;
    this.#stale();
  }

  /** Enter looks at the first one found, Esc shows all again. */
  #typed(event) {
    if (event.key === "Enter") {
      const [first] = this.#sorted();
      if (first) this.desk.objects.lookAt(first.id);
      this.desk.takeFocus();
    } else if (event.key === "Escape") {
      this.words.value = "";
      this.#narrowed();
      this.desk.takeFocus();
    }
  }

  #sorted() {
    if (this.order) return this.order;
    const { desk } = this;
    const words = this.words.value.trim().toLowerCase().split(/\s+/).filter(Boolean);
    const names = new Map(desk.labels.map((label) => [label.id, fullName(label).toLowerCase()]));
    const fits = (shape) => {
      const text = `${names.get(shape.label) ?? "?"} ${shape.z}`;
      return words.every((word) => (/^\d+$/.test(word) ? String(shape.z) === word : text.includes(word)));
    };
    const all = [...desk.scene.shapes.values()];
    this.order = (words.length ? all.filter(fits) : all).sort(this.#byWish(names));
    return this.order;
  }

  /** How two objects compare in the order that is wished; newer ones first where they are alike. */
  #byWish(names) {
    const { scene } = this.desk;
    const size = (shape) => {
      const box = scene.box(shape.id);
      return (box.x1 - box.x0) * (box.y1 - box.y0);
    };
    const newest = (a, b) => b.z - a.z;
    const wishes = {
      oldest: (a, b) => a.z - b.z,
      class: (a, b) => (names.get(a.label) ?? "").localeCompare(names.get(b.label) ?? "") || newest(a, b),
      largest: (a, b) => size(b) - size(a) || newest(a, b),
      smallest: (a, b) => size(a) - size(b) || newest(a, b),
    };
    return wishes[this.settings.get("sort")] ?? newest;
  }

  /** Bring the chosen object into the list's window, unless the choice was made in the list. */
  #reveal() {
    const [id] = this.desk.scene.selected;
    if (!id || this.desk.scene.selected.size > 1 || this.root.contains(document.activeElement)) return;
    const index = this.#sorted().findIndex((shape) => shape.id === id);
    if (index < 0) return; // the words leave it out
    const top = index * ROW;
    if (top < this.root.scrollTop) this.root.scrollTop = top;
    else if (top + ROW > this.root.scrollTop + this.root.clientHeight) {
      this.root.scrollTop = top + ROW - this.root.clientHeight;
    }
  }

  refresh() {
    const shapes = this.#sorted();
    const all = this.desk.scene.shapes.size;
    this.countText.textContent = shapes.length === all ? String(all) : `${shapes.length} / ${all}`;
    this.empty.hidden = shapes.length > 0;
    this.empty.textContent = all ? t("No object name matches.") : t("No annotations yet.");
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
    const name = desk.nameOf(shape);
    const chosen = scene.selected.has(shape.id);
    const hidden = scene.isHidden(shape);
    const size = element("span", "num muted small", kindOf(shape).size(shape.rings, scene.box(shape.id)));
    const choose = element("button", "annotator-choose", dot(desk.colourOf(shape.label)), element("span", "cut", name.slice(0, -String(shape.z).length), element("span", "annotator-number num", String(shape.z))), size);
    choose.type = "button";
    choose.dataset.key = `choose-${shape.id}`;
    choose.setAttribute("aria-pressed", String(chosen));
    choose.addEventListener("click", (event) => desk.objects.pick(shape.id, event.shiftKey || event.ctrlKey || event.metaKey));
    choose.addEventListener("dblclick", () => desk.objects.lookAt(shape.id));
    const eye = button(hidden ? "eye-off" : "eye", t("Hide or show %(name)s", { name }), () => scene.hide(shape.id, !scene.hidden.has(shape.id)), hidden);
    eye.dataset.key = `eye-${shape.id}`;
    const shut = scene.locked.has(shape.id);
    const lock = button(shut ? "lock" : "lock-open", t("Lock or unlock %(name)s", { name }), () => scene.lock(shape.id, !shut), shut);
    lock.dataset.key = `lock-${shape.id}`;
    const bin = button("trash", t("Delete %(name)s", { name }), () => {
      desk.store.remove([scene.get(shape.id)]);
      if (!scene.get(shape.id)) desk.hint(t("%(name)s deleted. Undo restores it.", { name }));
    });
    bin.dataset.key = `bin-${shape.id}`;
    const row = element("li", "annotator-row", choose, eye, ...(desk.mode === "view" ? [] : [lock, bin]));
    row.classList.toggle("is-chosen", chosen);
    row.classList.toggle("is-hidden", hidden);
    return row;
  }
}
