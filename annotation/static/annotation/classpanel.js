// The classes, grouped by parent type: how many objects each has, what draws it, and what one does to all of them.
import { icon } from "../base/icons.js";
import { ask } from "../base/dialog.js";
import { t, tn } from "../base/i18n.js";
import { fullName } from "./labels.js";
import { button, dot, element } from "./widgets.js";

export class ClassPanel {
  /**
   * @param {HTMLElement} root
   * @param {import("./desk.js").Desk} desk
   */
  constructor(root, desk) {
    this.root = root;
    this.desk = desk;
    this.rows = new Map();
    this.menu = element("div", "menu-list annotator-menu");
    this.menu.popover = "auto";
    this.menu.setAttribute("role", "menu");
    this.menu.addEventListener("keydown", (event) => this.#walk(event));
    root.after(this.menu);
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
      row.more.disabled = !count;
      row.root.classList.toggle("is-hidden", hidden);
    }
  }

  #build() {
    const { labels } = this.desk;
    if (!labels.length) {
      this.root.append(element("p", "muted annotator-none", t("No classes yet. The project owner can add classes.")));
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
    const plus = button("plus", t("Add a %(name)s", names), () => desk.drawNew(label.id));
    const eye = button("eye", t("Hide or show all %(name)s", names), () => {
      desk.scene.hideClass(label.id, !desk.scene.hiddenClasses.has(label.id));
    });
    const more = button("more", t("More for all %(name)s", names), () => this.#open(label, more));
    more.setAttribute("aria-haspopup", "menu");
    choose.disabled = looks;
    const root = element("li", "annotator-row", choose, ...(looks ? [eye] : [plus, eye, more]));
    this.rows.set(label.id, { root, choose, count, eye, more });
    return root;
  }

  /** What one does to all objects of a class, under the button that asks for it. */
  #open(label, opener) {
    const { desk, menu } = this;
    const names = { name: label.name };
    const item = (name, text, act) => {
      const made = element("button", "menu-item", icon(name), text);
      made.type = "button";
      made.setAttribute("role", "menuitem");
      made.addEventListener("click", () => {
        menu.hidePopover();
        act();
      });
      return made;
    };
    const items = [
      item("cursor", t("Select all %(name)s", names), () => desk.objects.allOf(label.id)),
      item("eye", t("Show only %(name)s", names), () => desk.scene.showAlone(label.id, desk.labels.map(({ id }) => id))),
    ];
    if (!desk.locked) items.push(item("trash", t("Delete all %(name)s…", names), () => void this.#clear(label)));
    menu.replaceChildren(...items);
    menu.showPopover();
    const { right, bottom, top } = opener.getBoundingClientRect();
    const high = menu.offsetHeight;
    menu.style.left = `${Math.max(4, right - menu.offsetWidth)}px`;
    menu.style.top = `${bottom + high > innerHeight ? Math.max(4, top - high) : bottom}px`;
    items[0].focus();
  }

  #walk(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step) return;
    const items = [...this.menu.querySelectorAll("button")];
    const at = items.indexOf(/** @type {HTMLButtonElement} */ (document.activeElement));
    items[(at + step + items.length) % items.length].focus();
    event.preventDefault();
  }

  async #clear(label) {
    const { scene, store } = this.desk;
    const shapes = [...scene.shapes.values()].filter((shape) => shape.label === label.id);
    const sure = await ask({
      title: t("Delete all %(name)s on this image", { name: label.name }),
      text: tn("%(count)s object is deleted. Undo restores it.", "%(count)s objects are deleted. Undo restores them.", shapes.length),
      act: t("Delete"),
      danger: true,
    });
    if (sure) store.remove(shapes);
  }
}
