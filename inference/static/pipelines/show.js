// @ts-check
// The graph on the pages of a pipeline and of a run. Of a run that goes on, one answer of the server brings graph, state,
// questions and table to the same moment.
import { toast } from "../base/toast.js";
import { t } from "../base/i18n.js";
import { refreshTimes } from "../base/time.js";
import { View } from "./view.js";

const SLOW_S = 10; // while nobody looks at the page
const MISSES = 3; // answers that fail before it is said

/** @typedef {{state: string, tone: string, label: string, message: string, progress: number | null, items: Record<string, number>,
 *   phase: string, took: string, url: string}} ShownStep */
/** @typedef {{steps: Record<string, ShownStep>, refresh_s: number}} ShownRun  refresh_s 0: it is over */

/** What a step says under its name. @param {ShownStep} step */
function words(step) {
  return [step.phase, step.took].filter(Boolean).join(" · ");
}

/** @param {Record<string, ShownStep>} steps */
function states(steps) {
  return Object.fromEntries(Object.entries(steps).map(([key, step]) => [key, {
    state: step.tone, label: step.label, text: words(step), progress: step.progress, items: Object.keys(step.items).length ? step.items : null,
  }]));
}

/** @param {string} id @param {Document | DocumentFragment} [from] */
const given = (id, from = document) => JSON.parse(from.querySelector(`#${id}`)?.textContent ?? "null");

const root = /** @type {HTMLElement | null} */ (document.querySelector("[data-pipeline-view]"));
const graph = given("pipeline-graph");
if (root && graph) {
  const view = new View(root, graph.catalogue, graph.spec, graph.layout);
  view.addEventListener("step", (event) => {
    const row = document.getElementById(`step-${/** @type {CustomEvent} */ (event).detail.step}`);
    /** @type {HTMLElement | null | undefined} */ (row?.querySelector("[data-step-open]"))?.click();
  });
  /** @type {ShownRun | null} */
  const run = given("run-states");
  if (run) {
    view.setStates(states(run.steps));
    view.showActive();
    follow(view, run.refresh_s);
  }
}

/** Ask until the run is over. @param {View} view @param {number} first  seconds until the first answer */
async function follow(view, first) {
  let refresh_s = first;
  for (let missed = 0; refresh_s > 0; ) {
    const wait_s = document.hidden ? Math.max(SLOW_S, refresh_s) : refresh_s;
    await new Promise((done) => setTimeout(done, 1000 * wait_s));
    if (document.querySelector("dialog[open]")) continue; // it is about what is shown
    try {
      const answer = await fetch(location.href, { headers: { "HX-Request": "true", "HX-Target": "run-live" }, credentials: "same-origin" });
      if (answer.redirected) return location.reload(); // signed out meanwhile
      if (!answer.ok) throw new Error(answer.statusText);
      refresh_s = show(view, document.createRange().createContextualFragment(await answer.text()));
      missed = 0;
    } catch {
      if (++missed === MISSES) toast(t("The platform does not respond. Check your connection and try again."), "fail");
    }
  }
  return undefined;
}

/** Show an answer, all of it at once; how long until the next in seconds. @param {View} view @param {DocumentFragment} fresh */
function show(view, fresh) {
  /** @type {ShownRun} */
  const run = given("run-states", fresh);
  view.setStates(states(run.steps));
  for (const id of ["run-state", "run-asked", "run-step-now", "run-steps"]) {
    const [old, now] = [document.getElementById(id), fresh.querySelector(`#${id}`)];
    if (!(old instanceof HTMLElement) || !(now instanceof HTMLElement)) continue;
    if (id === "run-asked" && old.dataset.asked === now.dataset.asked) continue; // somebody may be writing an answer
    if (id === "run-step-now" && old.dataset.step !== now.dataset.step) continue; // another was opened meanwhile
    const held = heldIn(old);
    old.replaceWith(now);
    /** @type {any} */ (globalThis).htmx?.process(now);
    refreshTimes(now);
    held(now);
  }
  document.dispatchEvent(new CustomEvent("runshown"));
  return run.refresh_s;
}

/** Remember what has the keyboard and how far tables are scrolled, to give both to the region that takes its place. @param {HTMLElement} region */
function heldIn(region) {
  const at = region.contains(document.activeElement) ? document.activeElement : null;
  const home = at?.closest("[id]");
  const place = home && at ? reached(home).indexOf(/** @type {HTMLElement} */ (at)) : -1;
  const lefts = [...region.querySelectorAll("table[id]")].map((table) => /** @type {const} */ ([table.id, table.parentElement?.scrollLeft ?? 0]));
  return (/** @type {HTMLElement} */ now) => {
    for (const [id, left] of lefts) document.getElementById(id)?.parentElement?.scrollTo({ left, behavior: "instant" });
    if (!home) return;
    const same = reached(document.getElementById(home.id) ?? now);
    (same[place] ?? same[0])?.focus({ preventScroll: true });
  };
}

/** What the keyboard reaches below an element. @param {Element} element */
function reached(element) {
  return [.../** @type {NodeListOf<HTMLElement>} */ (element.querySelectorAll("a, button, [tabindex='0']"))];
}
