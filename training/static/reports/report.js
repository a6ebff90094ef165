// One report: its curves as charts that respond to the pointer, and printing.
import { api } from "../base/api.js";
import { DASHES } from "../base/chart_data.js";
import { duration, t } from "../base/i18n.js";
import { whenNear } from "../base/plots.js";
import { grouped } from "../training/comparison.js";

const HUES = 8; // of the drawings, which are printed

/** Draw the curves of a panel in place of their drawing, which stays for paper. @param {HTMLElement} box */
async function draw(box) {
  const { lines, grouped: isGrouped, less, axis, log, smoothing } = JSON.parse(box.dataset.live ?? "{}");
  const [[answer], { Chart }] = await Promise.all([api.get(String(box.dataset.liveUrl)), import("../base/chart.js")]);
  const { key } = answer;
  const legend = [...box.querySelectorAll(".report-legend > li")];
  const title = (box.querySelector(".rc-frame").getAttribute("aria-label") ?? key).trim();
  /** @type {number[][]} */
  const members = lines;
  const curves = isGrouped ? grouped(answer, members) : { x: answer.x, runs: members.map(([run]) => answer.runs[run]) };
  const x = axis === "time" ? { name: t("Run time"), word: duration } : { name: axis === "epoch" ? t("Epoch") : t("Step") };
  const chart = new Chart({ title, key: title === key ? "" : key, legend: false, sync: `report ${axis}`, x });
  box.append(chart.element);
  box.classList.add("is-live");
  const drawn = curves.runs.map(({ mean, low, high }, at) => ({
    name: legend[at].querySelector(".cut").textContent?.trim() ?? "",
    values: mean,
    low,
    high,
    better: less ? -1 : 1,
    color: `--chart-${(at % HUES) + 1}`,
    dash: DASHES[Math.floor(at / HUES) % DASHES.length],
  }));
  await chart.show(curves.x, drawn, { smooth: smoothing, byLog: log });
  for (const [at, row] of legend.entries()) {
    row.addEventListener("pointerenter", () => chart.highlight(at));
    row.addEventListener("pointerleave", () => chart.highlight(null));
  }
}

for (const box of document.querySelectorAll("[data-live]")) whenNear(box, () => draw(box).catch(() => undefined)); // the drawing stays

/** @type {HTMLLinkElement | null} */
const dark = document.querySelector("#dark-theme");
let worn = "";

document.querySelector("[data-print]")?.addEventListener("click", () => window.print());
window.addEventListener("beforeprint", () => {
  if (!dark) return;
  worn = dark.media;
  dark.media = "not all"; // paper is white
});
window.addEventListener("afterprint", () => {
  if (dark) dark.media = worn;
});
