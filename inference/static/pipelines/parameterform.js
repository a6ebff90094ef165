// Parameters of the whole pipeline: what each run may set.
import { t } from "../base/i18n.js";
import { button, el } from "./dom.js";
import { addParameter, removeParameter, renameParameter, setParameter } from "./edits.js";
import { lineField } from "./fields.js";
import { placed } from "./problems.js";

export class ParameterForm {
  /** @param {import("./editor.js").Editor} editor */
  constructor(editor) {
    this.editor = editor;
    this.list = el("div", "stack stack-tight");
    this.element = el("div", "stack stack-tight", {}, el("p", "muted small", {}, `${t("Values that a run can set. Write %(place)s in any field of a step to use one.", { place: placed("name") })} ${t("Numbers, true, lists and objects are parsed as JSON, everything else as text.")}`), this.list);
    if (!editor.readOnly) {
      this.element.append(button({ icon: "plus", text: t("Add parameter"), className: "btn btn-small", act: () => {
        const name = addParameter(editor.graph);
        this.show();
        this.rows.get(name)?.name.control.focus();
      } }));
    }
    /** @type {Map<string, {element: HTMLElement, name: any, value: any, note: any}>} */
    this.rows = new Map();
    this.show();
  }

  show() {
    const { parameters } = this.editor.graph;
    for (const [name, row] of this.rows) if (!parameters.has(name)) {
      row.element.remove();
      this.rows.delete(name);
    }
    for (const [name, parameter] of parameters) {
      let row = this.rows.get(name);
      if (!row) {
        row = this.#row(name);
        this.rows.set(name, row);
        this.list.append(row.element);
      }
      row.name.show(name);
      row.value.show(worded(parameter.default));
      row.note.show(parameter.note ?? "");
    }
  }

  #row(name) {
    const { graph, readOnly: disabled } = this.editor;
    const close = () => graph.close();
    const field = lineField(t("Name"), { late: true, most: 40, disabled, change: (text) => {
      const refused = renameParameter(graph, name, text.trim());
      this.show();
      field.problem(refused);
      if (!refused && text.trim() !== name) this.rows.get(text.trim())?.name.control.focus();
    } });
    const value = lineField(t("Default value"), { close, most: 20000, disabled, change: (text) => setParameter(graph, name, "default", parsed(text)) });
    const note = lineField(t("Note"), { close, disabled, change: (text) => setParameter(graph, name, "note", text) });
    const element = el("fieldset", "pl-parameter stack stack-tight", {}, el("legend", "sr-only", {}, t("Parameter %(name)s", { name })), field.row, value.row, note.row);
    if (!disabled) element.append(el("div", "row", {}, button({ icon: "trash", text: t("Remove"), className: "btn btn-small btn-danger", act: () => {
      removeParameter(graph, name);
      this.element.querySelector(":scope > .btn")?.focus();
    } })));
    return { element, name: field, value, note };
  }
}

const worded = (value) => (typeof value === "string" && parsed(value) === value ? value : value === undefined ? "" : JSON.stringify(value));

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
