// The trial of an import: images that are dropped on its form are tried at once.
import { onDrop } from "../base/drop.js";

/** @type {HTMLFormElement | null} */
const form = document.querySelector("form[data-examples]");
if (form) {
  onDrop(form, (files) => {
    const images = new DataTransfer();
    for (const file of files) images.items.add(file);
    /** @type {HTMLInputElement} */
    const input = form.querySelector("[name=pictures]"); // another one after a refusal
    input.files = images.files;
    form.requestSubmit();
  });
}
