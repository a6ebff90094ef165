// A job page's parts share one socket: head, log, curves. Pages include templates/workers/_job_scripts.html.
import { duration, grouped, t } from "../base/i18n.js";
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

// names of phases, as JobPhase in workers/core/states.py has them
const PHASES = {
  loading: () => t("Loading the model"),
  packing: () => t("Preparing data"),
  masks: () => t("Preparing masks"),
  learning: () => t("Training"),
  converting: () => t("Converting"),
  calibrating: () => t("Calibrating"),
  searching: () => t("Finding sensitive layers"),
  scoring: () => t("Evaluating"),
  altered: () => t("Evaluating altered images"),
  computing: () => t("Computing metrics"),
  predicting: () => t("Predicting"),
  measuring: () => t("Measuring speed"),
  exporting: () => t("Exporting the model"),
};

/** Phases before the main work, as in workers/core/states.py: their share says nothing about how far a job is. */
const PREPARATION = ["loading", "packing", "masks"];

function showProgress({ progress, eta_s: left, phase, phase_times: times, state, ...counter }) {
  const box = document.querySelector("[data-job-progress]");
  if (!box || (progress === null && !phase) || state === "queued") return;
  box.hidden = false;
  const bar = box.querySelector("progress");
  const isPreparing = PREPARATION.includes(phase);
  if (progress === null || isPreparing) bar.removeAttribute("value"); // before the first step: no percentage
  else bar.value = progress;
  box.querySelector("[data-job-percent]").textContent = progress === null || isPreparing ? "" : `${Math.round(progress * 100)} %`;
  box.querySelector("[data-job-count]").textContent = counter.phase_total
    ? `${grouped(counter.phase_done)} / ${grouped(counter.phase_total)}`
    : "";
  box.querySelector("[data-job-phase]").textContent = PHASES[phase]?.() ?? "";
  box.querySelector("[data-job-eta]").textContent = left === null || isPreparing ? "" : remaining(left);
  const known = Object.keys(PHASES).filter((name) => times[name]);
  const list = /** @type {HTMLElement | null} */ (document.querySelector("[data-job-times]"));
  if (!list || !known.length) return;
  list.hidden = false;
  list.querySelector("dd").textContent = known.map((name) => timeOf(name, times[name])).join(" · ");
}

/** @param {number} left_s */
const remaining = (left_s) => t("%(span)s left", { span: duration(left_s) });

/** "Training 2 min (1 min left)". @param {string} name @param {{spent_s?: number, left_s?: number}} time */
function timeOf(name, { spent_s: spent = 0, left_s: left }) {
  return `${PHASES[name]()} ${duration(spent)}${left ? ` (${remaining(left)})` : ""}`;
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
