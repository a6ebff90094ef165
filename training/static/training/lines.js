// Line numbers beside the text of a request; lines that a note names are marked, and the note leads to its line.

/** @param {HTMLTextAreaElement} area */
function number(area) {
  const gutter = /** @type {HTMLElement} */ (area.previousElementSibling);
  const wrong = new Set(Array.from(document.querySelectorAll("[data-to-line]"), (note) => Number(note.getAttribute("data-to-line"))));
  const count = area.value.split("\n").length;
  gutter.replaceChildren(
    ...Array.from({ length: count }, (_, at) => {
      const line = document.createElement("span");
      line.textContent = String(at + 1);
      if (wrong.has(at + 1)) line.className = "is-wrong";
      return line;
    }),
  );
  gutter.scrollTop = area.scrollTop;
}

function all() {
  for (const area of /** @type {NodeListOf<HTMLTextAreaElement>} */ (document.querySelectorAll("textarea[data-lines]"))) number(area);
}

/** Select a line of the text and show it. @param {HTMLTextAreaElement} area @param {number} line */
function show(area, line) {
  const lines = area.value.split("\n");
  const start = lines.slice(0, line - 1).join("\n").length + (line > 1 ? 1 : 0);
  area.focus();
  area.setSelectionRange(start, start + (lines[line - 1] ?? "").length);
  area.scrollTop = (area.scrollHeight / lines.length) * (line - 4);
}

const isArea = (/** @type {EventTarget | null} */ target) => target instanceof HTMLTextAreaElement && target.matches("[data-lines]");
document.addEventListener("input", ({ target }) => isArea(target) && all());
document.addEventListener("scroll", ({ target }) => {
  if (isArea(target)) /** @type {any} */ (target).previousElementSibling.scrollTop = /** @type {any} */ (target).scrollTop;
}, true);
document.addEventListener("click", ({ target }) => {
  const note = target instanceof Element ? target.closest("[data-to-line]") : null;
  const area = /** @type {HTMLTextAreaElement | null} */ (document.querySelector("textarea[data-lines]"));
  if (note && area) show(area, Number(note.getAttribute("data-to-line")));
});
document.addEventListener("htmx:afterSettle", all);
document.addEventListener("htmx:oobAfterSwap", all);
all();
