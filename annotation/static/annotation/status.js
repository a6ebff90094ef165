// Where the work stands: always visible, in words. Conflicts and refusals wait here for a person.
import { icon } from "../base/icons.js";
import { t, tn } from "../base/i18n.js";

export class Status {
  /**
   * @param {{saved: HTMLElement, hint: HTMLElement, notice: HTMLElement}} places
   * @param {import("./desk.js").Desk} desk
   */
  constructor({ saved, hint, notice }, desk) {
    this.saved = saved;
    this.hint = hint;
    this.notice = notice;
    this.desk = desk;
    desk.journal.addEventListener("state", () => this.refresh());
    addEventListener("beforeunload", (event) => {
      const { journal } = desk;
      const kept = journal.shelf.lasting && journal.state !== "signed-out";
      if (journal.pending && !(kept && journal.state !== "offline")) event.preventDefault();
    });
    this.refresh();
  }

  /** One quiet line above the image. */
  tell(text) {
    this.hint.textContent = text;
  }

  /** Something to decide, over the image's upper edge. Buttons: [[text, act, primary?]]. */
  raise(text, buttons = [], kind = "warn") {
    const words = document.createElement("p");
    words.textContent = text;
    const row = document.createElement("div");
    row.className = "row";
    for (const [label, act, primary] of buttons) {
      const made = document.createElement("button");
      made.type = "button";
      made.className = `btn btn-small${primary ? " btn-primary" : ""}`;
      made.textContent = label;
      made.addEventListener("click", () => {
        this.lower();
        act();
        this.refresh();
      });
      row.append(made);
    }
    this.notice.replaceChildren(icon(kind === "fail" ? "fail" : "warning"), words, row);
    this.notice.className = `annotator-notice notice notice-${kind}`;
    this.notice.hidden = false;
  }

  lower() {
    this.notice.hidden = true;
    this.shown = null;
  }

  refresh() {
    const { journal } = this.desk;
    const count = journal.pending;
    const [kind, name, text] = this.#words(journal, count);
    const key = `${kind} ${text}`;
    if (key !== this.last) {
      this.last = key;
      this.saved.className = `annotator-saved is-${kind}`;
      this.saved.replaceChildren(icon(name), document.createTextNode(text));
      if (kind === "out") {
        const link = Object.assign(document.createElement("a"), { href: "/login/", target: "_blank", textContent: t("Sign in") });
        this.saved.append(" ", link);
      }
    }
    this.#decisions();
  }

  #words(journal, count) {
    const open = journal.conflicts.length + journal.refused.length;
    if (journal.state === "signed-out") {
      return ["out", "warning", tn("Signed out, %(count)s edit stored locally.", "Signed out, %(count)s edits stored locally.", count)];
    }
    if (journal.state === "offline") {
      return ["off", "warning", tn("Server unreachable, %(count)s edit stored locally", "Server unreachable, %(count)s edits stored locally", count)];
    }
    if (open) return ["off", "warning", tn("%(count)s conflicting edit", "%(count)s conflicting edits", open)];
    if (this.desk.mode === "view" && !count) return ["ok", "eye", t("View only")];
    if (count) return ["busy", "running", t("Saving")];
    return ["ok", "ok", t("Saved")];
  }

  #decisions() {
    const { desk } = this;
    const { journal } = desk;
    const here = (event) => event.task === desk.task?.id;
    const conflict = journal.conflicts.find(here);
    const refused = journal.refused.find(here);
    const key = conflict ? `c${conflict.shape}${conflict.theirs.rev}` : refused ? `r${refused.id}` : null;
    if (!key) {
      if (this.shown) this.lower();
      return;
    }
    if (this.shown === key) return;
    if (conflict) {
      const name = desk.labelOf(conflict.data?.label ?? conflict.theirs.label)?.name ?? "";
      const text = conflict.theirs.deleted
        ? t("This %(name)s was deleted by another user while you changed it.", { name })
        : t("This %(name)s was changed by another user in the meantime. The other version is drawn dashed.", { name });
      this.raise(text, [
        [t("Keep mine"), () => desk.settle(conflict, "mine"), true],
        [t("Use theirs"), () => desk.settle(conflict, "theirs")],
        [t("Show"), () => desk.objects.lookAt(conflict.shape)],
      ]);
    } else if (refused.op === "submit") {
      this.raise(t("Not submitted: %(why)s", { why: refused.problem }), [[t("OK"), () => journal.discard(refused)]], "fail");
    } else {
      this.raise(t("The server rejected an edit: %(why)s", { why: refused.problem }), [
        [t("Show"), () => desk.objects.lookAt(refused.shape)],
        [t("Discard"), () => desk.giveUp(refused)],
      ], "fail");
    }
    this.shown = key;
  }
}
