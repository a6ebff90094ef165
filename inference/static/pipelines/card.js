// A step on the canvas. It is made in two parts: its head when it comes into view, its ports when it is large enough.
import { icon } from "../base/icons.js";
import { t } from "../base/i18n.js";
import { el } from "./dom.js";
import { counted, errorsOf } from "./problems.js";

const LONGEST = 60; // characters of a value that stand beside the kind

/**
 * Where texts end, in widths of a capital letter. Every text that is clipped is a part of the picture of its own to the
 * browser, of which a view that moves counts each: those that surely fit are not clipped.
 */
const ROOM = { name: 8, about: 15, port: 6.8 };
const LAST_NARROW = 0x2ff; // letters of other scripts are as wide as they are high
const wordWidth = (text) => [...text].reduce((sum, letter) => sum + ((letter.codePointAt(0) ?? 0) > LAST_NARROW ? 1 : 0.62), 0);

/** Show a text in an element, clipped where it may be too long. @param {HTMLElement} element @param {keyof typeof ROOM} room */
function put(element, text, room) {
  element.textContent = text;
  element.classList.toggle("is-cut", wordWidth(text) > ROOM[room]);
}

export class Card {
  /**
   * @param {import("./stage.js").Stage} stage
   * @param {string} id
   */
  constructor(stage, id) {
    this.stage = stage;
    this.id = id;
    this.element = el("div", "pl-step", { tabindex: -1, "data-id": id, role: stage.readOnly ? "button" : "group" });
    this.title = el("span", "pl-step-name");
    put(this.title, id, "name");
    this.head = el("div", "pl-step-head", {}, this.title);
    this.element.append(this.head);
    this.hasBody = false;
    this.kind = "";
  }

  get step() {
    return /** @type {import("./graph.js").Step} */ (this.stage.graph.steps.get(this.id));
  }

  /** Show what the graph holds. `whole`: with its ports. */
  draw(whole) {
    const { step, stage } = this;
    if (step.kind !== this.kind) this.#begin();
    if (whole && !this.hasBody) this.#body();
    if (this.about) put(this.about, summary(stage.graph, step), "about");
    this.element.setAttribute("aria-label", this.words());
    if (this.hasBody) this.#fed();
    this.problems(stage.problems.get(this.id) ?? []);
    if (stage.states) this.state(stage.states.get(this.id));
  }

  move([x, y]) {
    this.element.style.left = `${x}px`; // a transform of each would cost more in every frame that the view moves
    this.element.style.top = `${y}px`;
  }

