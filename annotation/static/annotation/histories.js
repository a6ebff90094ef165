// What can be undone on each image, for coming back to it: in memory within this visit, on the shelf beyond it.

const KEPT_STEPS = 500; // of undo that survive leaving the page

export class Histories {
  /** @param {import("./desk.js").Desk} desk */
  constructor(desk) {
    this.desk = desk;
    this.left = new Map(); // image → {done, undone}
  }

  /** Put by the steps of the image on the desk; `rev` is its revision on the server. */
  keep(rev) {
    const { task, store, journal } = this.desk;
    const entry = { task: task.id, rev, done: store.done.slice(-KEPT_STEPS), undone: store.undone.slice(-KEPT_STEPS) };
    journal.shelf.write("histories", [structuredClone(entry)]).catch(() => {});
  }

  /** The image leaves the desk. */
  leave(rev) {
    const { task, store } = this.desk;
    this.left.set(task.id, { done: store.done, undone: store.undone });
    this.keep(rev);
  }

  /** Give an image its steps back; `waiting` says that edits of it have not reached the server yet. */
  async restore(id, rev, waiting) {
    const { store, journal } = this.desk;
    store.open(this.left.get(id));
    if (this.left.has(id)) return;
    const kept = await journal.shelf.get("histories", id).catch(() => null);
    // Steps fit only the shapes they were made on: somebody else's edit in between ends them.
    const fits = kept && (kept.rev === rev || waiting);
    if (fits && this.desk.task?.id === id && !store.done.length) store.open({ done: kept.done, undone: kept.undone });
  }
}
