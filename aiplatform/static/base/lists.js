// Lists follow their filters, tabs, heads and pager at once; the address keeps what they show.
//
//   <form data-filters="trainings">…   <div id="trainings" data-list>tabs, heads, rows, pager</div>
//
// A region may hold <… data-refresh-s="5">: it is fetched again every so often, but never under somebody's hands.
// Without this script the same form is sent by a button; tabs, heads and pager are plain links.
import { t } from "./i18n.js";
import { refreshTimes } from "./time.js";
import { toast } from "./toast.js";

const PAUSE_MS = 250; // after the last key
const HOW = new Set(["ordering", "size"]); // controls that say how a list is read, not which rows it has

/** The form that filters `region`. @returns {HTMLFormElement | null} */
const formOf = (region) => document.querySelector(`[data-filters="${region.id}"]`);

/** Filters of a form as an address, without what is not set. @param {HTMLFormElement} form */
function addressOf(form) {
  const query = new URLSearchParams();
  for (const [name, value] of new FormData(form)) {
    const usual = form.querySelector(`[name="${name}"]`)?.dataset.usual;
    if (String(value).trim() && value !== usual) query.append(name, String(value));
  }
  const words = query.toString();
  return form.action.split("?")[0] + (words ? `?${words}` : "");
}

/** @type {WeakMap<Element, AbortController>} */
const running = new WeakMap();

/** What finds the head or tab that has the focus in `region` again; "" where none has. */
function held(region) {
  const at = region.contains(document.activeElement) ? document.activeElement?.closest("[data-order], [data-tab]") : null;
  if (at?.dataset.order) return `[data-order="${at.dataset.order}"]`;
  return at?.dataset.tab ? `[data-tab="${at.dataset.tab}"]` : "";
}

/**
 * Fetch the content of `region` for `address`, once: a later call ends an earlier one. What had the focus in it gets it back.
 * `quiet` is a look that nobody asked for: nothing shows that it goes on.
 */
async function load(region, address, quiet = false) {
  running.get(region)?.abort();
  const stop = new AbortController();
  running.set(region, stop);
  if (!quiet) region.setAttribute("aria-busy", "true");
  try {
    const answer = await fetch(address, { headers: { "HX-Request": "true", "HX-Target": region.id }, credentials: "same-origin", signal: stop.signal });
    if (answer.redirected) return location.reload(); // signed out meanwhile
    if (!answer.ok) return refused(answer);
    const content = await answer.text();
    if (stop.signal.aborted) return undefined;
    const spot = held(region);
    region.innerHTML = content;
    window.htmx.process(region);
    refreshTimes(region);
    document.dispatchEvent(new CustomEvent("listshown"));
    if (spot) region.querySelector(spot)?.focus();
  } catch (error) {
    if (error.name !== "AbortError") toast(t("The platform does not respond. Check your connection and try again."), "fail");
  } finally {
    if (running.get(region) === stop) region.removeAttribute("aria-busy");
  }
  return undefined;
}

/** Read a list again after an action on its rows. @param {Element} region */
export const reload = (region) => load(region, location.href, true);

/** Say why a list could not be shown. @param {Response} answer */
function refused(answer) {
  const said = decodeURIComponent(answer.headers.get("X-Refusal") ?? "");
  const id = answer.headers.get("X-Request-Id") || "–";
  toast(said || t("The platform responded with status %(status)s. Request ID: %(id)s", { status: answer.status, id }), "fail");
}

/** Show `address` in the list and in the address bar. @param {boolean} typing  keeps the step "back" where it was */
function show(region, address, typing = false) {
  if (typing) history.replaceState({ list: true }, "", address);
  else history.pushState({ list: true }, "", address);
  mirror(region);
  load(region, address);
}

/** Let the form and what else follows the filters say what the address says. */
function mirror(region) {
  const form = formOf(region);
  const query = new URLSearchParams(location.search);
  for (const link of document.querySelectorAll("[data-follows-filters]")) {
    const [path] = (link.getAttribute("href") ?? "").split("?");
    const words = [location.search.slice(1), link.dataset.followsFilters].filter(Boolean).join("&");
    link.setAttribute("href", `${path}?${words}`);
  }
  if (!form) return;
  /** @type {NodeListOf<HTMLInputElement | HTMLSelectElement>} */
  const controls = form.querySelectorAll("input[name], select[name]");
  let set = false;
  for (const control of controls) {
    const value = query.get(control.name) ?? "";
    if (control instanceof HTMLInputElement && control.type === "checkbox") control.checked = value === control.value;
    else if (document.activeElement !== control) control.value = value || (control.dataset.usual ?? "");
    set ||= !HOW.has(control.name) && !("where" in control.dataset) && value !== "";
  }
  /** @type {HTMLInputElement | HTMLSelectElement | null} */
  let ordering = form.querySelector('[name="ordering"]');
  if (!ordering && query.get("ordering")) {
    ordering = Object.assign(document.createElement("input"), { type: "hidden", name: "ordering" });
    form.append(ordering);
  }
  if (ordering) ordering.value = query.get("ordering") ?? "";
  const off = form.querySelector("[data-filters-off]");
  if (off) off.hidden = !set;
}

let pause = 0;

/** @param {Event} event @param {number} wait */
function changed(event, wait) {
  /** @type {HTMLFormElement | null | undefined} */
  const form = /** @type {Element} */ (event.target).closest?.("form[data-filters]");
  const region = form && document.getElementById(form.dataset.filters ?? "");
  if (!form || !region) return false;
  clearTimeout(pause);
  const act = () => {
    const address = addressOf(form);
    if (address !== location.href) show(region, address, wait > 0);
  };
  if (wait) pause = setTimeout(act, wait);
  else act();
  return true;
}

document.addEventListener("input", (event) => {
  if (/** @type {Element} */ (event.target).matches?.("input[type=search]")) changed(event, PAUSE_MS);
});
document.addEventListener("change", (event) => changed(event, 0));
document.addEventListener("submit", (event) => {
  if (changed(event, 0)) event.preventDefault();
});

document.addEventListener("click", (event) => {
  const link = /** @type {Element} */ (event.target).closest?.("a[data-order], a[data-tab], .pager a, a[data-filters-off]");
  const plain = event.button === 0 && !event.metaKey && !event.ctrlKey && !event.shiftKey && !event.altKey;
  if (!link || !plain) return;
  const form = link.closest("form[data-filters]");
  const region = form ? document.getElementById(form.dataset.filters ?? "") : link.closest("[data-list]");
  if (!region) return;
  event.preventDefault();
  show(region, new URL(link.getAttribute("href") ?? "", location.href).href);
  if (form) form.querySelector("input, select")?.focus();
  else if (link.closest(".pager")) region.scrollIntoView({ block: "nearest" });
});

window.addEventListener("popstate", () => {
  for (const region of document.querySelectorAll("[data-list]")) {
    mirror(region);
    load(region, location.href);
  }
});

let waited = 0;
setInterval(() => {
  waited += 1;
  for (const mark of document.querySelectorAll("[data-list] [data-refresh-s]")) {
    const region = mark.closest("[data-list]");
    const busy = document.hidden || document.querySelector("dialog[open]") || region?.contains(document.activeElement);
    if (busy || !region || waited % Math.max(1, Number(mark.dataset.refreshS) || 5)) continue;
    load(region, location.href, true);
  }
}, 1000);
