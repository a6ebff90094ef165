// One row of a form for each kind of parameter. Each takes a text with ${…} in the place of a value.
import { t } from "../base/i18n.js";
import { el, freshName } from "./dom.js";
import { isFilledIn, placed } from "./problems.js";
import { aboutSecrets, secretsControl } from "./secretfields.js";

/** @typedef {{row: HTMLElement, control: HTMLElement, show: (value: any, problem?: string) => void, names: string[]}} Field */

const WRITE = "\u0000write"; // the option that opens a line for a text

/** A row with a label, a control, a help and a place for what is wrong. */
export function row(label, control, { help = "", required = false, code = "" } = {}) {
  control.id ||= freshName("field");
  const error = el("p", "form-error", { id: freshName("error"), hidden: true });
  const head = el("label", required ? "required-mark" : "", { for: control.id }, label);
  const element = el("div", "form-row", {}, head, control);
  const note = help || code;
  if (note) {
    const said = el("p", "form-help", { id: freshName("help") }, note);
    control.setAttribute("aria-describedby", `${said.id} ${error.id}`);
    element.append(said);
  } else control.setAttribute("aria-describedby", error.id);
  element.append(error);
  return { element, problem: (text) => showProblem(element, control, error, text) };
}

function showProblem(element, control, error, text) {
  if (error.textContent === text) return;
  error.textContent = text;
  error.hidden = !text;
  element.classList.toggle("has-error", Boolean(text));
  if (text) control.setAttribute("aria-invalid", "true");
  else control.removeAttribute("aria-invalid");
}

/** Whether a person is writing in a control: nobody else changes its text then. */
const inHand = (control) => document.activeElement === control;

/**
 * The field of a parameter.
 * @param {import("./catalogue.js").Param} param
 * @param {{change: (value: unknown) => void, close: () => void, places: () => string[], datalist: string, secrets?: string[], disabled?: boolean}} given
 *   `places`: texts that may stand for a value, such as "${preset}"; `change(undefined)`: the default
 * @returns {Field}
 */
export function paramField(param, given) {
  const made = madeFor(param, given);
  made.control.dataset.field = `with.${param.name}`;
  return { ...made, names: [`with.${param.name}`, param.name] };
}

function madeFor(param, given) {
  if (param.form === "secrets") return secretsField(param, given);
  if (param.form === "secret") {
    const made = choiceField({ ...param, choices: (given.secrets ?? []).map((name) => [name, name]) }, given);
    made.row.querySelector(".form-help")?.append(" ", aboutSecrets());
    return made;
  }
  return param.form === "yesno" || param.form === "choice" ? choiceField(param, given) : textField(param, given);
}

function secretsField(param, given) {
  const { control, show } = secretsControl(given, param.label);
  const made = row(param.label, control, { help: param.help ?? "", required: param.required });
  made.element.querySelector(".form-help")?.append(" ", aboutSecrets());
  const showBoth = (value, problem = "") => {
    show(value);
    made.problem(problem);
  };
  return { row: made.element, control, show: showBoth };
}

function textField(param, { change, close, datalist, disabled = false }) {
  const long = param.form === "long" || param.form === "json";
  const numeric = param.form === "number" || param.form === "whole";
  const control = long
    ? el("textarea", `input${param.form === "json" ? " mono" : ""}`, { rows: 4, spellcheck: param.form === "json" ? "false" : undefined, disabled })
    : el("input", "input", { type: "text", autocomplete: "off", list: datalist, inputmode: numeric ? "decimal" : undefined, disabled });
  control.placeholder = worded(param, param.default);
  const made = row(param.label, control, { help: param.help ?? "", required: param.required });
  control.addEventListener("input", () => change(parsed(param, control.value)));
  control.addEventListener("blur", close);
  const show = (value, problem = "") => {
    if (!inHand(control)) control.value = worded(param, value);
    made.problem(problem);
  };
  return { row: made.element, control, show };
}

