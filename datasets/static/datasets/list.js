// Filter bars apply themselves when a choice changes; without this script the button does it.
for (const form of document.querySelectorAll("[data-autosubmit]")) {
  form.addEventListener("change", (event) => {
    if (event.target.matches("select")) form.requestSubmit();
  });
}
