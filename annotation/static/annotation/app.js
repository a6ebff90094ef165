// The annotator page: opens images, moves between them, and ties keys and buttons to the desk.
import { t } from "../base/i18n.js";
import { Desk, shapeFrom } from "./desk.js";
import { showKeys } from "./help.js";
import { Journal } from "./journal.js";
import { Keys } from "./keys.js";
import { Net } from "./net.js";
import { ClassPanel, ObjectPanel } from "./panels.js";
import { Pointers } from "./pointer.js";
import { Review } from "./review.js";
import { Status } from "./status.js";

const KEPT_STEPS = 500; // of undo that survive leaving the page
const root = document.getElementById("annotator");
const find = (name) => root.querySelector(`[data-${name}]`);
const given = JSON.parse(document.getElementById("desk").textContent);
const stage = find("stage");
const net = new Net(given.api);
const journal = await new Journal(given.user, net).open();
const canvases = Object.fromEntries([...stage.querySelectorAll("canvas")].map((canvas) => [canvas.dataset.layer, canvas]));
const desk = new Desk({ labels: given.labels, canvases, journal, mode: given.mode });
const status = new Status({ saved: find("saved"), hint: find("hint"), notice: find("notice") }, desk);
const classes = new ClassPanel(find("classes"), desk);
new ObjectPanel(find("objects"), find("object-count"), desk);
new Pointers(stage, desk);
const review = new Review(find("review"), {
  mode: given.mode, net, journal, status, judged,
  looked: () => ({ task: desk.task, rev: revs.get(desk.task?.id) }),
});
const histories = new Map(); // image → {done, undone}, for coming back within this visit
const revs = new Map(); // image → revision the server reported last
const pictures = new Map(); // image → promise of its bitmap; the next one is fetched ahead
let opening = 0;

// --- opening images

async function open(id, { push = true } = {}) {
  const turn = ++opening;
  root.dataset.busy = "";
  status.tell("");
  desk.tool.cancel();
  leave();
  let task;
  let shapes;
  try {
    [task, shapes] = await Promise.all([net.task(id), net.shapes(id)]);
  } catch {
    failed(id, t("The server does not answer. This image opens when it is back."));
    return;
  }
  if (turn !== opening) return;
  if (task.status !== 200 || shapes.status !== 200) {
    const signedOut = task.status === 401 || task.status === 403;
    failed(id, signedOut ? t("You are signed out. Sign in again to go on.") : t("This image is no longer there for you."));
    return;
  }
  const undoable = show(task.body, shapes.body);
  if (push) history.pushState({ id }, "", given.page.replace(/0\/$/, `${id}/`));
  try {
    const bitmap = await picture(id);
    if (turn !== opening) return;
    desk.renderer.setBitmap(bitmap);
  } catch {
    if (turn === opening) status.raise(t("The picture could not be loaded."), [[t("Try again"), () => open(id, { push: false }), true]], "fail");
  }
  await undoable; // a first Ctrl+Z must find what there is to undo
  if (turn !== opening) return;
  root.removeAttribute("data-busy");
  root.dataset.open = id;
  ahead(task.body);
}

function show(task, { rev, shapes, deleted }) {
  desk.task = task;
  revs.set(task.id, rev);
  journal.learn(shapes);
  journal.learn(deleted);
  desk.renderer.setBitmap(null);
  desk.viewport.show({ width: task.width, height: task.height });
  const waiting = journal.of(task.id);
  const drawn = new Map(shapes.map((shape) => [shape.id, shapeFrom(shape)]));
  for (const event of waiting) {
    if (event.op === "delete") drawn.delete(event.shape);
    else drawn.set(event.shape, { id: event.shape, source: "manual", ...drawn.get(event.shape), ...event.data });
  }
  desk.scene.reset({ width: task.width, height: task.height }, drawn.values());
  const undoable = restoreHistory(task.id, rev, waiting.length > 0);
  document.title = `${task.name} · aiplatform`;
  document.querySelector("[data-image-name]").textContent = task.name;
  find("place").textContent = `${task.number} / ${given.count}`;
  buttons("previous").forEach((button) => (button.disabled = task.number <= 1));
  buttons("next").forEach((button) => (button.disabled = task.number >= given.count));
  taskState();
  viewChanged();
  status.lower();
  status.refresh();
  return undoable;
}

