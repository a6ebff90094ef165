// What a person can do on the page: one table for keys (keys.js names them) and buttons ([data-act]).
import { t } from "../base/i18n.js";
import { toggleFullScreen } from "./fullscreen.js";
import { allKinds } from "./shapes/registry.js";

// What this person has no right to is neither on a key nor in the list of keys.
const DRAWS = ["select", "repeat", "close", "numbers", "digit", "class", "delete", "undo", "redo", "paste", "duplicate", "lock", "fromPrevious", "toNext", "submit", "save"];
const JUDGES = ["accept", "sendBack"];
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

/**
 * The acts this person has: {id: (event) => boolean | void}; false lets the browser have the key.
 * @param {object} parts
 * @param {import("./desk.js").Desk} parts.desk
 * @param {import("./images.js").Images} parts.images
 * @param {import("./review.js").Review} parts.review
 * @param {import("./journal.js").Journal} parts.journal
 * @param {import("./classpanel.js").ClassPanel} parts.classes
 * @param {import("./objectpanel.js").ObjectPanel} parts.list
 * @param {import("./settings.js").Settings} parts.settings
 * @param {import("./looks.js").Looks} parts.looks
 * @param {import("./carry.js").Carry} parts.carry
 * @param {import("./bar.js").Bar} parts.bar
 * @param {HTMLElement} parts.stage
 * @param {() => void} parts.help  shows the list of keys
 */
export function actsOf({ desk, images, review, journal, classes, list, settings, looks, carry, bar, stage, help }) {
  const tools = allKinds().map(({ tool }) => tool);
  const { objects, clipboard, viewport, scene, mode, labels } = desk;
  const zoom = (factor) => {
    viewport.zoomAt(viewport.width / 2, viewport.height / 2, factor);
    desk.viewMoved();
  };
  const toggle = (name, on, off) => {
    settings.toggle(name);
    desk.hint(settings.get(name) ? on : off);
  };
  const onImage = () => !document.activeElement?.closest("button, a, input, textarea, select");
  const cycle = (event, step) => (event.key !== "Tab" || document.activeElement === stage ? objects.cycle(step) : false);
  const nudge = (event) => {
    const [dx, dy] = ARROWS[event.key];
    const by = event.shiftKey ? 10 : 1;
    if (objects.nudge(dx * by, dy * by)) return;
    viewport.panBy(-dx * 60, -dy * 60);
    desk.viewMoved();
  };
  const acts = {
    select: () => desk.use("select"),
    ...Object.fromEntries(tools.map((tool) => [tool, () => desk.use(tool)])),
    pan: () => desk.use(desk.handTool ? desk.toolName : "pan"),
    repeat: () => desk.repeat(),
    close: () => desk.tool.close?.(),
    numbers: () => void desk.numbers(),
    cancel: () => desk.cancel(),
    digit: (event) => desk.choose(labels[Number(/\d/.exec(event.code)?.[0] ?? event.key) - 1]?.id),
    class: () => classes.focus(),
    delete: () => desk.remove(),
    undo: () => desk.undo(),
    redo: () => desk.redo(),
    copy: () => (getSelection()?.toString() ? false : clipboard.copy()),
    paste: () => clipboard.paste(),
    duplicate: () => clipboard.duplicate(),
    all: () => objects.all(),
    cycle: (event) => cycle(event, 1),
    cycleBack: (event) => cycle(event, -1),
    nudge,
    zoomIn: () => zoom(1.25),
    zoomOut: () => zoom(0.8),
    fit: () => {
      viewport.fit();
      desk.viewMoved();
    },
    actual: () => {
      viewport.oneToOne();
      desk.viewMoved();
    },
    hide: () => objects.hideChosen(),
    hideAll: () => scene.hideAll(!scene.allHidden),
    lock: () => objects.lockChosen(),
    names: () => toggle("names", t("Class labels are shown."), t("Class labels are hidden.")),
    fillLess: () => settings.step("fill", -1),
    fillMore: () => settings.step("fill", 1),
    lineLess: () => settings.step("line", -1),
    lineMore: () => settings.step("line", 1),
    brighter: () => settings.step("brightness", 1),
    darker: () => settings.step("brightness", -1),
    contrastMore: () => settings.step("contrast", 1),
    contrastLess: () => settings.step("contrast", -1),
    plain: () => settings.resetLooks(),
    looks: () => looks.toggle(),
    keepZoom: () => toggle("keepZoom", t("The zoom is kept on the next image."), t("The next image is fitted.")),
    whole: () => void toggleFullScreen(),
    side: () => settings.toggle("side"),
    strip: () => settings.toggle("strip"),
    find: () => {
      settings.set("side", true);
      list.focus();
    },
    sort: () => list.sortNext(),
    jump: () => bar.jump(),
    fromPrevious: () => void carry.fromPrevious(),
    toNext: () => void carry.toNext(),
    next: (event) => {
      if (event?.key === "ArrowRight" && scene.selected.size && onImage()) return nudge(event);
      if (desk.tool.busy && desk.tool.close) return desk.tool.close(); // F closes what is being drawn
      return void images.go("next");
    },
    previous: (event) => {
      if (event?.key === "ArrowLeft" && scene.selected.size && onImage()) return nudge(event);
      return void images.go("previous");
    },
    submit: () => void images.submit(),
    accept: () => review.accept(),
    sendBack: () => review.sendBack(),
    save: () => void journal.flush(),
    help,
  };
  for (const id of [...(mode === "view" ? [...DRAWS, ...tools] : []), ...(mode === "review" ? [] : JUDGES)]) delete acts[id];
  return acts;
}
