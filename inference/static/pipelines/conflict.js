// Two states of one draft: what differs, step by step, and which of them shall stay.
import { t } from "../base/i18n.js";
import { dialog, el } from "./dom.js";
import { differences } from "./differences.js";

const MOST = 100;

/**
 * @param {import("./spec.js").Spec} mine
 * @param {import("./spec.js").Spec} theirs
 * @param {import("./catalogue.js").Catalogue} catalogue
 * @returns {Promise<"mine" | "theirs" | "">}
 */
export function settle(mine, theirs, catalogue) {
  const found = differences(mine, theirs);
  const kindOf = (step) => catalogue.kind((mine.steps?.[step] ?? theirs.steps?.[step])?.kind ?? "").label;
  const items = found.slice(0, MOST).map(({ step, how, parts }) => el("li", "pl-difference", {},
    el("p", "", {}, el("strong", "", {}, step || t("Parameters")), ` ${step ? kindOf(step) : ""} · ${worded(how)}`),
    ...(parts.length ? [partTable(parts)] : [])));
  const text = el("p", "", {}, t("This draft was changed elsewhere, in another tab or by a program, after this page loaded it. Both versions are available; Undo restores the discarded one until you leave the page."));
  const list = el("details", "", {}, el("summary", "", {}, t("View differences")), found.length ? el("ul", "plain stack stack-tight pl-differences", {}, ...items) : el("p", "muted small", {}, t("Only the positions of steps differ.")));
  const choice = (value, word, className) => el("button", className, { value }, word);
  const box = dialog(t("Changed elsewhere"), [text, list], [choice("mine", t("Keep mine"), "btn btn-primary"), choice("theirs", t("Use theirs"), "btn"), choice("", t("Decide later"), "btn btn-quiet")]);
  box.showModal();
  return new Promise((resolve) => {
    box.addEventListener("close", () => resolve(/** @type {"mine" | "theirs" | ""} */ (box.returnValue)));
  });
}

const worded = (how) => ({ mine: t("only here"), theirs: t("only elsewhere"), changed: t("changed") })[how];

function partTable(parts) {
  const cell = (value) => el("td", "mono wrap-any", {}, value === undefined ? "–" : typeof value === "string" ? value : JSON.stringify(value));
  const head = el("tr", "", {}, el("th", "", { scope: "col" }, t("Rank")), el("th", "", { scope: "col" }, t("Here")), el("th", "", { scope: "col" }, t("Elsewhere")));
  return el("table", "table pl-parts", {}, el("thead", "", {}, head), el("tbody", "", {}, ...parts.map(({ path, mine, theirs }) => el("tr", "", {}, el("th", "mono", { scope: "row" }, path), cell(mine), cell(theirs)))));
}