  #begin() {
    const kind = this.stage.graph.catalogue.kind(this.step.kind);
    this.kind = kind.name;
    this.element.dataset.group = kind.group;
    this.element.replaceChildren(this.head);
    this.head.replaceChildren(icon(kind.icon || "tasks"), this.title);
    this.hasBody = false;
    this.element.style.height = `${this.stage.sizes.height(this.id)}px`;
  }

  #body() {
    const kind = this.stage.graph.catalogue.kind(this.step.kind);
    this.about = el("div", "pl-step-about");
    this.element.append(this.about);
    if (this.stage.states) {
      this.said = el("div", "pl-step-state");
      this.element.append(this.said);
    }
    const ports = el("div", "pl-ports");
    const rows = Math.max(kind.inputs.length, kind.outputs.length);
    for (let row = 0; row < rows; row++) ports.append(this.#port(kind.inputs[row], "in"), this.#port(kind.outputs[row], "out"));
    this.element.append(ports);
    if (!this.stage.readOnly) {
      this.head.prepend(el("i", "pl-dot pl-dot-in pl-dot-start", { "data-side": "in", "data-port": "", title: t("Conditions and loops") }));
      this.head.append(el("i", "pl-dot pl-dot-out pl-dot-end", { "data-side": "out", "data-port": "", title: t("Next steps") }));
    }
    this.hasBody = true;
  }

  #port(port, side) {
    if (!port) return el("span");
    const type = this.stage.graph.catalogue.typeLabel(port.type);
    const dot = el("i", `pl-dot pl-dot-${side}`, { "data-side": side, "data-port": port.name, "data-type": port.type });
    const name = el("span", "pl-port-name");
    put(name, port.label, "port");
    return el("span", `pl-port pl-port-${side}`, { "data-side": side, "data-port": port.name, title: `${port.label}: ${type}` }, dot, name);
  }

  /** Mark inputs that something feeds, and those that still need it. */
  #fed() {
    const kind = this.stage.graph.catalogue.kind(this.kind);
    for (const { name, optional } of kind.inputs) {
      const dot = this.element.querySelector(`.pl-dot-in[data-port="${name}"]`);
      const fed = Boolean(this.step.from?.[name]?.length);
      dot?.classList.toggle("is-fed", fed);
      dot?.classList.toggle("is-missing", !fed && !optional && !this.stage.readOnly);
    }
    this.element.querySelector(".pl-dot-start")?.classList.toggle("is-fed", Boolean(this.step.when || this.step.each || this.step.after?.length));
  }

  problems(found) {
    this.element.classList.toggle("is-wrong", errorsOf(found).length > 0);
    this.element.classList.toggle("is-doubtful", found.length > 0 && !errorsOf(found).length);
    this.head.querySelector(".pl-step-wrong")?.remove();
    if (!found.length) return;
    const mark = el("span", "pl-step-wrong", { title: found.map(({ message }) => message).join("\n") }, icon("warning"));
    this.title.after(mark);
    this.element.setAttribute("aria-label", this.words());
  }

  /** Show how a run stands here: colour, symbol and word. */
  state(state) {
    this.element.dataset.state = state?.state ?? "waiting";
    this.element.style.setProperty("--done", String(Math.min(1, Math.max(0, state?.progress ?? 0))));
    this.element.classList.toggle("has-progress", typeof state?.progress === "number" && state.state === "started");
    if (!state) return;
    this.mark?.remove();
    this.mark = el("span", "pl-step-mark", {}, icon(this.stage.symbol(state.state)));
    this.head.append(this.mark);
    this.element.setAttribute("aria-label", this.words());
    if (!this.said) return;
    this.said.replaceChildren(icon(this.stage.symbol(state.state)), el("span", "pl-step-word", {}, state.label), el("span", "pl-step-text", {}, stateText(state)));
    this.said.title = stateText(state);
  }

  /** "train, Train. data from cells. model to judge. 1 problem": what a screen reader says. */
  words() {
    const { graph, problems, states } = this.stage;
    const kind = graph.catalogue.kind(this.step.kind);
    const state = states?.get(this.id);
    const parts = [`${this.id}, ${kind.label}`];
    if (state) parts.push([state.label, stateText(state)].filter(Boolean).join(" "));
    for (const { into, from } of graph.linksTo(this.id)) parts.push(t("%(port)s from %(step)s", { port: into, step: from }));
    for (const { out, to } of graph.linksFrom(this.id)) parts.push(t("%(port)s to %(step)s", { port: out || t("end"), step: to }));
    if (parts.length === 1) parts.push(t("not connected"));
    parts.push(...counted(problems.get(this.id) ?? []));
    return parts.join(". ");
  }
}

function stateText({ text, items, progress }) {
  const counts = Object.entries(items ?? {}).map(([state, count]) => `${count} ${state}`);
  return text || counts.join(", ") || (typeof progress === "number" ? `${Math.round(progress * 100)} %` : "");
}

/** "Train · classify_small": the kind, and what it is set to first. */
export function summary(graph, step) {
  const kind = graph.catalogue.kind(step.kind);
  const shown = kind.params.find(({ name, form }) => step.with?.[name] !== undefined && form !== "secret");
  const value = shown ? step.with?.[shown.name] : undefined;
  const text = value === undefined ? "" : typeof value === "object" ? JSON.stringify(value) : String(value);
  return text ? `${kind.label} · ${text.length > LONGEST ? `${text.slice(0, LONGEST - 1)}…` : text}` : kind.label;
}
