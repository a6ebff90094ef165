// The side: the form of the chosen step, of many what can be done with them, of none the parameters of the pipeline.
import { t, tn } from "../base/i18n.js";
import { icon } from "../base/icons.js";
import { button, el } from "./dom.js";
import { ParameterForm } from "./parameterform.js";
import { StepForm } from "./stepform.js";

export class Panel {
  /** @param {import("./editor.js").Editor} editor */
  constructor(editor) {
    this.editor = editor;
    this.head = el("h2", "pl-panel-head");
    this.body = el("div", "pl-panel-body");
    this.element = el("section", "pl-panel", {}, this.head, this.body);
    this.shown = ""; // what the body holds
    /** @type {StepForm | null} */
    this.form = null;
    /** @type {ParameterForm | null} */
    this.parameters = null;
  }

  /** Show what is chosen now. */
  look() {
    const { graph, stage, list } = this.editor;
    const chosen = list.open ? [] : [...stage.chosen];
    const kind = chosen.length === 1 ? graph.steps.get(chosen[0])?.kind : "";
    const wanted = chosen.length === 1 ? `step ${chosen[0]} ${kind}` : chosen.length ? `many ${chosen.length}` : "parameters";
    if (wanted !== this.shown) this.#build(chosen, wanted);
    else this.show();
  }

  #build(chosen, wanted) {
    this.shown = wanted;
    this.form = null;
    this.parameters = null;
    this.editor.root.classList.toggle("has-step", chosen.length === 1);
    if (chosen.length === 1) this.#step(chosen[0]);
    else if (chosen.length) this.#many(chosen);
    else this.#pipeline();
  }

  #step(id) {
    const { graph } = this.editor;
    const kind = graph.catalogue.kind(graph.steps.get(id)?.kind ?? "");
    this.head.replaceChildren(icon(kind.icon || "tasks"), kind.label);
    this.form = new StepForm(this.editor, id);
    this.body.replaceChildren(this.form.element);
  }

  #many(chosen) {
    this.head.textContent = tn("%(count)s step selected", "%(count)s steps selected", chosen.length);
    const { editor } = this;
    const acts = editor.readOnly ? [] : [
      button({ icon: "clone", text: t("Duplicate"), className: "btn btn-small", act: () => editor.duplicate([...editor.stage.chosen]) }),
      button({ icon: "trash", text: t("Remove"), className: "btn btn-small btn-danger", act: () => editor.removeChosen() }),
    ];
    this.body.replaceChildren(el("p", "muted small", {}, t("Selected steps are moved, copied and removed together.")), el("div", "row pl-form-acts", {}, ...acts));
  }

  #pipeline() {
    this.head.textContent = t("Parameters");
    this.parameters = new ParameterForm(this.editor);
    this.body.replaceChildren(this.parameters.element);
  }

  show() {
    this.form?.show();
    this.parameters?.show();
  }

  /** Put the keyboard into a field of a step. */
  goTo(id, field) {
    this.look();
    const { form } = this;
    if (!form || form.id !== id) return;
    form.focus(field).scrollIntoView({ block: "nearest" });
  }
}

