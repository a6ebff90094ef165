// What a class is called where its parent type is not beside it.

/** @param {{name: string, supercategory: string}} label */
export function fullName(label) {
  return label.supercategory ? `${label.supercategory} / ${label.name}` : label.name;
}
