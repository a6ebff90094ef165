// A chart as SVG text, for papers and slides. Pure: no DOM.

const [LEFT, RIGHT, TOP, BOTTOM, ROW] = [64, 16, 34, 34, 18];

/**
 * @typedef {{label: string, stroke: string, width: number, dash: number[], values: (number | null)[]}} Line
 * @typedef {{upper: (number | null)[], lower: (number | null)[], fill: string}} Band
 */

/** @param {unknown} text */
const safe = (text) => String(text).replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`);
/** @param {number} value */
const short = (value) => String(Math.round(value * 100) / 100);

/**
 * Round numbers between two ends, about `count` of them; powers of ten where the scale is logarithmic.
 * @param {number} low @param {number} high @param {boolean} byLog
 */
export function marks(low, high, byLog, count = 6) {
  if (byLog) {
    const first = Math.ceil(Math.log10(low) - 1e-9);
    const powers = Array.from({ length: Math.max(0, Math.floor(Math.log10(high) + 1e-9) - first + 1) }, (_, at) => 10 ** (first + at));
    if (powers.length > 1) return powers;
  }
  const rough = (high - low) / count || 1;
  const size = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * size).find((one) => one >= rough) ?? rough;
  const found = [];
  for (let at = Math.ceil(low / step - 1e-9); at * step <= high + step * 1e-9; at += 1) found.push(Number((at * step).toPrecision(12)));
  return found;
}

/**
 * @param {{title: string, xs: number[], x: number[], y: number[], byLog: boolean, lines: Line[], bands: Band[], ink: string, grid: string, paper: string, words: {x: (value: number) => string, y: (value: number) => string}, width?: number, height?: number}} chart
 *   x, y: both ends of the axes.
 */
export function svgOf({ title, xs, x, y, byLog, lines, bands, ink, grid, paper, words, width = 960, height = 420 }) {
  const named = lines.filter(({ label }) => label); // a line without a name is a faint one behind another
  const whole = height + ROW * Math.ceil(named.length / 3);
  const scaled = byLog ? Math.log10 : (/** @type {number} */ value) => value;
  const [low, high] = [scaled(y[0]), scaled(y[1])];
  /** @param {number} value */
  const across = (value) => LEFT + ((value - x[0]) / (x[1] - x[0] || 1)) * (width - LEFT - RIGHT);
  /** @param {number} value */
  const up = (value) => height - BOTTOM - ((scaled(value) - low) / (high - low || 1)) * (height - TOP - BOTTOM);
  const there = (/** @type {number | null | undefined} */ value) => value !== null && value !== undefined && Number.isFinite(value) && (!byLog || value > 0);
  /** @param {(number | null)[]} values @returns {[number, number][]} */
  const spots = (values) => values.flatMap((value, at) => (there(value) && xs[at] >= x[0] && xs[at] <= x[1] ? [[across(xs[at]), up(Number(value))]] : []));
  /** @param {[number, number][]} way */
  const path = (way) => way.map(([a, b], at) => `${at ? "L" : "M"}${short(a)} ${short(b)}`).join("");
  const out = [`<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${whole}" viewBox="0 0 ${width} ${whole}" font-family="sans-serif" font-size="12" fill="${safe(ink)}">`, `<title>${safe(title)}</title>`, `<rect width="${width}" height="${whole}" fill="${safe(paper)}"/>`, `<text x="${LEFT}" y="20" font-size="15">${safe(title)}</text>`, `<clipPath id="inside"><rect x="${LEFT}" y="${TOP}" width="${width - LEFT - RIGHT}" height="${height - TOP - BOTTOM}"/></clipPath>`];
  for (const at of marks(x[0], x[1], false)) out.push(`<line x1="${short(across(at))}" x2="${short(across(at))}" y1="${TOP}" y2="${height - BOTTOM}" stroke="${safe(grid)}"/>`, `<text x="${short(across(at))}" y="${height - BOTTOM + 18}" text-anchor="middle">${safe(words.x(at))}</text>`);
  for (const at of marks(y[0], y[1], byLog)) out.push(`<line x1="${LEFT}" x2="${width - RIGHT}" y1="${short(up(at))}" y2="${short(up(at))}" stroke="${safe(grid)}"/>`, `<text x="${LEFT - 8}" y="${short(up(at) + 4)}" text-anchor="end">${safe(words.y(at))}</text>`);
  out.push(`<g clip-path="url(#inside)">`);
  for (const { upper, lower, fill } of bands) {
    const round = [...spots(upper), ...spots(lower).reverse()];
    if (round.length) out.push(`<path d="${path(round)}Z" fill="${safe(fill)}" stroke="none"/>`);
  }
  for (const { stroke, width: thick, dash, values } of lines) {
    const way = spots(values);
    if (way.length === 1) out.push(`<circle cx="${short(way[0][0])}" cy="${short(way[0][1])}" r="3" fill="${safe(stroke)}"/>`);
    else if (way.length) out.push(`<path d="${path(way)}" fill="none" stroke="${safe(stroke)}" stroke-width="${thick}"${dash.length ? ` stroke-dasharray="${dash.join(" ")}"` : ""}/>`);
  }
  out.push("</g>");
  for (const [place, { label, stroke, dash }] of named.entries()) {
    const [left, line] = [LEFT + ((place % 3) * (width - LEFT - RIGHT)) / 3, height + ROW * Math.floor(place / 3)];
    out.push(`<line x1="${short(left)}" x2="${short(left + 24)}" y1="${line}" y2="${line}" stroke="${safe(stroke)}" stroke-width="2"${dash.length ? ` stroke-dasharray="${dash.join(" ")}"` : ""}/>`, `<text x="${short(left + 30)}" y="${line + 4}">${safe(label)}</text>`);
  }
  return `${out.join("\n")}\n</svg>\n`;
}
