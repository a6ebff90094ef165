// An instance segmenter's answer: the outline of each object on the picture, those above a threshold.
// The service is asked once with a low threshold; the slider then only hides.
import { tn } from "../../base/i18n.js";
import { hueOf, token, tryIt } from "../tryit.js";

const LOWEST = 0.05;
const COVER = 0.35; // how strongly an object is covered with its colour
/** @type {HTMLInputElement} */
let slider; // _try_controls.html
let chosen = false; // whether the reader moved it

tryIt({ query: `?score_threshold=${LOWEST}`, begin, answered, kept, draw });

function begin(redraw) {
  slider = /** @type {HTMLInputElement} */ (document.getElementById("score"));
  slider.addEventListener("input", () => {
    chosen = true;
    document.getElementById("score-lowered").hidden = true;
    say();
    redraw();
  });
  say();
}

function threshold() {
  return Number(slider.value) / 100;
}

function say() {
  document.getElementById("score-value").textContent = threshold().toFixed(2);
}

/** A weak model scores low: where nothing reaches the threshold, it comes down to the best answers. */
function answered(found) {
  if (chosen) return;
  const best = Math.max(0, ...found.map((one) => one.score));
  const usual = Number(slider.defaultValue);
  slider.value = String(best * 100 < usual ? Math.max(Number(slider.min), Math.floor(best * 75)) : usual);
  document.getElementById("score-lowered").hidden = !(Number(slider.value) < usual && found.length > 0);
  say();
}

function kept(found) {
  return found.filter((one) => one.score >= threshold());
}

function draw({ canvas, paint, found, scale }) {
  const shown = kept(found);
  const unit = Math.max(1, canvas.width / Math.max(canvas.clientWidth, 1)); // canvas pixels of one CSS pixel
  for (const one of [...shown].reverse()) drawOutline(paint, one, scale, unit);
  for (const one of [...shown].reverse()) drawName(canvas, paint, one, scale, unit);
  const counts = new Map();
  for (const one of shown) counts.set(one.name, (counts.get(one.name) || 0) + 1);
  const words = [...counts].map(([name, count]) => `${name} ${count}`).join(", ");
  document.getElementById("score-count").textContent = found.length
    ? `${tn("%(count)s object", "%(count)s objects", shown.length)}${words ? `: ${words}` : ""}`
    : "";
}

function drawOutline(paint, one, scale, unit) {
  const way = new Path2D();
  for (const ring of one.polygon) {
    for (let place = 0; place < ring.length; place += 2) {
      if (place) way.lineTo(ring[place] * scale, ring[place + 1] * scale);
      else way.moveTo(ring[place] * scale, ring[place + 1] * scale);
    }
    way.closePath();
  }
  paint.save();
  paint.lineWidth = 2 * unit;
  paint.strokeStyle = paint.fillStyle = hueOf(one.class_id);
  paint.stroke(way);
  paint.globalAlpha = COVER;
  paint.fill(way, "evenodd");
  paint.restore();
}

function drawName(canvas, paint, one, scale, unit) {
  const [x1, y1, x2] = one.box.map((value) => value * scale);
  const text = `${one.name} ${one.score.toFixed(2)}`;
  paint.font = `600 ${12 * unit}px ${token("--font")}`;
  const width = paint.measureText(text).width + 8 * unit;
  const height = 17 * unit;
  const left = Math.min(Math.max(0, (x1 + x2 - width) / 2), Math.max(0, canvas.width - width));
  const top = Math.min(Math.max(0, y1 - height), canvas.height - height);
  paint.fillStyle = hueOf(one.class_id);
  paint.fillRect(left, top, width, height);
  paint.fillStyle = token("--surface");
  paint.fillText(text, left + 4 * unit, top + 13 * unit);
}
