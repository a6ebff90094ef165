// Where an image stands in review: what was asked for, and for reviewers the two verdicts.
import { t } from "../base/i18n.js";

export class Review {
  /**
   * @param {HTMLElement} root  the section beside the image
   * @param {object} given
   * @param {"view" | "draw" | "review"} given.mode
   * @param {import("./net.js").Net} given.net
   * @param {import("./journal.js").Journal} given.journal
   * @param {import("./status.js").Status} given.status
   * @param {() => {task: any, rev: number | undefined}} given.looked  the image on the desk
   * @param {(task: any) => void} given.judged  called after the server agreed
   */
  constructor(root, { mode, net, journal, status, looked, judged }) {
    this.root = root;
    this.mode = mode;
    this.net = net;
    this.journal = journal;
    this.status = status;
    this.looked = looked;
    this.judged = judged;
    this.state = root.querySelector("[data-review-state]");
    this.words = root.querySelector("[data-review-words]");
    /** @type {HTMLDialogElement | null} */
    this.dialog = document.getElementById("send-back");
    const { dialog } = this;
    const form = dialog?.querySelector("form");
    form?.addEventListener("submit", (event) => {
      event.preventDefault();
      const comment = String(new FormData(form).get("comment")).trim();
      if (!comment) return;
      dialog?.close();
      void this.#judge("rejected", comment);
    });
  }

  refresh(task) {
    const judges = this.mode === "review";
    const shown = ["accepted", "rejected"].includes(task.state) || (task.state === "submitted" && (judges || task.remark));
    this.root.hidden = !shown;
    this.state.textContent = { accepted: t("Accepted"), rejected: t("Sent back") }[task.state] ?? t("Waiting for review");
    this.words.textContent = this.#wordsFor(task);
    const accept = this.root.querySelector('[data-act="accept"]');
    const back = this.root.querySelector('[data-act="sendBack"]');
    if (accept) accept.hidden = task.state === "accepted";
    if (back) back.hidden = task.state === "rejected";
  }

  accept() {
    if (this.#judgeable("accepted")) void this.#judge("accepted", "");
  }

  sendBack() {
    if (!this.dialog || !this.#judgeable("rejected")) return;
    this.dialog.querySelector("textarea").value = "";
    this.dialog.showModal();
  }

  #wordsFor({ state, remark }) {
    if (state === "accepted") return this.mode === "draw" ? t("The image is locked until a reviewer returns it.") : "";
    if (state === "submitted" && remark) return t("Changes requested earlier: %(remark)s", { remark });
    return remark;
  }

  #judgeable(verdict) {
    const { task } = this.looked();
    return this.mode === "review" && task && ["submitted", "accepted", "rejected"].includes(task.state) && task.state !== verdict;
  }

  async #judge(verdict, comment) {
    const { task } = this.looked();
    await this.journal.flush();
    if (this.journal.of(task.id).length) {
      this.status.tell(t("Your own edits are not saved yet. Review the image afterwards."));
      return;
    }
    const { rev } = this.looked();
    let answer;
    try {
      answer = await this.net.review(task.id, { verdict, comment, rev });
    } catch {
      this.status.raise(t("The server does not respond, so the review was not saved."), [[t("OK"), () => {}, true]], "fail");
      return;
    }
    if (answer.status !== 200) {
      this.status.raise(answer.body?.detail ?? `HTTP ${answer.status}`, [[t("OK"), () => {}, true]], "fail");
      return;
    }
    this.judged(answer.body);
  }
}
