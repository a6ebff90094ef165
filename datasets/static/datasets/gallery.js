// Shows or hides the annotations over images, and remembers it.
const KEY = "datasets.show-shapes";
/** @type {HTMLInputElement | null} */
const box = document.querySelector("[data-show-shapes]");

function apply() {
  for (const gallery of document.querySelectorAll("[data-gallery]")) gallery.classList.toggle("no-shapes", !box?.checked);
}

if (box) {
  box.checked = localStorage.getItem(KEY) !== "0";
  box.addEventListener("change", () => {
    localStorage.setItem(KEY, box.checked ? "1" : "0");
    apply();
  });
  apply();
}
