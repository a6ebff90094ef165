// The key map: what CVAT, Label Studio and labelme taught people's hands, without clashes.
// One list drives both the keys and the help that `?` shows; ownkeys.js lays a person's own choice over it.
import { t } from "../base/i18n.js";
import { effective } from "./ownkeys.js";
import { allKinds } from "./shapes/registry.js";

// Written as modifiers in the order Ctrl+Alt+Shift+, then the key. Ctrl is also Cmd on a Mac.
// `keys` can be changed unless the entry is `fixed`; `also` are the same keys as other keyboards write them;
// `beside` is what mouse and fixed keys do; `digits` stands for nine keys that differ in their modifier alone.
export const keyMap = () => [
  ...allKinds().map(({ tool, key, hint }) => ({ group: t("Draw"), id: tool, keys: [key], text: hint })),
  { group: t("Draw"), id: "repeat", keys: ["N"], text: t("Draw another; while drawing: close the polygon") },
  { group: t("Draw"), id: "close", keys: ["Enter"], text: t("Close the polygon (also double-click or click the first point)") },
  { group: t("Draw"), id: "numbers", keys: ["B"], text: t("Enter or edit a shape by coordinates") },
  { group: t("Draw"), id: "cancel", keys: ["Escape"], fixed: true, text: t("Cancel / deselect") },
  { group: t("Draw"), id: "digit", digits: true, keys: ["1", "2", "3", "4", "5", "6", "7", "8", "9"], text: t("Choose a class, or assign it to the selected objects") },
  { group: t("Draw"), id: "class", keys: ["C"], text: t("Go to the class list") },
  { group: t("Edit"), id: "select", keys: ["V"], text: t("Select, move and reshape") },
  { group: t("Edit"), id: "delete", keys: ["Delete", "Backspace"], text: t("Delete the selected objects; while drawing: remove the last point") },
  { group: t("Edit"), id: "undo", keys: ["Ctrl+Z"], text: t("Undo") },
  { group: t("Edit"), id: "redo", keys: ["Ctrl+Shift+Z", "Ctrl+Y"], text: t("Redo") },
  { group: t("Edit"), id: "copy", keys: ["Ctrl+C"], text: t("Copy") },
  { group: t("Edit"), id: "paste", keys: ["Ctrl+V"], text: t("Paste, on this or another image") },
  { group: t("Edit"), id: "duplicate", keys: ["Ctrl+D"], text: t("Duplicate") },
  { group: t("Edit"), id: "all", keys: ["Ctrl+A"], text: t("Select all objects") },
  { group: t("Edit"), id: "cycle", keys: ["Tab"], text: t("Next object (on the image)") },
  { group: t("Edit"), id: "cycleBack", keys: ["Shift+Tab"], text: t("Previous object (on the image)") },
  { group: t("Edit"), id: "nudge", fixed: true, keys: ["ArrowUp", "ArrowDown", "Shift+ArrowLeft", "Shift+ArrowRight", "Shift+ArrowUp", "Shift+ArrowDown"], shown: [t("Arrows"), t("Shift+Arrows")], text: t("Move the selected objects by 1 or 10 pixels") },
  { group: t("Edit"), id: "corner", fixed: true, keys: [], shown: [t("Alt+Click")], text: t("Remove a corner; double-click an outline to add one") },
  { group: t("Edit"), id: "lock", keys: ["Alt+L"], text: t("Lock or unlock the selected objects; without selection: unlock all") },
  { group: t("Edit"), id: "fromPrevious", keys: ["W"], text: t("Copy the objects of the previous image here") },
  { group: t("Edit"), id: "toNext", keys: ["Ctrl+B"], text: t("Propagate the selected or all objects to the next image") },
  { group: t("View"), id: "pan", keys: ["H"], beside: [t("Space"), t("Middle button")], text: t("Move the image") },
  { group: t("View"), id: "zoomIn", keys: ["+"], also: ["="], beside: [t("Wheel")], text: t("Zoom in") },
  { group: t("View"), id: "zoomOut", keys: ["-"], beside: [t("Wheel")], text: t("Zoom out") },
  { group: t("View"), id: "fit", keys: ["Shift+1"], also: ["!"], text: t("Fit the image") },
  { group: t("View"), id: "actual", keys: ["Shift+2"], also: ["@"], text: t("Actual size (1:1)") },
  { group: t("View"), id: "hide", keys: ["Alt+H"], text: t("Hide or show the selected objects") },
  { group: t("View"), id: "hideAll", keys: ["Ctrl+H"], text: t("Hide or show all objects") },
  { group: t("Display"), id: "names", keys: ["L"], text: t("Show or hide class labels on shapes") },
  { group: t("Display"), id: "fillMore", keys: ["]"], text: t("Increase fill opacity") },
  { group: t("Display"), id: "fillLess", keys: ["["], text: t("Decrease fill opacity") },
  { group: t("Display"), id: "lineMore", keys: ["}"], text: t("Thicker lines") },
  { group: t("Display"), id: "lineLess", keys: ["{"], text: t("Thinner lines") },
  { group: t("Display"), id: "brighter", keys: ["Alt+ArrowUp"], text: t("Increase brightness (display only)") },
  { group: t("Display"), id: "darker", keys: ["Alt+ArrowDown"], text: t("Decrease brightness") },
  { group: t("Display"), id: "contrastMore", keys: ["Alt+Shift+ArrowUp"], text: t("Increase contrast") },
  { group: t("Display"), id: "contrastLess", keys: ["Alt+Shift+ArrowDown"], text: t("Decrease contrast") },
  { group: t("Display"), id: "plain", keys: ["Alt+0"], text: t("Reset display") },
  { group: t("Display"), id: "looks", keys: ["S"], text: t("Display settings") },
  { group: t("Window"), id: "whole", keys: ["Shift+F"], text: t("Toggle full screen") },
  { group: t("Window"), id: "side", keys: ["I"], text: t("Show or hide classes and objects") },
  { group: t("Window"), id: "strip", keys: ["T"], text: t("Show or hide thumbnails") },
  { group: t("Window"), id: "keepZoom", keys: ["K"], text: t("Keep or reset the zoom on the next image") },
  { group: t("Window"), id: "find", keys: ["J"], text: t("Find objects in the list") },
  { group: t("Window"), id: "sort", keys: ["Shift+J"], text: t("Change sort order") },
  { group: t("Go"), id: "jump", keys: ["G"], text: t("Go to image number") },
  { group: t("Go"), id: "next", keys: ["D", "F", "ArrowRight"], text: t("Next image") },
  { group: t("Go"), id: "previous", keys: ["A", "ArrowLeft"], text: t("Previous image") },
  { group: t("Go"), id: "submit", keys: ["Ctrl+Enter"], text: t("Submit and go to the next image") },
  { group: t("Go"), id: "accept", keys: ["Alt+Enter"], text: t("Accept the image and go to the next one") },
  { group: t("Go"), id: "sendBack", keys: ["Alt+B"], text: t("Send the image back with a comment") },
  { group: t("Go"), id: "save", keys: ["Ctrl+S"], text: t("Save now (edits are also saved automatically)") },
  { group: t("Go"), id: "help", keys: ["?", "F1"], also: ["Shift+?"], text: t("This list") },
];

