// Inputs of a step as choices of what may feed them. A list is filled when it gets the focus: with a thousand steps,
// filling all of them at once would take seconds.
import { t } from "../base/i18n.js";
import { button, el } from "./dom.js";
import { row } from "./fields.js";
import { linkKey, sources } from "./links.js";

const word = (link) => (link.out ? `${link.from}.${link.out}` : link.from);

/**
 * @param {import("./editor.js").Editor} editor
 * @param {string} id
 * @param {{label: string, into: string, sort: import("./links.js").Sort, many?: boolean, optional?: boolean, help?: string}} port
 * @returns {import("./fields.js").Field}
 */
export function linkField(editor, id, port) {
  return port.many ? manyField(editor, id, port) : oneField(editor, id, port);
}

const linksAt = (editor, id, { into, sort }) => editor.graph.linksTo(id).filter((link) => link.sort === sort && link.into === into);
const fieldName = ({ into, sort }) => (sort === "data" ? `from.${into}` : sort);

function oneField(editor, id, port) {
  const select = el("select", "input", { disabled: editor.readOnly });
  select.dataset.field = fieldName(port);
  const made = row(port.label, select, { help: port.help ?? "", required: port.sort === "data" && !port.optional });
  /** @type {import("./links.js").Link[]} */
  let offered = [];
  const show = (problem = "") => {
    const [now] = linksAt(editor, id, port);
    offered = now ? [now] : [];
    select.replaceChildren(el("option", "", { value: "" }, t("Nothing")), ...(now ? [el("option", "", { value: "0", selected: true }, word(now))] : []));
    made.problem(problem);
  };
  const fill = () => {
    const [now] = linksAt(editor, id, port);
    offered = sources(editor.graph, id, port.into, port.sort);
    const at = now ? offered.findIndex((link) => linkKey(link) === linkKey(now)) : -1;
    if (now && at < 0) offered.unshift(now);
    const chosen = now ? Math.max(0, at) : -1;
    select.replaceChildren(el("option", "", { value: "" }, t("Nothing")), ...offered.map((link, n) => el("option", "", { value: String(n), selected: n === chosen }, word(link))));
  };
  select.addEventListener("focus", fill);
  select.addEventListener("change", () => {
    const [now] = linksAt(editor, id, port);
    const link = select.value === "" ? null : offered[Number(select.value)];
    editor.rewire(now ?? null, link);
  });
  return { row: made.element, control: select, names: [fieldName(port), port.into], show: (_, problem) => (document.activeElement === select ? made.problem(problem ?? "") : show(problem)) };
}

function manyField(editor, id, port) {
  const list = el("ul", "plain pl-links");
  const select = el("select", "input", { disabled: editor.readOnly });
  select.dataset.field = fieldName(port);
  const made = row(port.label, select, { help: port.help ?? "", required: port.sort === "data" && !port.optional });
  select.before(list);
  /** @type {import("./links.js").Link[]} */
  let offered = [];
  const clear = () => select.replaceChildren(el("option", "", { value: "" }, t("Add connection")));
  select.addEventListener("focus", () => {
    const known = new Set(linksAt(editor, id, port).map(linkKey));
    offered = sources(editor.graph, id, port.into, port.sort).filter((link) => !known.has(linkKey(link)));
    select.replaceChildren(el("option", "", { value: "" }, t("Add connection")), ...offered.map((link, n) => el("option", "", { value: String(n) }, word(link))));
  });
  select.addEventListener("change", () => {
    if (select.value !== "") editor.connect(offered[Number(select.value)], null);
    select.value = "";
  });
  const show = (_, problem = "") => {
    const links = linksAt(editor, id, port);
    list.replaceChildren(...links.map((link) => {
      const remove = button({ icon: "close", label: t("Remove the connection from %(step)s", { step: word(link) }), className: "btn btn-quiet btn-small", act: () => {
        editor.disconnect(link);
        select.focus();
      } });
      remove.disabled = editor.readOnly;
      return el("li", "row", {}, el("span", "grow wrap-any", {}, word(link)), remove);
    }));
    if (document.activeElement !== select) clear();
    made.problem(problem);
  };
  clear();
  return { row: made.element, control: select, names: [fieldName(port), port.into], show };
}
