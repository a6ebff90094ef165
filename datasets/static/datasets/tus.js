// A tus 1.0 client: sends a file in checked pieces, goes on after any break, remembers where in localStorage.
//
//   const upload = new TusUpload(file, { onProgress({ sent, total, rate, eta }), onState(state, text), onDone(id) });
//   upload.start();  upload.pause();  upload.remove();
//
// States: "sending", "paused", "retrying", "done", "failed".
import { csrfToken } from "../base/api.js";
import { t } from "../base/i18n.js";

const ENDPOINT = "/uploads/tus/";
const PIECE = 16 * 1024 * 1024;
const WAITS_MS = [500, 1000, 2000, 4000, 8000, 15000, 30000];
const BUSY_MS = 1000; // the server still holds the request of a page that was left; it lets go within seconds
const RATE_WINDOW_MS = 5000;

/** Key under which an upload of this very file is remembered. */
export function fingerprint(file) {
  return `tus:${file.name}:${file.size}:${file.lastModified}`;
}

/** Uploads begun in this browser and not finished: [{key, name, size, url}]. */
export function unfinished() {
  const found = [];
  for (let index = 0; index < localStorage.length; index += 1) {
    const key = localStorage.key(index) ?? "";
    if (!key.startsWith("tus:")) continue;
    try {
      found.push({ key, ...JSON.parse(localStorage.getItem(key) ?? "") });
    } catch {
      localStorage.removeItem(key);
    }
  }
  return found;
}

/** The offset the server has for an upload, or null where it is gone. */
export async function offsetOf(url) {
  const answer = await fetch(url, { method: "HEAD", headers: { "Tus-Resumable": "1.0.0" }, cache: "no-store" });
  return answer.ok ? Number(answer.headers.get("Upload-Offset")) : null;
}

/** Forget an upload that is on the server. */
export async function discard(id) {
  const headers = { "Tus-Resumable": "1.0.0", "X-CSRFToken": csrfToken() };
  await fetch(`${ENDPOINT}${id}`, { method: "DELETE", headers }).catch(() => {});
}

class Gone extends Error {}
class Busy extends Error {}
class Refused extends Error {}

export class TusUpload {
  /**
   * @param {File} file
   * @param {object} told
   * @param {(now: {sent: number, total: number, rate: number, eta: number}) => void} told.onProgress  bytes, bytes/s, s
   * @param {(state: "sending" | "paused" | "retrying" | "done" | "failed", text: string) => void} told.onState
   * @param {(id: string) => void} told.onDone
   */
  constructor(file, { onProgress, onState, onDone }) {
    this.file = file;
    this.onProgress = onProgress;
    this.onState = onState;
    this.onDone = onDone;
    this.key = fingerprint(file);
    /** @type {string | null} */
    this.url = null;
    this.running = false;
    /** @type {[number, number][]} */
    this.samples = []; // [ms, bytes]
    this.failures = 0;
  }

  async start() {
    if (this.running) return;
    this.running = true;
    this.samples = [];
    while (this.running) {
      try {
        this.onState("sending", "");
        await this.#send();
        return;
      } catch (error) {
        if (!this.running) return;
        if (error instanceof Refused) {
          this.running = false;
          this.onState("failed", error.message);
          return;
        }
        if (error instanceof Gone) this.#forget();
        if (!(error instanceof Busy)) this.failures += 1;
        const wait = error instanceof Busy ? BUSY_MS : WAITS_MS[Math.min(this.failures, WAITS_MS.length) - 1];
        this.onState("retrying", t("The connection was lost. Retrying in %(seconds)s s.", { seconds: Math.round(wait / 100) / 10 }));
        await this.#sleep(wait);
      }
    }
  }

  pause() {
    this.running = false;
    this.request?.abort();
    this.wake?.();
    this.onState("paused", t("Paused. The uploaded part is kept."));
  }

