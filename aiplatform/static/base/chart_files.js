// Charts as files of the reader: PNG, SVG and CSV.
import { svgOf } from "./chart_svg.js";

/**
 * @param {uPlot} plot
 * @param {string} title
 * @param {string} name  of the file, without its ending
 * @param {{x: (value: number) => string, y: (value: number) => string}} words  of the marks at its axes
 */
export function saveSvg(plot, title, name, words) {
  const style = getComputedStyle(document.documentElement);
  /** @param {string} one */
  const colour = (one) => style.getPropertyValue(one).trim();
  const [xs, ...columns] = plot.data;
  /** @param {any} stroke @param {number} at */
  const paint = (stroke, at) => String(typeof stroke === "function" ? stroke(plot, at) : stroke);
  const lines = columns.flatMap((values, at) => {
    const { label, stroke, width, dash, show } = plot.series[at + 1];
    const painted = paint(stroke, at + 1);
    return show && painted !== "transparent" && painted !== "null" ? [{ label: String(label ?? ""), stroke: painted, width: width || 1.5, dash: dash ?? [], values }] : [];
  });
  const bands = (plot.bands ?? []).flatMap(({ series: [upper, lower], fill }, at) => (plot.series[upper]?.show ? [{ upper: columns[upper - 1], lower: columns[lower - 1], fill: paint(fill, at) }] : []));
  const { x, y } = plot.scales;
  const text = svgOf({ title, xs, x: [x.min, x.max], y: [y.min, y.max], byLog: y.distr === 3, lines, bands, words, ink: colour("--ink"), grid: colour("--chart-grid"), paper: colour("--surface") });
  save(new Blob([text], { type: "image/svg+xml" }), `${name.replace(/\W+/g, "-")}.svg`);
}

export function savePng(plot, title, name) {
  const canvas = document.createElement("canvas");
  const source = plot.ctx.canvas;
  const ratio = window.devicePixelRatio || 1;
  const style = getComputedStyle(document.documentElement);
  canvas.width = source.width;
  canvas.height = source.height + 28 * ratio;
  const pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  pen.fillStyle = style.getPropertyValue("--surface").trim();
  pen.fillRect(0, 0, canvas.width, canvas.height);
  pen.fillStyle = style.getPropertyValue("--ink").trim();
  pen.font = `${14 * ratio}px sans-serif`;
  pen.fillText(title, 8 * ratio, 19 * ratio);
  pen.drawImage(source, 0, 28 * ratio);
  canvas.toBlob((blob) => save(blob, `${name.replace(/\W+/g, "-")}.png`));
}

export function save(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
