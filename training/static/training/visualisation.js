// What runs show besides curves: a card for each series, filled when somebody looks at it.
import { api, explain } from "../base/api.js";
import { language, t, tn } from "../base/i18n.js";
import { drawDots } from "./dots.js";
import { drawGraph, svg } from "./graph.js";
import { bands, ridges } from "./shapes.js";

const root = /** @type {HTMLElement} */ (document.querySelector("[data-visualisation]"));
const view = root.dataset.visualisation ?? "";
const exact = new Intl.NumberFormat(language, { maximumSignificantDigits: 4 });
const SIZE = { width: 520, height: 240, top: 130 };
const MARGIN = { left: 8, right: 64, below: 22, above: 8 };
const MAX_RIDGES = 40;

/** @typedef {{id: number, step: number, facts: any, file_url: string | null}} Item */
/** @typedef {{run: number, of: string, name: string, steps: number, seen: number, stride: number, refused: number}} Series */

/** @type {Series[]} */
const all = JSON.parse(document.getElementById("visualised-series")?.textContent ?? "[]");
const several = new Set(all.map(({ run }) => run)).size > 1;

/** @param {string} name @param {string} [className] @param {string} [text] */
function make(name, className = "", text = "") {
  const made = document.createElement(name);
  made.className = className;
  made.textContent = text;
  return made;
}

/** All steps of a series that are kept. @param {Series} series @returns {Promise<Item[]>} */
async function items({ run, name }) {
  const query = new URLSearchParams({ kind: root.dataset.kind ?? "", name, limit: "200" });
  const found = await api.get(`/api/v1/jobs/${run}/media/?${query}`);
  return found.results.sort((a, b) => a.step - b.step);
}

/** What was not kept of a series. @param {Series} series */
function told({ seen, steps, stride, refused }) {
  const words = [];
  if (stride > 1) words.push(t("Every %(stride)sth of %(seen)s steps is stored.", { seen, stride }));
  else if (steps < seen) words.push(t("The latest of %(seen)s is stored.", { seen }));
  if (refused) words.push(tn("%(count)s was not stored: damaged, or too large.", "%(count)s were not stored: damaged, or too large.", refused));
  return words.join(" ");
}

/** A slider over steps; one step alone needs none. @param {Item[]} found @param {string} name @param {(item: Item) => void} show */
function slider(found, name, show) {
  const box = make("div", "visual-steps");
  const said = /** @type {HTMLOutputElement} */ (make("output", "num small"));
  /** @param {number} place */
  const go = (place) => {
    said.textContent = t("step %(step)s", { step: found[place].step });
    show(found[place]);
  };
  if (found.length > 1) {
    const input = Object.assign(document.createElement("input"), { type: "range", min: "0", max: String(found.length - 1) });
    input.value = input.max;
    input.setAttribute("aria-label", t("Step of %(name)s", { name }));
    input.addEventListener("input", () => {
      go(Number(input.value));
      input.setAttribute("aria-valuetext", said.textContent ?? "");
    });
    box.append(input);
  }
  box.append(said);
  go(found.length - 1);
  return box;
}

