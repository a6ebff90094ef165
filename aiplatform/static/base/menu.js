// <details class="menu"> closes on Escape, on a click elsewhere, and when another opens; arrows walk its items.
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
    const items = [...menu.querySelectorAll(".menu-item")];
    const at = items.indexOf(/** @type {HTMLElement} */ (document.activeElement));
    const next = event.key === "ArrowDown" ? at + 1 : at - 1;
    items[(next + items.length) % items.length]?.focus();
    event.preventDefault();
  }
});
