// The dialog that converts a dataset explains the chosen format alone.
/** @param {Element} dialog */
function follow(dialog) {
  /** @type {HTMLSelectElement | null} */
  const choice = dialog.querySelector("select[name=target]");
  /** @type {NodeListOf<HTMLElement>} */
  const notes = dialog.querySelectorAll("[data-format-help]");
  const show = () => {
    for (const note of notes) note.hidden = note.dataset.formatHelp !== choice?.value;
  };
  choice?.addEventListener("change", show);
  show();
}

for (const dialog of document.querySelectorAll("dialog:has([data-format-help])")) follow(dialog);
