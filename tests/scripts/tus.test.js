import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { beforeEach, test } from "node:test";
import { TusUpload, fingerprint, offsetOf, unfinished } from "../../datasets/static/datasets/tus.js";

const CONTENT = "0123456789";
const file = () => Object.assign(new Blob([CONTENT]), { name: "images.zip", lastModified: 7 });
/** A tus server with one upload, and the answers of PATCHes that fail first; 0 is a broken line. */
const server = { bytes: 0, url: "", failures: [], asked: [], refuse: 0 };

globalThis.fetch = async (url, { method, headers = {} }) => {
  server.asked.push(method);
  if (method === "POST") {
    if (server.refuse) return { status: server.refuse, text: async () => '{"detail": "The quota is used up."}' };
    server.url = `/uploads/tus/${headers["Upload-Metadata"].length}`;
    server.bytes = 0;
    return { status: 201, headers: new Headers({ Location: server.url }) };
  }
  if (method === "DELETE") server.url = "";
  const there = new URL(url, location.href).pathname === server.url;
  return { ok: there, headers: new Headers({ "Upload-Offset": String(server.bytes) }) };
};

globalThis.XMLHttpRequest = class extends EventTarget {
  upload = new EventTarget();
  headers = {};
  open(method) {
    server.asked.push(method);
  }
  setRequestHeader(name, value) {
    this.headers[name] = value;
  }
  getResponseHeader() {
    return String(server.bytes);
  }
  abort() {
    this.dispatchEvent(new Event("abort"));
  }
  send(piece) {
    const failure = server.failures.shift();
    this.status = failure ?? 204;
    this.responseText = '{"detail": "This is no ZIP file."}';
    server.checksum = this.headers["Upload-Checksum"];
    if (failure === undefined) server.bytes = Number(this.headers["Upload-Offset"]) + piece.size;
    queueMicrotask(() => this.dispatchEvent(new Event(failure === 0 ? "error" : "load")));
  }
};

/** Upload the file; what the page was told. */
async function upload(act = () => undefined) {
  const told = { states: [], done: null, progress: null, words: "" };
  const made = new TusUpload(file(), {
    onProgress: (now) => Object.assign(told, { progress: now }),
    onState: (state, words) => {
      told.states.push(state);
      told.words = words;
      act(state, made);
      if (state === "retrying") queueMicrotask(() => made.wake()); // no test waits for a pause
    },
    onDone: (id) => Object.assign(told, { done: id }),
  });
  await made.start();
  return told;
}

beforeEach(() => {
  localStorage.clear();
  Object.assign(server, { bytes: 0, url: "", failures: [], asked: [], refuse: 0, checksum: "" });
});

test("an upload creates, sends, checks and forgets", async () => {
  const told = await upload();
  assert.deepEqual(server.asked, ["POST", "PATCH"]);
  assert.deepEqual([server.bytes, told.states, told.done], [10, ["sending", "done"], server.url.split("/").pop()]);
  assert.equal(server.checksum, `sha256 ${createHash("sha256").update(CONTENT).digest("base64")}`);
  assert.deepEqual(told.progress, { sent: 10, total: 10, rate: 0, eta: 0 });
  assert.deepEqual(unfinished(), []);
});

test("an upload goes on from the server's offset in another tab", async () => {
  Object.assign(server, { url: "/uploads/tus/7", bytes: 4 });
  localStorage.setItem(fingerprint(file()), JSON.stringify({ url: server.url, name: "images.zip", size: 10 }));
  assert.equal(unfinished()[0].url, "/uploads/tus/7");
  const told = await upload();
  assert.deepEqual(server.asked, ["HEAD", "PATCH"]);
  assert.deepEqual([server.bytes, told.done], [10, "7"]);
});

test("an upload the server has forgotten begins anew", async () => {
  localStorage.setItem(fingerprint(file()), JSON.stringify({ url: "/uploads/tus/gone", name: "images.zip", size: 10 }));
  await upload();
  assert.deepEqual(server.asked, ["HEAD", "POST", "PATCH"]);
  assert.equal(await offsetOf("/uploads/tus/gone"), null);
});

test("a broken line and a busy server are tried again from the offset", async () => {
  server.failures = [0, 503, 423];
  const told = await upload();
  assert.deepEqual(told.states, ["sending", "retrying", "sending", "retrying", "sending", "retrying", "sending", "done"]);
  assert.deepEqual(server.asked, ["POST", "PATCH", "HEAD", "PATCH", "HEAD", "PATCH", "HEAD", "PATCH"]);
});

test("an upload that another request still holds is tried again each second, not ever later", async () => {
  server.failures = Array(8).fill(423);
  const waits = new Set();
  const held = await upload((state, made) => state === "retrying" && queueMicrotask(() => waits.add(made.failures)));
  assert.deepEqual([held.states.at(-1), [...waits]], ["done", [0]]);
});

test("an upload that vanished on the way begins anew", async () => {
  server.failures = [404];
  await upload();
  assert.deepEqual(server.asked, ["POST", "PATCH", "POST", "PATCH"]);
});

test("a refusal ends the upload with the server's sentence", async () => {
  server.failures = [400];
  const piece = await upload();
  assert.deepEqual([piece.states, piece.words], [["sending", "failed"], "This is no ZIP file."]);
  server.refuse = 507;
  localStorage.clear();
  const whole = await upload();
  assert.deepEqual([whole.states, whole.words], [["sending", "failed"], "The quota is used up."]);
});

test("a paused upload keeps its place, a removed one leaves nothing", async () => {
  server.failures = [0];
  await upload((state, made) => state === "retrying" && made.pause());
  assert.equal(unfinished().length, 1);
  server.failures = [0];
  server.asked = [];
  await upload((state, made) => state === "retrying" && void made.remove());
  assert.deepEqual([unfinished(), server.asked.at(-1)], [[], "DELETE"]);
});

test("what cannot be read of unfinished uploads is thrown away", () => {
  localStorage.setItem("tus:bent", "{");
  assert.deepEqual(unfinished(), []);
  assert.equal(localStorage.getItem("tus:bent"), null);
});
