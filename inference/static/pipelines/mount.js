// The door of the editor: mount(root, {catalogue, spec, layout, revision, urls, readOnly}). See editor.js for what is given.
import { Editor } from "./editor.js";

/**
 * Put the editor into an empty element with a height.
 * @param {HTMLElement} root
 * @param {import("./editor.js").Given} given
 */
export const mount = (root, given) => new Editor(root, given);
