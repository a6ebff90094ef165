// One way to talk to the platform from a page: JSON in, JSON out, refusals as sentences.
//
//   import { api, explain } from "../base/api.js";
//   const job = await api.post("/api/v1/jobs/7/pause/");
//   api.patch(url, { name }).catch(explain);        // shows the platform's own sentence as a toast

import { t } from "./i18n.js";
import { toast } from "./toast.js";

/** A refusal or failure of the platform. `problem` is the RFC 9457 body, `status` 0 means no answer came. */
export class ApiError extends Error {
  constructor(status, problem) {
    super(sentence(problem));
    this.name = "ApiError";
    this.status = status;
    this.code = problem.code || "";
    this.problem = problem;
  }

  /** {field: "sentence"} for forms; empty when no field is to blame. */
  get fields() {
    const found = {};
    for (const [field, said] of Object.entries(this.problem.errors || {})) {
      found[field] = Array.isArray(said) ? said.join(" ") : String(said);
    }
    return found;
  }
}

function sentence(problem) {
  const errors = Object.values(problem.errors || {}).flat(Infinity).filter((said) => typeof said === "string");
  if (problem.code === "invalid" && errors.length) return errors.join(" ");
  return problem.detail || problem.title || t("The platform gave no reason.");
}

const KEPT = "csrf";

/** The token written in this page. */
function written() {
  /** @type {HTMLMetaElement | null} */
  const meta = document.querySelector('meta[name="csrf-token"]');
  return meta?.content ?? "";
}

try {
  localStorage.setItem(KEPT, written());
} catch {
  // no storage: this page's own token has to do
}

/**
 * The token that proves a request comes from our own page: that of the page loaded last, which signing in in another tab
 * renews, else the one written in this page. Cookies are no place for it: pages of jobs would read them, storage they
 * cannot.
 */
export function csrfToken() {
  try {
    return localStorage.getItem(KEPT) || written();
  } catch {
    return written();
  }
}

/**
 * @param {string} method
 * @param {string} url
 * @param {unknown} [body]  sent as JSON, but for files and forms, which are sent as they are
 * @param {{signal?: AbortSignal, headers?: Record<string, string>}} [options]
 */
async function call(method, url, body, { signal, headers = {} } = {}) {
  /** @type {RequestInit & {headers: Record<string, string>}} */
  const init = { method, signal, credentials: "same-origin", headers: { Accept: "application/json", ...headers } };
  if (method !== "GET") init.headers["X-CSRFToken"] = csrfToken();
  if (body instanceof FormData || body instanceof Blob) {
    init.body = body;
  } else if (body !== undefined) {
    init.headers["Content-Type"] = "application/json";
    init.body = JSON.stringify(body);
  }
  let answer;
  try {
    answer = await fetch(url, init);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, { code: "offline", detail: t("The platform does not respond. Check your connection and try again.") });
  }
  if (answer.status === 204) return null;
  const isJson = /json/.test(answer.headers.get("Content-Type") || "");
  const data = isJson ? await answer.json().catch(() => ({})) : {};
  if (answer.ok) return data;
  if (!data.detail && !data.errors) {
    data.detail = t("The platform responded with status %(status)s. Request ID: %(id)s", {
      status: answer.status,
      id: answer.headers.get("X-Request-Id") || "–",
    });
  }
  throw new ApiError(answer.status, data);
}

export const api = {
  get: (url, options) => call("GET", url, undefined, options),
  post: (url, body, options) => call("POST", url, body, options),
  put: (url, body, options) => call("PUT", url, body, options),
  patch: (url, body, options) => call("PATCH", url, body, options),
  delete: (url, options) => call("DELETE", url, undefined, options),
};

/** Show what went wrong as a toast; made for `.catch(explain)`. */
export function explain(error) {
  if (error.name === "AbortError") return;
  if (!(error instanceof ApiError)) throw error;
  toast(error.message, "fail");
}

/**
 * Send a form as a page would; the browser follows the redirect.
 * @param {string} url
 * @param {Record<string, string>} fields
 */
export function sendForm(url, fields) {
  const form = Object.assign(document.createElement("form"), { method: "post", action: url, hidden: true });
  for (const [name, value] of Object.entries({ ...fields, csrfmiddlewaretoken: csrfToken() })) {
    form.append(Object.assign(document.createElement("input"), { type: "hidden", name, value }));
  }
  document.body.append(form);
  form.submit();
}
