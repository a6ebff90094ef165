// Every edit, kept here until the server has it. An edit is written to the shelf first, sent within
// a second, and taken off the shelf only when the server answered for it by its own id; so a lost
// answer is asked again and stored once, and a lost connection, tab or server loses nothing.
import { Shelf } from "./shelf.js";

const SEND_MS = 300; // after an edit, so that the strokes of one moment travel together
const BATCH = 200;
const DENIED = ["forbidden", "not_allowed"]; // signed in, but not for this: a person has to know
const BATCH_NUMBERS = 60000; // coordinates in one request

/** A random UUID; `crypto.randomUUID` exists on https and localhost only. */
export function newId() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6] & 0x0f) | 0x40;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return hex.replace(/(.{8})(.{4})(.{4})(.{4})(.{12})/, "$1-$2-$3-$4-$5");
}

export class Journal extends EventTarget {
  static retryMs = [1000, 2000, 4000, 8000, 15000];

  /**
   * @param {number} user
   * @param {Pick<import("./net.js").Net, "send" | "submit">} api  each resolves to {status, body} and rejects offline
   */
  constructor(user, api) {
    super();
    this.api = api;
    this.shelf = new Shelf(`aip-annotation-${user}`);
    this.queue = []; // events of all images, oldest first
    this.revs = new Map(); // shape id → revision the server has
    this.state = "saved";
    this.failures = 0;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.timer = undefined;
    this.due = 0; // when it rings, by performance.now()
    this.sequence = 0;
    this.writing = Promise.resolve();
  }

  async open() {
    await this.shelf.open();
    this.queue = (await this.shelf.all("events")).sort((a, b) => a.seq - b.seq);
    this.sequence = this.queue.at(-1)?.seq ?? 0;
    addEventListener("online", () => this.soon(0));
    addEventListener("focus", () => this.pending && this.soon(0));
    document.addEventListener("visibilitychange", () => {
      if (document.visibilityState === "hidden") this.flush();
      else if (this.pending) this.soon(0);
    });
    addEventListener("pagehide", () => this.flush());
    if (this.pending) this.soon(0);
    this.#tell();
    return this;
  }

  /** What the server knows of an image: [{id, rev}], also of deleted shapes. */
  learn(entries) {
    for (const { id, rev } of entries) this.revs.set(id, rev);
  }

  of(task) {
    return this.queue.filter((event) => event.task === task && event.op !== "submit");
  }

  /** Edits that wait to be sent (not those that wait for a person's decision). */
  get pending() {
    return this.queue.filter((event) => !event.theirs && !event.problem).length;
  }

  get conflicts() {
    const seen = new Map();
    for (const event of this.queue) if (event.theirs) seen.set(event.shape, event);
    return [...seen.values()];
  }

  get refused() {
    return this.queue.filter((event) => event.problem);
  }

  record(task, changes) {
    const put = [];
    const removed = [];
    for (const { id, after } of changes) {
      const last = this.queue.findLast((event) => event.shape === id && event.task === task);
      const data = after && { kind: after.kind, label: after.label, rings: after.rings };
      const op = after ? "put" : "delete";
      if (last && (!last.sent || last.problem) && !last.theirs) {
        if (op === "delete" && last.base === 0) {
          this.queue.splice(this.queue.indexOf(last), 1);
          removed.push(last.id);
          continue;
        }
        // A refused edit gets a new id: the server has judged the old one.
        const id = last.problem ? newId() : last.id;
        if (last.problem) removed.push(last.id);
        Object.assign(last, { id, op, data, problem: undefined, sent: false });
        put.push(last);
        continue;
      }
      const base = last ? last.base + 1 : (this.revs.get(id) ?? 0);
      const theirs = last?.theirs;
      put.push({ id: newId(), task, seq: ++this.sequence, shape: id, op, base, data, sent: false, theirs });
      this.queue.push(put.at(-1));
    }
    this.#keep(put, removed);
    this.soon(SEND_MS);
    this.#tell();
  }

  /** Remember that an image is done; sent after its edits. */
  submit(task, wish) {
    const old = this.queue.filter((event) => event.task === task && event.op === "submit");
    this.queue = this.queue.filter((event) => !old.includes(event));
    const event = { id: newId(), task, seq: ++this.sequence, op: "submit", wish, sent: false };
    this.queue.push(event);
    this.#keep([event], old.map((entry) => entry.id));
    this.#tell();
    return this.flush();
  }

  /** A person decided between two versions of a shape. */
  resolve(shape, choice) {
    const events = this.queue.filter((event) => event.shape === shape && event.theirs);
    const last = events.at(-1);
    if (!last) return null;
    const theirs = last.theirs;
    this.queue = this.queue.filter((event) => !events.includes(event));
    this.revs.set(shape, theirs.rev);
    const put = [];
    if (choice === "mine") {
      put.push({ ...last, id: newId(), base: theirs.rev, theirs: undefined, sent: false });
      this.queue.push(put[0]);
    }
    this.#keep(put, events.map((event) => event.id));
    this.soon(0);
    this.#tell();
    return theirs;
  }

