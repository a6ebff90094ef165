// What every page runs: side bar, menus, lists, search, times, copying, dialogs, toasts, theme.
import "./bell.js";
import "./copy.js";
import "./dialog.js";
import "./keepfiles.js";
import "./lists.js";
import "./menu.js";
import "./people.js";
import "./search.js";
import "./theme.js";
import "./time.js";
import { toast } from "./toast.js";
import { t } from "./i18n.js";

const root = document.documentElement;

/** Remember `value` where the browser lets us. */
function keep(value) {
  try {
    localStorage.setItem("aip.side", value);
  } catch {
    // storage is switched off: the choice lasts for this page
  }
}

for (const button of document.querySelectorAll("[data-side-fold]")) {
  const show = () => button.setAttribute("aria-expanded", String(root.dataset.side !== "slim"));
  button.addEventListener("click", () => {
    if (root.dataset.side === "slim") delete root.dataset.side;
    else root.dataset.side = "slim";
    keep(root.dataset.side || "wide");
    show();
  });
  show();
}

// narrow screens: the side bar comes over the page
const opener = document.querySelector("[data-side-open]");
function setOpen(open) {
  document.body.classList.toggle("side-open", open);
  opener.setAttribute("aria-expanded", String(open));
  if (open) document.querySelector(".side a")?.focus();
}
opener?.addEventListener("click", (event) => {
  setOpen(!document.body.classList.contains("side-open"));
  event.stopPropagation();
});
document.addEventListener("click", (event) => {
  if (opener && document.body.classList.contains("side-open") && !/** @type {Element} */ (event.target).closest(".side")) setOpen(false);
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && document.body.classList.contains("side-open")) {
    setOpen(false);
    opener.focus();
  }
});

// a control that files a form or follows an address as soon as it changes (filters, switchers)
document.addEventListener("change", (event) => {
  const control = /** @type {HTMLInputElement | HTMLSelectElement} */ (event.target);
  if (control.matches?.("[data-submit-on-change]")) control.form?.requestSubmit();
});

// htmx: say why when an answer was a refusal, or none came
document.addEventListener("htmx:responseError", (event) => {
  const answer = event.detail.xhr;
  let said = "";
  try {
    said = JSON.parse(answer.responseText).detail;
  } catch {
    said = decodeURIComponent(answer.getResponseHeader("X-Refusal") ?? "");
  }
  const id = answer.getResponseHeader("X-Request-Id") || "–";
  toast(said || t("The platform responded with status %(status)s. Request ID: %(id)s", { status: answer.status, id }), "fail");
});
document.addEventListener("htmx:sendError", () => {
  toast(t("The platform does not respond. Check your connection and try again."), "fail");
});