function failed(id, text) {
  status.raise(text, [[t("Try again"), () => open(id, { push: false }), true], [t("Back to the list"), toList]], "fail");
}

function picture(id) {
  if (!pictures.has(id)) {
    for (const old of [...pictures.keys()].slice(0, -2)) pictures.delete(old);
    const promise = net.picture(id);
    promise.catch(() => pictures.delete(id));
    pictures.set(id, promise);
  }
  return pictures.get(id);
}

/** Fetch the next picture while this one is being worked on. */
async function ahead(task) {
  if (task.number >= given.count) return;
  try {
    const { status: code, body } = await net.neighbour(task.id, "next");
    if (code === 200) await picture(body.id);
  } catch {
    // only a kindness: the image loads again when it is opened
  }
}

async function go(which) {
  if (!desk.task || (which === "next" ? desk.task.number >= given.count : desk.task.number <= 1)) return;
  journal.flush();
  let answer;
  try {
    answer = await net.neighbour(desk.task.id, which);
  } catch {
    status.raise(t("The server does not answer, so no other image can be opened. What you draw here is kept."), [[t("OK"), () => {}, true]]);
    return;
  }
  if (answer.status === 200) await open(answer.body.id);
}

async function submit() {
  const { task, scene } = desk;
  if (!task || "busy" in root.dataset || !desk.mayChange()) return;
  if (desk.tool.busy) {
    status.tell(t("Finish the shape first, or cancel it with Esc."));
    return;
  }
  const empty = scene.shapes.size === 0;
  if (empty && !(await desk.confirmEmpty())) return;
  const sent = journal.submit(task.id, { empty });
  task.state = "submitted";
  task.empty = empty;
  taskState();
  if (task.number < given.count) {
    await go("next");
    return;
  }
  await Promise.race([sent, new Promise((resolve) => setTimeout(resolve, 4000))]);
  if (!journal.pending && !journal.conflicts.length && !journal.refused.length) toList();
  else status.tell(t("This was the last image. The list opens once everything is saved."));
}

/** The server took a reviewer's verdict on the image. */
function judged(task) {
  if (desk.task?.id !== task.id) return;
  desk.task = task;
  taskState();
  void go("next");
}

function toList() {
  location.assign(given.list);
}

// --- undo that survives leaving

function leave() {
  if (!desk.task) return;
  histories.set(desk.task.id, { done: desk.store.done, undone: desk.store.undone });
  keepHistory();
}

function keepHistory() {
  const { task, store } = desk;
  const entry = { task: task.id, rev: revs.get(task.id), done: store.done.slice(-KEPT_STEPS), undone: store.undone.slice(-KEPT_STEPS) };
  journal.shelf.write("histories", [structuredClone(entry)]).catch(() => {});
}

async function restoreHistory(id, rev, waiting) {
  desk.store.open(histories.get(id));
  if (histories.has(id)) return;
  const kept = await journal.shelf.get("histories", id).catch(() => null);
  // Steps fit only the shapes they were made on: somebody else's edit in between ends them.
  const fits = kept && (kept.rev === rev || waiting);
  if (fits && desk.task?.id === id && !desk.store.done.length) desk.store.open({ done: kept.done, undone: kept.undone });
}

journal.addEventListener("rev", ({ detail }) => {
  revs.set(detail.task, detail.rev);
  if (detail.task === desk.task?.id) keepHistory();
});
addEventListener("pagehide", leave); // a reload right after an edit must not lose its undo

// --- what the page shows

const buttons = (act) => root.querySelectorAll(`[data-act="${act}"]`);

