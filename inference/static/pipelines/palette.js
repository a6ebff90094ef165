// Kinds of steps to choose from: dragged onto the canvas, or put into its middle by a click.
import { t } from "../base/i18n.js";
import { icon } from "../base/icons.js";
import { el } from "./dom.js";
import { roving } from "./roving.js";

const STILL = 5;

export class Palette {
  /** @param {import("./editor.js").Editor} editor */
  constructor(editor) {
    this.editor = editor;
    this.search = el("input", "input", { type: "search", placeholder: t("Search steps"), "aria-label": t("Search steps"), autocomplete: "off" });
    this.groups = el("div", "pl-palette-groups");
    this.none = el("p", "muted small", { role: "status", hidden: true }, t("No kind of step matches."));
    this.element = el("nav", "pl-palette", { "aria-label": t("Kinds of steps") }, this.search, this.groups, this.none);
    this.search.addEventListener("input", () => this.draw());
    this.search.addEventListener("keydown", (event) => {
      const first = this.groups.querySelector(".pl-kind");
      if (event.key === "Enter" && first) this.#put(first.dataset.kind);
      else if (event.key === "ArrowDown" && first) first.focus();
      else if (event.key === "Escape") editor.focusCanvas();
      else return;
      event.preventDefault();
      event.stopPropagation();
    });
    this.settle = roving(this.groups, ".pl-kind", { back: ["ArrowUp"], on: ["ArrowDown"] });
    this.draw();
  }

  draw() {
    const { catalogue } = this.editor.graph;
    const found = catalogue.search(this.search.value);
    const groups = catalogue.groups.map(({ name, label }) => ({ label, kinds: found.filter(({ group }) => group === name) }));
    this.groups.replaceChildren(...groups.filter(({ kinds }) => kinds.length).map(({ label, kinds }) => el("section", "", { "aria-label": label }, el("h2", "pl-palette-title", {}, label), ...kinds.map((kind) => this.#kind(kind)))));
    this.none.hidden = found.length > 0;
    this.settle();
  }

  #kind(kind) {
    const element = el("button", "pl-kind", { type: "button", title: kind.about, "data-kind": kind.name, "data-group": kind.group }, icon(kind.icon || "tasks"), el("span", "", {}, kind.label));
    element.addEventListener("click", () => !this.dragged && this.#put(kind.name));
    element.addEventListener("pointerdown", (event) => event.pointerType !== "touch" && event.button === 0 && this.#drag(event, element, kind));
    return element;
  }

  #put(kind) {
    this.search.value = "";
    this.draw();
    this.editor.add(kind);
  }

  /** Follow the mouse with a copy; where it is let go over the canvas, the step is put. */
  #drag(event, element, kind) {
    this.dragged = false;
    const stop = new AbortController();
    const { signal } = stop;
    /** @type {HTMLElement | null} */
    let ghost = null;
    addEventListener("pointermove", (now) => {
      if (!now.buttons) return end(now); // let go where nobody saw it
      if (!ghost && Math.hypot(now.clientX - event.clientX, now.clientY - event.clientY) < STILL) return;
      if (!ghost) {
        ghost = /** @type {HTMLElement} */ (element.cloneNode(true));
        ghost.classList.add("pl-ghost");
        ghost.setAttribute("aria-hidden", "true");
        document.body.append(ghost);
        this.dragged = true;
      }
      ghost.style.transform = `translate(${now.clientX}px, ${now.clientY}px)`;
    }, { signal });
    const end = (now) => {
      stop.abort();
      ghost?.remove();
      const under = now.type === "pointerup" ? document.elementFromPoint(now.clientX, now.clientY) : null;
      if (ghost && under && !this.editor.list.open && this.editor.main.contains(under)) this.editor.add(kind.name, this.editor.stage.camera.toWorld(now));
      setTimeout(() => (this.dragged = false)); // after the click that may follow
    };
    addEventListener("pointerup", end, { signal });
    for (const name of ["pointercancel", "blur"]) addEventListener(name, end, { signal });
    event.preventDefault();
    element.focus({ preventScroll: true });
  }
}
