// One report: printing.
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
