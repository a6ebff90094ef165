// Forms that bring files are sent in the background: where something is refused, the page says so and the chosen files
// stay chosen. A browser forgets them with the page. Without scripts the form is sent as any other.
import { showNames } from "./file_fields.js";

/** Put what the answer shows into the form, with the files that are chosen in it. */
function showRefusal(form, shown) {
  for (const blank of shown.querySelectorAll('input[type="file"]')) {
    const chosen = form.querySelector(`input[type="file"][name="${CSS.escape(blank.name)}"]`);
    if (!chosen?.files.length) continue;
    for (const name of ["aria-invalid", "aria-describedby"]) {
      if (blank.hasAttribute(name)) chosen.setAttribute(name, blank.getAttribute(name));
      else chosen.removeAttribute(name);
    }
    blank.closest(".form-row")?.querySelector("[data-choose-again]")?.remove();
    blank.replaceWith(chosen);
    showNames(chosen);
  }
  form.replaceChildren(...shown.childNodes);
  /** @type {any} */ (globalThis).htmx?.process(form); // parts that are loaded later
  form.dispatchEvent(new Event("input", { bubbles: true })); // scripts of the form show what belongs to its values
  form.querySelector('[aria-invalid="true"], [role="alert"]')?.focus();
}

document.addEventListener("submit", async (event) => {
  const form = /** @type {HTMLFormElement} */ (event.target);
  if (!form.matches?.("[data-keeps-files]") || form.hasAttribute("aria-busy")) return;
  event.preventDefault();
  form.setAttribute("aria-busy", "true");
  try {
    const body = new FormData(form, event.submitter); // which of its buttons it was
    const answer = await fetch(form.getAttribute("action") || location.href, { method: "POST", body });
    if (answer.redirected) {
      location.assign(answer.url);
      return;
    }
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const shown = page.querySelector("form[data-keeps-files]");
    if (answer.status !== 422 || !shown) throw new Error(`answered ${answer.status}`);
    showRefusal(form, shown);
    form.removeAttribute("aria-busy");
  } catch {
    form.requestSubmit(event.submitter); // shows what is wrong as a page of its own
  }
});
