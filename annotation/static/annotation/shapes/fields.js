// Parts of the form that draws by numbers.
import { t } from "../../base/i18n.js";
import { round2 } from "../geometry.js";

export const element = (tag, props = {}, ...children) => {
  const made = Object.assign(document.createElement(tag), props);
  made.append(...children);
  return made;
};

/** Points as text, one per line; an empty line starts another part. */
export function pointFields(rings) {
  const points = element("textarea", { className: "input mono", rows: 8, name: "points", spellcheck: false });
  points.value = rings ? rings.map(asLines).join("\n\n") : "";
  points.placeholder = "10, 10\n120, 10\n120, 80";
  const part = element("label", { className: "form-row" }, element("span", { textContent: t("Corners, one per line: x, y") }), points);
  return { part, inputs: [points], rings: () => ringsFrom(points.value) };
}

/** One number after another. `entries` are [name, text, value]. */
export function numberFields(entries) {
  const inputs = {};
  const rows = entries.map(([name, text, value]) => {
    inputs[name] = element("input", { className: "input", type: "number", name, value, step: "any", min: 0, required: true });
    return element("label", { className: "form-row" }, element("span", { textContent: text }), inputs[name]);
  });
  const number = (name) => (inputs[name].value.trim() === "" ? NaN : Number(inputs[name].value));
  return { part: element("div", { className: "grid cols-2" }, ...rows), inputs: Object.values(inputs), number };
}

const asLines = (ring) => {
  const lines = [];
  for (let i = 0; i < ring.length; i += 2) lines.push(`${ring[i]}, ${ring[i + 1]}`);
  return lines.join("\n");
};

function ringsFrom(text) {
  return text
    .trim()
    .split(/\n\s*\n/)
    .map((part) => part.trim().split(/[\s,;]+/).map(Number).map(round2));
}
