// A slider through the answers of a training: each place shows those of one scored step.

/** The step that was chosen by hand; -1 follows the newest. */
let chosen = -1;

/** @param {HTMLElement} strip the element with data-strip; @param {number} place among its points */
function show(strip, place) {
  const point = /** @type {HTMLElement | undefined} */ (strip.querySelectorAll("[data-step]")[place]);
  if (!point) return;
  for (const image of /** @type {NodeListOf<HTMLImageElement>} */ (strip.querySelectorAll("[data-strip-image]"))) {
    image.src = `${point.dataset.url}%2F${image.dataset.stripImage}.jpg`;
  }
  strip.querySelector("[data-strip-step]").textContent = point.dataset.step ?? "";
  strip.querySelector("[data-strip-figure]").textContent = point.dataset.figure ?? "";
}

document.addEventListener("input", (event) => {
  const slider = /** @type {HTMLInputElement} */ (event.target);
  if (!slider.matches("[data-strip-slider]")) return;
  const strip = /** @type {HTMLElement} */ (slider.closest("[data-strip]"));
  const place = Number(slider.value);
  chosen = place < Number(slider.max) ? Number(strip.querySelectorAll("[data-step]")[place].dataset.step) : -1;
  show(strip, place);
});

document.addEventListener("htmx:afterSettle", () => {
  const slider = /** @type {HTMLInputElement | null} */ (document.querySelector("[data-strip-slider]"));
  if (!slider || chosen < 0) return;
  const strip = /** @type {HTMLElement} */ (slider.closest("[data-strip]"));
  const place = [...strip.querySelectorAll("[data-step]")].findIndex((point) => Number(point.dataset.step) === chosen);
  if (place < 0) return;
  slider.value = String(place);
  show(strip, place);
});
