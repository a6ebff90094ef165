// Try a service: drop, paste or choose a picture; see boxes or probabilities drawn.
// The service is asked once with a low threshold; the slider then only hides.
import { t, tn } from "../base/i18n.js";
import { csrfToken } from "../base/api.js";
import { onDrop } from "../base/drop.js";

const LOWEST = 0.05;
const LONGEST_SIDE = 1600; // pixels of the canvas
const root = document.getElementById("try");
const hues = Array.from({ length: 8 }, (_, i) => `--chart-${i + 1}`);
const token = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

const drop = document.getElementById("drop");
if (root && drop) begin();

function begin() {
  const input = document.getElementById("picture");
  const canvas = document.getElementById("stage");
  const error = document.getElementById("try-error");
  const why = error.appendChild(document.createElement("p"));
  const timing = document.getElementById("try-timing");
  const answers = document.getElementById("answers");
  const slider = document.getElementById("score");
  const isDetection = root.dataset.task === "detection";
  let picture = null; // ImageBitmap on show
  let found = []; // what the service said about it
  let turn = 0; // the newest picture wins
  let chosen = false; // whether the reader moved the slider

  input.addEventListener("change", () => input.files[0] && ask(input.files[0]));
  onDrop(drop, (files) => ask(files.find((one) => one.type.startsWith("image/")) || files[0]));
  document.addEventListener("paste", (event) => {
    const file = [...(event.clipboardData?.files || [])].find((one) => one.type.startsWith("image/"));
    if (file) ask(file);
  });
  slider?.addEventListener("input", () => {
    chosen = true;
    document.getElementById("score-lowered").hidden = true;
    draw();
  });

  async function ask(file) {
    const mine = ++turn;
    fail("");
    drop.classList.add("is-busy");
    found = [];
    answers.replaceChildren();
    timing.textContent = "";
    try {
      picture = await createImageBitmap(file, { imageOrientation: "from-image" });
    } catch {
      drop.classList.remove("is-busy");
      fail(t("This file is not a picture your browser can show."));
      return;
    }
    drop.classList.add("has-picture");
    drop.querySelector(".drop-stage").hidden = false;
    draw();
    const started = performance.now();
    try {
      const said = await predict(file);
      if (mine !== turn) return;
      found = said.predictions;
      const all = Math.round(performance.now() - started);
      timing.textContent = t("%(model)s ms in the model, %(all)s ms in all", { model: said.timing_ms.inference.toFixed(1), all });
      if (!isDetection) drawClasses();
      else if (!chosen) showSomething();
      draw();
    } catch (problem) {
      if (mine === turn) fail(problem.message);
    } finally {
      if (mine === turn) drop.classList.remove("is-busy");
      input.value = "";
    }
  }

  async function predict(file) {
    const query = isDetection ? `?score_threshold=${LOWEST}` : "?top_k=10";
    let answer;
    try {
      answer = await fetch(root.dataset.url + query, {
        method: "POST",
        body: file,
        credentials: "same-origin",
        headers: { "Content-Type": file.type || "application/octet-stream", "X-CSRFToken": csrfToken() },
      });
    } catch {
      throw new Error(t("The platform does not answer. Check your connection and try again."));
    }
    const body = await answer.json().catch(() => ({}));
    if (!answer.ok) throw new Error(body.detail || t("The service answered %(status)s.", { status: answer.status }));
    return body;
  }

  function fail(text) {
    error.hidden = !text;
    why.textContent = text;
  }

  /** A weak model scores low: where nothing reaches the threshold, it comes down to the best answers. */
  function showSomething() {
    const best = Math.max(0, ...found.map((one) => one.score));
    const begin = Number(slider.defaultValue);
    slider.value = String(best * 100 < begin ? Math.max(Number(slider.min), Math.floor(best * 75)) : begin);
    const lowered = Number(slider.value) < begin && found.length > 0;
    document.getElementById("score-lowered").hidden = !lowered;
  }

  /** The picture, and on it the boxes above the threshold. */
  function draw() {
    const threshold = slider ? Number(slider.value) / 100 : 0;
    if (slider) document.getElementById("score-value").textContent = threshold.toFixed(2);
    if (!picture) return;
    const scale = Math.min(1, LONGEST_SIDE / Math.max(picture.width, picture.height));
    const grow = Math.max(1, Math.min(4, 560 / Math.max(picture.width, picture.height)));
    canvas.width = Math.round(picture.width * scale * grow);
    canvas.height = Math.round(picture.height * scale * grow);
    const paint = canvas.getContext("2d");
    paint.imageSmoothingEnabled = grow < 2;
    paint.drawImage(picture, 0, 0, canvas.width, canvas.height);
    if (!isDetection) return;
    const kept = found.filter((one) => one.score >= threshold);
    for (const one of [...kept].reverse()) drawBox(paint, one, scale * grow);
    const counts = new Map();
    for (const one of kept) counts.set(one.name, (counts.get(one.name) || 0) + 1);
    const words = [...counts].map(([name, count]) => `${name} ${count}`).join(", ");
    document.getElementById("score-count").textContent = found.length
      ? `${tn("%(count)s box", "%(count)s boxes", kept.length)}${words ? `: ${words}` : ""}`
      : "";
  }

  function drawBox(paint, one, scale) {
    const [x1, y1, x2, y2] = one.box.map((value) => value * scale);
    const unit = Math.max(1, canvas.width / Math.max(canvas.clientWidth, 1)); // canvas pixels of one CSS pixel
    const hue = token(hues[Math.abs(one.class_id) % hues.length]);
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

  function drawClasses() {
    answers.replaceChildren(
      ...found.map((one) => {
        const row = document.createElement("div");
        row.className = "answer-row";
        const name = Object.assign(document.createElement("span"), { className: "cut", textContent: one.name, title: one.name });
        const bar = Object.assign(document.createElement("progress"), { className: "meter", max: 1, value: one.score });
        bar.setAttribute("aria-label", one.name);
        const share = Object.assign(document.createElement("span"), { className: "num mono", textContent: `${(100 * one.score).toFixed(1)} %` });
        row.append(name, bar, share);
        return row;
      }),
    );
  }

  draw();
}
