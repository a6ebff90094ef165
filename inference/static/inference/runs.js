// Masks as runs in COCO's compressed form, as the services answer them (inference/kit/task_kinds/segmentation/runs.py).

/** Lengths of the runs: not covered, covered, not covered, … down the columns from left to right. */
export function lengthsOf(text) {
  const lengths = [];
  let number = 0;
  let shift = 0;
  for (const letter of text) {
    const digit = letter.charCodeAt(0) - 48;
    number |= (digit & 31) << shift;
    shift += 5;
    if (digit & 32) continue;
    if (digit & 16) number |= -1 << shift;
    lengths.push(lengths.length > 2 ? number + lengths[lengths.length - 2] : number);
    number = 0;
    shift = 0;
  }
  return lengths;
}

/** Call `cover(column, top, bottom)` for each covered stretch of a column of `mask`; `bottom` is not covered. */
export function eachStretch(mask, cover) {
  const height = mask.size[0];
  let at = 0;
  lengthsOf(mask.counts).forEach((length, place) => {
    const end = at + length;
    if (place % 2) {
      while (at < end) {
        const column = Math.floor(at / height);
        const stop = Math.min(end, (column + 1) * height);
        cover(column, at - column * height, stop - column * height);
        at = stop;
      }
    }
    at = end;
  });
}
