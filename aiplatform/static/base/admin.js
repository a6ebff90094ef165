// The admin site: its main part is a landmark, its scrolling parts are none.
document.addEventListener("DOMContentLoaded", () => document.getElementById("main")?.setAttribute("role", "main"));
addEventListener("load", () => {
  for (const scrolling of document.querySelectorAll(".simplebar-content-wrapper[role]")) {
    scrolling.removeAttribute("role");
    scrolling.removeAttribute("aria-label");
  }
});