  /** Give the upload up, here and on the server. */
  async remove() {
    this.running = false;
    this.request?.abort();
    this.wake?.();
    const url = this.url;
    this.#forget();
    if (url) await fetch(url, { method: "DELETE", headers: this.#headers() }).catch(() => {});
  }

  async #send() {
    let offset = await this.#begin();
    while (this.running && offset < this.file.size) {
      const piece = this.file.slice(offset, offset + PIECE);
      const headers = { "Upload-Offset": String(offset), "Content-Type": "application/offset+octet-stream" };
      const checksum = await digest(piece);
      if (checksum) headers["Upload-Checksum"] = `sha256 ${checksum}`;
      if (!this.running) return;
      offset = await this.#patch(piece, offset, headers);
      this.failures = 0;
    }
    if (offset < this.file.size) return;
    this.running = false;
    localStorage.removeItem(this.key);
    this.onProgress({ sent: offset, total: this.file.size, rate: 0, eta: 0 });
    this.onState("done", "");
    this.onDone(this.url?.split("/").pop() ?? "");
  }

  /** Offset to go on from: of the remembered upload, or of a new one. */
  async #begin() {
    const known = JSON.parse(localStorage.getItem(this.key) || "null");
    this.url = this.url || known?.url || null;
    if (this.url) {
      const offset = await offsetOf(this.url);
      if (offset !== null) return offset;
      this.#forget();
    }
    const answer = await fetch(ENDPOINT, {
      method: "POST",
      headers: { ...this.#headers(), "Upload-Length": String(this.file.size), "Upload-Metadata": `filename ${base64(this.file.name)}` },
    });
    if (answer.status !== 201) throw await refusal(answer);
    this.url = new URL(answer.headers.get("Location") ?? "", location.href).pathname;
    localStorage.setItem(this.key, JSON.stringify({ url: this.url, name: this.file.name, size: this.file.size }));
    return 0;
  }

  #patch(piece, offset, headers) {
    return new Promise((resolve, reject) => {
      const request = new XMLHttpRequest();
      this.request = request;
      request.open("PATCH", this.url ?? "");
      for (const [name, value] of Object.entries({ ...this.#headers(), ...headers })) request.setRequestHeader(name, value);
      request.upload.addEventListener("progress", (event) => this.#tell(offset + event.loaded));
      request.addEventListener("load", () => {
        if (request.status === 204) resolve(Number(request.getResponseHeader("Upload-Offset")));
        else if (request.status === 404 || request.status === 410) reject(new Gone());
        else if (request.status === 423) reject(new Busy());
        else if ([409, 429, 460].includes(request.status) || request.status >= 500 && request.status !== 507) reject(new Error());
        else reject(new Refused(sentence(request.responseText)));
      });
      request.addEventListener("error", () => reject(new Error()));
      request.addEventListener("abort", () => reject(new Error()));
      request.send(piece);
    });
  }

  #tell(sent) {
    const now = performance.now();
    this.samples.push([now, sent]);
    while (this.samples.length > 2 && now - this.samples[0][0] > RATE_WINDOW_MS) this.samples.shift();
    const [since, before] = this.samples[0];
    const rate = now > since ? ((sent - before) * 1000) / (now - since) : 0;
    this.onProgress({ sent, total: this.file.size, rate, eta: rate ? (this.file.size - sent) / rate : Infinity });
  }

  #headers() {
    return { "Tus-Resumable": "1.0.0", "X-CSRFToken": csrfToken() };
  }

  #forget() {
    localStorage.removeItem(this.key);
    this.url = null;
  }

  #sleep(wait) {
    return /** @type {Promise<void>} */ (new Promise((resolve) => {
      const timer = setTimeout(resolve, wait);
      this.wake = () => {
        clearTimeout(timer);
        resolve();
      };
    }));
  }
}

async function refusal(answer) {
  if (answer.status >= 500 && answer.status !== 507) return new Error();
  return new Refused(sentence(await answer.text()));
}

function sentence(text) {
  try {
    return JSON.parse(text).detail;
  } catch {
    return t("The platform did not accept the file.");
  }
}

/** base64 of the SHA-256 of a piece; null where the browser offers none (plain http on another machine). */
async function digest(piece) {
  if (!globalThis.crypto?.subtle) return null;
  const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", await piece.arrayBuffer()));
  return btoa(String.fromCharCode(...hash));
}

function base64(text) {
  return btoa(String.fromCharCode(...new TextEncoder().encode(text)));
}
