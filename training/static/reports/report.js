// One report: printing, and the keyboard.
document.querySelector("[data-print]")?.addEventListener("click", () => window.print());

document.addEventListener("keydown", (event) => {
  const target = /** @type {Element} */ (event.target);
  if (event.key !== "e" || event.ctrlKey || event.metaKey || event.altKey || target.closest("input, textarea, select, dialog")) return;
  /** @type {HTMLAnchorElement | null} */ (document.querySelector("[data-report-edit]"))?.click();
});
