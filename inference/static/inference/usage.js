// Charts of the usage of an endpoint: requests and latency over time.
import { Chart } from "../base/chart.js";
import { momentWords, timeMarks } from "../base/i18n.js";

/** An axis that starts at 0. @param {number} _low @param {number} high @returns {[number, number]} */
const fromZero = (_low, high) => [0, Math.max(1, 1.1 * high)];

const box = /** @type {HTMLElement} */ (document.querySelector("[data-usage-charts]"));
for (const { title, unit, at, stepped, lines } of JSON.parse(document.querySelector("#usage-charts")?.textContent ?? "[]")) {
  const x = { name: box.dataset.usageCharts ?? "", isTime: true, marks: timeMarks, word: momentWords };
  const chart = new Chart({ title, unit, heading: "h2", sync: "usage", x, y: { range: fromZero } });
  box.append(chart.element);
  chart.show(at, lines.map((/** @type {any} */ line) => ({ ...line, stepped })));
}
