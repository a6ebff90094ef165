// Files brought to the folder that is shown: any number, one after the other, each resumable.
import { api } from "../base/api.js";
import { onDrop } from "../base/drop.js";
import { bytes, t } from "../base/i18n.js";
import { chosenFiles, droppedFiles } from "../datasets/choosing.js";
import { TusUpload } from "../datasets/tus.js";

/** @type {HTMLFormElement} */
const form = /** @type {any} */ (document.querySelector("[data-files-form]"));
/** @type {HTMLInputElement} */
const input = form.querySelector("[data-file]");
/** @type {HTMLInputElement} */
const folder = form.querySelector("[data-folder]");
/** @type {HTMLInputElement} */
const replace = form.querySelector("[data-replace]");
const queue = /** @type {HTMLElement} */ (document.querySelector("[data-files-queue]"));
/** @type {{path: string, file: File, row: HTMLElement}[]} */
const waiting = [];
let working = false;

form.querySelector("[data-files-plain]").hidden = true;
form.querySelector("[data-files-ways]").hidden = false;
/** @param {HTMLElement} opener @param {HTMLInputElement} chosen */
function choose(opener, chosen) {
  opener.addEventListener("click", (event) => {
    event.preventDefault();
    chosen.click();
  });
}
choose(form.querySelector("[data-choose]"), input);
choose(form.querySelector("[data-choose-folder]"), folder);
for (const opener of document.querySelectorAll("[data-files-choose]")) choose(opener, input);
for (const chosen of [input, folder]) {
  chosen.addEventListener("change", () => {
    take(chosenFiles(chosen.files));
    chosen.value = "";
  });
}
for (const place of [form.querySelector("[data-drop]"), document.getElementById("files")]) {
  onDrop(place, async (_files, dropped) => take(await droppedFiles(dropped)));
}

/** A name as the platform writes it: a backslash stands as two. */
const written = (path) => path.replaceAll("\\", "\\\\");

function take(found) {
  for (const { path, file } of found) {
    const row = document.createElement("li");
    row.className = "files-item";
    const name = Object.assign(document.createElement("span"), { className: "mono wrap-any", textContent: path });
    const bar = Object.assign(document.createElement("progress"), { className: "progress", max: 1, value: 0 });
    bar.setAttribute("aria-label", path);
    const state = Object.assign(document.createElement("span"), { className: "small", textContent: t("Waiting") });
    state.dataset.state = "";
    row.append(name, bar, state);
    queue.append(row);
    waiting.push({ path, file, row });
  }
  if (!working) work();
}

async function work() {
  working = true;
  let brought = 0;
  for (let next = waiting.shift(); next; next = waiting.shift()) {
    const { path, file, row } = next;
    const state = row.querySelector("[data-state]");
    try {
      await bring(path, file, row, state);
      state.textContent = t("There");
      brought += 1;
    } catch (error) {
      row.classList.add("is-failed");
      state.textContent = error.message;
    }
  }
  working = false;
  if (brought) showThem();
}

async function bring(path, file, row, state) {
  if (file.size > Number(form.dataset.max)) {
    throw new Error(t("%(name)s is too large: the limit is %(limit)s.", { name: file.name, limit: bytes(form.dataset.max) }));
  }
  const where = { path: (form.dataset.path ? `${form.dataset.path}/` : "") + written(path), replace: replace.checked };
  await api.post("/api/v1/files/check/", { ...where, size_bytes: file.size });
  const id = await sent(file, row.querySelector("progress"), state);
  await api.post("/api/v1/files/put/", { ...where, upload: id });
}

/** Send one file and return the id of its upload. @returns {Promise<string>} */
function sent(file, bar, state) {
  return new Promise((resolve, reject) => {
    const upload = new TusUpload(file, {
      onProgress({ sent: done, total }) {
        bar.value = total ? done / total : 1;
        state.textContent = `${bytes(done)} / ${bytes(total)}`;
      },
      onState(now, text) {
        if (now === "failed") reject(new Error(text));
        else if (text) state.textContent = text;
      },
      onDone: resolve,
    });
    upload.start();
  });
}

window.addEventListener("beforeunload", (event) => {
  if (working) event.preventDefault();
});

/** Show what came in the list, and how much is used now; the queue stays to be read. */
async function showThem() {
  const answer = await fetch(location.href, { credentials: "same-origin" });
  if (!answer.ok) return;
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  for (const part of ["#files", "[data-files-usage]"]) {
    document.querySelector(part)?.replaceChildren(...(fresh.querySelector(part)?.childNodes ?? []));
  }
}
