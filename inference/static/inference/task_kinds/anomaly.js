// An anomaly detector's answer: a heat map on the picture, and below it score and verdict.
// The verdict follows the slider; the service is asked once.
import { t } from "../../base/i18n.js";
import { tryIt } from "../tryit.js";

const FAINT = 0.9; // share of the threshold below which nothing is shown, as on the page of an evaluation

/** @type {HTMLInputElement} */
let slider; // _try_controls.html
/** @type {HTMLInputElement} */
let cover;
/** @type {HTMLImageElement | null} */
let grey = null; // the map of the newest answer, once it is decoded
let shown = []; // the newest answer
let chosen = false; // whether the reader moved the threshold
let redraw = () => {};

tryIt({ query: "", begin, answered, draw });

function begin(again) {
  redraw = again;
  slider = document.getElementById("score");
  cover = document.getElementById("cover");
  for (const input of [slider, cover]) {
    input.addEventListener("input", () => {
      chosen ||= input === slider;
      say();
      redraw();
    });
  }
  say();
}

function threshold() {
  return Number(slider.value) / 100;
}

function say() {
  document.getElementById("score-value").textContent = threshold().toFixed(2);
  document.getElementById("cover-value").textContent = `${cover.value} %`;
  document.getElementById("answers").replaceChildren(...shown.map(verdict));
}

function answered(found) {
  shown = found;
  grey = null;
  if (found.length && !chosen) slider.value = String(Math.round(100 * found[0].threshold));
  say();
  if (!found.length) return;
  const image = new Image();
  image.addEventListener("load", () => {
    if (shown !== found) return; // a newer picture has been asked about
    grey = image;
    redraw();
  });
  image.src = `data:image/png;base64,${found[0].heat}`;
}

function draw({ canvas, paint, found }) {
  if (!grey || found !== shown) return;
  paint.save();
  paint.globalAlpha = Number(cover.value) / 100;
  paint.imageSmoothingEnabled = true;
  paint.drawImage(coloured(grey), 0, 0, canvas.width, canvas.height);
  paint.restore();
}

/** The map in colours: nothing where the picture is usual, then yellow, red from the threshold on. */
function coloured(image) {
  const canvas = Object.assign(document.createElement("canvas"), { width: image.width, height: image.height });
  const paint = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  paint.drawImage(image, 0, 0);
  const pixels = paint.getImageData(0, 0, canvas.width, canvas.height);
  for (let at = 0; at < pixels.data.length; at += 4) {
    const share = pixels.data[at] / 255 / threshold();
    const hot = Math.min(1, Math.max(0, (share - FAINT) / (1 - FAINT)));
    pixels.data.set([225, 200 - 170 * hot, 40, 255 * hot], at);
  }
  paint.putImageData(pixels, 0, 0);
  return canvas;
}

function verdict(one) {
  const bad = one.score >= threshold();
  const row = document.createElement("div");
  row.className = "answer-row";
  const name = Object.assign(document.createElement("span"), {
    className: bad ? "fail-text" : "ok-text",
    textContent: bad ? t("Anomaly") : t("Good"),
  });
  const meter = Object.assign(document.createElement("progress"), { className: "meter", max: 1, value: one.score });
  meter.setAttribute("aria-label", t("Score"));
  const score = Object.assign(document.createElement("span"), { className: "num mono", textContent: one.score.toFixed(2) });
  row.append(name, meter, score);
  return row;
}
