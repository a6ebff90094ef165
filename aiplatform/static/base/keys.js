// Keys of every page: Ctrl+K and "/" open the palette, "g" and a letter an entry of the side bar, "?" the list of keys.
//
// A page declares its own on the control that a key presses:  <a aria-keyshortcuts="ArrowRight" …>Next image</a>
// Keys without a modifier do nothing while the reader types, while a dialog is open, on pages that own the keyboard
// (html[data-keys="own"], the annotator), and when the reader has switched them off in the settings (WCAG 2.1.4).
import { t } from "./i18n.js";
import { rowAction, rowKeys } from "./tables.js";
import { toast } from "./toast.js";

const root = document.documentElement;
const SWITCH = `aip.keys.${root.dataset.reader}`;
const SEQUENCE_MS = 1500; // between "g" and its letter
const TYPED = "input:not([type=checkbox]):not([type=radio]):not([type=button]):not([type=submit]), textarea, select, [contenteditable]";
const OWN_ARROWS = '[role=listbox], [role=menu], [role=tablist], [role=slider], [role=grid], [role=application], details.menu[open], input[type=radio], [role=region][tabindex="0"]';

const isMac = /mac|iphone|ipad/i.test(navigator.platform ?? "");
/** Time of the last "g"; 0 after any other key. */
let went = 0;

export function areSingleKeysOn() {
  try {
    return localStorage.getItem(SWITCH) !== "off";
  } catch {
    return true;
  }
}

/** The visible control of the page that declares `key`. */
function declared(key) {
  /** @type {NodeListOf<HTMLElement>} */
  const controls = document.querySelectorAll("main [aria-keyshortcuts]");
  return [...controls].find((one) => one.getAttribute("aria-keyshortcuts") === key && one.checkVisibility?.() !== false);
}

/** What a key without a modifier does on this page; null for nothing. */
function action(event) {
  const { key } = event;
  if (went && event.timeStamp - went < SEQUENCE_MS) {
    /** @type {HTMLElement | null} */
    const link = document.querySelector(`.side [data-go="${CSS.escape(key.toLowerCase())}"]`);
    if (link) return () => link.click();
  }
  if (key === "g") return () => (went = event.timeStamp);
  if (key === "/") return openPalette;
  if (key === "?") return showShortcuts;
  const control = declared(key);
  return control ? () => control.click() : rowAction(key);
}

function pressed(event) {
  if (event.isComposing || event.defaultPrevented) return;
  const target = /** @type {Element} */ (event.target);
  if ((event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey && event.key.toLowerCase() === "k") {
    take(event, document.querySelector("dialog[open]") ? () => undefined : openPalette);
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  const isArrow = event.key.startsWith("Arrow");
  if (root.dataset.keys === "own" || !(isArrow || areSingleKeysOn())) return;
  if (target.closest?.(`${TYPED}, dialog[open]`) || document.querySelector("dialog[open]")) return;
  if (isArrow && target.closest?.(OWN_ARROWS)) return;
  const act = event.key === "Shift" ? null : action(event);
  if (event.key !== "g" && event.key !== "Shift") went = 0;
  if (act) take(event, act);
}

function take(event, act) {
  event.preventDefault();
  event.stopImmediatePropagation();
  act();
}

document.addEventListener("keydown", pressed, true);

// The palette: its module is loaded when it opens for the first time

/** Open the palette. What is typed until its module is there is kept, and Enter is run then. */
function openPalette() {
  /** @type {HTMLDialogElement | null} */
  const dialog = document.querySelector("[data-palette]");
  if (!dialog || dialog.open) return;
  const input = dialog.querySelector("input");
  let isEntered = false;
  const keep = (/** @type {KeyboardEvent} */ event) => {
    if (event.key !== "Enter" || event.isComposing) return;
    isEntered = true;
    event.preventDefault();
    event.stopImmediatePropagation();
  };
  input.value = "";
  input.addEventListener("keydown", keep, true);
  dialog.showModal();
  import("./palette.js")
    .then(({ search }) => search(isEntered))
    .catch(() => toast(t("The platform does not respond. Check your connection and try again."), "fail"))
    .finally(() => input.removeEventListener("keydown", keep, true));
}

for (const button of document.querySelectorAll("[data-palette-open]")) {
  button.addEventListener("click", openPalette);
  const key = button.querySelector("kbd");
  if (key && isMac) key.textContent = "⌘ K";
}

// The list of keys

/** "ArrowRight" → "→", as keyboards show it. */
export function readable(key) {
  return { ArrowLeft: "←", ArrowRight: "→", ArrowUp: "↑", ArrowDown: "↓" }[key] ?? key;
}

function labelOf(control) {
  return (control.getAttribute("aria-label") || control.textContent || control.title).trim().replace(/\s+/g, " ");
}

/** Sections of the list: [label, [keys, what they do]]. */
function sections() {
  /** @type {[string, [string[], string][]][]} */
  const lists = [[t("Everywhere"), [[[isMac ? "⌘ K" : "Ctrl K"], t("Search or run a command")]]]];
  if (root.dataset.keys === "own" || !areSingleKeysOn()) return lists;
  lists[0][1].push([["/"], t("Search or run a command")], [["?"], t("Keyboard shortcuts")]);
  /** @type {NodeListOf<HTMLElement>} */
  const controls = document.querySelectorAll("main [aria-keyshortcuts]");
  const own = [...controls].map((one) => [[readable(one.getAttribute("aria-keyshortcuts"))], labelOf(one)]);
  const page = [.../** @type {[string[], string][]} */ (own), ...rowKeys()];
  if (page.length) lists.unshift([t("This page"), page]);
  /** @type {NodeListOf<HTMLElement>} */
  const links = document.querySelectorAll(".side [data-go]");
  lists.push([t("Go to"), [...links].map((link) => [["g", link.dataset.go ?? ""], link.querySelector("span").textContent])]);
  return lists;
}

function showShortcuts() {
  /** @type {HTMLDialogElement | null} */
  const dialog = document.querySelector("#shortcuts");
  if (!dialog) return;
  const body = dialog.querySelector("[data-shortcuts]");
  body.replaceChildren(
    ...sections().flatMap(([label, rows]) => {
      const head = Object.assign(document.createElement("h3"), { textContent: label });
      const list = Object.assign(document.createElement("dl"), { className: "shortcuts" });
      for (const [keys, meaning] of rows) {
        const term = document.createElement("dt");
        term.append(...keys.flatMap((key, place) => [place ? " " : "", Object.assign(document.createElement("kbd"), { textContent: key })]));
        list.append(term, Object.assign(document.createElement("dd"), { textContent: meaning }));
      }
      return [head, list];
    }),
  );
  if (!areSingleKeysOn()) {
    body.append(Object.assign(document.createElement("p"), { className: "muted", textContent: t("Single-key shortcuts are switched off in your settings.") }));
  }
  dialog.showModal();
}

for (const button of document.querySelectorAll("[data-shortcuts-open]")) button.addEventListener("click", showShortcuts);

// the switch in the settings
/** @type {HTMLInputElement | null} */
const box = document.querySelector("[data-single-keys]");
if (box) {
  box.checked = areSingleKeysOn();
  box.addEventListener("change", () => {
    try {
      localStorage.setItem(SWITCH, box.checked ? "on" : "off");
    } catch {
      box.checked = true; // storage is switched off, so nothing can be remembered
    }
  });
}
