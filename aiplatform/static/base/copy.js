// <button data-copy="text"> or <button data-copy-from="#id">: copies and says so on the button.
import { t } from "./i18n.js";
import { icon } from "./icons.js";
import { toast } from "./toast.js";

/** Put `text` on the clipboard; true when it is there. Falls back where the page is served without TLS. */
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = Object.assign(document.createElement("textarea"), { value: text, className: "sr-only" });
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}

document.addEventListener("click", async (event) => {
  const button = /** @type {Element} */ (event.target).closest?.("[data-copy], [data-copy-from]");
  if (!button) return;
  /** @type {HTMLElement & {value?: string} | null} */
  const from = button.dataset.copyFrom ? document.querySelector(button.dataset.copyFrom) : null;
  const text = from ? (from.value ?? from.textContent) : button.dataset.copy;
  if (!(await copyText(text))) {
    toast(t("The browser did not allow copying. Select the text and copy it manually."), "fail");
    return;
  }
  const shown = button.querySelector(".icon");
  if (shown) {
    const tick = icon("check");
    shown.replaceWith(tick);
    setTimeout(() => tick.replaceWith(shown), 1500);
  }
  toast(t("Copied"), "ok");
});
