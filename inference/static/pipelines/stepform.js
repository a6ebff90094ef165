// Everything about one step as a form: its name, what feeds it, its parameters, and under "More" when it runs.
import { t } from "../base/i18n.js";
import { button, el } from "./dom.js";
import { rename, setParam, setPart } from "./edits.js";
import { lineField, paramField, selectField } from "./fields.js";
import { linkField } from "./linkfields.js";
import { linksInto } from "./links.js";
import { placed } from "./problems.js";

const MORE = ["note", "rule", "retries", "when", "each", "tolerate", "after"];

export class StepForm {
  /**
   * @param {import("./editor.js").Editor} editor
   * @param {string} id
   */
  constructor(editor, id) {
    this.editor = editor;
    this.id = id;
    /** @type {import("./fields.js").Field[]} */
    this.fields = [];
    /** @type {Map<import("./fields.js").Field, (step: any) => unknown>} */
    this.values = new Map();
    const step = /** @type {import("./graph.js").Step} */ (editor.graph.steps.get(id));
    this.kindName = step.kind;
    const kind = editor.graph.catalogue.kind(step.kind);
    this.element = el("div", "pl-form stack stack-tight");
    if (kind.about) this.element.append(el("p", "muted small", {}, kind.about));
    this.#name();
    for (const port of kind.inputs) this.#link({ label: port.label, into: port.name, sort: "data", many: port.many, optional: port.optional, help: editor.graph.catalogue.typeLabel(port.type) });
    const { graph } = editor;
    for (const param of kind.params) {
      const field = paramField(param, {
        change: (value) => setParam(graph, id, param.name, value),
        close: () => graph.close(),
        places: () => editor.placesFor(id),
        datalist: editor.datalist.id,
        secrets: graph.catalogue.secrets,
        disabled: editor.readOnly,
      });
      this.#put(this.element, field, (now) => now.with?.[param.name]);
    }
    this.#unknownValues(kind);
    this.more = el("details", "pl-more", {}, el("summary", "", {}, t("More")));
    this.more.append(this.#more());
    this.element.append(this.more);
    if (MORE.some((part) => step[part] !== undefined)) this.more.open = true;
    if (!editor.readOnly) this.element.append(this.#acts());
    this.show();
  }

  #put(place, field, value) {
    this.fields.push(field);
    this.values.set(field, value);
    place.append(field.row);
  }

  #name() {
    const field = lineField(t("Name"), {
      field: "id",
      most: 40,
      late: true,
      disabled: this.editor.readOnly,
      change: (name) => {
        if (name === this.id) return field.problem("");
        const refused = rename(this.editor.graph, this.id, name.trim());
        field.problem(refused);
        return refused ? undefined : this.editor.renamed(this.id, name.trim());
      },
    });
    this.#put(this.element, { ...field, show: (value) => field.show(value, field.row.querySelector(".form-error")?.textContent ?? "") }, () => this.id);
  }

  #link(port, place = this.element) {
    this.#put(place, linkField(this.editor, this.id, port), () => undefined);
  }

  /** Values that the kind has no parameter for: they are kept, and can be taken out. */
  #unknownValues(kind) {
    const known = new Set(kind.params.map(({ name }) => name));
    const { graph } = this.editor;
    for (const name of Object.keys(graph.steps.get(this.id)?.with ?? {})) {
      if (known.has(name)) continue;
      const param = /** @type {import("./catalogue.js").Param} */ ({ name, label: name, form: "json", help: t("This kind of step has no such parameter. Clear it to remove it.") });
      this.#put(this.element, paramField(param, { change: (value) => setParam(graph, this.id, name, value), close: () => graph.close(), places: () => [], datalist: this.editor.datalist.id, disabled: this.editor.readOnly }), (now) => now.with?.[name]);
    }
  }

  #more() {
    const { graph } = this.editor;
    const disabled = this.editor.readOnly;
    const close = () => graph.close();
    const set = (part, value) => setPart(graph, this.id, part, value);
    const box = el("div", "stack stack-tight");
    this.#put(box, lineField(t("Note"), { field: "note", long: true, close, disabled, change: (text) => set("note", text || undefined) }), (step) => step.note);
    this.#link({ label: t("When"), into: "when", sort: "when", help: t("Runs only after this answer.") }, box);
    this.#link({ label: t("After"), into: "after", sort: "after", many: true, optional: true, help: t("Steps that must end first, without passing data.") }, box);
    const rules = /** @type {[string, string][]} */ ([["all_ok", t("All previous steps succeeded")], ["all_done", t("All previous steps ended, in any state")], ["any_failed", t("A previous step failed")]]);
    this.#put(box, selectField(t("Run condition"), rules, { field: "rule", disabled, change: (value) => set("rule", value === "all_ok" ? undefined : value) }), (step) => step.rule ?? "all_ok");
    this.#put(box, lineField(t("Try again"), { field: "retries", numeric: true, close, disabled, most: 2, help: t("Number of retries after a failure, 0 to 10."), change: (text) => set("retries", numberIn(text, 0, 10, true)) }), (step) => step.retries);
    this.#link({ label: t("For each"), into: "each", sort: "each", help: t("Runs once for each item of this list; %(place)s is replaced by the item.", { place: placed("item") }) }, box);
    this.#put(box, lineField(t("Tolerated failures"), { field: "tolerate", numeric: true, close, disabled, most: 6, help: t("Share of the list, 0 to 1."), change: (text) => set("tolerate", numberIn(text, 0, 1, false)) }), (step) => step.tolerate);
    return box;
  }

  #acts() {
    return el("div", "row pl-form-acts", {},
      button({ icon: "clone", text: t("Duplicate"), className: "btn btn-small", act: () => this.editor.duplicate([this.id]) }),
      button({ icon: "trash", text: t("Remove"), className: "btn btn-small btn-danger", act: () => this.editor.remove([this.id]) }));
  }

  /** Show what the graph holds; what a person is writing in stays. */
  show() {
    const step = this.editor.graph.steps.get(this.id);
    if (!step) return;
    const problems = this.editor.problemsAt(this.id);
    for (const field of this.fields) {
      const found = problems.find((one) => field.names.includes(one.field));
      const isWarning = found?.level === "warning";
      field.show(this.values.get(field)?.(step), isWarning ? `${t("Warning")}: ${found.message}` : (found?.message ?? ""));
      field.row.classList.toggle("is-doubted", isWarning);
    }
  }

  /** Put the keyboard into the field of that name, or the first one. */
  focus(name = "") {
    const found = this.fields.find((field) => field.names.includes(name)) ?? this.fields[0];
    if (this.more.contains(found.control)) this.more.open = true;
    found.control.focus();
    return found.control;
  }

  /** "data: cells.data": what feeds the step, for its line in the list. */
  static fedBy(id, step) {
    return linksInto(id, step).map(({ into, from, out }) => `${into}: ${out ? `${from}.${out}` : from}`).join(" · ");
  }
}

/** A number in its bounds; what is none, or nothing, is taken out. */
function numberIn(text, low, high, whole) {
  const value = Number(text);
  if (text.trim() === "" || !Number.isFinite(value) || value === 0) return undefined;
  const kept = Math.min(high, Math.max(low, value));
  return whole ? Math.round(kept) : kept;
}
