// What the figures of a job are called: keys are for scripts, these names for people.
import { splitUnit } from "../base/chart_data.js";
import { t } from "../base/i18n.js";

// one card of curves
const GROUPS = {
  loss: () => t("Loss"),
  lr: () => t("Learning rate"),
  step_ms: () => t("Step time (ms)"),
  ap: () => t("Average precision"),
  mask_ap: () => t("Average precision of the masks"),
  miou: () => t("mIoU"),
  nme: () => t("NME"),
  pck: () => t("PCK, share of correct points"),
  recall: () => t("Recall"),
  accuracy: () => t("Accuracy"),
  pixel_accuracy: () => t("Pixel accuracy"),
  epoch: () => t("Epoch"),
  box: () => t("Box loss"),
  class: () => t("Class loss"),
  fit: () => t("Box fit loss"),
  progress: () => t("Progress"),
  eta_s: () => t("Time left (s)"),
  "system/cpu": () => t("CPU (100 % is one core)"),
  "system/memory_mib": () => t("Memory (MiB)"),
  "system/disk_used_mib": () => t("Disk usage (MiB)"),
  "system/disk_mib_s": () => t("Disk (MiB/s)"),
  "system/machine_net_mib_s": () => t("Host network (MiB/s)"),
  "system/gpu_util": () => t("GPU utilization (%)"),
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
  "train/fit": () => t("Box fit loss in training"),
  "val/ap": () => t("AP on validation"),
  "val/ap50": () => t("AP50 on validation"),
  "val/ap75": () => t("AP75 on validation"),
  "val/mask_ap": () => t("Mask AP on validation"),
  "val/mask_ap50": () => t("Mask AP50 on validation"),
  "val/mask_ap75": () => t("Mask AP75 on validation"),
  "val/balanced_accuracy": () => t("Mean class accuracy on validation"),
  "val/macro_f1": () => t("Mean class F1 on validation"),
  "val/map": () => t("Mean average precision on validation"),
  "val/auroc": () => t("AUROC on validation"),
  "val/f1": () => t("F1 on validation"),
  "val/good_score": () => t("Score of good images on validation"),
  "train/mask": () => t("Mask loss in training"),
  "train/soft": () => t("Distillation loss in training"),
  "train/soft_loss": () => t("Distillation loss in training"),
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
  "val/class_accuracy": () => t("Class accuracy on validation"),
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
  "test/ap75": () => t("AP75 on test"),
  "test/pixel_accuracy": () => t("Pixel accuracy on test"),
  "test/accuracy": () => t("Accuracy on test"),
};

// metrics of evaluations and common names of scripts, of the splits below
const METRICS = {
  loss: () => t("Loss"),
  accuracy: () => t("Accuracy"),
  precision: () => t("Precision"),
  recall: () => t("Recall"),
  f1: () => "F1",
  map: () => "mAP",
  ap: () => "AP",
  ap50: () => "AP50",
  ap75: () => "AP75",
  ap_small: () => t("AP of small objects"),
  ap_medium: () => t("AP of medium objects"),
  ap_large: () => t("AP of large objects"),
  ar1: () => "AR1",
  ar10: () => "AR10",
  ar100: () => "AR100",
  miou: () => "mIoU",
  auroc: () => "AUROC",
  threshold: () => t("Confidence threshold"),
};
const SPLITS = {
  train: (metric) => t("%(metric)s in training", { metric }),
  val: (metric) => t("%(metric)s on validation", { metric }),
  test: (metric) => t("%(metric)s on test", { metric }),
};

// directions that share a card
const WAY = /_(read|write|in|out)_mib_s$/;
const WAYS = { read: () => t("read"), write: () => t("written"), in: () => t("received"), out: () => t("sent") };

/** Which card a curve belongs to. */
export function groupOf(key) {
  if (key.startsWith("system/")) return key.replace(/^system\/node\d+\//, "system/").replace(/gpu\d+_/, "gpu_").replace(WAY, "_mib_s");
  const [split, figure, ...part] = key.split("/");
  if (part.length && /^((mask_)?ap\d*|iou|nme)$/.test(figure)) return `${split}/${figure}`; // one curve per class
  const name = key.split("/").pop();
  const shared = /^(?:(mask_ap|ap)\d*|(pck)\d+|(recall)_\d+)$/.exec(name); // figures that differ in a number only
  return shared?.slice(1).find(Boolean) ?? name;
}

/** The title of a card: of what its curves have in common, else what its first curve is called. */
export function titleOf(group, keys = /** @type {string[]} */ ([])) {
  if (GROUPS[group]) return GROUPS[group]();
  if (KEYS[group]) return t("%(figure)s, by class", { figure: KEYS[group]() });
  return (keys.length && nameOf(keys[0])) || group.replace(/_/g, " ");
}

/** Unit of the values of a chart, "" where they have none. @param {string} group */
export const unitOf = (group) => (group === "system/cpu" ? "%" : GROUPS[group] ? splitUnit(GROUPS[group]())[1] : "");

/** What a curve is called, or "" where only its key is known. */
export function nameOf(key) {
  if (KEYS[key]) return KEYS[key]();
  const above = key.split("/").slice(0, 2).join("/");
  if (KEYS[above] && above !== key) return `${KEYS[above]()}: ${key.slice(above.length + 1)}`;
  const [split, metric, ...rest] = key.split("/");
  if (SPLITS[split] && METRICS[metric] && !rest.length) return SPLITS[split](METRICS[metric]());
  const node = /^system\/node(\d+)\//.exec(key); // of a job over several
  const card = /gpu(\d+)_/.exec(key);
  const group = GROUPS[groupOf(key)];
  if (key.startsWith("system/") && group) {
    const way = WAY.exec(key)?.[1] ?? "";
    const places = [WAYS[way]?.(), node && t("node %(number)s", { number: node[1] }), card && t("GPU %(number)s", { number: card[1] })];
    return [group(), ...places.filter(Boolean)].join(" · ");
  }
  return "";
}
