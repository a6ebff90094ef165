// @ts-check
// The step of a run that somebody opened: its log is read while the panel is open, and no longer.
import { watch } from "../workers/live.js";
import { LogView } from "../workers/log.js";

const panel = document.getElementById("run-step");
/** @type {ReturnType<typeof watch> | null} */
let socket = null;
/** @type {LogView | null} */
let log = null;
let pressed = false; // somebody asked for another step

function leave() {
  log?.close();
  socket?.close();
  log = socket = null;
}

/** Read the log of the step that the panel shows now. @param {HTMLElement} region */
function enter(region) {
  leave();
  const root = /** @type {HTMLElement | null} */ (region.querySelector("[data-log]"));
  if (!root) return;
  socket = watch(root.dataset.log);
  log = new LogView(root, socket);
}

/** Let the table say which step is open. */
function mark() {
  const open = new URLSearchParams(location.search).get("step");
  for (const act of document.querySelectorAll("[data-step-open]")) {
    const isOpen = /** @type {HTMLElement} */ (act).dataset.stepOpen === open;
    act.setAttribute("aria-expanded", String(isOpen));
    act.closest("tr")?.classList.toggle("is-chosen", isOpen);
  }
}

/** An attempt has a job of its own: ask for the panel anew once another one runs. @param {HTMLElement} region */
function followAttempts(region) {
  const now = /** @type {HTMLElement | null} */ (region.querySelector("[data-step-job]"))?.dataset.stepJob;
  const shown = /** @type {HTMLElement | null} */ (region.querySelector("[data-log]"))?.dataset.log ?? "";
  if (now !== undefined && now !== shown) void htmx.ajax("GET", location.href, { target: "#run-step", swap: "innerHTML" });
}

if (panel) {
  enter(panel);
  mark();
  panel.addEventListener("htmx:afterSwap", (event) => {
    if (event.target !== panel) return;
    enter(panel);
    mark();
    if (!pressed) return; // it came by itself, and nobody's hands are moved
    pressed = false;
    panel.scrollIntoView({ block: "nearest" });
    /** @type {HTMLElement | null} */ (panel.querySelector("h2"))?.focus({ preventScroll: true });
  });
  document.addEventListener("click", (event) => {
    if (/** @type {Element} */ (event.target).closest("[data-step-open]")) pressed = true;
  });
  panel.addEventListener("click", (event) => {
    if (!(/** @type {Element} */ (event.target).closest("[data-step-close]"))) return;
    event.preventDefault();
    const key = new URLSearchParams(location.search).get("step") ?? "";
    leave();
    panel.replaceChildren();
    history.replaceState(history.state, "", location.pathname);
    mark();
    /** @type {HTMLElement | null} */ (document.querySelector(`[data-step-open="${CSS.escape(key)}"]`))?.focus();
  });
  document.addEventListener("runshown", () => {
    mark();
    followAttempts(panel);
  });
}
