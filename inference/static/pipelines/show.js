// @ts-check
// The graph on the pages of a pipeline and of a run; of a run that goes on, with its states as they change.
import { api } from "../base/api.js";
import { View } from "./view.js";

const EVERY_MS = 2000;
const SLOW_MS = 10000; // while nobody looks at the page

/** @typedef {{state: string, tone: string, label: string, message: string, progress: number | null, items: Record<string, number>,
 *   elapsed_s: number | null, url: string}} ShownStep */

/** What a step says under its name. @param {ShownStep} step */
function words(step) {
  return step.elapsed_s === null ? "" : `${Math.round(step.elapsed_s)} s`;
}

/** @param {Record<string, ShownStep>} steps */
function states(steps) {
  return Object.fromEntries(Object.entries(steps).map(([key, step]) => [key, {
    state: step.tone, label: step.label, text: words(step), progress: step.progress, items: Object.keys(step.items).length ? step.items : null,
  }]));
}

const root = /** @type {HTMLElement | null} */ (document.querySelector("[data-pipeline-view]"));
const given = JSON.parse(document.getElementById("pipeline-graph")?.textContent ?? "null");
if (root && given) {
  const view = new View(root, given.catalogue, given.spec, given.layout);
  view.addEventListener("step", (event) => {
    const row = document.getElementById(`step-${/** @type {CustomEvent} */ (event).detail.step}`);
    /** @type {HTMLElement | null | undefined} */ (row?.querySelector("[data-step-open]"))?.click();
  });
  if (given.steps) view.setStates(states(given.steps));
  if (given.url && given.live) follow(view, given.url);
}

/** Ask for the states until the run is over. @param {View} view @param {string} url */
async function follow(view, url) {
  for (;;) {
    await new Promise((done) => setTimeout(done, document.hidden ? SLOW_MS : EVERY_MS));
    try {
      const run = await api.get(url);
      view.setStates(states(run.steps));
      if (run.ended) return;
    } catch { /* the next look may go better */ }
  }
}
