// Placeholders of parts that scripts load: as components/skeleton.html has them for parts that htmx loads.

/**
 * Keep the place of what comes into an empty `box` until it is there. The style sheet shows placeholders after a third of a second.
 * @param {HTMLElement} box
 * @param {"chart" | "table" | "gallery" | "verdict"} kind
 * @param {Promise<unknown>} arrival
 */
export function waits(box, kind, arrival) {
  const place = Object.assign(document.createElement("div"), { className: `skeleton skeleton-${kind}` });
  place.setAttribute("aria-hidden", "true");
  box.append(place);
  box.setAttribute("aria-busy", "true");
  const end = () => {
    place.remove();
    box.removeAttribute("aria-busy");
  };
  arrival.then(end, end);
}
