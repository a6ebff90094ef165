// Figures of an evaluation at score thresholds, from counts of right and wrong answers.

/** Precision, recall, F1 from counts; nothing counts as zero. */
export function rates(tp, fp, truths) {
  const precision = tp + fp ? tp / (tp + fp) : 0;
  const recall = truths ? tp / truths : 0;
  return { precision, recall, f1: precision + recall ? (2 * precision * recall) / (precision + recall) : 0 };
}

/** Index of the threshold that is closest to `threshold`, the one that the stored values of an evaluation hold for. */
export function placeOf(thresholds, threshold) {
  return thresholds.reduce((near, value, place) => (Math.abs(value - threshold) < Math.abs(thresholds[near] - threshold) ? place : near), 0);
}

/**
 * Columns of a chart by recall: first the places, then the way of `means` as the threshold falls, then `curves`, whose
 * values stand at `recalls`. A line has no value (null) where another one has its places, and the means have none where
 * nothing is answered: no answers are neither right nor wrong.
 */
export function alongRecall(recalls, means, curves) {
  const way = [...means].reverse().map(({ recall, precision, answered }, step) => ({ recall, precision: answered ? precision : null, step, place: -1 }));
  const grid = recalls.map((recall, place) => ({ recall, precision: null, step: way.length, place }));
  const points = [...way, ...grid].sort((a, b) => a.recall - b.recall || a.step - b.step);
  const columns = curves.map((values) => points.map(({ place }) => (place < 0 ? null : values[place])));
  return [points.map(({ recall }) => recall), points.map(({ precision }) => precision), ...columns];
}
