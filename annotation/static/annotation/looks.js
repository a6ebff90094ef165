// How image and shapes look: the panel with its sliders, and what the settings do to the canvases.
import { RANGES } from "./settings.js";

export class Looks {
  /**
   * @param {HTMLElement} root  the annotator
   * @param {object} given
   * @param {import("./desk.js").Desk} given.desk
   * @param {import("./settings.js").Settings} given.settings
   */
  constructor(root, { desk, settings }) {
    this.root = root;
    this.desk = desk;
    this.settings = settings;
    /** @type {HTMLElement} */
    this.panel = root.querySelector("[data-looks]");
    for (const input of this.#inputs()) {
      const name = input.name;
      if (RANGES[name]) [input.min, input.max, input.step] = RANGES[name].map(String);
      input.addEventListener("input", () => settings.set(name, input.type === "checkbox" ? input.checked : Number(input.value)));
    }
    this.panel.querySelector("[data-looks-reset]").addEventListener("click", () => settings.resetLooks());
    this.panel.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      event.stopPropagation();
      this.toggle();
    });
    settings.addEventListener("change", () => this.apply());
    this.apply();
  }

  /** Open the panel with the focus in it, or close it and go back to the image. */
  toggle() {
    this.panel.hidden = !this.panel.hidden;
    for (const button of this.root.querySelectorAll('[data-act="looks"]')) button.setAttribute("aria-expanded", String(!this.panel.hidden));
    if (this.panel.hidden) this.root.querySelector("[data-stage]").focus({ preventScroll: true });
    else this.#inputs()[0].focus();
  }

  apply() {
    const { desk, settings, root } = this;
    for (const input of this.#inputs()) {
      const value = settings.get(input.name);
      if (input.type === "checkbox") input.checked = value;
      else input.value = value;
      const output = input.parentElement?.querySelector("output");
      if (output) output.textContent = input.name === "line" ? `${value} px` : `${value} %`;
    }
    root.classList.toggle("is-alone", !settings.get("side"));
    for (const name of ["names", "side", "strip"]) {
      for (const button of root.querySelectorAll(`[data-act="${name}"]`)) button.setAttribute("aria-pressed", String(settings.get(name)));
    }
    desk.renderer.look({
      fill: settings.get("fill") / 100,
      line: settings.get("line"),
      names: settings.get("names"),
      filter: filterOf(settings.get("brightness"), settings.get("contrast")),
    });
  }

  /** @returns {HTMLInputElement[]} */
  #inputs() {
    return [...this.panel.querySelectorAll("input")];
  }
}

const filterOf = (brightness, contrast) => (brightness === 100 && contrast === 100 ? "" : `brightness(${brightness}%) contrast(${contrast}%)`);
