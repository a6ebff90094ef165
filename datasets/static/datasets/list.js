// Filter bars apply themselves when a choice changes; without this script the button does it.
/** @type {NodeListOf<HTMLFormElement>} */
const forms = document.querySelectorAll("[data-autosubmit]");
for (const form of forms) {
  form.addEventListener("change", (event) => {
    if (/** @type {Element} */ (event.target).matches("select")) form.requestSubmit();
  });
}
