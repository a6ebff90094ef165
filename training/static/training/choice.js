// Rows chosen in a list for a comparison: they stay chosen when the list shows other rows or itself anew.

const form = document.getElementById("compare");
const name = form?.dataset.name ?? "training";
const least = Number(form?.dataset.least ?? "1");
const button = document.querySelector("[data-compare-chosen]");
/** @type {Set<string>} */
const chosen = new Set();

function show() {
  /** @type {NodeListOf<HTMLInputElement>} */
  const boxes = document.querySelectorAll('input[form="compare"]');
  const there = new Set();
  for (const box of boxes) {
    box.checked = chosen.has(box.value);
    there.add(box.value);
  }
  // those on other pages of the list are sent along
  form?.replaceChildren(
    ...[...chosen].filter((value) => !there.has(value)).map((value) => Object.assign(document.createElement("input"), { type: "hidden", name, value })),
  );
  const count = button?.querySelector("[data-count]");
  if (count) count.textContent = chosen.size ? String(chosen.size) : "";
  if (button instanceof HTMLButtonElement) button.disabled = chosen.size < least;
}

document.addEventListener("change", ({ target }) => {
  if (!(target instanceof HTMLInputElement) || target.getAttribute("form") !== "compare") return;
  if (target.checked) chosen.add(target.value);
  else chosen.delete(target.value);
  show();
});
document.addEventListener("listshown", show);
/** @type {NodeListOf<HTMLInputElement>} */
const ticked = document.querySelectorAll('input[form="compare"]:checked'); // the browser remembers, going back
for (const box of ticked) chosen.add(box.value);
show();

export {}; // a module: its names are its own
