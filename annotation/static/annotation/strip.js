// All images of the dataset as a strip of small ones below the big one. Only what is in sight is built and asked for,
// so a hundred thousand images cost what twenty cost.
import { t } from "../base/i18n.js";

const WIDE = 96; // CSS pixels of one; annotator.css says the same
const PAGE = 20; // images the server tells of at a time
const MARKS = { submitted: "is-run", accepted: "is-run", in_progress: "is-wait", rejected: "is-fail", new: "is-end" };

export class Strip {
  /**
   * @param {HTMLElement} root  what scrolls
   * @param {object} given
   * @param {import("./desk.js").Desk} given.desk
   * @param {import("./images.js").Images} given.images
   * @param {import("./net.js").Net} given.net
   * @param {import("./settings.js").Settings} given.settings
   * @param {string} given.picture  address of a small image, with 0 for its id
   */
  constructor(root, { desk, images, net, settings, picture }) {
    this.root = root;
    this.desk = desk;
    this.images = images;
    this.net = net;
    this.picture = picture;
    this.rows = new Map(); // number → image as the API tells of it
    this.cells = new Map(); // number → what stands there: {key, item}
    this.asked = new Set(); // first numbers of pages that are known or under way
    this.list = root.querySelector("ol");
    this.list.style.width = `${images.count * WIDE}px`;
    root.addEventListener("scroll", () => this.soon(), { passive: true });
    new ResizeObserver(() => this.soon()).observe(root);
    images.addEventListener("shown", () => this.#here());
    images.addEventListener("state", () => this.#here(false));
    settings.addEventListener("change", ({ detail }) => {
      if (detail === "strip") this.show(settings.get("strip"));
    });
    this.show(settings.get("strip"));
  }

  show(shown) {
    this.root.hidden = !shown;
    if (shown) this.#here();
  }

  soon() {
    this.timer ??= requestAnimationFrame(() => {
      this.timer = undefined;
      this.refresh();
    });
  }

  refresh() {
    if (this.root.hidden) return;
    const { root, images } = this;
    const first = Math.max(1, Math.floor(root.scrollLeft / WIDE) - 1);
    const last = Math.min(images.count, Math.ceil((root.scrollLeft + root.clientWidth) / WIDE) + 2);
    for (let page = first - ((first - 1) % PAGE); page <= last; page += PAGE) void this.#ask(page);
    const held = /** @type {HTMLElement | null} */ (document.activeElement)?.dataset?.number;
    const cells = new Map();
    for (let number = first; number <= last; number++) cells.set(number, this.#cell(number));
    this.cells = cells;
    this.list.replaceChildren(...[...cells.values()].map(({ item }) => item));
    if (held) this.list.querySelector(`[data-number="${held}"]`)?.focus({ preventScroll: true });
  }

  /** Bring the open image into sight, and say what is known of it now. */
  #here(scroll = true) {
    const { task } = this.desk;
    if (!task || this.root.hidden) return;
    const known = this.rows.get(task.number);
    if (known) known.state = task.state;
    const left = (task.number - 1) * WIDE;
    const { scrollLeft, clientWidth } = this.root;
    if (scroll && (left < scrollLeft || left + WIDE > scrollLeft + clientWidth)) this.root.scrollLeft = left - (clientWidth - WIDE) / 2;
    this.soon();
  }

  async #ask(page) {
    if (this.asked.has(page)) return;
    this.asked.add(page);
    try {
      const { body } = await this.net.list(this.images.set, page);
      for (const row of body.results) if (!this.rows.has(row.number)) this.rows.set(row.number, row);
      this.soon();
    } catch {
      setTimeout(() => this.asked.delete(page), 3000); // asked again when somebody looks there then
    }
  }

  /** What stands at a place: what stood there before, if it says the same. */
  #cell(number) {
    const row = this.rows.get(number);
    const current = number === this.desk.task?.number;
    const key = `${row?.id} ${row?.state} ${current}`;
    const old = this.cells.get(number);
    return old?.key === key ? old : { key, item: this.#made(number, row, current) };
  }

  #made(number, row, current) {
    const item = document.createElement("li");
    item.style.left = `${(number - 1) * WIDE}px`;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "annotator-small";
    button.dataset.number = String(number);
    button.setAttribute("aria-label", t("Image %(number)s", { number }));
    if (current) button.setAttribute("aria-current", "true");
    if (row) {
      button.title = row.name;
      const picture = Object.assign(document.createElement("img"), { src: this.picture.replace("/0/", `/${row.id}/`), alt: "", decoding: "async" });
      const mark = document.createElement("span");
      mark.className = `annotator-mark ${MARKS[row.state] ?? ""}`;
      button.append(picture, mark);
    }
    button.append(Object.assign(document.createElement("span"), { className: "num", textContent: String(number) }));
    button.addEventListener("click", () => void this.images.jump(number));
    item.append(button);
    return item;
  }
}
