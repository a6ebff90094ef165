// The menu "Start from": a search over its rows, focused when it opens. Without a script the rows are listed.

/** @type {HTMLDetailsElement | null} */
const menu = document.querySelector("details.start-from");
/** @type {HTMLInputElement | null | undefined} */
const search = menu?.querySelector("[data-start-search]");

function filter() {
  const words = search?.value.trim().toLowerCase().split(/\s+/) ?? [];
  let shown = 0;
  for (const section of menu?.querySelectorAll("section") ?? []) {
    /** @type {NodeListOf<HTMLElement>} */
    const rows = section.querySelectorAll(".menu-item");
    for (const row of rows) row.hidden = !words.every((word) => row.textContent?.toLowerCase().includes(word));
    const count = [...rows].filter((row) => !row.hidden).length;
    section.hidden = !count;
    shown += count;
  }
  const none = menu?.querySelector("[data-start-none]");
  if (none instanceof HTMLElement) none.hidden = shown > 0;
}

if (menu && search) {
  search.hidden = false;
  search.addEventListener("input", filter);
  search.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    /** @type {HTMLElement | null} */ (menu.querySelector("section:not([hidden]) .menu-item:not([hidden])"))?.click();
  });
  menu.addEventListener("toggle", () => {
    if (menu.open) search.focus();
  });
}

export {}; // a module of its own, as it is loaded
