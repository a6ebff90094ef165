// What people say of a run: sent at once, and shown by the page anew.
import { api, explain } from "../base/api.js";

const root = /** @type {HTMLElement} */ (document.querySelector("[data-run]"));

/** @param {Record<string, any>} said */
const change = (said) => api.patch(root.dataset.run, said).then(() => location.reload()).catch(explain);

const star = document.querySelector("[data-star]");
star?.addEventListener("click", () => {
  const now = star.getAttribute("aria-pressed") !== "true";
  api.patch(root.dataset.run, { star: now }).then(() => star.setAttribute("aria-pressed", String(now))).catch(explain);
});
root.addEventListener("submit", (event) => {
  event.preventDefault();
  const form = /** @type {HTMLFormElement} */ (event.target);
  const values = Object.fromEntries(new FormData(form));
  change("tag" in values ? { add_tags: String(values.tag).split(",") } : values);
});
document.addEventListener("click", ({ target }) => {
  const button = /** @type {Element} */ (target).closest?.("button");
  if (button?.dataset.untag) change({ drop_tags: [button.dataset.untag] });
  if (button?.dataset.archived) change({ archived: button.dataset.archived !== "true" });
});
