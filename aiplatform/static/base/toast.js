// Short news at the corner of the page. Failures stay until closed, the rest goes by itself.
import { icon } from "./icons.js";
import { t } from "./i18n.js";

const STAY_MS = 6000;

function region() {
  let box = document.querySelector(".toasts");
  if (!box) {
    box = document.createElement("div");
    box.className = "toasts";
    box.setAttribute("role", "status");
    box.setAttribute("aria-live", "polite");
    document.body.append(box);
  }
  return box;
}

/**
 * Say `text`. `kind`: "info", "ok" or "fail". Returns the element, for an early end by `.remove()`.
 * @param {string} text
 * @param {string} [kind]
 * @param {{href?: string, more?: string}} [link]  where more of it stands, and the word that leads there
 */
export function toast(text, kind = "info", { href = "", more = "" } = {}) {
  for (const old of document.querySelectorAll(".toast")) if (old.querySelector("p")?.textContent === text) old.remove(); // said again
  const item = document.createElement("div");
  item.className = `toast toast-${kind}`;
  const words = document.createElement("p");
  words.textContent = text;
  const close = document.createElement("button");
  close.type = "button";
  close.className = "btn btn-quiet btn-icon btn-small";
  close.setAttribute("aria-label", t("Close"));
  close.append(icon("close"));
  close.addEventListener("click", () => item.remove());
  if (href) words.append(" ", Object.assign(document.createElement("a"), { href, textContent: more }));
  item.append(words, close);
  region().append(item);
  if (kind !== "fail") setTimeout(() => item.remove(), STAY_MS);
  return item;
}

// htmx answers may carry HX-Trigger: {"toast": {"text": "…", "kind": "ok"}}
document.addEventListener("toast", (event) => toast(event.detail.text ?? event.detail.value ?? "", event.detail.kind));
