// The drop zone of forms that take data or a model: upload with progress, and what is missing.
import { onDrop } from "../base/drop.js";
import { bytes, duration, t } from "../base/i18n.js";
import { chosenFiles, droppedFiles, nameOf, titleOf } from "./choosing.js";
import { packed } from "./packing.js";
import { TusUpload, discard, offsetOf, unfinished } from "./tus.js";

const ARCHIVE = /\.(zip|tar|tgz|tar\.gz|tbz2|tar\.bz2|txz|tar\.xz|tar\.zst)$/i;
const MODEL = /\.(onnx|safetensors|pt|pth|ckpt|pt2|bin|pkl)$/i;
const IMAGE = /\.(jpe?g|jpe|jfif|png|apng|webp|bmp|gif|tiff?|hei[cf])$/i;

const form = document.querySelector("[data-upload-form]");
const drop = form.querySelector("[data-drop]");
/** @type {HTMLInputElement} */
const input = form.querySelector("[data-file]");
/** @type {HTMLInputElement} */
const folder = form.querySelector("[data-folder]");
const box = form.querySelector("[data-upload]");
/** @type {HTMLInputElement} */
const hidden = form.querySelector("[name=upload_id]");
/** @type {HTMLButtonElement} */
const submit = form.querySelector("[data-submit]");
const part = (name) => box.querySelector(`[data-${name}]`);
/** @type {HTMLProgressElement} */
const bar = box.querySelector("[data-bar]");
/** @type {TusUpload | null} */
let upload = null;

/** The form may go when the file has arrived, or a path is to be used. */
function judge() {
  const waits = upload !== null && !hidden.value;
  submit.disabled = waits;
  submit.title = waits ? t("Wait for the upload to complete.") : "";
}

// --- nothing chosen: say so at the drop zone, where the keyboard goes

const row = form.querySelector("[data-drop-row]");
const missing = row.querySelector("[data-file-error]");

/** @param {boolean} isMissing */
function markMissing(isMissing) {
  row.classList.toggle("has-error", isMissing);
  /** @type {HTMLElement} */
  const chooser = form.querySelector("[data-choose]");
  chooser.setAttribute("aria-describedby", `file-label file-help${isMissing ? " file-error" : ""}`);
  missing.replaceChildren();
  if (!isMissing) return;
  const text = document.createElement("p");
  text.className = "form-error";
  text.textContent = missing.dataset.missing ?? "";
  missing.append(text);
  chooser.scrollIntoView({ block: "center" });
  chooser.focus();
}

const isFilled = (name) => Boolean(/** @type {HTMLInputElement | null} */ (form.querySelector(`[name=${name}]`))?.value);

form.addEventListener("submit", (event) => {
  const pressed = /** @type {HTMLButtonElement | null} */ (/** @type {SubmitEvent} */ (event).submitter);
  const fromElsewhere = ["path", "job", "server_path"].some(isFilled) || pressed?.name === "empty";
  if (hidden.value || upload || fromElsewhere || !missing.dataset.missing) return;
  event.preventDefault();
  markMissing(true);
});

// --- the file

/** @param {string} opener @param {HTMLInputElement} chosen */
function choose(opener, chosen) {
  form.querySelector(opener).addEventListener("click", () => chosen.click());
  chosen.addEventListener("change", () => {
    take(chosenFiles(chosen.files));
    chosen.value = "";
  });
}
choose("[data-choose]", input);
choose("[data-choose-folder]", folder);
onDrop(drop, async (_files, dropped) => take(await droppedFiles(dropped)));

const takesModel = drop.dataset.takes === "model";
const isUsable = (name) => ARCHIVE.test(name) || (takesModel ? MODEL : IMAGE).test(name);

