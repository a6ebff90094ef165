// The same pipeline as a list, in the order it runs: each step opens into its form. Equal in power to the canvas.
import { t } from "../base/i18n.js";
import { icon } from "../base/icons.js";
import { summary } from "./card.js";
import { button, el, once } from "./dom.js";
import { counted } from "./problems.js";
import { StepForm } from "./stepform.js";

export class List {
  /** @param {import("./editor.js").Editor} editor */
  constructor(editor) {
    this.editor = editor;
    this.rows = new Map();
    this.open = false;
    this.search = el("input", "input", { type: "search", placeholder: t("Find a step"), "aria-label": t("Find a step"), autocomplete: "off" });
    this.search.addEventListener("input", () => this.#filter());
    const tools = el("div", "row pl-list-tools", {}, this.search);
    if (!editor.readOnly) tools.append(button({ icon: "plus", text: t("Add a step"), className: "btn", act: () => editor.askKind() }));
    this.items = el("ol", "pl-rows plain");
    this.none = el("p", "muted", { role: "status", hidden: true });
    this.element = el("section", "pl-list", { "aria-label": t("Steps in order"), hidden: true }, tools, this.items, this.none);
    this.dirty = new Set();
    this.ask = once(() => this.draw());
    editor.graph.watch((changes) => {
      for (const { key, table } of changes) if (table !== "places") this.dirty.add(key);
      if (this.open) this.ask();
    });
  }

  show(on) {
    this.open = on;
    this.element.hidden = !on;
    if (on) this.draw();
  }

  /** Bring the rows to what the graph holds: those that changed, and the order. */
  draw() {
    const { graph } = this.editor;
    for (const [id, row] of this.rows) if (!graph.steps.has(id)) {
      if (row.element.contains(document.activeElement)) this.search.focus();
      row.element.remove();
      this.rows.delete(id);
    }
    const had = /** @type {HTMLElement | null} */ (document.activeElement);
    let place = this.items.firstElementChild;
    graph.order().forEach((id, n) => {
      const row = this.#row(id);
      if (place && row.element === place) place = place.nextElementSibling;
      else this.items.insertBefore(row.element, place);
      if (row.number.textContent !== String(n + 1)) row.number.textContent = String(n + 1);
      if (this.dirty.has(id)) this.#fill(id, row);
    });
    this.dirty.clear();
    if (had && had !== document.activeElement && this.items.contains(had)) had.focus(); // a row that moved loses it
    this.#filter();
  }

  #row(id) {
    const { graph } = this.editor;
    const kind = graph.catalogue.kind(/** @type {any} */ (graph.steps.get(id)).kind);
    const known = this.rows.get(id);
    if (known?.kind === kind.name) return known;
    known?.element.remove();
    const parts = { number: el("span", "pl-row-number num muted"), about: el("span", "pl-row-about muted small"), fed: el("span", "pl-row-fed muted small"), wrong: el("span", "pl-row-wrong") };
    const summaryLine = el("summary", "pl-row-head", {}, parts.number, icon(kind.icon || "tasks"), el("strong", "pl-row-name", {}, id), parts.about, parts.wrong, parts.fed);
    const details = el("details", "", {}, summaryLine);
    const element = el("li", "pl-row", { "data-id": id, "data-group": kind.group }, details);
    const row = { element, details, kind: kind.name, form: /** @type {StepForm | null} */ (null), ...parts };
    details.addEventListener("toggle", () => this.#toggled(id, row));
    this.rows.set(id, row);
    this.#fill(id, row);
    return row;
  }

  #toggled(id, row) {
    if (row.details.open && !row.form && this.editor.graph.steps.has(id)) {
      row.form = new StepForm(this.editor, id);
      row.details.append(row.form.element);
    } else if (!row.details.open && row.form) {
      row.form.element.remove();
      row.form = null;
    }
  }

  #fill(id, row) {
    const step = this.editor.graph.steps.get(id);
    row.about.textContent = summary(this.editor.graph, step);
    row.fed.textContent = StepForm.fedBy(id, step);
    this.#problems(row, this.editor.problemsAt(id));
    row.form?.show();
  }

  #problems(row, found) {
    const text = counted(found).join(", ");
    if (row.wrong.textContent === text) return;
    row.wrong.replaceChildren(...(text ? [icon("warning"), text] : []));
    row.wrong.classList.toggle("is-doubted", found.every((one) => one.level === "warning"));
  }

  showProblems() {
    if (!this.open) return;
    for (const [id, row] of this.rows) {
      if (!this.editor.graph.steps.has(id)) continue;
      this.#problems(row, this.editor.problemsAt(id));
      row.form?.show();
    }
  }

  #filter() {
    const words = this.search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const [id, row] of this.rows) {
      const text = words.length ? `${id} ${row.about.textContent} ${row.fed.textContent}`.toLowerCase() : "";
      row.element.hidden = !words.every((word) => text.includes(word));
      shown += row.element.hidden ? 0 : 1;
    }
    this.none.hidden = shown > 0;
    this.none.textContent = this.rows.size ? t("No step matches.") : t("No steps yet. Add the first one.");
  }

  /** Open a step and put the keyboard into a field of it. */
  goTo(id, field = "") {
    this.draw();
    const row = this.rows.get(id);
    if (!row) return;
    if (row.element.hidden) {
      this.search.value = "";
      this.#filter();
    }
    row.details.open = true;
    this.#toggled(id, row); // the event comes later
    row.element.scrollIntoView({ block: "nearest" });
    row.form?.focus(field);
  }

  /** The step whose row holds the keyboard. */
  get focused() {
    return document.activeElement?.closest(".pl-row")?.dataset.id ?? "";
  }
}
