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

// Arrow keys walk from image to image where a page has neighbours.
document.addEventListener("keydown", (event) => {
  if (/** @type {Element} */ (event.target).closest("input, select, textarea, dialog") || event.ctrlKey || event.metaKey || event.altKey) return;
  const way = { ArrowLeft: "prev", ArrowRight: "next" }[event.key];
  const link = way && document.querySelector(`.page-actions a[rel=${way}]`);
  if (link) link.click();
});
