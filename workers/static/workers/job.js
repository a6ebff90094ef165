// A job page's parts share one socket: head, log, curves. Pages include templates/workers/_job_scripts.html.
import { duration, t } from "../base/i18n.js";
import { toast } from "../base/toast.js";
import { Charts } from "./charts.js";
import { watch } from "./live.js";
import { LogView } from "./log.js";

const job = document.querySelector("[data-job], [data-log], [data-charts]")?.dataset;
const number = job?.job || job?.log || job?.charts;
if (number) {
  const socket = watch(number);
  /** @type {Iterable<HTMLElement & {logView?: LogView}>} */
  const logs = document.querySelectorAll("[data-log]");
  for (const root of logs) root.logView = new LogView(root, socket);
  /** @type {Iterable<HTMLElement & {charts?: Charts}>} */
  const charts = document.querySelectorAll("[data-charts]");
  for (const root of charts) root.charts = new Charts(root, socket);
  let greeted = false;
  socket.addEventListener("hello", () => {
    if (greeted) moved(); // back after a break: something may have happened meanwhile
    greeted = true;
  });
  socket.addEventListener("state", ({ detail }) => {
    if (detail.header) moved();
    else showProgress(detail.job);
  });
}

document.querySelector(".tabs [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" }); // on a narrow screen

/** Let the parts that are drawn by the server fetch themselves again. */
function moved() {
  document.body.dispatchEvent(new CustomEvent("job-moved"));
}

// what a program says it is doing
const PHASES = {
  packing: () => t("Packing the images"),
  learning: () => t("Learning"),
  scoring: () => t("Scoring"),
  exporting: () => t("Exporting the model"),
};

function showProgress({ progress, eta_s: left, phase, state }) {
  const box = document.querySelector("[data-job-progress]");
  if (!box || progress === null || state === "queued") return;
  box.hidden = false;
  box.querySelector("progress").value = progress;
  box.querySelector("[data-job-percent]").textContent = `${Math.round(progress * 100)} %`;
  box.querySelector("[data-job-phase]").textContent = PHASES[phase]?.() ?? "";
  box.querySelector("[data-job-eta]").textContent = left === null ? "" : t("%(span)s left", { span: duration(left) });
}

// a button that is shut says why instead of acting
document.addEventListener(
  "click",
  (event) => {
    const shut = /** @type {Element} */ (event.target).closest?.("[data-shut]");
    if (!shut) return;
    event.preventDefault();
    event.stopPropagation();
    toast(shut.title);
  },
  true,
);
