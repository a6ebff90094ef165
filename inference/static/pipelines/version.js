// Saving a version: the draft as it is now, with a note, under a number that never changes.
import { api } from "../base/api.js";
import { t, tn } from "../base/i18n.js";
import { toast } from "../base/toast.js";
import { dialog, el } from "./dom.js";
import { row } from "./fields.js";
import { layoutOf, write } from "./spec.js";

/** @param {import("./editor.js").Editor} editor @param {string} url */
export function askVersion(editor, url) {
  const note = el("textarea", "input", { rows: 3, maxlength: 500 });
  const field = row(t("Changes"), note, { help: t("Optional. Shown in the list of versions.") });
  const problems = editor.issues.errors.length;
  const warning = problems ? [el("p", "pl-warning small", {}, tn("%(count)s problem: the version cannot run until it is resolved.", "%(count)s problems: the version cannot run until they are resolved.", problems))] : [];
  const cancel = el("button", "btn", { type: "button" }, t("Cancel"));
  const save = el("button", "btn btn-primary", { type: "submit" }, t("Save version"));
  const box = dialog(t("Save version"), [...warning, field.element], [save, cancel]);
  cancel.addEventListener("click", () => box.close());
  box.querySelector("form").addEventListener("submit", (event) => {
    event.preventDefault();
    save.disabled = true;
    saveVersion(editor, url, note.value.trim()).then((version) => {
      box.close();
      const { page } = editor.urls;
      toast(t("Version %(number)s is saved.", { number: version.number }), "ok", page ? { href: page, more: t("Show pipeline") } : {});
    }, (error) => {
      save.disabled = false;
      field.problem(error.message);
    });
  });
  box.showModal();
  note.focus();
}

/** Save what is drawn; the version: {number, …}. The same meaning as the newest one gives that one. */
export async function saveVersion(editor, url, note) {
  const { graph } = editor;
  const send = () => api.post(url, { spec: write(graph), layout: layoutOf(graph), ...(note ? { note } : {}) });
  const version = await (editor.draft ? editor.draft.during(send) : send());
  editor.dispatchEvent(new CustomEvent("version", { detail: version }));
  return version;
}
