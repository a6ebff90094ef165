// What every page runs: side bar, menus, lists, search, times, copying, dialogs, toasts, theme.
import "./bell.js";
import "./copy.js";
import "./dialog.js";
import "./keys.js";
import "./lists.js";
import "./menu.js";
import "./selection.js";
import "./side.js";
import "./theme.js";
import "./time.js";
import { toast } from "./toast.js";
import { t } from "./i18n.js";

// fields for files and for users, which few pages have
if (document.querySelector("form[data-keeps-files], [data-drop-file]")) import("./keepfiles.js");
if (document.querySelector("textarea[data-people]")) import("./people.js");

// the current tab is visible where the row of tabs is wider than the window
for (const tab of document.querySelectorAll(".tabs > [aria-current]")) {
  const row = /** @type {HTMLElement} */ (tab.parentElement);
  row.scrollLeft = /** @type {HTMLElement} */ (tab).offsetLeft - row.offsetLeft - (row.clientWidth - tab.clientWidth) / 2;
}

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
