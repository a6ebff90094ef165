// The images of a set, one on the desk at a time: opening one, going to its neighbours, handing it in.
import { ask } from "../base/dialog.js";
import { t } from "../base/i18n.js";
import { Histories } from "./histories.js";
import { shapeFrom } from "./shape.js";

export class Images extends EventTarget {
  /**
   * Events: "shown", another image is on the desk; "state", what the server or this person made of it changed.
   * @param {HTMLElement} root  the annotator; `data-busy` and `data-open` on it say which image is ready
   * @param {object} given
   * @param {import("./desk.js").Desk} given.desk
   * @param {import("./net.js").Net} given.net
   * @param {import("./journal.js").Journal} given.journal
   * @param {import("./status.js").Status} given.status
   * @param {import("./settings.js").Settings} given.settings
   * @param {number} given.set  the dataset
   * @param {number} given.count  of images in the set
   * @param {string} given.page  address of an image, with 0 for its id
   * @param {string} given.list  address of the list of images
   */
  constructor(root, { desk, net, journal, status, settings, set, count, page, list }) {
    super();
    this.root = root;
    this.desk = desk;
    this.net = net;
    this.journal = journal;
    this.status = status;
    this.settings = settings;
    this.set = set;
    this.count = count;
    this.page = page;
    this.list = list;
    this.histories = new Histories(this.desk);
    this.revs = new Map(); // image → revision the server reported last
    this.pictures = new Map(); // image → promise of its bitmap; the next one is fetched ahead
    this.opening = 0;
    this.journal.addEventListener("rev", ({ detail }) => {
      this.revs.set(detail.task, detail.rev);
      if (detail.task === this.desk.task?.id) this.histories.keep(this.rev);
    });
    addEventListener("pagehide", () => this.#leave()); // a reload right after an edit must not lose its undo
  }

  /** Revision of the image on the desk. */
  get rev() {
    return this.revs.get(this.desk.task?.id);
  }

  async open(id, { push = true } = {}) {
    const { desk, net, status } = this;
    const turn = ++this.opening;
    this.root.dataset.busy = "";
    delete this.root.dataset.failed;
    status.tell("");
    desk.tool.cancel();
    this.#leave();
    let task;
    let shapes;
    try {
      [task, shapes] = await Promise.all([net.task(id), net.shapes(id)]);
    } catch {
      this.#failed(id, t("The server does not respond. This image opens when the server is back."));
      return;
    }
    if (turn !== this.opening) return;
    if (task.status !== 200 || shapes.status !== 200) {
      const signedOut = task.status === 401 || task.status === 403;
      this.#failed(id, signedOut ? t("You are signed out. Sign in again to continue.") : t("You can no longer access this image."));
      return;
    }
    const undoable = this.#show(task.body, shapes.body);
    if (push) history.pushState({ id }, "", this.page.replace(/0\/$/, `${id}/`));
    try {
      const bitmap = await this.#picture(id);
      if (turn !== this.opening) return;
      desk.renderer.setBitmap(bitmap);
    } catch {
      if (turn === this.opening) status.raise(t("The image could not be loaded."), [this.#again(id)], "fail");
    }
    await undoable; // a first Ctrl+Z must find what there is to undo
    if (turn !== this.opening) return;
    this.root.removeAttribute("data-busy");
    this.root.dataset.open = id;
    this.#ahead(task.body);
  }

  /** Open the "next" or the "previous" image. */
  async go(which) {
    const { task } = this.desk;
    if (!task || (which === "next" ? task.number >= this.count : task.number <= 1)) return;
    this.journal.flush();
    let answer;
    try {
      answer = await this.net.neighbour(task.id, which);
    } catch {
      this.status.raise(t("The server does not respond, so no other image can be opened. Your annotations are kept."), [[t("OK"), () => {}, true]]);
      return;
    }
    if (answer.status === 200) await this.open(answer.body.id);
  }

  /** Open the image of a number, counted from 1; the nearest one there is. */
  async jump(number) {
    const wanted = Math.min(Math.max(Math.round(number) || 1, 1), this.count);
    if (wanted === this.desk.task?.number) return;
    this.journal.flush();
    let answer;
    try {
      answer = await this.net.list(this.set, wanted);
    } catch {
      answer = null;
    }
    const found = answer?.body?.results?.[0];
    if (found) await this.open(found.id);
    else this.status.tell(t("The server does not respond. Try again."));
  }

  /** What the server says of the image's state, unless an own word on it is still on its way. */
  stands(standing) {
    const { task } = this.desk;
    const own = this.journal.queue.some((event) => event.task === task.id);
    if (own || Object.entries(standing).every(([name, value]) => task[name] === value)) return;
    Object.assign(task, standing);
    this.#tell("state");
  }

  /** Say that the image is done, and go on with the next one. */
  async submit() {
    const { desk, journal, status } = this;
    const { task, scene } = desk;
    if (!task || "busy" in this.root.dataset || !desk.mayChange()) return;
    if (desk.tool.busy) {
      status.tell(t("Finish the shape first, or cancel it with Esc."));
      return;
    }
    const empty = scene.shapes.size === 0;
    if (empty && !(await confirmEmpty())) return;
    const sent = journal.submit(task.id, { empty });
    task.state = "submitted";
    task.empty = empty;
    this.#tell("state");
    if (task.number < this.count) {
      await this.go("next");
      return;
    }
    await Promise.race([sent, new Promise((resolve) => setTimeout(resolve, 4000))]);
    if (!journal.pending && !journal.conflicts.length && !journal.refused.length) this.#toList();
    else status.tell(t("This was the last image. The list opens when everything is saved."));
  }

  /** The server took a reviewer's verdict on an image. */
  judged(task) {
    if (this.desk.task?.id !== task.id) return;
    this.desk.task = task;
    this.#tell("state");
    void this.go("next");
  }

  #show(task, { rev, shapes, deleted }) {
    const { desk, journal } = this;
    desk.task = task;
    this.revs.set(task.id, rev);
    journal.learn(shapes);
    journal.learn(deleted);
    desk.renderer.setBitmap(null);
    desk.viewport.show({ width: task.width, height: task.height }, { keep: this.settings.get("keepZoom") });
    const waiting = journal.of(task.id);
    const drawn = new Map(shapes.map((shape) => [shape.id, shapeFrom(shape)]));
    for (const event of waiting) {
      if (event.op === "delete") drawn.delete(event.shape);
      else drawn.set(event.shape, { id: event.shape, source: "manual", ...drawn.get(event.shape), ...event.data });
    }
    desk.scene.reset({ width: task.width, height: task.height }, drawn.values());
    const undoable = this.histories.restore(task.id, rev, waiting.length > 0);
    this.#tell("shown");
    this.status.lower();
    this.status.refresh();
    return undoable;
  }

  #leave() {
    if (this.desk.task) this.histories.leave(this.rev);
  }

  #failed(id, text) {
    this.root.dataset.failed = ""; // nothing is on its way any more
    this.status.raise(text, [this.#again(id), [t("Back to the list"), () => this.#toList()]], "fail");
  }

  #again(id) {
    return [t("Try again"), () => this.open(id, { push: false }), true];
  }

  #picture(id) {
    const { pictures } = this;
    if (!pictures.has(id)) {
      for (const old of [...pictures.keys()].slice(0, -2)) pictures.delete(old);
      const promise = this.net.picture(id);
      promise.catch(() => pictures.delete(id));
      pictures.set(id, promise);
    }
    return pictures.get(id);
  }

  /** Fetch the next picture while this one is being worked on. */
  async #ahead(task) {
    if (task.number >= this.count) return;
    try {
      const { status: code, body } = await this.net.neighbour(task.id, "next");
      if (code === 200) await this.#picture(body.id);
    } catch {
      // only a kindness: the image loads again when it is opened
    }
  }

  #toList() {
    location.assign(this.list);
  }

  #tell(name) {
    this.dispatchEvent(new Event(name));
  }
}

const confirmEmpty = () =>
  ask({
    title: t("No annotations"),
    text: t("Does this image really have no objects? It is then marked as reviewed and empty."),
    act: t("Yes, it is empty"),
  });