/** @type {Record<string, (body: HTMLElement, found: Item[], series: Series) => void>} */
const drawers = {
  images(body, found, { name }) {
    const image = document.createElement("img");
    image.alt = name;
    image.loading = "lazy";
    const place = make("div", "visual-body");
    place.append(image);
    const steps = slider(found, name, ({ facts, file_url: address, step }) => {
      image.src = address ?? "";
      image.width = facts.width;
      image.height = facts.height;
      image.classList.toggle("is-small", facts.width < 160);
      image.title = t("%(name)s at step %(step)s, %(width)s × %(height)s", { name, step, width: facts.width, height: facts.height });
    });
    body.append(place, steps);
  },
  figures(body, found, { name }) {
    const page = document.createElement("iframe");
    page.setAttribute("sandbox", "allow-scripts"); // the server's policy says the same: a page of somebody's program
    page.title = name;
    const place = make("div", "visual-body visual-figure");
    place.append(page);
    body.append(place, slider(found, name, ({ file_url: address }) => {
      page.src = address ?? "";
    }));
  },
  audio(body, found, { name }) {
    const player = Object.assign(document.createElement("audio"), { controls: true, preload: "metadata" });
    player.setAttribute("aria-label", name);
    body.append(player, slider(found, name, ({ file_url: address }) => {
      player.src = address ?? "";
    }));
  },
  videos(body, found, { name }) {
    const place = make("div", "visual-body");
    body.append(place, slider(found, name, ({ facts, file_url: address, step }) => {
      const label = t("%(name)s at step %(step)s", { name, step });
      if (facts.format === "gif") {
        place.replaceChildren(Object.assign(document.createElement("img"), { src: address ?? "", alt: label, loading: "lazy" }));
        return;
      }
      const player = Object.assign(document.createElement("video"), { src: address ?? "", controls: true, loop: true, muted: true, preload: "metadata" });
      player.setAttribute("aria-label", label);
      place.replaceChildren(player);
    }));
  },
  texts(body, found, { name }) {
    const text = document.createElement("pre");
    text.tabIndex = 0;
    text.setAttribute("aria-label", name);
    const place = make("div", "visual-body");
    place.append(text);
    body.append(place, slider(found, name, ({ facts }) => {
      text.textContent = facts.cut ? `${facts.text}…` : facts.text;
    }));
  },
  tables(body, found, { name }) {
    const place = make("div", "visual-body");
    place.tabIndex = 0;
    place.setAttribute("role", "group");
    place.setAttribute("aria-label", name);
    const said = make("p", "small muted");
    body.append(place, slider(found, name, async ({ facts, file_url: address }) => {
      try {
        const { columns, rows } = await api.get(address);
        place.replaceChildren(table(columns, rows, name));
        said.textContent = facts.shown < facts.rows ? t("%(shown)s of %(all)s rows", { shown: facts.shown, all: facts.rows }) : "";
      } catch (error) {
        explain(error);
      }
    }), said);
  },
  histograms(body, found, { name }) {
    const kept = spread(found, MAX_RIDGES);
    const { low, high, outlines } = ridges(kept, SIZE);
    const whole = frame(t("Histograms of %(name)s over %(count)s steps", { name, count: kept.length }));
    for (const { step, base, points } of outlines) {
      const ridge = svg("path", { class: "ridge", d: `M${points.map((point) => point.map((n) => n.toFixed(1)).join(" ")).join("L")}Z` });
      ridge.append(svg("title", {}, t("step %(step)s", { step })));
      whole.append(ridge);
      if (step === outlines[0].step || step === outlines[outlines.length - 1].step) whole.append(svg("text", { x: SIZE.width + 6, y: base }, exact.format(step)));
    }
    axis(whole, low, high);
    body.append(boxed(whole));
  },
  distributions(body, found, { name }) {
    const { low, high, first, last, areas, middle } = bands(found, SIZE);
    const whole = frame(t("Distribution of %(name)s over %(count)s steps", { name, count: found.length }));
    for (const y of [0, SIZE.height / 2, SIZE.height]) whole.append(svg("line", { class: "grid-line", x1: 0, x2: SIZE.width, y1: y, y2: y }));
    const path = (points) => points.map((point) => point.map((n) => n.toFixed(1)).join(" ")).join("L");
    for (const area of areas) whole.append(svg("path", { class: "band", d: `M${path(area)}Z` }));
    whole.append(svg("path", { class: "middle", d: `M${path(middle)}` }));
    whole.append(svg("text", { x: SIZE.width + 6, y: 10 }, exact.format(high)), svg("text", { x: SIZE.width + 6, y: SIZE.height }, exact.format(low)));
    axis(whole, first, last);
    body.append(boxed(whole), make("p", "small muted", t("Lines from the minimum to the maximum; darker where most values are.")));
  },
  async graph(body, found, { name }) {
    const { facts, file_url: address } = found[found.length - 1];
    const { nodes } = await api.get(address);
    const place = make("div", "stack stack-tight");
    body.append(place);
    drawGraph(place, nodes, t("Graph %(name)s", { name }));
    if (facts.shown < facts.nodes) body.append(make("p", "small muted", t("%(shown)s of %(all)s nodes are shown.", { shown: facts.shown, all: facts.nodes })));
  },
  embeddings(body, found, { name }) {
    const place = make("div", "stack stack-tight");
    body.append(place, slider(found, name, async ({ facts, file_url: address, step }) => {
      try {
        drawDots(place, await api.get(address), facts, t("%(name)s at step %(step)s", { name, step }));
      } catch (error) {
        explain(error);
      }
    }));
  },
};

