// Lines and zones on the first picture of a video: points are dragged, or moved with the arrow keys.
// What is drawn is kept as shares of the picture's sides, as the program takes it.
import { t } from "../base/i18n.js";

const STEP = 0.01;
const MIN_CORNERS = 3;
const SVG = "http://www.w3.org/2000/svg";
const room = document.getElementById("places");
const drawing = room.querySelector(".places-frame svg");
const points = room.querySelector(".places-points");
const list = room.querySelector(".places-list");
const form = room.querySelector("form");
const given = JSON.parse(document.getElementById("places-drawn").textContent);
const KEPT = `places ${location.pathname}`; // the page loads anew when its job ends: what was drawn until then stays
const places = JSON.parse(sessionStorage.getItem(KEPT) ?? "null") ?? [
  ...given.lines.map((line) => ({ ...line, kind: "line" })),
  ...given.zones.map((zone) => ({ ...zone, kind: "zone" })),
];
const within = (value) => Math.min(1, Math.max(0, value));

function free(word) {
  for (let number = 1; ; number += 1) {
    const name = `${word} ${number}`;
    if (!places.some((place) => place.name === name)) return name;
  }
}

function begin(kind) {
  const corners = [[0.3, 0.4], [0.7, 0.4], [0.7, 0.8], [0.3, 0.8]];
  if (kind === "line") places.push({ kind, name: free(t("Line")), points: [[0.2, 0.5], [0.8, 0.5]] });
  else places.push({ kind, name: free(t("Zone")), points: corners, loiter_s: 0 });
  show();
  points.querySelector(`[data-place="${places.length - 1}"]`).focus();
}

function show() {
  draw();
  points.replaceChildren(...places.flatMap((place, number) => place.points.map((_point, corner) => handle(number, corner))));
  list.replaceChildren(...places.map(row));
}

function draw() {
  sessionStorage.setItem(KEPT, JSON.stringify(places));
  drawing.replaceChildren(...places.map((place) => {
    const shape = document.createElementNS(SVG, "path");
    shape.setAttribute("d", `M${place.points.map((point) => point.join(",")).join("L")}${place.kind === "line" ? "" : "Z"}`);
    return shape;
  }));
}

function handle(number, corner) {
  const button = document.createElement("button");
  const place = places[number];
  button.type = "button";
  button.dataset.place = number;
  button.textContent = corner + 1;
  const put = (x, y) => {
    place.points[corner] = [within(x), within(y)];
    button.style.left = `${100 * place.points[corner][0]}%`;
    button.style.top = `${100 * place.points[corner][1]}%`;
    const where = { name: place.name, number: corner + 1, x: `${Math.round(100 * place.points[corner][0])} %`, y: `${Math.round(100 * place.points[corner][1])} %` };
    button.setAttribute("aria-label", t("%(name)s, point %(number)s: %(x)s from the left, %(y)s from the top", where));
    draw();
  };
  put(...place.points[corner]);
  button.addEventListener("pointerdown", (event) => {
    button.setPointerCapture(event.pointerId);
    const move = (moved) => {
      const box = drawing.getBoundingClientRect();
      put((moved.clientX - box.left) / box.width, (moved.clientY - box.top) / box.height);
    };
    button.addEventListener("pointermove", move);
    button.addEventListener("pointerup", () => button.removeEventListener("pointermove", move), { once: true });
  });
  button.addEventListener("keydown", (event) => {
    const way = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (!way) return;
    event.preventDefault();
    const [x, y] = place.points[corner];
    put(x + way[0] * STEP, y + way[1] * STEP);
  });
  return button;
}

function row(place, number) {
  const template = /** @type {HTMLTemplateElement} */ (document.getElementById("place-row"));
  const one = /** @type {HTMLElement} */ (template.content.firstElementChild?.cloneNode(true));
  /** @param {string} name */
  const part = (name) => /** @type {HTMLInputElement} */ (one.querySelector(`[data-${name}]`));
  part("kind").textContent = place.kind === "line" ? t("Line") : t("Zone");
  part("name").value = place.name;
  part("name").addEventListener("input", () => { place.name = part("name").value; });
  part("name").addEventListener("change", show);
  if (place.kind === "line") {
    part("stay").remove();
    part("corner").remove();
    part("turn").addEventListener("click", () => { place.points.reverse(); show(); });
  } else {
    part("turn").remove();
    part("loiter").value = place.loiter_s || 0;
    part("loiter").addEventListener("input", () => { place.loiter_s = Number(part("loiter").value) || 0; });
    part("corner").addEventListener("click", () => {
      const [[x1, y1], [x2, y2]] = [place.points.at(-1), place.points[0]];
      place.points.push([(x1 + x2) / 2, (y1 + y2) / 2]);
      show();
    });
  }
  part("remove").addEventListener("click", () => { places.splice(number, 1); show(); });
  return one;
}

for (const button of room.querySelectorAll("[data-add]")) button.addEventListener("click", () => begin(button.dataset.add));
form.addEventListener("submit", () => {
  const of = (kind) => places.filter((place) => place.kind === kind && (kind === "line" || place.points.length >= MIN_CORNERS));
  const lines = of("line").map(({ name, points: ends }) => ({ name, points: ends }));
  const zones = of("zone").map(({ name, points: corners, loiter_s: stay }) => ({ name, points: corners, loiter_s: stay || 0 }));
  /** @type {HTMLInputElement} */ (form.elements.namedItem("places")).value = JSON.stringify({ lines, zones });
  sessionStorage.removeItem(KEPT);
});
show();
