// A keypoint finder's answer: the points of one object and the lines between them; the reader's box says which object.
import { hueOf, token, tryIt } from "../tryit.js";

const EDGES = ["x1", "y1", "x2", "y2"];
const MIN_SIDE_PX = 4; // pixels of the picture: what is drawn smaller is a slip
/** @type {HTMLInputElement} */
let slider; // _try_controls.html
/** @type {HTMLInputElement[]} */
let edges = [];
/** @type {number[] | null} */
let box = null; // x1 y1 x2 y2 in pixels of the picture
let shown = 1; // canvas pixels of one picture pixel
let redraw = () => {};

tryIt({ query: () => (box ? `?region=${box.join(",")}` : ""), begin, chosen, answered: list, draw });

function begin(again, ask) {
  redraw = again;
  slider = document.getElementById("score");
  edges = EDGES.map((edge) => /** @type {HTMLInputElement} */ (document.getElementById(`region-${edge}`)));
  slider.addEventListener("input", () => {
    say();
    redraw();
  });
  for (const edge of edges) edge.addEventListener("change", () => typed(ask));
  document.getElementById("region-whole").addEventListener("click", () => take(null, ask));
  drawable(document.getElementById("stage"), ask);
  say();
}

function say() {
  document.getElementById("score-value").textContent = threshold().toFixed(2);
}

function threshold() {
  return Number(slider.value) / 100;
}

/** Another picture: its size bounds the box. */
function chosen({ width, height }) {
  box = null;
  show();
  /** @type {HTMLFieldSetElement} */ (document.getElementById("region")).disabled = false;
  edges.forEach((edge, place) => {
    edge.max = String(place % 2 ? height : width);
  });
}

function take(next, ask) {
  box = next;
  show();
  ask();
}

function show() {
  edges.forEach((edge, place) => {
    edge.value = box ? String(box[place]) : "";
  });
}

function typed(ask) {
  const values = edges.map((edge) => edge.valueAsNumber);
  const [x1, y1, x2, y2] = values;
  if (values.every(Number.isFinite) && x1 < x2 && y1 < y2) {
    box = values;
    ask();
  }
}

/** Let the reader draw the box on the canvas. */
function drawable(canvas, ask) {
  /** @type {number[] | null} */
  let start = null;
  const at = (event) => {
    const unit = canvas.width / canvas.clientWidth / shown;
    return [event.offsetX * unit, event.offsetY * unit].map(Math.round);
  };
  const between = (a, b) => [Math.min(a[0], b[0]), Math.min(a[1], b[1]), Math.max(a[0], b[0]), Math.max(a[1], b[1])];
  canvas.addEventListener("pointerdown", (event) => {
    start = at(event);
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!start) return;
    box = between(start, at(event));
    show();
    redraw();
  });
  canvas.addEventListener("pointercancel", () => (start = null)); // the page is scrolled instead
  canvas.addEventListener("pointerup", (event) => {
    if (!start) return;
    const drawn = between(start, at(event));
    start = null;
    if (drawn[2] - drawn[0] >= MIN_SIDE_PX && drawn[3] - drawn[1] >= MIN_SIDE_PX) take(drawn, ask);
    else show();
  });
}

function draw({ canvas, paint, found, scale }) {
  shown = scale;
  const unit = Math.max(1, canvas.width / Math.max(canvas.clientWidth, 1)); // canvas pixels of one CSS pixel
  if (box) {
    paint.setLineDash([5 * unit, 4 * unit]);
    paint.lineWidth = 1.5 * unit;
    paint.strokeStyle = token("--accent-fill");
    paint.strokeRect(box[0] * scale, box[1] * scale, (box[2] - box[0]) * scale, (box[3] - box[1]) * scale);
    paint.setLineDash([]);
  }
  for (const one of found) drawObject(paint, one, scale, unit);
}

function drawObject(paint, one, scale, unit) {
  const kept = new Map(one.keypoints.filter((point) => point.score >= threshold()).map((point) => [point.name, point]));
  paint.strokeStyle = paint.fillStyle = hueOf(one.class_id);
  paint.lineWidth = 2.5 * unit;
  for (const [from, to] of one.skeleton) {
    const [a, b] = [kept.get(from), kept.get(to)];
    if (!a || !b) continue;
    paint.beginPath();
    paint.moveTo(a.x * scale, a.y * scale);
    paint.lineTo(b.x * scale, b.y * scale);
    paint.stroke();
  }
  for (const point of kept.values()) {
    paint.beginPath();
    paint.arc(point.x * scale, point.y * scale, 4 * unit, 0, 7);
    paint.fill();
    paint.save();
    paint.lineWidth = 1.5 * unit;
    paint.strokeStyle = token("--surface");
    paint.stroke();
    paint.restore();
  }
}

/** Class and points below the picture. */
function list(found) {
  document.getElementById("answers").replaceChildren(
    ...found.flatMap((one) => [row(one.name, one.score, ""), ...one.keypoints.map((point) => row(point.name, point.score, `${Math.round(point.x)}, ${Math.round(point.y)}`))]),
  );
}

function row(name, score, place) {
  const line = document.createElement("div");
  line.className = "answer-row answer-point";
  const word = Object.assign(document.createElement("span"), { className: "cut", textContent: name, title: name });
  const meter = Object.assign(document.createElement("progress"), { className: "meter", max: 1, value: score });
  meter.setAttribute("aria-label", name);
  const sure = Object.assign(document.createElement("span"), { className: "num mono", textContent: score.toFixed(2) });
  const where = Object.assign(document.createElement("span"), { className: "num mono muted", textContent: place });
  line.append(word, meter, sure, where);
  return line;
}
