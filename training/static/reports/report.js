// One report: printing, and the keyboard.
/** @type {HTMLLinkElement | null} */
const dark = document.querySelector("#dark-theme");
let worn = "";

document.querySelector("[data-print]")?.addEventListener("click", () => window.print());
window.addEventListener("beforeprint", () => {
  if (!dark) return;
  worn = dark.media;
  dark.media = "not all"; // paper is white
});
window.addEventListener("afterprint", () => {
  if (dark) dark.media = worn;
});

document.addEventListener("keydown", (event) => {
  const target = /** @type {Element} */ (event.target);
  if (event.key !== "e" || event.ctrlKey || event.metaKey || event.altKey || target.closest("input, textarea, select, dialog")) return;
  /** @type {HTMLAnchorElement | null} */ (document.querySelector("[data-report-edit]"))?.click();
});