/** An archive or one file goes as it is, everything else packed into one file. */
function take(found) {
  if (!found.length) return;
  const [{ path, file: only }] = found;
  const single = found.length === 1 && !path.includes("/");
  if (!found.some(({ path: name }) => isUsable(name))) {
    refuse(
      takesModel
        ? t("%(name)s is not a model. Choose an .onnx, .safetensors or .pt file, an archive or a folder.", { name: nameOf(found) })
        : t("%(name)s contains no images. Choose images, a folder of them, or a .zip or .tar.", { name: nameOf(found) }),
    );
    return;
  }
  markMissing(false);
  const file = single ? only : packed(found, `${nameOf(found)}.tar`);
  if (file.size > Number(drop.dataset.max)) {
    refuse(t("%(name)s is too large: the limit is %(limit)s.", { name: file.name, limit: bytes(drop.dataset.max) }));
    return;
  }
  suggest(titleOf(found));
  begin(file);
}

/** Fill in the name where nobody typed one. */
function suggest(title) {
  /** @type {HTMLInputElement | null} */
  const name = form.querySelector("[name=name]");
  if (name && (!name.value || name.value === name.dataset.suggested)) name.value = name.dataset.suggested = title;
}

function refuse(text) {
  box.hidden = false;
  box.classList.add("is-failed");
  part("name").textContent = "";
  part("pause").hidden = part("remove").hidden = true;
  bar.hidden = true;
  part("state").textContent = text;
}

function begin(file) {
  hidden.value = "";
  drop.hidden = true;
  box.hidden = bar.hidden = part("pause").hidden = part("remove").hidden = false;
  box.classList.remove("is-failed");
  form.querySelector("[data-unfinished]").hidden = true;
  part("name").textContent = file.name;
  upload = new TusUpload(file, {
    onProgress({ sent, total, rate, eta }) {
      const share = total ? sent / total : 1;
      bar.value = share;
      part("done").textContent = `${Math.floor(share * 100)} % · ${bytes(sent)} / ${bytes(total)}`;
      part("rate").textContent = rate && Number.isFinite(eta) ? `${bytes(rate)}/s · ${duration(eta)}` : "";
    },
    onState(state, text) {
      box.classList.toggle("is-failed", state === "failed");
      part("pause").hidden = state === "done" || state === "failed";
      part("pause").textContent = state === "paused" ? t("Continue") : t("Pause");
      part("pause").dataset.paused = state === "paused" ? "1" : "";
      part("state").textContent = state === "done" ? t("The upload is complete.") : text;
      if (state === "failed") {
        drop.hidden = false;
        upload = null;
      }
      judge();
    },
    onDone(id) {
      hidden.value = id;
      bar.value = 1;
      judge();
    },
  });
  upload.start();
  judge();
}

part("pause").addEventListener("click", () => {
  if (part("pause").dataset.paused) upload?.start();
  else upload?.pause();
});
part("remove").addEventListener("click", async () => {
  if (upload) await upload.remove();
  else if (hidden.value) await discard(hidden.value);
  upload = null;
  hidden.value = "";
  box.hidden = true;
  drop.hidden = false;
  judge();
});

window.addEventListener("beforeunload", (event) => {
  if (upload?.running) event.preventDefault();
});

// --- an upload that a closed tab left behind

async function offerUnfinished() {
  const note = form.querySelector("[data-unfinished]");
  for (const left of unfinished()) {
    const offset = await offsetOf(left.url).catch(() => undefined);
    if (offset === null) localStorage.removeItem(left.key);
    if (!offset || upload) continue;
    note.textContent = t("The upload of %(name)s stopped at %(share)s %. Choose the same file again to resume.", {
      name: left.name,
      share: Math.floor((100 * offset) / left.size),
    });
    note.hidden = false;
  }
}

if (hidden.value && box.dataset.kept) {
  // The form came back with a refusal; its file is here already.
  drop.hidden = true;
  box.hidden = false;
  bar.value = 1;
  part("done").textContent = bytes(box.dataset.kept);
  part("pause").hidden = true;
  part("state").textContent = t("The upload is complete.");
} else {
  hidden.value = ""; // what was forgotten meanwhile has to be brought again
}
judge();
offerUnfinished();
