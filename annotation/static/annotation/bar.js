// The bar around the image: what its buttons, its chip and its titles say about the image on the desk.
import { grouped, t } from "../base/i18n.js";
import { allKinds } from "./shapes/registry.js";

const CHIPS = { submitted: "chip-run", accepted: "chip-run", in_progress: "chip-wait", rejected: "chip-fail" };

export class Bar {
  /**
   * @param {HTMLElement} root
   * @param {object} given
   * @param {import("./desk.js").Desk} given.desk
   * @param {import("./images.js").Images} given.images
   * @param {import("./review.js").Review} given.review
   * @param {number} given.count  of images in the set
   */
  constructor(root, { desk, images, review, count }) {
    this.root = root;
    this.desk = desk;
    this.review = review;
    this.count = count;
    images.addEventListener("shown", () => this.image());
    images.addEventListener("state", () => this.state());
    desk.addEventListener("view", () => this.view());
    desk.addEventListener("tool", () => this.tool());
    desk.store.addEventListener("history", () => this.edits());
    desk.scene.addEventListener("selection", () => this.edits());
    desk.scene.addEventListener("shapes", () => this.state());
    desk.scene.addEventListener("visibility", () => this.#press("hideAll", desk.scene.allHidden));
    this.#jumps(images);
    this.tool();
  }

  image() {
    const { task } = this.desk;
    document.title = `${task.name} · aiplatform`;
    document.querySelector("[data-image-name]").textContent = task.name;
    this.#find("place").textContent = `${grouped(task.number)} / ${grouped(this.count)}`;
    this.#find("jump").hidden = true;
    this.#shut("previous", task.number <= 1);
    this.#shut("next", task.number >= this.count);
    this.state();
    this.view();
  }

  state() {
    const { desk, review } = this;
    const { task } = desk;
    const drawn = desk.scene.shapes.size;
    const words = {
      new: t("New"), in_progress: t("In progress"), submitted: task?.empty && !drawn ? t("Reviewed, empty") : t("Submitted"),
      rejected: t("Sent back"), accepted: t("Accepted"),
    };
    const chip = this.#find("task-state");
    // as the server says once the first edit is saved; shapes that came with the images are none
    if (task?.state === "new" && (desk.store.done.length || desk.store.undone.length)) task.state = "in_progress";
    chip.textContent = words[task?.state] ?? "";
    chip.className = `annotator-task chip ${CHIPS[task?.state] ?? "chip-end"}`;
    for (const act of [...allKinds().map(({ tool }) => tool), "numbers", "submit"]) this.#shut(act, desk.locked);
    if (task) review.refresh(task);
    this.edits();
  }

  view() {
    this.#find("zoom").textContent = `${Math.round(this.desk.viewport.scale * 100)} %`;
  }

  tool() {
    const now = this.desk.handTool ? "pan" : this.desk.toolName;
    for (const name of [...Object.keys(this.desk.tools), "pan"]) this.#press(name, name === now);
  }

  edits() {
    const { store, scene, locked } = this.desk;
    this.#shut("undo", locked || !store.done.length);
    this.#shut("redo", locked || !store.undone.length);
    this.#shut("delete", locked || !scene.selected.size);
  }

  /** The buttons and the image say the keys that are the person's now. */
  keys(keys) {
    for (const button of this.root.querySelectorAll("[data-act]")) {
      const key = keys.of(button.dataset.act);
      const name = button.dataset.name || button.getAttribute("aria-label") || button.textContent.trim();
      button.title = key ? `${name} (${key})` : name;
    }
    const [help, numbers] = [keys.of("help"), keys.offers("numbers") && keys.of("numbers")];
    const words = help && numbers ? t("Image. Press %(help)s for shortcuts, %(numbers)s to enter coordinates.", { help, numbers }) : t("Image");
    this.#find("stage").setAttribute("aria-label", words);
  }

  /** Ask for the number of an image, where it stands. */
  jump() {
    const form = this.#find("jump");
    const input = form.querySelector("input");
    input.max = String(this.count);
    input.value = String(this.desk.task?.number ?? 1);
    form.hidden = false;
    input.select();
    input.focus();
  }

  #jumps(images) {
    const form = this.#find("jump");
    const input = form.querySelector("input");
    const shut = () => {
      form.hidden = true;
      this.#find("stage").focus({ preventScroll: true });
    };
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      shut();
      void images.jump(Number(input.value));
    });
    input.addEventListener("blur", () => {
      form.hidden = true;
    });
    input.addEventListener("keydown", (event) => {
      if (event.key === "Escape") shut();
    });
  }

  #find(name) {
    return this.root.querySelector(`[data-${name}]`);
  }

  /** @returns {NodeListOf<HTMLButtonElement>} */
  #buttons(act) {
    return this.root.querySelectorAll(`[data-act="${act}"]`);
  }

  #shut(act, shut) {
    for (const button of this.#buttons(act)) button.disabled = shut;
  }

  #press(act, pressed) {
    for (const button of this.#buttons(act)) button.setAttribute("aria-pressed", String(pressed));
  }
}
