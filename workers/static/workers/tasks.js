// The list of tasks: tick all, and a dialog that says how many are to be stopped.
import { t } from "../base/i18n.js";

const form = document.getElementById("stop-tasks");
if (form) {
  const boxes = [.../** @type {NodeListOf<HTMLInputElement>} */ (form.querySelectorAll('input[name="job"]'))];
  /** @type {HTMLInputElement} */
  const all = form.querySelector("[data-tick-all]");
  /** @type {HTMLButtonElement} */
  const button = form.querySelector('[data-dialog-open="stop-chosen"]');
  const title = form.querySelector("[data-stop-title]");

  const judge = () => {
    const count = boxes.filter((box) => box.checked).length;
    all.checked = count > 0 && count === boxes.length;
    all.indeterminate = count > 0 && count < boxes.length;
    button.disabled = count === 0;
    title.textContent = count === 1 ? t("Stop 1 job?") : t("Stop %(count)s jobs?", { count });
  };
  all.hidden = boxes.length === 0;
  all.addEventListener("change", () => {
    for (const box of boxes) box.checked = all.checked;
    judge();
  });
  form.addEventListener("change", judge);
  addEventListener("pageshow", judge);
  judge();
}