function taskState() {
  const { task } = desk;
  const drawn = desk.scene.shapes.size;
  const words = {
    new: t("New"), in_progress: t("In progress"), submitted: task?.empty && !drawn ? t("Checked, empty") : t("Submitted"),
    rejected: t("Sent back"), accepted: t("Accepted"),
  };
  const chip = find("task-state");
  const state = task?.state === "new" && drawn ? "in_progress" : task?.state;
  chip.textContent = words[state] ?? "";
  chip.className = `annotator-task chip ${{ submitted: "chip-run", accepted: "chip-run", in_progress: "chip-wait", rejected: "chip-fail" }[state] ?? "chip-end"}`;
  for (const act of ["box", "polygon", "numbers", "submit"]) buttons(act).forEach((button) => (button.disabled = desk.locked));
  if (task) review.refresh(task);
  editsChanged();
}

function viewChanged() {
  find("zoom").textContent = `${Math.round(desk.viewport.scale * 100)} %`;
}

function toolsChanged() {
  const now = desk.handTool ? "pan" : desk.toolName;
  for (const name of ["select", "box", "polygon", "pan"]) buttons(name).forEach((button) => button.setAttribute("aria-pressed", String(name === now)));
}

function editsChanged() {
  const { store, scene } = desk;
  buttons("undo").forEach((button) => (button.disabled = desk.locked || !store.done.length));
  buttons("redo").forEach((button) => (button.disabled = desk.locked || !store.undone.length));
  buttons("delete").forEach((button) => (button.disabled = desk.locked || !scene.selected.size));
}

desk.addEventListener("view", viewChanged);
desk.addEventListener("tool", toolsChanged);
desk.addEventListener("cursor", ({ detail }) => (stage.style.cursor = detail));
desk.addEventListener("focus", () => stage.focus({ preventScroll: true }));
desk.addEventListener("reload", () => open(desk.task.id, { push: false }));
desk.addEventListener("say", ({ detail: { text, fix } }) => {
  if (fix) status.raise(text, [[t("Untangle"), fix, true], [t("Leave it"), () => {}]]);
  else status.tell(text ?? "");
});
desk.store.addEventListener("history", editsChanged);
desk.scene.addEventListener("selection", editsChanged);
desk.scene.addEventListener("shapes", taskState);
desk.scene.addEventListener("visibility", () => buttons("hideAll").forEach((button) => button.setAttribute("aria-pressed", String(desk.scene.allHidden))));

// --- acts

const middle = (factor) => {
  desk.viewport.zoomAt(desk.viewport.width / 2, desk.viewport.height / 2, factor);
  desk.viewMoved();
};
const onImage = () => !document.activeElement?.closest("button, a, input, textarea, select");
const arrows = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

function nudge(event) {
  const [dx, dy] = arrows[event.key];
  const by = event.shiftKey ? 10 : 1;
  if (desk.nudge(dx * by, dy * by)) return true;
  desk.viewport.panBy(-dx * 60, -dy * 60);
  desk.viewMoved();
  return true;
}

/** Keep the person's own keys with their account; returns what went wrong, if anything did. */
async function keepKeys(own) {
  try {
    const { status: code, body } = await net.keepKeys(own);
    if (code === 200) return "";
    return body?.detail || t("The keys could not be kept. Try again.");
  } catch {
    return t("The server does not answer, so the key was not changed.");
  }
}

/** The tools say the keys that are theirs now. */
function keysChanged() {
  for (const button of root.querySelectorAll("[data-act]")) {
    const key = keys.of(button.dataset.act);
    const name = button.getAttribute("aria-label") || button.textContent.trim();
    button.title = key ? `${name} (${key})` : name;
  }
  const [help, numbers] = [keys.of("help"), keys.offers("numbers") && keys.of("numbers")];
  stage.setAttribute("aria-label", help && numbers ? t("Image. Press %(help)s for the keys, %(numbers)s to draw by numbers.", { help, numbers }) : t("Image"));
}

