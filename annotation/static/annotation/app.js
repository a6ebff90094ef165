// The annotator page: makes its parts, ties them together and opens the first image.
import { t } from "../base/i18n.js";
import { actsOf } from "./acts.js";
import { Bar } from "./bar.js";
import { Carry } from "./carry.js";
import { ClassPanel } from "./classpanel.js";
import { Desk } from "./desk.js";
import { showKeys } from "./help.js";
import { Images } from "./images.js";
import { Journal } from "./journal.js";
import { Keys } from "./keys.js";
import { Looks } from "./looks.js";
import { Net } from "./net.js";
import { ObjectPanel } from "./objectpanel.js";
import { Others } from "./others.js";
import { Pointers } from "./pointer.js";
import { Review } from "./review.js";
import { Settings } from "./settings.js";
import { loadKinds } from "./shapes/registry.js";
import { Status } from "./status.js";
import { Strip } from "./strip.js";

const root = document.getElementById("annotator");
const find = (name) => root.querySelector(`[data-${name}]`);
// the frame around the image shows where Tab went; the page itself puts the focus there when it opens
addEventListener("keydown", ({ key }) => root.toggleAttribute("data-tabbed", key === "Tab"), true);
const given = JSON.parse(document.getElementById("desk").textContent);
const stage = find("stage");
await loadKinds(given.kinds);
const net = new Net(given.api);
const settings = new Settings(given.user);
const journal = await new Journal(given.user, net).open();
const canvases = Object.fromEntries([...stage.querySelectorAll("canvas")].map((canvas) => [canvas.dataset.layer, canvas]));
const desk = new Desk({ labels: given.labels, label: given.label, canvases, journal, mode: given.mode });
const status = new Status({ saved: find("saved"), hint: find("hint"), notice: find("notice") }, desk);
const classes = new ClassPanel(find("classes"), desk);
const list = new ObjectPanel(find("objects"), {
  count: find("object-count"),
  words: root.querySelector("input[data-object-words]"),
  sort: root.querySelector("select[data-object-sort]"),
  desk,
  settings,
});
new Pointers(stage, desk);
const looks = new Looks(root, { desk, settings });
const images = new Images(root, {
  desk, net, journal, status, settings, set: given.set, count: given.count, page: given.page, list: given.list,
});
new Others({ desk, images, journal, net });
new Strip(find("strip"), { desk, images, net, settings, picture: given.picture });
const carry = new Carry({ desk, images, net });
const review = new Review(find("review"), {
  mode: given.mode, net, journal, status,
  looked: () => ({ task: desk.task, rev: images.rev }),
  judged: (task) => images.judged(task),
});
const bar = new Bar(root, { desk, images, review, count: given.count });
const acts = actsOf({
  desk, images, review, journal, classes, list, settings, looks, carry, bar, stage, help: () => showKeys(keys, keepKeys),
});
const keys = new Keys(acts, given.keys);
keys.addEventListener("change", () => bar.keys(keys));
bar.keys(keys);

/** Keep the person's own keys with their account; returns what went wrong, if anything did. */
async function keepKeys(own) {
  try {
    const { status: code, body } = await net.keepKeys(own);
    if (code === 200) return "";
    return body?.detail || t("The shortcuts could not be saved. Try again.");
  } catch {
    return t("The server does not respond, so the shortcut was not changed.");
  }
}

desk.addEventListener("cursor", ({ detail }) => (stage.style.cursor = detail));
desk.addEventListener("focus", () => stage.focus({ preventScroll: true }));
desk.addEventListener("reload", () => images.open(desk.task.id, { push: false }));
desk.addEventListener("say", ({ detail: { text, fix } }) => {
  if (fix) status.raise(text, [[t("Untangle"), fix, true], [t("Leave explicit mode"), () => {}]]);
  else status.tell(text ?? "");
});
root.addEventListener("click", (event) => {
  /** @type {HTMLButtonElement | null} */
  const button = /** @type {Element} */ (event.target).closest("[data-act]");
  if (!button) return;
  const act = button.dataset.act ?? "";
  acts[act]();
  if (act in desk.tools || ["pan", "undo", "redo", "delete"].includes(act)) stage.focus({ preventScroll: true });
});
addEventListener("popstate", (event) => images.open(event.state?.id ?? given.task, { push: false }));
new ResizeObserver(() => {
  desk.renderer.resize(stage.clientWidth, stage.clientHeight, Math.min(devicePixelRatio || 1, 2));
  bar.view();
}).observe(stage);

if (given.mode === "view") desk.use("pan");
history.replaceState({ id: given.task }, "");
await images.open(given.task, { push: false });
if (!given.labels.length && given.mode !== "view") status.raise(t("This dataset has no classes yet, so nothing can be annotated. The project owner can add classes."));
if (!journal.shelf.lasting) status.tell(t("This browser blocks storage, so unsaved edits are lost when the tab closes."));
stage.focus({ preventScroll: true });

/** For tests and the bench: look, do not touch. */
globalThis.annotator = { desk, journal, settings };
