// Linking by a list: every output of a step with what may take it, then every input with what may feed it.
import { t } from "../base/i18n.js";
import { sources, targets } from "./links.js";
import { pick } from "./picker.js";

const END = (link) => (link.out ? `${link.from}.${link.out}` : link.from);

/**
 * @param {import("./graph.js").Graph} graph
 * @param {string} id
 * @returns {Promise<import("./links.js").Link | null>}
 */
export function askLink(graph, id) {
  const kind = graph.catalogue.kind(graph.steps.get(id)?.kind ?? "");
  const onward = [...kind.outputs.map(({ name }) => name), ""].flatMap((out) => targets(graph, id, out));
  const back = [...kind.inputs.map(({ name }) => ({ name, sort: /** @type {const} */ ("data") })), { name: "when", sort: /** @type {const} */ ("when") }, { name: "each", sort: /** @type {const} */ ("each") }, { name: "after", sort: /** @type {const} */ ("after") }]
    .flatMap(({ name, sort }) => sources(graph, id, name, sort));
  const rank = ({ sort, to, into }) => (sort === "data" ? (graph.steps.get(to)?.from?.[into] ? 2 : 0) : sort === "after" ? 3 : 1);
  const label = (link) => (link.from === id ? `${link.out || t("end")} → ${link.to}.${link.into}` : `${link.into} ← ${END(link)}`);
  const choices = [...onward, ...back].sort((a, b) => rank(a) - rank(b)).map((link) => ({ value: link, label: label(link) }));
  return pick(t("Connect %(name)s", { name: id }), choices, { placeholder: t("Search steps and ports"), none: t("No compatible target.") });
}
