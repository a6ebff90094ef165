import assert from "node:assert/strict";
import { afterEach, beforeEach, mock, test } from "node:test";
import { Journal, newId } from "../../annotation/static/annotation/journal.js";

const shape = (id, more = {}) => ({ id, kind: "bbox", label: 1, rings: [[0, 0, 1, 0, 1, 1, 0, 1]], ...more });
const drawn = (id, more) => [{ id, before: null, after: shape(id, more) }];
const removed = (id) => [{ id, before: shape(id), after: null }];

/** A journal whose server is `answer`; Node has no IndexedDB, so its shelf is memory. */
async function journal(answer) {
  const sent = [];
  globalThis.document.visibilityState = "visible";
  const made = await new Journal(1, {
    send: async (task, events) => {
      sent.push({ task, events });
      return answer(events);
    },
    submit: async (task, body) => {
      sent.push({ task, submit: body });
      return { status: 200, body: {} };
    },
  }).open();
  return { made, sent };
}
const stored = (events) => ({ status: 200, body: { rev: 9, results: events.map(({ id, base }) => ({ id, status: "stored", rev: base + 1 })) } });

beforeEach(() => mock.timers.enable({ apis: ["setTimeout"] })); // nothing is sent but by flush()
afterEach(() => mock.timers.reset());

test("newId gives version 4 UUIDs, never twice", () => {
  const ids = new Set(Array.from({ length: 100 }, newId));
  assert.equal(ids.size, 100);
  for (const id of ids) assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
});

test("edits of one shape that were not sent yet travel as one", async () => {
  const { made, sent } = await journal(stored);
  made.record(5, drawn("a"));
  made.record(5, drawn("a", { label: 2 }));
  assert.equal(made.pending, 1);
  await made.flush();
  assert.deepEqual(sent.map(({ task, events }) => [task, events.length, events[0].label]), [[5, 1, 2]]);
  assert.deepEqual([made.state, made.pending, made.revs.get("a")], ["saved", 0, 1]);
});

test("a shape drawn and deleted before it was sent is never sent", async () => {
  const { made, sent } = await journal(stored);
  made.record(5, drawn("a"));
  made.record(5, removed("a"));
  await made.flush();
  assert.deepEqual(sent, []);
});

test("the second edit of a shape goes with the next request, on the first one's revision", async () => {
  let more = true;
  const { made, sent } = await journal((events) => {
    if (more) made.record(5, drawn("a", { label: 7 })); // while the first one is on its way
    more = false;
    return stored(events);
  });
  made.learn([{ id: "a", rev: 3 }]);
  made.record(5, drawn("a"));
  await made.flush();
  assert.deepEqual(sent.map(({ events }) => [events[0].base, events[0].label]), [[3, 1], [4, 7]]);
});

test("without an answer edits wait and are sent again with the same id", async () => {
  let away = true;
  const { made, sent } = await journal((events) => {
    if (away) throw new Error("offline");
    return stored(events);
  });
  made.record(5, drawn("a"));
  await made.flush();
  assert.deepEqual([made.state, made.pending, made.failures], ["offline", 1, 1]);
  away = false;
  await made.flush();
  assert.equal(sent[0].events[0].id, sent[1].events[0].id);
  assert.deepEqual([made.state, made.failures], ["saved", 0]);
});

test("a signed-out answer keeps the edits, a forbidden one asks the person", async () => {
  const out = await journal(() => ({ status: 401, body: null }));
  out.made.record(5, drawn("a"));
  await out.made.flush();
  assert.deepEqual([out.made.state, out.made.pending], ["signed-out", 1]);

  const denied = await journal(() => ({ status: 403, body: { code: "forbidden", detail: "Not yours." } }));
  denied.made.record(5, drawn("a"));
  await denied.made.flush();
  assert.deepEqual(denied.made.refused.map(({ problem }) => problem), ["Not yours."]);
});

test("a conflict waits for a person, who may keep theirs", async () => {
  const theirs = { ...shape("a", { label: 8 }), rev: 4 };
  const { made, sent } = await journal((events) => {
    const [{ id, base }] = events;
    return base === 4 ? stored(events) : { status: 200, body: { results: [{ id, status: "conflict", theirs }] } };
  });
  made.record(5, drawn("a"));
  await made.flush();
  assert.deepEqual([made.conflicts.length, made.pending], [1, 0]);
  made.resolve("a", "mine");
  await made.flush();
  assert.equal(sent.at(-1).events[0].base, 4);
  assert.deepEqual([made.conflicts.length, made.revs.get("a")], [0, 5]);
});

test("a conflict with the same shape is none", async () => {
  const { made } = await journal(([{ id }]) => ({ status: 200, body: { results: [{ id, status: "conflict", theirs: { ...shape("a"), rev: 6 } }] } }));
  made.record(5, drawn("a"));
  await made.flush();
  assert.deepEqual([made.conflicts.length, made.queue.length, made.revs.get("a")], [0, 0, 6]);
});

test("a refused edit is set aside and holds up no other", async () => {
  const { made } = await journal((events) => {
    const bad = events.find(({ shape: id }) => id === "bad");
    return bad ? { status: 400, body: { event: bad.id, detail: "No area." } } : stored(events);
  });
  made.record(5, [...drawn("good"), ...drawn("bad")]);
  await made.flush();
  assert.deepEqual(made.refused.map(({ shape: id }) => id), ["bad"]);
  assert.equal(made.revs.get("good"), 1);
});

test("an image is submitted after its edits, and not while one of them needs a person", async () => {
  const { made, sent } = await journal(stored);
  made.record(5, drawn("a"));
  await made.submit(5, { empty: false });
  assert.deepEqual(sent.map((one) => Object.keys(one)[1]), ["events", "submit"]);

  const refusing = await journal(() => ({ status: 400, body: { detail: "No." } }));
  refusing.made.record(5, drawn("a"));
  await refusing.made.submit(5, { empty: false });
  assert.equal(refusing.sent.length, 1);
});
