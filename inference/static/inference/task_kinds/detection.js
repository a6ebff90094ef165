// A detector's answer: boxes on the picture, those above a threshold.
// The service is asked once with a low threshold; the slider then only hides.
import { tn } from "../../base/i18n.js";
import { hueOf, token, tryIt } from "../tryit.js";

const LOWEST = 0.05;
let slider; // _try_controls.html
let chosen = false; // whether the reader moved it

tryIt({ query: `?score_threshold=${LOWEST}`, begin, answered: showSomething, kept, draw });

function begin(redraw) {
  slider = document.getElementById("score");
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
function showSomething(found) {
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
  for (const one of [...shown].reverse()) drawBox(canvas, paint, one, scale);
  const counts = new Map();
  for (const one of shown) counts.set(one.name, (counts.get(one.name) || 0) + 1);
  const words = [...counts].map(([name, count]) => `${name} ${count}`).join(", ");
  document.getElementById("score-count").textContent = found.length
    ? `${tn("%(count)s box", "%(count)s boxes", shown.length)}${words ? `: ${words}` : ""}`
    : "";
}

function drawBox(canvas, paint, one, scale) {
  const [x1, y1, x2, y2] = one.box.map((value) => value * scale);
  const unit = Math.max(1, canvas.width / Math.max(canvas.clientWidth, 1)); // canvas pixels of one CSS pixel
  const hue = hueOf(one.class_id);
  paint.lineWidth = 2 * unit;
  paint.strokeStyle = hue;
  paint.strokeRect(x1, y1, x2 - x1, y2 - y1);
  const text = `${one.name} ${one.score.toFixed(2)}`;
  paint.font = `600 ${12 * unit}px ${token("--font")}`;
  const width = paint.measureText(text).width + 8 * unit;
  const height = 17 * unit;
  const left = Math.min(Math.max(0, x1 - unit), Math.max(0, canvas.width - width));
  const top = y1 >= height ? y1 - height : Math.min(y1, canvas.height - height);
  paint.fillStyle = hue;
  paint.fillRect(left, top, width, height);
  paint.fillStyle = token("--surface");
  paint.fillText(text, left + 4 * unit, top + 13 * unit);
}
