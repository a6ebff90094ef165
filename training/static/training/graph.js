// A program's graph: the boxes of one scope at a time, opened by click or Enter, with the way back above.
import { t, tn } from "../base/i18n.js";
import { opens, rows, within } from "./shapes.js";

const SVG = "http://www.w3.org/2000/svg";
const BOX = { width: 168, height: 44, gapX: 20, gapY: 40 };
const MAX_BOXES = 150;
let drawn = 0;

/** @param {string} name @param {Record<string, string | number>} [attributes] @param {string} [text] */
export function svg(name, attributes = {}, text = "") {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
  if (text) made.textContent = text;
  return made;
}

/**
 * @param {HTMLElement} into
 * @param {import("./shapes.js").Node[]} nodes
 * @param {string} what  whose graph it is
 */
export function drawGraph(into, nodes, what) {
  let scope = alone(nodes, "");
  const path = Object.assign(document.createElement("div"), { className: "graph-path" });
  path.setAttribute("role", "group");
  path.setAttribute("aria-label", t("Scope of the graph"));
  const place = document.createElement("div");
  place.className = "visual-body";
  place.tabIndex = 0;
  place.setAttribute("role", "group");
  place.setAttribute("aria-label", what);
  const said = Object.assign(document.createElement("p"), { className: "small muted" });
  said.setAttribute("role", "status");
  into.replaceChildren(path, place, said);

  /** @param {string} next @param {boolean} [focus] */
  const go = (next, focus = true) => {
    scope = next;
    const parts = scope ? scope.split("/") : [];
    const steps = ["", ...parts.map((_, i) => parts.slice(0, i + 1).join("/"))];
    path.replaceChildren(
      ...steps.map((step, i) => {
        const button = Object.assign(document.createElement("button"), { type: "button", className: "btn btn-small btn-quiet" });
        button.textContent = i ? parts[i - 1] : t("Whole graph");
        if (step === scope) button.setAttribute("aria-current", "true");
        button.addEventListener("click", () => go(step));
        return button;
      }),
    );
    const boxes = within(nodes, scope);
    place.replaceChildren(picture(boxes.slice(0, MAX_BOXES), go, what, said));
    said.textContent = boxes.length > MAX_BOXES ? t("%(shown)s of %(all)s boxes are drawn.", { shown: MAX_BOXES, all: boxes.length }) : tn("%(count)s box", "%(count)s boxes", boxes.length);
    if (focus) /** @type {HTMLElement | SVGElement | null} */ (place.querySelector("[tabindex='0']"))?.focus();
  };
  go(scope, false);
}

/** Go down as long as there is only one scope to open. @param {import("./shapes.js").Node[]} nodes @param {string} scope @returns {string} */
function alone(nodes, scope) {
  const boxes = within(nodes, scope);
  return boxes.length === 1 && opens(boxes[0]) ? alone(nodes, boxes[0].name) : scope;
}

/**
 * @param {import("./shapes.js").Box[]} boxes
 * @param {(scope: string) => void} go
 * @param {string} what
 * @param {HTMLElement} said
 */
function picture(boxes, go, what, said) {
  const lines = rows(boxes);
  const most = Math.max(1, ...lines.map((row) => row.length));
  const width = most * (BOX.width + BOX.gapX) + BOX.gapX;
  const height = lines.length * (BOX.height + BOX.gapY) + BOX.gapY;
  const whole = svg("svg", { class: "visual-svg", viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": what });
  whole.style.width = `${width}px`;
  drawn += 1;
  const tip = svg("marker", { id: `graph-tip-${drawn}`, viewBox: "0 0 6 6", refX: 6, refY: 3, markerWidth: 6, markerHeight: 6, orient: "auto" });
  tip.append(svg("path", { d: "M0 0 6 3 0 6z", class: "graph-tip" }));
  whole.append(tip);
  /** @type {Map<string, {x: number, y: number}>} */
  const at = new Map();
  lines.forEach((row, y) => {
    const left = (width - row.length * (BOX.width + BOX.gapX) + BOX.gapX) / 2;
    row.forEach((box, x) => {
      at.set(box.name, { x: left + x * (BOX.width + BOX.gapX), y: BOX.gapY + y * (BOX.height + BOX.gapY) });
    });
  });
  for (const box of boxes) {
    const to = at.get(box.name);
    for (const input of box.inputs) {
      const from = at.get(input);
      if (!from || !to) continue;
      const [x1, y1, x2, y2] = [from.x + BOX.width / 2, from.y + BOX.height, to.x + BOX.width / 2, to.y];
      whole.append(svg("path", { class: "graph-edge", d: `M${x1} ${y1}C${x1} ${y1 + 24} ${x2} ${y2 - 24} ${x2} ${y2}`, "marker-end": `url(#graph-tip-${drawn})` }));
    }
  }
  for (const box of boxes) {
    const { x, y } = /** @type {{x: number, y: number}} */ (at.get(box.name));
    const scope = opens(box);
    const inputs = [...box.inputs].map((name) => name.split("/").pop()).join(", ");
    const words = [box.label, scope ? tn("%(count)s node", "%(count)s nodes", box.count) : box.op];
    const about = [...words, inputs && t("receives %(names)s", { names: inputs })].filter(Boolean).join(" · ");
    const group = svg("g", { class: `graph-box${scope ? " is-scope" : ""}`, tabindex: 0, role: scope ? "button" : "img", "aria-label": about });
    group.append(svg("rect", { x, y, width: BOX.width, height: BOX.height, rx: scope ? 10 : 4 }));
    group.append(svg("title", {}, about));
    group.append(svg("text", { x: x + 10, y: y + 19 }, short(box.label, 23)));
    group.append(svg("text", { x: x + 10, y: y + 35, class: "sub" }, short(words[1], 28)));
    const tell = () => {
      said.textContent = about;
    };
    group.addEventListener("focus", tell);
    group.addEventListener("pointerenter", tell);
    if (scope) {
      group.addEventListener("click", () => go(box.name));
      group.addEventListener("keydown", (event) => {
        if (event instanceof KeyboardEvent && (event.key === "Enter" || event.key === " ")) {
          event.preventDefault();
          go(box.name);
        }
      });
    }
    whole.append(group);
  }
  return whole;
}

/** @param {string} text @param {number} most */
const short = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);
