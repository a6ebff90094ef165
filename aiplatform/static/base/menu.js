// <details class="menu"> closes on Escape, on a click elsewhere, and when another opens; arrows walk its items. Its list
// stays inside the window, and no part of the page is refreshed while a menu in it is open.
document.addEventListener("click", (event) => {
  /** @type {NodeListOf<HTMLDetailsElement>} */
  const menus = document.querySelectorAll("details.menu[open]");
  for (const menu of menus) {
    if (!event.composedPath().includes(menu)) menu.open = false;
  }
});

document.addEventListener("keydown", (event) => {
  /** @type {HTMLDetailsElement | null | undefined} */
  const menu = /** @type {Element} */ (event.target).closest?.("details.menu[open]");
  if (!menu) return;
  if (event.key === "Escape") {
    menu.open = false;
    menu.querySelector("summary").focus();
    event.stopPropagation();
  } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    const items = [...menu.querySelectorAll(".menu-item:not([hidden])")];
    const at = items.indexOf(/** @type {HTMLElement} */ (document.activeElement));
    const next = event.key === "ArrowDown" ? at + 1 : at - 1;
    items[(next + items.length) % items.length]?.focus();
    event.preventDefault();
  }
});

document.addEventListener(
  "toggle",
  (event) => {
    const menu = /** @type {HTMLDetailsElement} */ (event.target);
    const list = menu.matches?.("details.menu[open]") && menu.querySelector(".menu-list");
    if (!list) return;
    delete list.dataset.side;
    const box = list.getBoundingClientRect();
    if (box.left >= 0) return;
    list.dataset.side = menu.getBoundingClientRect().left + box.width <= innerWidth ? "start" : "window";
  },
  true, // toggle does not bubble
);

// a dialog gives the focus back to what had it: to the menu's button, since its item is folded away by then
document.addEventListener(
  "click",
  (event) => {
    const item = /** @type {Element} */ (event.target).closest?.(".menu-item[data-dialog-open]");
    /** @type {HTMLDetailsElement | null | undefined} */
    const menu = item?.closest("details.menu");
    if (!menu) return;
    menu.open = false;
    menu.querySelector("summary").focus();
  },
  true,
);

document.addEventListener("htmx:beforeRequest", (event) => {
  if (event.detail.elt.querySelector("details.menu[open]") && !event.detail.elt.matches("details.menu *")) event.preventDefault();
});
