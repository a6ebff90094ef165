// Colors of classes: the class at one place of the class list has the same color on every page.

const HUES = 16; // --chart-1 to --chart-16, see aiplatform/lib/class_colors.py

/**
 * Name of the design token with the color of a class.
 * @param {number[]} ids  ids of the classes in their order
 * @param {number} classId
 */
export function colorTokenOf(ids, classId) {
  const place = ids.indexOf(classId);
  return `--chart-${((place < 0 ? Math.abs(classId) : place) % HUES) + 1}`;
}
