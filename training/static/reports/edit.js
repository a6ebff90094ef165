// Writing a report: panels to insert, the preview beside the text, keys, and a question before what was typed is lost.
import { csrfToken } from "../base/api.js";
import { t } from "../base/i18n.js";
import { toast } from "../base/toast.js";

const form = /** @type {HTMLFormElement} */ (document.querySelector("[data-report-form]"));
const text = /** @type {HTMLTextAreaElement} */ (form.querySelector("[data-report-text]"));
const box = /** @type {HTMLElement} */ (form.querySelector("[data-preview-box]"));
const shown = /** @type {HTMLElement} */ (form.querySelector("[data-preview-text]"));
const PAUSE_MS = 700;
let sending = false;
const typed = () => JSON.stringify([...new FormData(form)]);
const before = typed();

for (const part of form.querySelectorAll("[data-snippets], [data-keys]")) /** @type {HTMLElement} */ (part).hidden = false;

/** Put a panel where the cursor stands, on lines of its own. @param {string} panel */
function insert(panel) {
  const head = text.value.slice(0, text.selectionStart);
  const gap = !head || head.endsWith("\n\n") ? "" : head.endsWith("\n") ? "\n" : "\n\n";
  text.setRangeText(`${gap}${panel}\n`, text.selectionStart, text.selectionEnd, "end");
  text.focus();
  follow();
}

/** @param {boolean} [moves] whether to bring the preview into view */
async function preview(moves = true) {
  box.hidden = false;
  shown.setAttribute("aria-busy", "true");
  try {
    const body = new FormData(form);
    const headers = { "HX-Request": "true", "X-CSRFToken": csrfToken() };
    const answer = await fetch(String(form.dataset.previewUrl), { method: "POST", body, headers });
    if (!answer.ok) throw new Error(String(answer.status));
    shown.innerHTML = await answer.text();
    if (moves) box.scrollIntoView({ block: "nearest" });
  } catch {
    toast(t("The preview could not be created. Save, or try again."));
  } finally {
    shown.removeAttribute("aria-busy");
  }
}

form.addEventListener("click", ({ target }) => {
  const button = /** @type {Element} */ (target).closest("button");
  if (button?.dataset.snippet) insert(button.dataset.snippet);
});
form.addEventListener("submit", (event) => {
  const button = /** @type {SubmitEvent} */ (event).submitter;
  if (button?.hasAttribute("data-preview")) {
    event.preventDefault();
    preview();
    return;
  }
  sending = true;
});
form.addEventListener("keydown", (event) => {
  if (!(event.ctrlKey || event.metaKey)) return;
  if (event.key === "s") form.requestSubmit(/** @type {HTMLElement} */ (form.querySelector(".btn-primary")));
  else if (event.key === "Enter") preview();
  else return;
  event.preventDefault();
});
// beside the text where the window is wide enough, as one writes
const wide = matchMedia("(min-width: 1280px)");
/** @type {ReturnType<typeof setTimeout> | undefined} */
let timer;
function follow() {
  clearTimeout(timer);
  if (wide.matches) timer = setTimeout(() => preview(false), PAUSE_MS);
}
text.addEventListener("input", follow);
if (wide.matches) box.hidden = false;
if (text.value && wide.matches) preview(false);

window.addEventListener("beforeunload", (event) => {
  if (!sending && typed() !== before) event.preventDefault();
});
