// Global search: "/" goes there, arrows choose, Enter opens. Answers come from /search/, what one may see only.
import { api, explain } from "./api.js";
import { icon } from "./icons.js";
import { t } from "./i18n.js";

const box = document.querySelector("[data-search]");
const input = box?.querySelector("input");
const list = box?.querySelector(".search-list");
const PAUSE_MS = 160;
let timer = 0;
/** @type {AbortController | null} */
let running = null;
let chosen = -1;

function close() {
  list.hidden = true;
  chosen = -1;
  input.setAttribute("aria-expanded", "false");
  input.removeAttribute("aria-activedescendant");
}

function note(text) {
  const line = document.createElement("div");
  line.className = "found-note";
  line.setAttribute("role", "option");
  line.setAttribute("aria-disabled", "true");
  line.textContent = text;
  list.replaceChildren(line);
}

function show(hits) {
  chosen = -1;
  if (!hits.length) {
    note(t("Nothing found."));
  } else {
    list.replaceChildren(
      ...hits.map((hit, at) => {
        const link = document.createElement("a");
        link.className = "found-hit";
        link.id = `search-hit-${at}`;
        link.href = hit.url;
        link.setAttribute("role", "option");
        link.tabIndex = -1;
        const name = Object.assign(document.createElement("span"), { className: "grow cut", textContent: hit.name });
        const kind = Object.assign(document.createElement("span"), { className: "muted small", textContent: hit.kind });
        link.append(icon(hit.icon), name, kind);
        return link;
      }),
    );
  }
  list.hidden = false;
  input.setAttribute("aria-expanded", "true");
}

async function ask() {
  const words = input.value.trim();
  running?.abort();
  if (!words) {
    close();
    return;
  }
  const asking = new AbortController();
  running = asking;
  try {
    const found = await api.get(`${box.dataset.search}?q=${encodeURIComponent(words)}`, { signal: asking.signal });
    show(found.results);
  } catch (error) {
    explain(error);
  }
}

function choose(step) {
  const hits = [...list.querySelectorAll(".found-hit")];
  if (!hits.length) return;
  hits[chosen]?.removeAttribute("aria-selected");
  chosen = (chosen + step + hits.length) % hits.length;
  hits[chosen].setAttribute("aria-selected", "true");
  hits[chosen].scrollIntoView({ block: "nearest" });
  input.setAttribute("aria-activedescendant", hits[chosen].id);
}

if (box) {
  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(ask, PAUSE_MS);
  });
  input.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      choose(event.key === "ArrowDown" ? 1 : -1);
    } else if (event.key === "Enter") {
      const hits = list.querySelectorAll(".found-hit");
      (hits[chosen] || hits[0])?.click();
      event.preventDefault();
    } else if (event.key === "Escape") {
      close();
      input.value = "";
      input.blur();
    }
  });
  document.addEventListener("click", (event) => {
    if (!event.composedPath().includes(box)) close();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
    if (/** @type {Element} */ (event.target).closest?.("input, textarea, select, [contenteditable], dialog[open]")) return;
    event.preventDefault();
    input.focus();
  });
}
