// The side bar: folds as a whole and by group, shows the current entry, opens over the page on narrow screens.
const root = document.documentElement;
const GROUPS = `aip.groups.${root.dataset.reader}`;

/** Store `value` where the browser allows it. */
function store(name, value) {
  try {
    localStorage.setItem(name, value);
  } catch {
    // storage is switched off: the choice lasts for this page
  }
}

function stored(name) {
  try {
    return JSON.parse(localStorage.getItem(name) ?? "{}");
  } catch {
    return {};
  }
}

for (const button of document.querySelectorAll("[data-side-fold]")) {
  const show = () => button.setAttribute("aria-expanded", String(root.dataset.side !== "slim"));
  button.addEventListener("click", () => {
    if (root.dataset.side === "slim") delete root.dataset.side;
    else root.dataset.side = "slim";
    store("aip.side", root.dataset.side || "wide");
    show();
  });
  show();
}

// Groups. early.js has closed them by an attribute of the document; the group of the current entry stays open.
for (const button of document.querySelectorAll("[data-group-fold]")) {
  const name = button.dataset.groupFold ?? "";
  const group = /** @type {HTMLElement} */ (button.closest(".side-group"));
  const shut = () => new Set((root.dataset.sideShut ?? "").split(" ").filter(Boolean));
  const isOpen = () => "here" in group.dataset || !shut().has(name);
  const show = () => button.setAttribute("aria-expanded", String(isOpen()));
  button.addEventListener("click", () => {
    const open = !isOpen();
    const closed = shut();
    if (open) closed.delete(name);
    else closed.add(name);
    delete group.dataset.here;
    root.dataset.sideShut = [...closed].join(" ");
    store(GROUPS, JSON.stringify({ ...stored(GROUPS), [name]: open }));
    show();
  });
  show();
}

const side = document.querySelector(".side");
const current = side?.querySelector("[aria-current]");
function showCurrent() {
  if (side && getComputedStyle(side).visibility === "visible") current?.scrollIntoView({ block: "nearest" });
}
showCurrent();

// narrow screens: the side bar opens over the page
/** @type {HTMLElement | null} */
const sideOpener = document.querySelector("[data-side-open]");
function setOpen(open) {
  document.body.classList.toggle("side-open", open);
  sideOpener?.setAttribute("aria-expanded", String(open));
  if (!open) return;
  side?.querySelector("a")?.focus();
  showCurrent();
}
sideOpener?.addEventListener("click", (event) => {
  setOpen(!document.body.classList.contains("side-open"));
  event.stopPropagation();
});
document.addEventListener("click", (event) => {
  if (sideOpener && document.body.classList.contains("side-open") && !/** @type {Element} */ (event.target).closest(".side")) setOpen(false);
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && document.body.classList.contains("side-open")) {
    setOpen(false);
    sideOpener?.focus();
  }
});