const acts = {
  select: () => desk.use("select"),
  box: () => desk.use("box"),
  polygon: () => desk.use("polygon"),
  pan: () => desk.use(desk.handTool ? desk.toolName : "pan"),
  repeat: () => desk.repeat(),
  close: () => desk.tool.close?.(),
  numbers: () => void desk.numbers(),
  cancel: () => desk.cancel(),
  digit: (event) => desk.choose(given.labels[Number(/\d/.exec(event.code)?.[0] ?? event.key) - 1]?.id),
  class: () => classes.focus(),
  delete: () => desk.remove(),
  undo: () => desk.undo(),
  redo: () => desk.redo(),
  copy: () => (getSelection()?.toString() ? false : desk.copy()),
  paste: () => desk.paste(),
  duplicate: () => desk.duplicate(),
  all: () => {
    desk.use("select");
    desk.scene.select([...desk.scene.shapes.values()].filter((shape) => !desk.scene.isHidden(shape)).map(({ id }) => id));
  },
  cycle: (event) => (event.key !== "Tab" || document.activeElement === stage ? desk.cycle(1) : false),
  cycleBack: (event) => (event.key !== "Tab" || document.activeElement === stage ? desk.cycle(-1) : false),
  nudge,
  zoomIn: () => middle(1.25),
  zoomOut: () => middle(0.8),
  fit: () => {
    desk.viewport.fit();
    desk.viewMoved();
  },
  actual: () => {
    desk.viewport.oneToOne();
    desk.viewMoved();
  },
  hide: () => desk.hideChosen(),
  hideAll: () => desk.scene.hideAll(!desk.scene.allHidden),
  next: (event) => {
    if (event?.key === "ArrowRight" && desk.scene.selected.size && onImage()) return nudge(event);
    if (desk.tool.busy && desk.tool.close) return desk.tool.close(); // F closes what is being drawn
    return void go("next");
  },
  previous: (event) => {
    if (event?.key === "ArrowLeft" && desk.scene.selected.size && onImage()) return nudge(event);
    return void go("previous");
  },
  submit: () => void submit(),
  accept: () => review.accept(),
  sendBack: () => review.sendBack(),
  save: () => void journal.flush(),
  help: () => showKeys(keys, keepKeys),
};
// What this person has no right to is neither on a key nor in the list of keys.
const DRAWS = ["select", "box", "polygon", "repeat", "close", "numbers", "digit", "class", "delete", "undo", "redo", "paste", "duplicate", "submit", "save"];
const hidden = [...(given.mode === "view" ? DRAWS : []), ...(given.mode === "review" ? [] : ["accept", "sendBack"])];
hidden.forEach((id) => delete acts[id]);
const keys = new Keys(acts, given.keys);
keys.addEventListener("change", keysChanged);
keysChanged();

root.addEventListener("click", (event) => {
  const button = event.target.closest("[data-act]");
  if (!button) return;
  acts[button.dataset.act]();
  if (["select", "box", "polygon", "pan", "undo", "redo", "delete"].includes(button.dataset.act)) stage.focus({ preventScroll: true });
});
addEventListener("popstate", (event) => open(event.state?.id ?? given.task, { push: false }));
new ResizeObserver(() => {
  desk.renderer.resize(stage.clientWidth, stage.clientHeight, Math.min(devicePixelRatio || 1, 2));
  viewChanged();
}).observe(stage);

if (given.mode === "view") desk.use("pan");
toolsChanged();
history.replaceState({ id: given.task }, "");
await open(given.task, { push: false });
if (!given.labels.length && given.mode !== "view") status.raise(t("This dataset has no classes yet, so nothing can be drawn. The owner of the project adds them."));
if (!journal.shelf.lasting) status.tell(t("This browser keeps nothing, so unsaved edits would go with this tab."));
stage.focus({ preventScroll: true });

/** For tests and the bench: look, do not touch. */
globalThis.annotator = { desk, journal, open };
