// Drawings of a study as SVG: dots against two axes, and all parameters beside each other.
import { t } from "../base/i18n.js";
import { axisOf, axisOfValues, completed, isInside, placeOf, shades, ticksOf } from "./figures.js";

const NS = "http://www.w3.org/2000/svg";

/** @param {string} name @param {Record<string, string | number>} facts @param {string} [text] */
function element(name, facts, text) {
  const made = document.createElementNS(NS, name);
  for (const [key, value] of Object.entries(facts)) made.setAttribute(key, String(value));
  if (text !== undefined) made.textContent = text;
  return made;
}

/** @param {string} label @param {number} width @param {number} height */
const canvas = (label, width, height) => element("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label, class: "study-svg" });

/**
 * Shares of a whole as bars, in the order they come in.
 * @param {[string, number][]} shares  0 to 1 by name
 */
export function bars(shares) {
  const rows = shares.map(([name, share]) => {
    const percent = (100 * share).toFixed(1);
    const bar = Object.assign(document.createElement("span"), { className: "study-bar" });
    bar.style.inlineSize = `${percent}%`;
    const track = Object.assign(document.createElement("span"), { className: "study-track" });
    track.append(bar);
    const row = document.createElement("li");
    row.append(Object.assign(document.createElement("span"), { className: "mono small", textContent: name }), track, Object.assign(document.createElement("span"), { className: "num small", textContent: `${percent} %` }));
    return row;
  });
  const list = Object.assign(document.createElement("ul"), { className: "plain study-bars" });
  list.append(...rows);
  return list;
}

const SIZE = { width: 320, height: 220, left: 52, right: 12, top: 10, bottom: 34 };

/** What a trial is called. @param {import("./figures.js").Trial} trial */
const named = (trial) => trial.name ?? t("Trial %(number)s", { number: trial.number });

/**
 * Dots of trials, or of runs, against two axes; where one has an address a click leads there.
 * @param {{x: import("./figures.js").Axis, y: import("./figures.js").Axis, dots: {trial: import("./figures.js").Trial, x: unknown, y: unknown}[], line?: {x: unknown, y: unknown}[], label: string, word: (value: number) => string}} what
 */
export function scatter({ x, y, dots, line = [], label, word }) {
  const { width, height, left, right, top, bottom } = SIZE;
  const svg = canvas(label, width, height);
  /** @param {number} place */
  const across = (place) => left + place * (width - left - right);
  /** @param {number} place */
  const up = (place) => height - bottom - place * (height - top - bottom);
  for (const [place, text] of ticksOf(x, word)) {
    svg.append(element("line", { x1: across(place), x2: across(place), y1: top, y2: height - bottom, class: "study-grid" }));
    const anchor = place < 0.1 ? "start" : place > 0.9 ? "end" : "middle";
    svg.append(element("text", { x: across(place), y: height - bottom + 14, "text-anchor": anchor, class: "study-tick" }, text));
  }
  for (const [place, text] of ticksOf(y, word)) {
    svg.append(element("line", { x1: left, x2: width - right, y1: up(place), y2: up(place), class: "study-grid" }));
    svg.append(element("text", { x: left - 6, y: up(place) + 4, "text-anchor": "end", class: "study-tick" }, text));
  }
  svg.append(element("text", { x: across(0.5), y: height - 4, "text-anchor": "middle", class: "study-name" }, x.name));
  const way = line.map((one) => [placeOf(x, one.x), placeOf(y, one.y)]).filter(([a, b]) => a !== null && b !== null);
  if (way.length > 1) svg.append(element("path", { d: way.map(([a, b], i) => `${i ? "L" : "M"}${across(a ?? 0)} ${up(b ?? 0)}`).join(""), class: "study-front" }));
  for (const { trial, x: a, y: b } of dots) {
    const [h, v] = [placeOf(x, a), placeOf(y, b)];
    if (h === null || v === null) continue;
    const hue = trial.shade === undefined ? `study-${trial.state}` : `study-shade-${trial.shade}`;
    const dot = element("circle", { cx: across(h), cy: up(v), r: trial.best ? 5 : 3.5, class: `study-dot ${hue}${trial.best ? " study-top" : ""}` });
    dot.append(element("title", {}, `${named(trial)}: ${x.name} ${a}, ${y.name} ${b}`));
    const { href } = trial;
    if (href) {
      dot.classList.add("study-leads"); // for the mouse; by the keyboard the list leads there
      dot.addEventListener("click", () => location.assign(href));
    }
    svg.append(dot);
  }
  return svg;
}

/**
 * All parameters of each completed trial, or run, from axis to axis to its value. Drag along an axis to choose a part.
 * @param {HTMLElement} box
 * @param {import("./figures.js").Trial[]} trials
 * @param {import("./figures.js").Range[]} space
 * @param {import("./figures.js").Objective[]} goals
 * @param {Map<number, [number, number]>} chosen  kept over redraws
 * @param {(value: number) => string} word
 * @param {string} [label]
 */
export function parallel(box, trials, space, goals, chosen, word, label = t("All parameters of each trial")) {
  if (box.dataset.dragging) return; // what somebody holds stays in their hand
  const done = completed(trials);
  const axes = [...space.map(axisOf), ...goals.map((goal, place) => axisOfValues(goal, done, place))];
  const [gap, height, top, bottom] = [Math.max(120, Math.floor((box.clientWidth - 120) / Math.max(1, axes.length - 1))), 300, 34, 16];
  const width = gap * (axes.length - 1) + 140;
  const svg = canvas(label, width, height);
  svg.setAttribute("width", String(width));
  svg.setAttribute("height", String(height));
  /** @param {number} axis */
  const across = (axis) => 60 + axis * gap;
  /** @param {number} place */
  const up = (place) => height - bottom - place * (height - top - bottom);
  const shade = shades(done, goals[0]);
  const lines = done.map((trial) => {
    const given = [...space.map((range) => trial.params[range.name]), ...trial.values];
    const places = axes.map((axis, i) => placeOf(axis, given[i]));
    const d = places.map((place, i) => (place === null ? "" : `${i ? "L" : "M"}${across(i)} ${up(place)}`)).join("");
    const path = element("path", { d, class: `study-line study-shade-${shade.get(trial.number) ?? 0}` });
    path.append(element("title", {}, named(trial)));
    return { path, places, order: shade.get(trial.number) ?? 0 };
  });
  for (const { path } of [...lines].sort((a, b) => a.order - b.order)) svg.append(path);
  const marks = axes.map((axis, i) => {
    svg.append(element("line", { x1: across(i), x2: across(i), y1: top, y2: height - bottom, class: "study-axis" }));
    svg.append(element("text", { x: across(i), y: 14, "text-anchor": "middle", class: "study-name" }, axis.name));
    for (const [place, text] of ticksOf(axis, word)) svg.append(element("text", { x: across(i) + 6, y: up(place) + 4, class: "study-tick" }, text));
    const mark = element("rect", { x: across(i) - 6, width: 12, y: 0, height: 0, class: "study-chosen" });
    const grip = element("rect", { x: across(i) - 14, width: 28, y: top - 6, height: height - top - bottom + 12, class: "study-grip" });
    svg.append(mark, grip);
    return { mark, grip };
  });
  const show = () => {
    for (const { path, places } of lines) path.classList.toggle("study-off", !isInside(places, chosen));
    for (const [i, { mark }] of marks.entries()) {
      const part = chosen.get(i);
      mark.setAttribute("y", String(part ? up(part[1]) : 0));
      mark.setAttribute("height", String(part ? up(part[0]) - up(part[1]) : 0));
    }
  };
  for (const [i, { grip }] of marks.entries()) {
    /** @param {PointerEvent} event */
    const at = (event) => {
      const frame = svg.getBoundingClientRect();
      const y = ((event.clientY - frame.top) / frame.height) * height;
      return Math.min(1, Math.max(0, (height - bottom - y) / (height - top - bottom)));
    };
    /** @type {number | null} */
    let from = null;
    grip.addEventListener("pointerdown", (/** @type {PointerEvent} */ event) => {
      grip.setPointerCapture(event.pointerId);
      box.dataset.dragging = "yes";
      from = at(event);
    });
    grip.addEventListener("pointermove", (/** @type {PointerEvent} */ event) => {
      if (from === null) return;
      const to = at(event);
      chosen.set(i, [Math.min(from, to), Math.max(from, to)]);
      show();
    });
    grip.addEventListener("lostpointercapture", () => {
      delete box.dataset.dragging;
    });
    grip.addEventListener("pointerup", (/** @type {PointerEvent} */ event) => {
      if (from !== null && Math.abs(at(event) - from) < 0.02) chosen.delete(i); // a click chooses all of it again
      from = null;
      show();
    });
  }
  box.replaceChildren(svg);
  show();
}
