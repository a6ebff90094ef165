// All problems of the pipeline in one list; each leads to its step. The browser's own come at once, the server's after it
// was asked: a second after the last change.
import { t, tn } from "../base/i18n.js";
import { api } from "../base/api.js";
import { icon } from "../base/icons.js";
import { el } from "./dom.js";
import { counted, errorsOf, problemsOf } from "./problems.js";
import { write } from "./spec.js";

const OWN_MS = 120;
const SERVER_MS = 1000;
const MOST = 100; // shown at once

export class Issues {
  /** @param {import("./editor.js").Editor} editor @param {string} url  of the server's check; "" where there is none */
  constructor(editor, url) {
    this.editor = editor;
    this.url = url;
    /** @type {import("./problems.js").Problem[]} */
    this.own = [];
    /** @type {import("./problems.js").Problem[]} */
    this.server = [];
    /** @type {import("./problems.js").Problem[]} */
    this.all = [];
    this.count = el("span", "pl-issues-count");
    this.list = el("ul", "plain pl-issues-list");
    this.element = el("details", "pl-issues", {}, el("summary", "", {}, this.count), this.list);
    this.checked = 0;
    this.turn = 0;
    editor.graph.watch((changes) => changes.some(({ table }) => table !== "places") && this.ask());
    this.look();
    this.ask();
  }

  ask() {
    clearTimeout(this.soon);
    clearTimeout(this.later);
    this.soon = setTimeout(() => this.look(), OWN_MS);
    if (this.url && !this.editor.readOnly) this.later = setTimeout(() => void this.check(), SERVER_MS);
  }

  /** What the browser sees by itself. */
  look() {
    this.own = problemsOf(this.editor.graph);
    this.server = this.server.filter(({ step }) => !step || this.editor.graph.steps.has(step));
    this.show();
  }

  /** Ask the server; an answer to an older question is dropped. */
  async check() {
    const turn = ++this.turn;
    try {
      const answer = await api.post(this.url, { spec: write(this.editor.graph) });
      if (turn !== this.turn) return;
      this.server = (answer?.problems ?? []).map(({ step = "", field = "", message = "", level = "error" }) => ({ step: step ?? "", field: field ?? "", message, level }));
    } catch {
      if (turn === this.turn) this.server = []; // offline, or no right to ask: the own ones stay
    }
    this.checked = turn;
    this.show();
  }

  show() {
    const own = new Set(this.own.map(({ step, field }) => `${step} ${field}`));
    const last = (field) => field.split(".").at(-1);
    const loosely = new Set(this.own.map(({ step, field }) => `${step} ${last(field)}`));
    this.all = [...this.own, ...this.server.filter(({ step, field }) => !own.has(`${step} ${field}`) && !(field && loosely.has(`${step} ${last(field)}`)))];
    this.count.replaceChildren(icon(this.all.length ? "warning" : "ok"), counted(this.all).join(", ") || t("No problems"));
    this.element.classList.toggle("is-wrong", this.all.length > 0);
    this.list.replaceChildren(...this.all.slice(0, MOST).map((problem) => this.#item(problem)));
    if (this.all.length > MOST) this.list.append(el("li", "muted small", {}, tn("and %(count)s more", "and %(count)s more", this.all.length - MOST)));
    this.editor.problemsFound(this.all);
  }

  /** What keeps it from running. */
  get errors() {
    return errorsOf(this.all);
  }

  #item(problem) {
    const { step, field, message, level } = problem;
    const known = this.editor.graph.steps.has(step);
    const words = [...(level === "warning" ? [el("span", "pl-issue-level", {}, t("Warning")), " "] : []), ...(step ? [el("strong", "", {}, step), " "] : []), message];
    if (!known) return el("li", "", {}, ...words);
    const link = el("button", "link-btn", { type: "button" }, ...words);
    link.addEventListener("click", () => this.editor.goTo(step, field));
    return el("li", "", {}, link);
  }

  /** Open the list and put the keyboard into it. */
  open() {
    this.element.open = true;
    this.element.querySelector("summary").focus();
  }
}
