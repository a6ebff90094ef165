// The list of tasks: tick all, and a dialog that says how many are to be stopped. The rows may be fetched anew.
import { t } from "../base/i18n.js";

/** @returns {HTMLFormElement | null} */
const form = () => document.querySelector("#stop-tasks");
/** @type {() => NodeListOf<HTMLInputElement>} */
const boxes = () => document.querySelectorAll('#stop-tasks input[name="job"]');

function judge() {
  if (!form()) return;
  const there = [...boxes()];
  const count = there.filter((box) => box.checked).length;
  /** @type {HTMLInputElement} */
  const all = document.querySelector("#stop-tasks [data-tick-all]");
  /** @type {HTMLButtonElement} */
  const button = document.querySelector('#stop-tasks [data-dialog-open="stop-chosen"]');
  all.hidden = there.length === 0;
  all.checked = count > 0 && count === there.length;
  all.indeterminate = count > 0 && count < there.length;
  button.disabled = count === 0;
  document.querySelector("#stop-tasks [data-stop-title]").textContent =
    count === 1 ? t("Stop 1 job?") : t("Stop %(count)s jobs?", { count });
}

document.addEventListener("change", (event) => {
  const box = /** @type {HTMLInputElement} */ (event.target);
  if (!form()?.contains(box)) return;
  if (box.matches("[data-tick-all]")) for (const one of boxes()) one.checked = box.checked;
  judge();
});
document.addEventListener("listshown", judge);
addEventListener("pageshow", judge);
judge();
