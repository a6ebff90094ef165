// A segmenter's answer: the mask of each class on the picture, and below it how much of the picture each one covers.
import { eachStretch } from "../runs.js";
import { hueOf, tryIt } from "../tryit.js";

/** @type {HTMLInputElement} */
let slider; // _try_controls.html
const hidden = new Set(); // ids of classes the reader switched off
let layers = new Map(); // class id → its mask as a canvas of the picture's size
let redraw = () => {};

tryIt({ query: "", begin, answered, draw });

function begin(again) {
  redraw = again;
  slider = document.getElementById("cover");
  slider.addEventListener("input", () => {
    say();
    redraw();
  });
  say();
}

function say() {
  document.getElementById("cover-value").textContent = `${slider.value} %`;
}

function answered(found) {
  layers = new Map(found.map((one) => [one.class_id, layer(one)]));
  document.getElementById("answers").replaceChildren(...found.map(row));
}

/** The mask in the colour of its class. */
function layer(one) {
  const [height, width] = one.mask.size;
  const canvas = Object.assign(document.createElement("canvas"), { width, height });
  const paint = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  paint.fillStyle = hueOf(one.class_id);
  eachStretch(one.mask, (column, top, bottom) => paint.fillRect(column, top, 1, bottom - top));
  return canvas;
}

function draw({ canvas, paint, found }) {
  paint.save();
  paint.globalAlpha = Number(slider.value) / 100;
  for (const one of found) {
    const mask = layers.get(one.class_id);
    if (mask && !hidden.has(one.class_id)) paint.drawImage(mask, 0, 0, canvas.width, canvas.height);
  }
  paint.restore();
}

function row(one) {
  const line = document.createElement("label");
  line.className = "answer-row answer-mask";
  const box = Object.assign(document.createElement("input"), { type: "checkbox", checked: !hidden.has(one.class_id) });
  box.addEventListener("change", () => {
    if (box.checked) hidden.delete(one.class_id);
    else hidden.add(one.class_id);
    redraw();
  });
  const name = document.createElement("span");
  name.className = "cut";
  const swatch = document.createElement("span");
  swatch.className = "mask-swatch";
  swatch.style.background = hueOf(one.class_id);
  name.append(box, swatch, one.name);
  const meter = Object.assign(document.createElement("progress"), { className: "meter", max: 1, value: one.share });
  meter.setAttribute("aria-label", one.name);
  const share = Object.assign(document.createElement("span"), { className: "num mono", textContent: `${(100 * one.share).toFixed(1)} %` });
  line.append(name, meter, share);
  return line;
}
