// Keys of the editor: everything a mouse can do. One table, shown by "?".
import { t } from "../base/i18n.js";
import { dialog, el } from "./dom.js";

const ARROWS = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] };
const STEP = 20;

/** What each key means, for people. @returns {[string, string][]} */
const table = () => [
  ["← →", t("Follow a connection")],
  ["↑ ↓", t("Go to the step above or below")],
  ["Shift ↑ ↓ ← →", t("Add a step to the selection")],
  ["Alt ↑ ↓ ← →", t("Move the selected steps")],
  ["Enter", t("Go to the form of the step")],
  ["Esc", t("Back to the canvas; clear selection")],
  ["N  /", t("Add a step")],
  ["C", t("Connect the step to another")],
  ["G", t("Go to a step by its name")],
  ["Delete", t("Delete the selected steps or connection")],
  ["Ctrl Z", t("Undo")],
  ["Ctrl Y", t("Redo")],
  ["Ctrl C, Ctrl X, Ctrl V", t("Copy, cut, paste")],
  ["Ctrl D", t("Duplicate")],
  ["Ctrl A", t("Select all")],
  ["F", t("Show all")],
  ["+  −  0", t("Zoom in, zoom out, actual size")],
  ["A", t("Arrange")],
  ["L", t("List or canvas")],
  ["P", t("Go to the problems")],
  ["?", t("Show shortcuts")],
];

export function showKeys() {
  const rows = table().map(([keys, words]) => [el("dt", "", {}, ...keys.split(/ {2}|, /).flatMap((one, n) => (n ? [" ", el("kbd", "", {}, one)] : [el("kbd", "", {}, one)]))), el("dd", "", {}, words)]);
  const close = el("button", "btn btn-primary", { value: "" }, t("Close"));
  dialog(t("Keys"), [el("p", "muted small", {}, t("On the canvas; in fields, keys enter text.")), el("dl", "pl-keys", {}, ...rows.flat())], [close]).showModal();
}

/** Whether a key is meant for a field, not for the editor. */
const writes = (target) => Boolean(target.closest?.("input, textarea, select, dialog, [contenteditable]"));

export class Keys {
  /** @param {import("./editor.js").Editor} editor */
  constructor(editor) {
    this.editor = editor;
    editor.root.addEventListener("keydown", (event) => this.press(event));
    for (const name of /** @type {const} */ (["copy", "cut", "paste"])) {
      document.addEventListener(name, (event) => {
        const target = /** @type {HTMLElement} */ (document.activeElement ?? document.body);
        if (!editor.root.contains(target) || writes(target) || getSelection()?.toString()) return;
        if (name === "paste") editor.paste(event.clipboardData?.getData("text/plain") ?? "");
        else if (editor.copy(name === "cut")) event.clipboardData?.setData("text/plain", editor.held);
        else return;
        event.preventDefault();
      });
    }
  }

  press(event) {
    const target = /** @type {HTMLElement} */ (event.target);
    if (event.key === "Escape" && !target.closest("dialog")) return this.#escape(event, target);
    const control = event.ctrlKey || event.metaKey;
    if (writes(target)) return undefined;
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    const act = control ? this.#controlled(key, event) : (this.#onCanvas(key, event, target) ?? this.#anywhere(key, target));
    if (!act) return undefined;
    act();
    event.preventDefault();
    return event.stopPropagation();
  }

  #escape(event, target) {
    if (target.closest(".pl-list")) return;
    this.editor.escape(Boolean(target.closest(".pl-canvas")));
    event.stopPropagation();
  }

  #controlled(key, { shiftKey }) {
    const { editor } = this;
    const inside = () => Boolean(document.activeElement?.closest(".pl-canvas"));
    /** @type {Record<string, (() => void) | undefined>} */
    const acts = {
      z: () => (shiftKey ? editor.redo() : editor.undo()),
      y: () => editor.redo(),
      d: () => editor.duplicate(editor.chosen()),
      a: inside() ? () => editor.chooseAll() : undefined,
      s: () => void editor.draft?.save(),
    };
    return Object.hasOwn(acts, key) ? acts[key] : undefined;
  }

  /** Keys that mean something on the canvas alone. */
  #onCanvas(key, event, target) {
    if (!target.closest(".pl-canvas")) return undefined;
    const { editor } = this;
    const { stage } = editor;
    const id = stage.focused;
    const arrow = ARROWS[event.key];
    if (arrow) return () => this.#arrow(id, arrow, event);
    if (event.altKey) return undefined;
    /** @type {Record<string, () => void>} */
    const acts = {
      Enter: () => (id ? editor.goTo(id) : undefined),
      " ": () => (id ? stage.choose(stage.chosen.has(id) ? [...stage.chosen].filter((one) => one !== id) : [...stage.chosen, id]) : undefined),
      Delete: () => editor.removeChosen(),
      Backspace: () => editor.removeChosen(),
      "+": () => stage.zoom(1.2),
      "=": () => stage.zoom(1.2),
      "-": () => stage.zoom(1 / 1.2),
      0: () => stage.zoom(1 / stage.camera.zoom),
      f: () => stage.fit(),
      a: () => editor.arrange(),
    };
    return Object.hasOwn(acts, key) ? acts[key] : undefined;
  }

  #anywhere(key, target) {
    const { editor } = this;
    /** @type {Record<string, () => void>} */
    const acts = {
      n: () => editor.askKind(),
      "/": () => editor.askKind(),
      c: () => void editor.askLink(),
      g: () => void editor.askStep(),
      l: () => editor.showList(!editor.list.open),
      p: () => editor.issues.open(),
      "?": showKeys,
    };
    if (target.closest("summary, button") && key === "Enter") return undefined;
    return Object.hasOwn(acts, key) ? acts[key] : undefined;
  }

  #arrow(id, [dx, dy], event) {
    const { editor } = this;
    const { stage } = editor;
    if (event.altKey) return editor.nudge(dx * STEP, dy * STEP);
    const next = id ? stage.neighbour(id, [dx, dy]) : stage.stop;
    if (!next) return undefined;
    if (!event.shiftKey) return stage.focus(next);
    const chosen = [...stage.chosen, ...(id ? [id] : []), next];
    stage.focus(next, { choose: false });
    return stage.choose(chosen);
  }
}
