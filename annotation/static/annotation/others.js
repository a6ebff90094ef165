// What others do on the image that is open, another window of one's own among them: asked for every moment, laid on
// the scene, and left alone where an own edit waits. Undo stays one's own, see store.js.
import { tn } from "../base/i18n.js";
import { shapeFrom } from "./shape.js";

const EVERY_MS = 1200;

export class Others {
  /**
   * @param {object} given
   * @param {import("./desk.js").Desk} given.desk
   * @param {import("./images.js").Images} given.images
   * @param {import("./journal.js").Journal} given.journal
   * @param {import("./net.js").Net} given.net
   */
  constructor({ desk, images, journal, net }) {
    this.desk = desk;
    this.images = images;
    this.journal = journal;
    this.net = net;
    this.seen = 0; // revision up to which everything is on the scene
    this.asking = false;
    images.addEventListener("shown", () => {
      this.seen = images.rev ?? 0;
    });
    journal.addEventListener("rev", ({ detail: { task, rev, stored } }) => {
      if (task === desk.task?.id && rev === this.seen + stored) this.seen = rev; // nobody else was in between
    });
    // Windows of one browser tell each other, so that they need not wait for the next question.
    this.channel = new BroadcastChannel("aip-annotation");
    this.channel.addEventListener("message", ({ data }) => data === desk.task?.id && this.look());
    journal.addEventListener("rev", ({ detail: { task } }) => this.channel.postMessage(task));
    setInterval(() => document.visibilityState === "visible" && this.look(), EVERY_MS);
    document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && this.look());
  }

  async look() {
    const { task } = this.desk;
    if (!task || this.asking || "busy" in this.images.root.dataset || this.journal.state === "saving") return;
    this.asking = true;
    try {
      const { status, body } = await this.net.changes(task.id, this.seen);
      if (status === 200 && this.desk.task === task) this.take(body);
    } catch {
      // no answer: the next question comes soon
    } finally {
      this.asking = false;
    }
  }

  /** Lay an answer on the scene. */
  take({ rev, shapes, by, ...standing }) {
    const { desk, journal } = this;
    const fresh = shapes.filter((shape) => shape.rev > (journal.revs.get(shape.id) ?? 0));
    if (desk.tool.busy && fresh.some(({ id }) => desk.scene.selected.has(id))) return; // it is in the hand: ask again
    const waiting = new Set(journal.of(desk.task.id).map(({ shape }) => shape));
    const free = fresh.filter(({ id }) => !waiting.has(id)); // of the others the journal will learn by a conflict
    journal.learn(free);
    const changes = free.map((shape) => {
      const before = desk.scene.get(shape.id) ?? null;
      return { id: shape.id, before, after: shape.deleted ? null : shapeFrom(shape) };
    });
    const real = changes.filter(({ before, after }) => before || after);
    if (real.length) {
      desk.scene.apply(real);
      const name = by.join(", ");
      desk.hint(tn("%(name)s changed %(count)s object.", "%(name)s changed %(count)s objects.", real.length, { name }));
    }
    this.seen = Math.max(this.seen, rev);
    this.images.stands(standing);
  }
}