  /** Give up an edit the server refused. */
  discard(event) {
    this.queue = this.queue.filter((entry) => entry !== event);
    this.#keep([], [event.id]);
    this.soon(0);
    this.#tell();
  }

  soon(ms) {
    const due = performance.now() + ms;
    if (this.timer && this.due <= due) return;
    clearTimeout(this.timer);
    this.due = due;
    this.timer = setTimeout(() => {
      this.timer = undefined;
      this.flush();
    }, ms);
  }

  /** Send until nothing waits or the server cannot be reached; one run at a time. */
  flush() {
    this.running ??= this.#run().finally(() => {
      this.running = null;
    });
    return this.running;
  }

  async #run() {
    clearTimeout(this.timer);
    this.timer = undefined;
    for (;;) {
      const batch = this.#nextBatch();
      if (!batch.length) break;
      this.#set("saving");
      for (const event of batch) event.sent = true;
      await this.#keep(batch, []);
      let answer;
      try {
        answer =
          batch[0].op === "submit"
            ? await this.api.submit(batch[0].task, batch[0].wish)
            : await this.api.send(batch[0].task, batch.map(asSent));
      } catch {
        return this.#later("offline");
      }
      const { status } = answer;
      if (status === 401 || (status === 403 && !DENIED.includes(answer.body?.code))) return this.#later("signed-out");
      if (status >= 500 || status === 429 || status === 408) return this.#later("offline");
      this.failures = 0;
      this.#take(batch, answer);
    }
    this.#set("saved");
  }

  #nextBatch() {
    const blocked = new Set(this.queue.filter((event) => event.theirs || event.problem).map((event) => event.task));
    const first = this.queue.find((event) => {
      if (event.theirs || event.problem) return false;
      if (event.op !== "submit") return true;
      return !blocked.has(event.task) && !this.of(event.task).length;
    });
    if (!first || first.op === "submit") return first ? [first] : [];
    const batch = [];
    const shapes = new Set();
    let numbers = 0;
    for (const event of this.queue) {
      if (event.task !== first.task || event.op === "submit" || event.theirs || event.problem) continue;
      if (shapes.has(event.shape)) continue; // its next revision goes with the next request
      numbers += event.data ? event.data.rings.reduce((sum, ring) => sum + ring.length, 0) : 1;
      if (batch.length && (numbers > BATCH_NUMBERS || batch.length >= BATCH)) break;
      shapes.add(event.shape);
      batch.push(event);
    }
    return batch;
  }

  #take(batch, { status, body }) {
    if (body?.results) {
      const results = new Map(body.results.map((result) => [result.id, result]));
      const done = batch.filter((event) => results.get(event.id)?.status === "stored");
      for (const event of done) this.revs.set(event.shape, results.get(event.id).rev);
      this.queue = this.queue.filter((event) => !done.includes(event));
      this.#keep([], done.map((event) => event.id));
      for (const event of batch) {
        const result = results.get(event.id);
        if (result?.status === "conflict") this.#conflict(event, result.theirs);
      }
      const detail = { task: batch[0].task, rev: body.rev, stored: done.length };
      if (body.rev !== undefined) this.dispatchEvent(new CustomEvent("rev", { detail }));
    } else if (status < 300) {
      this.queue = this.queue.filter((event) => !batch.includes(event));
      this.#keep([], batch.map((event) => event.id));
      this.dispatchEvent(new CustomEvent("submitted", { detail: { task: batch[0].task, body } }));
    } else {
      // One bad edit must not hold up the others: the server names it, or we set aside the batch.
      const named = batch.filter((event) => event.id === body?.event);
      for (const event of named.length ? named : batch) {
        event.problem = body?.detail || body?.title || `HTTP ${status}`;
        this.#keep([event], []);
      }
    }
    this.#tell();
  }

  #conflict(event, theirs) {
    const same = theirs.deleted
      ? event.op === "delete"
      : event.data && JSON.stringify([theirs.kind, theirs.label, theirs.rings]) ===
          JSON.stringify([event.data.kind, event.data.label, event.data.rings]);
    const events = this.queue.filter((entry) => entry.shape === event.shape && entry.task === event.task);
    if (same && events.length === 1) {
      this.revs.set(event.shape, theirs.rev);
      this.queue = this.queue.filter((entry) => entry !== event);
      this.#keep([], [event.id]);
      return;
    }
    for (const entry of events) entry.theirs = theirs;
    this.#keep(events, []);
  }

  #later(state) {
    this.#set(state);
    const { retryMs } = Journal;
    this.soon(retryMs[Math.min(this.failures++, retryMs.length - 1)]);
  }

  #keep(put, remove) {
    const copies = put.map((event) => ({ ...event }));
    this.writing = this.writing.then(() => this.shelf.write("events", copies, remove));
    return this.writing;
  }

  #set(state) {
    this.state = state;
    this.#tell();
  }

  #tell() {
    this.dispatchEvent(new Event("state"));
  }
}

const asSent = ({ id, shape, op, base, data }) => ({ id, shape, op, base, ...(data ?? {}) });
