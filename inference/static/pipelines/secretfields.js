// A choice among the reader's secrets, by name. Names alone: no page knows a value.
import { t } from "../base/i18n.js";
import { el } from "./dom.js";

/** The names that a value holds: a list, or a text with commas. */
export const namesIn = (value) => (Array.isArray(value) ? value.map(String) : String(value ?? "").split(/[\s,;]+/)).filter(Boolean);

/** What is said below such a field: where secrets are stored. */
export const aboutSecrets = () => el("a", "", { href: "/account/secrets/", target: "_blank", rel: "noopener" }, t("Your secrets"));

/** Boxes for a list of names; those that the step names and the reader does not have stay, so that they can be taken out. */
export function secretsControl({ change, close, secrets = [], disabled = false }, label) {
  const control = el("div", "stack stack-tight", { role: "group", tabindex: "-1", "aria-label": label });
  let shown = "";
  const show = (value) => {
    const chosen = namesIn(value);
    const names = [...new Set([...secrets, ...chosen])];
    if (shown === JSON.stringify([names, chosen])) return;
    shown = JSON.stringify([names, chosen]);
    const held = document.activeElement instanceof HTMLInputElement && control.contains(document.activeElement) ? document.activeElement.value : "";
    control.replaceChildren(...names.map((name) => {
      const box = /** @type {HTMLInputElement} */ (el("input", "", { type: "checkbox", value: name, disabled }));
      box.checked = chosen.includes(name);
      box.addEventListener("change", () => {
        const boxes = /** @type {HTMLInputElement[]} */ ([...control.querySelectorAll("input")]);
        const now = boxes.filter((one) => one.checked).map((one) => one.value);
        change(now.length ? now : undefined);
        close();
      });
      return el("label", "check", {}, box, el("span", "mono", {}, name));
    }));
    if (!names.length) control.append(el("p", "muted small", {}, t("You have no secrets yet.")));
    if (held) /** @type {HTMLElement | null} */ (control.querySelector(`input[value="${CSS.escape(held)}"]`))?.focus();
  };
  show(undefined);
  return { control, show };
}
