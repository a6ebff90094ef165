// The dialogs of the table of runs: columns, grouping, views, tags and sharing. Loaded when the first of them opens.
import { api, explain } from "../base/api.js";
import { made } from "./runcells.js";
import { short } from "./runtable.js";

/** @param {string} selector @returns {any} */
const one = (selector) => document.querySelector(selector);
/** The table as it was when a dialog was opened last. @type {any} */
let table;

/** Fill a dialog that opens. @param {string} id @param {any} now */
export function fill(id, now) {
  table = now;
  if (id === "runs-columns") fillColumns();
  if (id === "runs-group") fillGroups();
}

/** @param {string} id @param {(form: HTMLFormElement) => void} then */
function answered(id, then) {
  const dialog = one(`#${id}`);
  dialog.addEventListener("close", () => {
    if (dialog.returnValue === "yes") then(dialog.querySelector("form"));
    dialog.returnValue = "";
  });
}

/** @param {string} words */
const split = (words) => words.split(",").map((word) => word.trim()).filter(Boolean);
answered("runs-tags", async (form) => {
  const { add, drop } = Object.fromEntries(new FormData(form));
  await table.change([...table.chosen], { add_tags: split(String(add)), drop_tags: split(String(drop)) });
  form.reset();
});
answered("runs-share", (form) => table.change([...table.chosen], { visibility: new FormData(form).get("visibility") }));
answered("runs-view", async (form) => {
  const { asked, config, found } = table;
  const { name, visibility } = Object.fromEntries(new FormData(form));
  const body = { name, visibility, query: { ...asked, columns: asked.columns.length ? asked.columns : found.columns.map((column) => column.name) } };
  try {
    const kept = config.editable && name === config.name ? await api.put(`${config.views}${config.number}/`, body) : await api.post(config.views, body);
    location.assign(`${location.pathname}?view=${kept.id}`);
  } catch (error) {
    explain(error);
  }
});

/** A box for each column there could be. @param {HTMLElement} box @param {{name: string, label: string, runs?: number, differs?: boolean}[]} known @param {string[]} ticked */
function boxes(box, known, ticked) {
  box.replaceChildren(
    ...known.map(({ name, label, runs, differs = true }) => {
      const words = made("span", {}, label, ...(short(name) === label && !name.includes("(") ? [] : [" ", made("span", { className: "mono small muted", textContent: name })]), ...(runs === undefined ? [] : [" ", made("span", { className: "small muted", textContent: String(runs) })]));
      const tick = made("input", { type: "checkbox", value: name, checked: ticked.includes(name) });
      return made("label", { className: "check", data: { differs: String(differs), name } }, tick, words);
    }),
  );
}

const picker = one("#runs-columns");
function sift() {
  const words = picker.querySelector("[data-find]").value.toLowerCase();
  const differing = picker.querySelector("[data-differing]").checked;
  for (const label of picker.querySelectorAll("[data-known] label")) {
    label.hidden = !label.textContent.toLowerCase().includes(words) || (differing && label.dataset.differs === "false" && !label.querySelector("input").checked);
  }
}
picker.querySelector("[data-find]").addEventListener("input", sift);
picker.querySelector("[data-differing]").addEventListener("change", sift);

function fillColumns() {
  const { config, found } = table;
  const shown = found.columns.map((column) => column.name);
  const known = [...config.facts, ...found.known.flatMap((one) => (one.name.startsWith("best(") ? [one, { ...one, name: one.name.replace(/^best/, "last"), differs: shown.includes(one.name.replace(/^best/, "last")) }] : [one]))];
  const further = shown.filter((name) => !known.some((one) => one.name === name)).map((name) => ({ name, label: short(name) }));
  boxes(picker.querySelector("[data-known]"), [...further, ...known], shown);
  sift();
}
picker.querySelector("[data-usual]").addEventListener("click", () => {
  table.asked.columns = [];
  picker.close("");
  table.apply();
});

/** @param {HTMLElement} form */
const ticked = (form) => [.../** @type {NodeListOf<HTMLInputElement>} */ (form.querySelectorAll("input[value]:checked"))].map((box) => box.value).filter((value) => value !== "on");
answered("runs-columns", (form) => {
  const now = ticked(form.querySelector("[data-known]"));
  const shown = table.found.columns.map((column) => column.name);
  table.asked.columns = [...shown.filter((name) => now.includes(name)), ...now.filter((name) => !shown.includes(name))];
  table.apply();
});

function fillGroups() {
  const { asked, config, found } = table;
  const facts = config.facts.filter(({ name }) => !["created", "duration", "notes", "tags"].includes(name));
  boxes(one("[data-groups]"), [...facts, ...found.known.filter(({ name, differs }) => differs && !name.includes("("))], asked.group);
}
answered("runs-group", (form) => {
  table.asked.group = ticked(form).slice(0, 5);
  table.apply();
});