/** At most so many, evenly, with the first and the last. @template T @param {T[]} list @param {number} most @returns {T[]} */
function spread(list, most) {
  if (list.length <= most) return list;
  return Array.from({ length: most }, (_, i) => list[Math.round((i * (list.length - 1)) / (most - 1))]);
}

/** @param {string} label */
function frame(label) {
  const whole = svg("g");
  whole.setAttribute("data-label", label);
  return whole;
}

/** @param {Element} whole */
function boxed(whole) {
  const size = `${-MARGIN.left} ${-MARGIN.above} ${SIZE.width + MARGIN.left + MARGIN.right} ${SIZE.height + MARGIN.above + MARGIN.below}`;
  const made = svg("svg", { class: "visual-svg", viewBox: size, role: "img", "aria-label": whole.getAttribute("data-label") ?? "" });
  made.append(whole);
  return made;
}

/** @param {Element} whole @param {number} low @param {number} high */
function axis(whole, low, high) {
  const y = SIZE.height + 16;
  whole.append(svg("line", { class: "grid-line", x1: 0, x2: SIZE.width, y1: SIZE.height, y2: SIZE.height }));
  whole.append(svg("text", { x: 0, y }, exact.format(low)), svg("text", { x: SIZE.width / 2, y, "text-anchor": "middle" }, exact.format((low + high) / 2)));
  whole.append(svg("text", { x: SIZE.width, y, "text-anchor": "end" }, exact.format(high)));
}

/** @param {string[]} columns @param {any[][]} rows @param {string} name */
function table(columns, rows, name) {
  const made = make("table", "table");
  made.append(make("caption", "sr-only", name));
  const head = document.createElement("thead");
  const line = document.createElement("tr");
  for (const column of columns) {
    const cell = make("th", "", column);
    cell.setAttribute("scope", "col");
    line.append(cell);
  }
  head.append(line);
  const body = document.createElement("tbody");
  for (const row of rows) {
    const each = document.createElement("tr");
    for (const value of row) each.append(make("td", typeof value === "number" ? "num" : "", value === null ? "–" : String(value)));
    body.append(each);
  }
  made.append(head, body);
  return made;
}

/** @type {WeakMap<Element, Series>} */
const of = new WeakMap();

/** @param {Element} card */
async function fill(card) {
  const series = of.get(card);
  if (!series) return;
  of.delete(card);
  const body = /** @type {HTMLElement} */ (card.querySelector("[data-body]"));
  try {
    const found = await items(series);
    if (found.length) await drawers[view](body, found, series);
    body.removeAttribute("aria-busy");
  } catch (error) {
    explain(error);
  }
}

// who is not looked at asks for nothing
const eyes = new IntersectionObserver((entries) => {
  for (const { isIntersecting, target } of entries) if (isIntersecting) fill(target);
}, { rootMargin: "300px" });
const cards = /** @type {HTMLElement} */ (root.querySelector("[data-cards]"));
for (const series of all) {
  const card = make("section", "card visual-card");
  const head = document.createElement("header");
  head.append(make("h2", "", series.name));
  if (several) head.append(make("span", "small muted cut", series.of));
  const body = make("div", "stack stack-tight");
  body.dataset.body = "";
  body.setAttribute("aria-busy", "true");
  card.append(head, body);
  const words = told(series);
  if (words) card.append(make("p", "small muted", words));
  of.set(card, series);
  cards.append(card);
  eyes.observe(card);
}
