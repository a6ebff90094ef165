// The bar above the canvas: what one does often, and how the draft stands.
import { t } from "../base/i18n.js";
import { icon } from "../base/icons.js";
import { button, el } from "./dom.js";
import { showKeys } from "./keys.js";
import { roving } from "./roving.js";

export class Bar {
  /** @param {import("./editor.js").Editor} editor @param {{versions?: string, run?: string}} urls */
  constructor(editor, urls) {
    this.editor = editor;
    const tool = (name, label, act) => button({ icon: name, label, act });
    const group = (label, className, ...children) => el("div", `row pl-bar-group ${className}`, { role: "group", "aria-label": label }, ...children);
    this.undo = tool("undo", t("Undo"), () => editor.undo());
    this.redo = tool("redo", t("Redo"), () => editor.redo());
    this.copy = tool("copy", t("Copy"), () => editor.copyByButton());
    this.paste = tool("file", t("Paste"), () => editor.pasteByButton());
    this.remove = tool("trash", t("Remove"), () => editor.removeChosen());
    this.zoom = el("span", "pl-bar-zoom num", {}, "100 %");
    this.snap = tool("gallery", t("Snap to a grid"), () => editor.setSnap(!editor.snap));
    this.snap.setAttribute("aria-pressed", "false");
    this.list = button({ icon: "list", text: t("List"), act: () => editor.showList(!editor.list.open) });
    this.list.setAttribute("aria-pressed", "false");
    this.state = el("span", "pl-bar-state", { role: "status" });
    this.settle = button({ icon: "compare", text: t("Compare"), className: "btn btn-small", act: () => editor.draft?.settle() });
    this.settle.hidden = true;
    const edits = [
      group(t("Steps"), "", button({ icon: "plus", text: t("Add a step"), className: "btn", act: () => editor.askKind() })),
      group(t("History"), "", this.undo, this.redo),
      group(t("Selected steps"), "pl-bar-chosen", this.copy, this.paste, this.remove),
    ];
    const views = [
      group(t("View"), "pl-bar-view", tool("zoom-out", t("Zoom out"), () => editor.stage.zoom(1 / 1.2)), this.zoom, tool("zoom-in", t("Zoom in"), () => editor.stage.zoom(1.2)), tool("fit", t("Show all"), () => editor.stage.fit()), ...(editor.readOnly ? [] : [tool("wand", t("Arrange"), () => editor.arrange()), this.snap])),
      group(t("Views"), "", this.list, tool("help", t("Keys"), showKeys)),
    ];
    this.acts = el("div", "row pl-bar-acts");
    if (urls.versions && !editor.readOnly) this.acts.append(button({ icon: "save", text: t("Save version"), className: "btn btn-primary", act: () => editor.askVersion() }));
    if (urls.run) this.acts.append(button({ icon: "play", text: t("Run"), className: editor.readOnly ? "btn btn-primary" : "btn", act: () => void editor.run() }));
    this.element = el("div", "pl-bar", { role: "toolbar", "aria-label": t("Tools of the pipeline") }, ...(editor.readOnly ? [] : edits), ...views, el("div", "row pl-bar-end", {}, this.state, this.settle, this.acts));
    this.settled = roving(this.element, "button", { back: ["ArrowLeft"], on: ["ArrowRight"] });
    this.look();
  }

  look() {
    const { graph, stage } = this.editor;
    this.undo.disabled = !graph.done.length;
    this.redo.disabled = !graph.undone.length;
    const none = !stage.chosen.size && !stage.wires.chosen;
    this.copy.disabled = !stage.chosen.size;
    this.remove.disabled = none;
    this.settled();
  }

  zoomed() {
    const text = `${Math.round(this.editor.stage.camera.zoom * 100)} %`;
    if (this.zoom.textContent !== text) this.zoom.textContent = text; // the same text again would cost a layout in each frame
  }

  listed(on) {
    this.list.setAttribute("aria-pressed", String(on));
    this.element.classList.toggle("is-list", on);
    this.settled(true);
  }

  /** How the draft stands. @param {import("./draft.js").Saved} state */
  saved(state) {
    const said = {
      saved: ["ok", t("Saved")],
      dirty: ["dot", t("Not saved yet")],
      saving: ["refresh", t("Saving")],
      offline: ["warning", t("Offline, stored locally")],
      conflict: ["warning", t("Changed elsewhere")],
      refused: ["warning", t("Not saved")],
    };
    const [name, text] = said[state];
    this.state.replaceChildren(icon(name), text);
    this.state.dataset.state = state;
    this.settle.hidden = state !== "conflict";
  }
}
