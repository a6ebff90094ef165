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
  { group: t("Draw"), id: "repeat", keys: ["N"], text: t("Draw one more; while drawing: close the polygon") },
  { group: t("Draw"), id: "close", keys: ["Enter"], text: t("Close the polygon (also a double click or the first point)") },
  { group: t("Draw"), id: "numbers", keys: ["B"], text: t("Enter or edit a shape by numbers") },
  { group: t("Draw"), id: "cancel", keys: ["Escape"], fixed: true, text: t("Cancel; choose nothing") },
  { group: t("Draw"), id: "digit", digits: true, keys: ["1", "2", "3", "4", "5", "6", "7", "8", "9"], text: t("Choose a class, or give it to the chosen objects") },
  { group: t("Draw"), id: "class", keys: ["C"], text: t("Go to the class list") },
  { group: t("Edit"), id: "select", keys: ["V"], text: t("Select, move and reshape") },
  { group: t("Edit"), id: "delete", keys: ["Delete", "Backspace"], text: t("Delete the chosen objects; while drawing: take the last point back") },
  { group: t("Edit"), id: "undo", keys: ["Ctrl+Z"], text: t("Undo") },
  { group: t("Edit"), id: "redo", keys: ["Ctrl+Shift+Z", "Ctrl+Y"], text: t("Redo") },
  { group: t("Edit"), id: "copy", keys: ["Ctrl+C"], text: t("Copy") },
  { group: t("Edit"), id: "paste", keys: ["Ctrl+V"], text: t("Paste, on this image or another one") },
  { group: t("Edit"), id: "duplicate", keys: ["Ctrl+D"], text: t("Duplicate") },
  { group: t("Edit"), id: "all", keys: ["Ctrl+A"], text: t("Choose all objects") },
  { group: t("Edit"), id: "cycle", keys: ["Tab"], text: t("Next object (on the image)") },
  { group: t("Edit"), id: "cycleBack", keys: ["Shift+Tab"], text: t("Previous object (on the image)") },
  { group: t("Edit"), id: "nudge", fixed: true, keys: ["ArrowUp", "ArrowDown", "Shift+ArrowLeft", "Shift+ArrowRight", "Shift+ArrowUp", "Shift+ArrowDown"], shown: [t("Arrows"), t("Shift+Arrows")], text: t("Move the chosen objects by 1 or 10 pixels") },
  { group: t("Edit"), id: "corner", fixed: true, keys: [], shown: [t("Alt+Click")], text: t("Remove a corner; double-click an outline to add one") },
  { group: t("Edit"), id: "lock", keys: ["Alt+L"], text: t("Lock the chosen objects, or open them; with none chosen: open all") },
  { group: t("Edit"), id: "fromPrevious", keys: ["W"], text: t("Copy the objects of the previous image here") },
  { group: t("Edit"), id: "toNext", keys: ["Ctrl+B"], text: t("Take the chosen objects, or all, along to the next image") },
  { group: t("See"), id: "pan", keys: ["H"], beside: [t("Space"), t("Middle button")], text: t("Move the image") },
  { group: t("See"), id: "zoomIn", keys: ["+"], also: ["="], beside: [t("Wheel")], text: t("Zoom in") },
  { group: t("See"), id: "zoomOut", keys: ["-"], beside: [t("Wheel")], text: t("Zoom out") },
  { group: t("See"), id: "fit", keys: ["Shift+1"], also: ["!"], text: t("Fit the image") },
  { group: t("See"), id: "actual", keys: ["Shift+2"], also: ["@"], text: t("One image pixel to one screen pixel") },
  { group: t("See"), id: "hide", keys: ["Alt+H"], text: t("Hide or show the chosen objects") },
  { group: t("See"), id: "hideAll", keys: ["Ctrl+H"], text: t("Hide or show all objects") },
  { group: t("Looks"), id: "names", keys: ["L"], text: t("Write the classes on the shapes, or not") },
  { group: t("Looks"), id: "fillMore", keys: ["]"], text: t("Fill shapes more") },
  { group: t("Looks"), id: "fillLess", keys: ["["], text: t("Fill shapes less") },
  { group: t("Looks"), id: "lineMore", keys: ["}"], text: t("Thicker lines") },
  { group: t("Looks"), id: "lineLess", keys: ["{"], text: t("Thinner lines") },
  { group: t("Looks"), id: "brighter", keys: ["Alt+ArrowUp"], text: t("Brighter image, on the screen only") },
  { group: t("Looks"), id: "darker", keys: ["Alt+ArrowDown"], text: t("Darker image") },
  { group: t("Looks"), id: "contrastMore", keys: ["Alt+Shift+ArrowUp"], text: t("More contrast") },
  { group: t("Looks"), id: "contrastLess", keys: ["Alt+Shift+ArrowDown"], text: t("Less contrast") },
  { group: t("Looks"), id: "plain", keys: ["Alt+0"], text: t("Everything looks as it came") },
  { group: t("Looks"), id: "looks", keys: ["S"], text: t("All of this with sliders") },
  { group: t("Window"), id: "whole", keys: ["Shift+F"], text: t("Full screen, and back") },
  { group: t("Window"), id: "side", keys: ["I"], text: t("Show or hide classes and objects") },
  { group: t("Window"), id: "strip", keys: ["T"], text: t("Show or hide the strip of images") },
  { group: t("Window"), id: "keepZoom", keys: ["K"], text: t("Keep the zoom at the next image, or fit it") },
  { group: t("Window"), id: "find", keys: ["J"], text: t("Find objects in the list by words") },
  { group: t("Window"), id: "sort", keys: ["Shift+J"], text: t("Sort the objects otherwise") },
  { group: t("Go"), id: "jump", keys: ["G"], text: t("Go to an image by its number") },
  { group: t("Go"), id: "next", keys: ["D", "F", "ArrowRight"], text: t("Next image") },
  { group: t("Go"), id: "previous", keys: ["A", "ArrowLeft"], text: t("Previous image") },
  { group: t("Go"), id: "submit", keys: ["Ctrl+Enter"], text: t("Submit and go to the next image") },
  { group: t("Go"), id: "accept", keys: ["Alt+Enter"], text: t("Accept the image and go to the next one") },
  { group: t("Go"), id: "sendBack", keys: ["Alt+B"], text: t("Send the image back with a comment") },
  { group: t("Go"), id: "save", keys: ["Ctrl+S"], text: t("Send everything now (it is saved as you draw anyway)") },
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