/** A value as it stands in a line. */
function worded(param, value) {
  if (value === undefined || value === null) return "";
  if (param.form !== "json") return typeof value === "object" ? JSON.stringify(value) : String(value);
  return typeof value === "string" && (isFilledIn(value) || /^\s*[[{]/.test(value)) ? value : JSON.stringify(value, null, 1);
}

/** What was written as a value: what cannot be one stays a text, and is said to be a problem. */
function parsed(param, text) {
  if (text.trim() === "") return undefined;
  if (param.form === "json") {
    try {
      return JSON.parse(text);
    } catch {
      return text;
    }
  }
  if ((param.form === "number" || param.form === "whole") && !isFilledIn(text)) return Number.isFinite(Number(text)) ? Number(text) : text;
  return text;
}

function choiceField(param, { change, close, places, datalist, disabled = false }) {
  const select = el("select", "input", { disabled });
  const line = el("input", "input", { type: "text", autocomplete: "off", list: datalist, hidden: true, disabled, "aria-label": t("%(name)s, as a text", { name: param.label }) });
  const made = row(param.label, select, { help: param.help ?? "", required: param.required });
  select.after(line);
  /** @type {[unknown, string][]} */
  const choices = param.form === "yesno" ? [[true, t("Yes")], [false, t("No")]] : (param.choices ?? []);
  let now;
  let writing = false;
  const fill = () => {
    const usual = choices.find(([value]) => value === param.default)?.[1] ?? (param.default === null || param.default === undefined ? "" : String(param.default));
    const options = [el("option", "", { value: "" }, usual ? t("Default: %(value)s", { value: usual }) : t("Select"))];
    for (const [at, [, label]] of choices.entries()) options.push(el("option", "", { value: String(at) }, label));
    for (const place of places()) options.push(el("option", "", { value: place }, place));
    const own = now !== undefined && !choices.some(([value]) => value === now) && !places().includes(String(now));
    if (own) options.push(el("option", "", { value: String(now) }, String(now)));
    options.push(el("option", "", { value: WRITE }, t("Write a text with %(place)s", { place: placed("…") })));
    select.replaceChildren(...options);
    const at = choices.findIndex(([value]) => value === now);
    select.value = writing ? WRITE : now === undefined ? "" : at >= 0 ? String(at) : String(now);
    line.hidden = !writing;
  };
  select.addEventListener("change", () => {
    writing = select.value === WRITE;
    if (writing) {
      line.value = isFilledIn(now) ? String(now) : "";
      line.hidden = false;
      line.focus();
    } else change(select.value === "" ? undefined : (choices[Number(select.value)]?.[0] ?? select.value));
  });
  select.addEventListener("focus", fill);
  line.addEventListener("input", () => change(line.value || undefined));
  line.addEventListener("blur", close);
  fill();
  const show = (value, problem = "") => {
    now = value;
    if (isFilledIn(value) && !places().includes(value)) writing = true;
    else if (!inHand(line) && !inHand(select)) writing = false;
    if (!inHand(line)) line.value = writing ? String(value ?? "") : "";
    if (!inHand(select)) fill();
    made.problem(problem);
  };
  return { row: made.element, control: select, show };
}

/** A line for a text; `change` on every letter, or with `late` when it is left or Enter is pressed. */
export function lineField(label, { change, close = () => {}, help = "", late = false, long = false, numeric = false, most = 500, field = "", disabled = false }) {
  const control = long ? el("textarea", "input", { rows: 3, maxlength: most, disabled }) : el("input", "input", { type: "text", autocomplete: "off", spellcheck: "false", maxlength: most, inputmode: numeric ? "decimal" : undefined, disabled });
  control.dataset.field = field;
  const made = row(label, control, { help });
  if (late) {
    control.addEventListener("change", () => change(control.value));
    if (!long) control.addEventListener("keydown", (event) => /** @type {KeyboardEvent} */ (event).key === "Enter" && change(control.value));
  } else {
    control.addEventListener("input", () => change(control.value));
    control.addEventListener("blur", close);
  }
  const show = (value, problem = "") => {
    if (!inHand(control)) control.value = value === undefined ? "" : String(value);
    made.problem(problem);
  };
  return { row: made.element, control, show, problem: made.problem, names: [field] };
}

/** A choice of a few words. @param {[string, string][]} options */
export function selectField(label, options, { change, help = "", field = "", disabled = false }) {
  const control = el("select", "input", { disabled }, ...options.map(([value, word]) => el("option", "", { value }, word)));
  control.dataset.field = field;
  const made = row(label, control, { help });
  control.addEventListener("change", () => change(control.value));
  const show = (value, problem = "") => {
    control.value = value;
    made.problem(problem);
  };
  return { row: made.element, control, show, names: [field] };
}
