// A pipeline to look at: the canvas of a run, whose steps are coloured while it goes on.
//
//   const view = new View(root, catalogue, spec, layout);
//   view.setStates({ train: { state: "started", label: "Running", text: "epoch 3 of 10", progress: 0.3 } });
//   view.addEventListener("step", ({ detail }) => show(detail.step));
import { t } from "../base/i18n.js";
import { Catalogue } from "./catalogue.js";
import { button, el } from "./dom.js";
import { arrange } from "./edits.js";
import { Pointers } from "./pointer.js";
import { read } from "./spec.js";
import { Stage } from "./stage.js";

const LEAST = 0.6; // a graph is not shown smaller: it begins, and the rest is a pull away

/**
 * @typedef {object} StepState
 * @property {string} state  waiting, asking, started, ok, cached, failed, skipped, cancelled
 * @property {string} label  its word
 * @property {string} [text]  one line more
 * @property {number | null} [progress]  0 to 1
 * @property {Record<string, number> | null} [items]  how many items stand how
 */

const ARROWS = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] };

export class View extends EventTarget {
  /**
   * @param {HTMLElement} root  an empty element with a height
   * @param {import("./catalogue.js").GivenCatalogue} catalogue
   * @param {import("./spec.js").Spec} spec
   * @param {import("./spec.js").Layout} [layout]
   */
  constructor(root, catalogue, spec, layout = {}) {
    super();
    this.graph = read(new Catalogue(catalogue), spec, layout);
    /** @type {Map<string, StepState>} */
    this.states = new Map();
    root.classList.add("pl-view");
    const canvas = el("div");
    root.append(canvas);
    this.stage = new Stage(canvas, this.graph, { readOnly: true, states: this.states, label: t("Steps of the run. Arrow keys follow the connections, Enter opens a step.") });
    const bare = this.graph.places.size < this.graph.steps.size;
    if (bare) arrange(this.graph, this.stage.sizes, this.graph.places.size === 0);
    this.graph.done = [];
    new Pointers(this.stage, null);
    root.append(el("div", "pl-view-tools", { role: "group", "aria-label": t("View") },
      button({ icon: "zoom-out", label: t("Zoom out"), act: () => this.stage.zoom(1 / 1.2) }),
      button({ icon: "zoom-in", label: t("Zoom in"), act: () => this.stage.zoom(1.2) }),
      button({ icon: "fit", label: t("Show all"), act: () => this.stage.fit() })));
    this.stage.addEventListener("step", ({ detail }) => this.#open(detail.step));
    canvas.addEventListener("keydown", (event) => this.#key(event));
    this.stage.flush();
    this.stage.open(LEAST);
  }

  /** Show how steps stand; steps that are not named stay as they are. @param {Record<string, StepState>} states */
  setStates(states) {
    for (const [id, state] of Object.entries(states)) {
      if (!this.graph.steps.has(id)) continue;
      this.states.set(id, state);
      this.stage.cards.get(id)?.state(state);
    }
    this.stage.map.ask();
  }

  /** Bring what goes on, asks or failed into view, where not all of it is. */
  showActive() {
    const order = this.graph.order();
    const found = ["asking", "started", "failed"].map((word) => order.find((id) => this.states.get(id)?.state === word)).find(Boolean);
    if (found) this.stage.reveal(found);
  }

  /** Choose a step and bring it into view. */
  show(step) {
    this.stage.choose([step]);
    this.stage.reveal(step);
  }

  #open(step) {
    this.dispatchEvent(new CustomEvent("step", { detail: { step } }));
  }

  #key(event) {
    const id = this.stage.focused;
    const arrow = ARROWS[event.key];
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (arrow) this.#walk(id, arrow);
    else if ((event.key === "Enter" || event.key === " ") && id) this.#open(id);
    else if (event.key === "f") this.stage.fit();
    else if (event.key === "+" || event.key === "=") this.stage.zoom(1.2);
    else if (event.key === "-") this.stage.zoom(1 / 1.2);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  #walk(id, arrow) {
    const next = id ? this.stage.neighbour(id, arrow) : this.stage.stop;
    if (next) this.stage.focus(next);
  }
}
