// One Tab stop for many buttons: arrows, Home and End go from one to the next.

/**
 * @param {HTMLElement} root
 * @param {string} wanted  selector of the buttons
 * @param {{back: string[], on: string[]}} keys
 * @returns {(seen?: boolean) => void}  to call after buttons came, went, or were switched off; with true after some were hidden
 */
export function roving(root, wanted, { back, on }) {
  const all = () => /** @type {HTMLButtonElement[]} */ ([...root.querySelectorAll(wanted)]);
  const open = () => all().filter((one) => !one.disabled && one.checkVisibility());
  const stopAt = (chosen) => {
    for (const one of all()) if (one.tabIndex !== (one === chosen ? 0 : -1)) one.tabIndex = one === chosen ? 0 : -1;
  };
  const settle = (seen = false) => {
    const list = seen ? open() : all().filter((one) => !one.disabled && !one.hidden); // to ask what is seen costs a layout
    stopAt(list.find((one) => one.tabIndex === 0) ?? list[0]);
  };
  root.addEventListener("focusin", ({ target }) => all().some((one) => one === target) && stopAt(target));
  root.addEventListener("keydown", (event) => {
    const list = open();
    const at = list.indexOf(/** @type {HTMLButtonElement} */ (document.activeElement));
    if (at < 0 || event.altKey || event.ctrlKey || event.metaKey) return;
    const to = event.key === "Home" ? 0 : event.key === "End" ? list.length - 1 : on.includes(event.key) ? (at + 1) % list.length : back.includes(event.key) ? (at - 1 + list.length) % list.length : -1;
    if (to < 0) return;
    list[to].focus();
    event.preventDefault();
    event.stopPropagation();
  });
  settle();
  return settle;
}
