// Objects from image to image by one key: those of the image before, or these on to the next one.
import { t, tn } from "../base/i18n.js";

export class Carry {
  /**
   * @param {object} given
   * @param {import("./desk.js").Desk} given.desk
   * @param {import("./images.js").Images} given.images
   * @param {import("./net.js").Net} given.net
   */
  constructor({ desk, images, net }) {
    this.desk = desk;
    this.images = images;
    this.net = net;
  }

  /** Put what the previous image shows on this one, but for what lies here already. */
  async fromPrevious() {
    const { desk, net } = this;
    const { task } = desk;
    if (!task || !desk.mayChange()) return;
    if (task.number <= 1) return void desk.hint(t("This is the first image."));
    let shapes;
    try {
      const before = await net.neighbour(task.id, "previous");
      shapes = before.status === 200 ? (await net.shapes(before.body.id)).body?.shapes : null;
    } catch {
      shapes = null;
    }
    if (desk.task !== task) return; // they went on meanwhile
    if (!shapes) return void desk.hint(t("The server does not respond. Try again."));
    if (!shapes.length) return void desk.hint(t("The previous image has no annotations."));
    this.#put(shapes);
  }

  /** Take the chosen objects, or all of them, along to the next image. */
  async toNext() {
    const { desk, images } = this;
    const { task, scene } = desk;
    if (!task || !desk.mayChange()) return;
    if (desk.tool.busy) return void desk.hint(t("Finish the shape first, or cancel it with Esc."));
    const shapes = scene.selected.size ? scene.selection : [...scene.shapes.values()].sort((a, b) => a.z - b.z);
    if (!shapes.length) return void desk.hint(t("This image has no annotations."));
    if (task.number >= images.count) return void desk.hint(t("This is the last image."));
    await images.go("next");
    if (desk.task !== task && desk.mayChange()) this.#put(shapes);
  }

  #put(shapes) {
    const { desk } = this;
    const there = new Set([...desk.scene.shapes.values()].map(looks));
    const fresh = shapes.filter((shape) => !there.has(looks(shape)));
    const count = desk.clipboard.put(fresh);
    const words = tn("%(count)s object copied here.", "%(count)s objects copied here.", count);
    desk.hint(count ? words : t("These objects already exist here."));
  }
}

const looks = ({ kind, label, rings }) => JSON.stringify([kind, label, rings]);
