// Vectors as points of a plane, coloured by their labels.
import { t } from "../base/i18n.js";

const SHADES = 8;
const NEAR = 12; // pixels around the pointer

/**
 * @param {HTMLElement} into
 * @param {{points: [number, number][], labels: string[]}} found
 * @param {{vectors: number, shown: number, width: number, shares: number[]}} facts
 * @param {string} what
 */
export function drawDots(into, { points, labels }, facts, what) {
  const canvas = Object.assign(document.createElement("canvas"), { className: "visual-dots" });
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", what);
  const said = Object.assign(document.createElement("p"), { className: "small muted" });
  const percent = new Intl.NumberFormat(document.documentElement.lang || "en", { style: "percent", maximumFractionDigits: 1 });
  const about = t("%(shown)s of %(all)s vectors with %(width)s dimensions; the two components explain %(first)s and %(second)s of the variance.", {
    shown: facts.shown, all: facts.vectors, width: facts.width, first: percent.format(facts.shares[0]), second: percent.format(facts.shares[1]),
  });
  said.textContent = about;
  const kinds = [...new Set(labels)];
  const legend = Object.assign(document.createElement("ul"), { className: "plain visual-legend small" });
  const colour = (number) => getComputedStyle(document.documentElement).getPropertyValue(`--chart-${(number % SHADES) + 1}`).trim();
  const few = kinds.length > 1 && kinds.length <= 40;
  into.replaceChildren(canvas, said, ...(few ? [legend] : []));

  /** @type {[number, number][]} */
  let places = [];
  const draw = () => {
    const wide = canvas.clientWidth;
    const high = canvas.clientHeight;
    const scale = window.devicePixelRatio || 1;
    canvas.width = wide * scale;
    canvas.height = high * scale;
    const pen = canvas.getContext("2d");
    if (!pen || !wide) return;
    pen.scale(scale, scale);
    const xs = points.map((point) => point[0]);
    const ys = points.map((point) => point[1]);
    const [left, right, low, top] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
    places = points.map(([x, y]) => [12 + ((x - left) / (right - left || 1)) * (wide - 24), high - 12 - ((y - low) / (top - low || 1)) * (high - 24)]);
    pen.globalAlpha = 0.75;
    const number = new Map(kinds.map((kind, i) => [kind, i]));
    places.forEach(([x, y], i) => {
      pen.fillStyle = colour(few ? number.get(labels[i]) ?? 0 : 0);
      pen.beginPath();
      pen.arc(x, y, 3, 0, 7);
      pen.fill();
    });
    legend.replaceChildren(
      ...kinds.slice(0, 40).map((kind, i) => {
        const item = document.createElement("li");
        const dot = document.createElement("i");
        dot.style.background = colour(i);
        item.append(dot, kind);
        return item;
      }),
    );
  };
  canvas.addEventListener("pointermove", (event) => {
    let [best, nearest] = [-1, NEAR * NEAR];
    places.forEach(([x, y], i) => {
      const far = (x - event.offsetX) ** 2 + (y - event.offsetY) ** 2;
      if (far < nearest) [best, nearest] = [i, far];
    });
    said.textContent = best >= 0 ? t("Vector %(number)s: %(label)s", { number: best + 1, label: labels[best] ?? "–" }) : about;
  });
  canvas.addEventListener("pointerleave", () => {
    said.textContent = about;
  });
  new ResizeObserver(draw).observe(canvas);
  new MutationObserver(draw).observe(document.documentElement, { attributeFilter: ["data-theme"] });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  draw();
}