/** How a keydown is written in the map. */
export function written(event) {
  let key = event.key.length === 1 ? event.key.toUpperCase() : event.key;
  if ((event.shiftKey || event.altKey) && /^Digit[0-9]$/.test(event.code)) key = event.code.slice(5);
  const parts = [];
  if (event.ctrlKey || event.metaKey) parts.push("Ctrl");
  if (event.altKey) parts.push("Alt");
  const letter = key.length === 1 && key.toUpperCase() === key.toLowerCase() && !/[0-9]/.test(key);
  if (event.shiftKey && !letter) parts.push("Shift");
  if (event.altKey && /^Key[A-Z]$/.test(event.code)) key = event.code.slice(3); // Option+letter types signs on a Mac
  return [...parts, key].join("+");
}

export class Keys extends EventTarget {
  /** @type {any[]} */
  entries = []; // of the map, with the person's keys
  map = new Map(); // key → act

  /**
   * @param {Record<string, (event?: KeyboardEvent) => unknown>} acts  false lets the browser have the key
   * @param {Record<string, string[]>} own  the person's own keys
   */
  constructor(acts, own = {}) {
    super();
    this.acts = acts;
    this.use(own);
    addEventListener("keydown", (event) => this.#pressed(event));
  }

  /** Lay the person's own keys over the map. */
  use(own) {
    this.own = own;
    this.map = new Map();
    this.entries = keyMap().map((entry) => ({ ...entry, ...effective(entry, own, keyMap()) }));
    for (const { id, keys, also } of this.entries) for (const key of [...keys, ...also]) this.map.set(key, id);
    this.dispatchEvent(new Event("change"));
  }

  /** The first key of an act as people read it, "" where it has none. */
  of(id) {
    const entry = this.entries.find((one) => one.id === id);
    return entry?.keys.length ? readable(entry.keys[0]) : "";
  }

  /** Whether this page has the act: a viewer draws nothing. */
  offers(id) {
    return (id === "corner" ? "select" : id) in this.acts;
  }

  #pressed(event) {
    if (isTyped(event) || document.querySelector("dialog[open]")) return;
    const id = this.map.get(written(event));
    const act = id && this.acts[id];
    if (!act) return;
    const onControl = event.target.closest?.("button, a, summary, [role=option]");
    if (onControl && ["Enter", "Tab", "Shift+Tab", " "].includes(written(event))) return;
    if (act(event) !== false) event.preventDefault();
  }
}

/** Whether a key belongs to the field it is pressed in; a slider keeps its arrows only, a check box its space. */
function isTyped(event) {
  /** @type {HTMLInputElement | null | undefined} */
  const field = event.target.closest?.("input, textarea, select, [contenteditable]");
  if (field?.type === "checkbox") return event.key === " ";
  if (field?.type === "range") return /^(Arrow|Home|End|Page)/.test(event.key) && !event.altKey;
  return Boolean(field);
}

/** A key as it stands on a keyboard: "Escape" → "Esc", "ArrowLeft" → "←". */
export function readable(key) {
  const short = { Escape: "Esc", Delete: "Del", ArrowLeft: "←", ArrowRight: "→", ArrowUp: "↑", ArrowDown: "↓" };
  return key.replace(/(Escape|Delete|Arrow\w+)$/, (name) => short[name] ?? name);
}
