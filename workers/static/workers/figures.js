// What the figures of a job are called: keys are for scripts, these names for people.
import { t } from "../base/i18n.js";

// one card of curves
const GROUPS = {
  loss: () => t("Loss"),
  lr: () => t("Learning rate"),
  step_ms: () => t("Step time (ms)"),
  ap: () => t("Average precision"),
  accuracy: () => t("Accuracy"),
  epoch: () => t("Epoch"),
  box: () => t("Box loss"),
  class: () => t("Class loss"),
  fit: () => t("Fit loss"),
  progress: () => t("Progress"),
  eta_s: () => t("Time left (s)"),
  "system/cpu": () => t("Processor (100 % is one core)"),
  "system/memory_mib": () => t("Memory (MiB)"),
  "system/gpu_util": () => t("GPU load (%)"),
  "system/gpu_memory_mib": () => t("GPU memory (MiB)"),
};

// one curve
const KEYS = {
  "train/loss": () => t("Training loss"),
  "val/loss": () => t("Validation loss"),
  "train/accuracy": () => t("Accuracy in training"),
  "val/accuracy": () => t("Accuracy on validation"),
  "train/lr": () => t("Learning rate"),
  "train/step_ms": () => t("Step time (ms)"),
  "train/box": () => t("Box loss in training"),
  "train/class": () => t("Class loss in training"),
  "train/fit": () => t("Fit loss in training"),
  "val/ap": () => t("AP on validation"),
  "val/ap50": () => t("AP50 on validation"),
  "val/ap75": () => t("AP75 on validation"),
  "train/pixel_loss": () => t("Pixel loss in training"),
  "train/dice_loss": () => t("Dice loss in training"),
  "val/miou": () => t("mIoU on validation"),
  "val/iou": () => t("IoU on validation"),
  "val/pixel_accuracy": () => t("Pixel accuracy on validation"),
  "train/map_loss": () => t("Map loss in training"),
  "train/point_loss": () => t("Point loss in training"),
  "train/presence_loss": () => t("Presence loss in training"),
  "train/class_loss": () => t("Class loss in training"),
  "val/nme": () => t("NME on validation"),
  "val/pck05": () => t("PCK@0.05 on validation"),
  "val/pck10": () => t("PCK@0.1 on validation"),
  "val/class_accuracy": () => t("Right classes on validation"),
  "train/arc_loss": () => t("ArcFace loss in training"),
  "val/recall_1": () => t("Recall@1 on validation"),
  "val/recall_5": () => t("Recall@5 on validation"),
  "val/map_r": () => t("MAP@R on validation"),
  "val/knn_accuracy": () => t("kNN accuracy on validation"),
  "test/recall_1": () => t("Recall@1 on test"),
  "test/nme": () => t("NME on test"),
  "test/pck05": () => t("PCK@0.05 on test"),
  "test/miou": () => t("mIoU on test"),
  "test/ap": () => t("AP on test"),
  "test/ap50": () => t("AP50 on test"),
  "test/accuracy": () => t("Accuracy on test"),
};

/** Which card a curve belongs to. */
export function groupOf(key) {
  if (key.startsWith("system/")) return key.replace(/^system\/node\d+\//, "system/").replace(/gpu\d+_/, "gpu_");
  const [split, figure, ...part] = key.split("/");
  if (part.length && /^(ap\d*|iou|nme)$/.test(figure)) return `${split}/${figure}`; // one curve per class
  const name = key.split("/").pop();
  return /^ap\d*$/.test(name) ? "ap" : name;
}

/** The title of a card. */
export function titleOf(group) {
  if (GROUPS[group]) return GROUPS[group]();
  return KEYS[group] ? t("%(figure)s, by class", { figure: KEYS[group]() }) : group.replace(/_/g, " ");
}

/** What a curve is called, or "" where only its key is known. */
export function nameOf(key) {
  if (KEYS[key]) return KEYS[key]();
  const above = key.split("/").slice(0, 2).join("/");
  if (KEYS[above] && above !== key) return `${KEYS[above]()}: ${key.slice(above.length + 1)}`;
  const node = /^system\/node(\d+)\//.exec(key); // of a job over several
  const card = /gpu(\d+)_/.exec(key);
  const group = GROUPS[groupOf(key)];
  if (key.startsWith("system/") && group) {
    const places = [node && t("node %(number)s", { number: node[1] }), card && t("card %(number)s", { number: card[1] })];
    return [group(), ...places.filter(Boolean)].join(" · ");
  }
  return "";
}
