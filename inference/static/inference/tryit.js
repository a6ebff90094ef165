// Try a service: drop, paste or choose a picture; the answer is drawn by the view of the model's task (task_kinds/*.js).
import { t } from "../base/i18n.js";
import { ApiError, csrfToken } from "../base/api.js";
import { onDrop } from "../base/drop.js";

const LONGEST_SIDE = 1600; // pixels of the canvas
const STARTS_S = 90; // a service that takes longer to start says so
const AGAIN_MS = 1000;
const root = document.getElementById("try");
/** @type {Record<string, string>} */
const colors = JSON.parse(root?.dataset.colors || "{}"); // class id → #rrggbb

/** The value of a design token. */
export const token = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** The color of a class. */
export const hueOf = (classId) => colors[classId] ?? token("--chart-1");

/**
 * Run the page. `view` says how answers of its task look:
 *   query                what is asked of the service beside the picture, "?top_k=10", or a function that says it
 *   begin(redraw, ask)   called once, if there is something to try; `redraw` paints the picture again, `ask` asks again
 *   chosen(picture)      called with each new picture before the service is asked: it has a width and a height
 *   answered(found)      called with the predictions of each answer
 *   kept(found)          those of the predictions that are shown; without it all are
 *   draw({ canvas, paint, found, scale })  paints on the picture; `scale` is canvas pixels of one picture pixel
 * Only `query` has to be there.
 */
export function tryIt(view) {
  const drop = document.getElementById("drop");
  if (root && drop) begin(view, drop);
}

function begin(view, drop) {
  /** @type {HTMLInputElement} */
  const input = document.getElementById("picture");
  /** @type {HTMLCanvasElement} */
  const canvas = document.getElementById("stage");
  const error = document.getElementById("try-error");
  const why = error.appendChild(document.createElement("p"));
  const timing = document.getElementById("try-timing");
  /** @type {ImageBitmap | null} */
  let picture = null; // ImageBitmap on show
  let found = []; // what the service said about it
  let turn = 0; // the newest question wins
  /** @type {File | null} */
  let last = null; // file of the picture on show

  input.addEventListener("change", () => input.files?.[0] && open(input.files[0]));
  onDrop(drop, (files) => open(files.find((one) => one.type.startsWith("image/")) || files[0]));
  document.addEventListener("paste", (event) => {
    const file = [...(event.clipboardData?.files || [])].find((one) => one.type.startsWith("image/"));
    if (file) open(file);
  });
  view.begin?.(draw, () => last && ask(last));
  const wrong = document.getElementById("wrong");
  const button = wrong.querySelector("button");
  const told = wrong.querySelector("[role=status]");
  button.addEventListener("click", sendBack);

  /** Keep the picture with what is shown on it, for annotation. */
  async function sendBack() {
    if (!last) return;
    const form = new FormData();
    form.append("image", last, last.name || "picture");
    form.append("answers", JSON.stringify(view.kept ? view.kept(found) : found));
    button.disabled = true;
    try {
      await send(form);
      told.textContent = t("Stored for annotation.");
    } catch (problem) {
      button.disabled = false;
      told.textContent = problem.message;
    }
  }

  async function send(form) {
    let answer;
    try {
      answer = await fetch(root.dataset.feedback || "", { method: "POST", body: form, headers: { "X-CSRFToken": csrfToken() } });
    } catch {
      throw new Error(t("The platform does not respond. Check your connection and try again."));
    }
    const body = await answer.json().catch(() => ({}));
    if (!answer.ok) throw new ApiError(answer.status, body);
  }

  async function open(file) {
    turn += 1;
    last = null;
    clear();
    try {
      picture = await createImageBitmap(file, { imageOrientation: "from-image" });
    } catch {
      drop.classList.remove("is-busy");
      fail(t("Your browser cannot display this image file."));
      return;
    }
    drop.classList.add("has-picture");
    drop.querySelector(".drop-stage").hidden = false;
    last = file;
    view.chosen?.(picture);
    await ask(file);
  }

  function clear() {
    fail("");
    drop.classList.add("is-busy");
    found = [];
    document.getElementById("answers").replaceChildren();
    timing.textContent = "";
    wrong.hidden = true;
    button.disabled = false;
    told.textContent = "";
  }

  async function ask(file) {
    const mine = ++turn;
    clear();
    draw();
    const started = performance.now();
    try {
      const said = await answerOf(file, () => mine === turn);
      if (mine !== turn) return;
      found = said.predictions;
      const all = Math.round(performance.now() - started);
      timing.textContent = t("%(model)s ms inference, %(all)s ms total", { model: said.timing_ms.inference.toFixed(1), all });
      view.answered?.(found);
      wrong.hidden = false;
      draw();
    } catch (problem) {
      if (mine === turn) fail(problem.message);
    } finally {
      if (mine === turn) drop.classList.remove("is-busy");
      input.value = "";
    }
  }

  /** The answer; a service that is only starting is asked again while `wanted`. */
  async function answerOf(file, wanted) {
    for (const until = performance.now() + 1000 * STARTS_S; ; ) {
      const { starting, ...said } = await predict(file);
      if (!starting || !wanted()) return said;
      if (performance.now() > until) throw new Error(starting);
      timing.textContent = t("The endpoint is starting. Your image is processed as soon as it is ready.");
      await new Promise((done) => setTimeout(done, AGAIN_MS));
    }
  }

  async function predict(file) {
    let answer;
    try {
      answer = await fetch(root.dataset.url + (typeof view.query === "function" ? view.query() : view.query), {
        method: "POST",
        body: file,
        credentials: "same-origin",
        headers: { "Content-Type": file.type || "application/octet-stream", "X-CSRFToken": csrfToken() },
      });
    } catch {
      throw new Error(t("The platform does not respond. Check your connection and try again."));
    }
    const body = await answer.json().catch(() => ({}));
    if (body.code === "service_starting") return { starting: body.detail };
    if (!answer.ok) throw new Error(body.detail || t("The endpoint responded with status %(status)s.", { status: answer.status }));
    return body;
  }

  function fail(text) {
    error.hidden = !text;
    why.textContent = text;
  }

  /** The picture, and on it what the view paints. */
  function draw() {
    if (!picture) return;
    const scale = Math.min(1, LONGEST_SIDE / Math.max(picture.width, picture.height));
    const grow = Math.max(1, Math.min(4, 560 / Math.max(picture.width, picture.height)));
    canvas.width = Math.round(picture.width * scale * grow);
    canvas.height = Math.round(picture.height * scale * grow);
    const paint = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    paint.imageSmoothingEnabled = grow < 2;
    paint.drawImage(picture, 0, 0, canvas.width, canvas.height);
    view.draw?.({ canvas, paint, found, scale: scale * grow });
  }
}
