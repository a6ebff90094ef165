// The annotator's words with the server. Answers come back as {status, body}; no answer rejects.

import { csrfToken } from "../base/api.js";

export class Net {
  /** @param base "/api/v1/annotation/projects/3/tasks/" */
  constructor(base) {
    this.base = base;
  }

  task(id) {
    return this.#call(`${this.base}${id}/`);
  }

  neighbour(id, which) {
    return this.#call(`${this.base}${id}/${which}/`);
  }

  shapes(id) {
    return this.#call(`${this.base}${id}/shapes/`);
  }

  /** What was stored on an image after a revision of it. */
  changes(id, rev) {
    return this.#call(`${this.base}${id}/changes/?since=${rev}`);
  }

  /** Images of a dataset from a number on, twenty at a time. */
  list(dataset, from) {
    return this.#call(`${this.base}?dataset=${dataset}&from=${from}`);
  }

  send(id, events) {
    return this.#call(`${this.base}${id}/shapes/`, { events });
  }

  submit(id, wish) {
    return this.#call(`${this.base}${id}/submit/`, wish);
  }

  review(id, verdict) {
    return this.#call(`${this.base}${id}/reviews/`, verdict);
  }

  async picture(id, signal) {
    const answer = await fetch(`${this.base}${id}/image/`, { signal });
    if (!answer.ok) throw new Error(String(answer.status));
    return createImageBitmap(await answer.blob());
  }

  /** The person's own keys, kept with the account. */
  keepKeys(keys) {
    return this.#call("/api/v1/me/", { annotator_keys: keys }, "PATCH");
  }

  async #call(url, body, method = "POST") {
    /** @type {RequestInit & {headers: Record<string, string>}} */
    const options = { headers: { Accept: "application/json" }, credentials: "same-origin" };
    if (body !== undefined) {
      options.method = method;
      options.headers["Content-Type"] = "application/json";
      options.headers["X-CSRFToken"] = csrfToken();
      const text = JSON.stringify(body);
      options.body = text;
      options.keepalive = text.length < 60000; // still sent while the page closes
    }
    const answer = await fetch(url, options);
    const json = answer.headers.get("Content-Type")?.includes("json");
    return { status: answer.status, body: json ? await answer.json() : null };
  }
}
