// What a person likes of the page: how image and shapes look, which panels are open. Kept by this browser.

/** Where a setting starts; its type is the type it keeps. */
const START = {
  names: false, // classes written on the shapes
  fill: 18, // % of a shape's colour inside it
  line: 1.5, // CSS pixels
  brightness: 100, // % of the image, on the screen only
  contrast: 100,
  keepZoom: false, // at the next image
  side: true, // classes and objects beside the image
  strip: false, // small images below it
  sort: "newest", // of the list of objects
};

/** {name: [least, most, one step]} of what has a slider. */
export const RANGES = {
  fill: [0, 90, 6],
  line: [0.5, 6, 0.5],
  brightness: [20, 300, 10],
  contrast: [20, 300, 10],
};

export class Settings extends EventTarget {
  /** @param {number} user  whose they are: people may share a browser */
  constructor(user) {
    super();
    this.place = `aip-annotator-${user}`;
    this.values = { ...START };
    for (const [name, value] of Object.entries(this.#kept())) {
      if (typeof value === typeof START[name]) this.values[name] = within(name, value);
    }
  }

  /** @returns {any} */
  get(name) {
    return this.values[name];
  }

  /** Change one; a "change" event names it. */
  set(name, value) {
    const fitting = within(name, value);
    if (this.values[name] === fitting) return;
    this.values[name] = fitting;
    try {
      localStorage.setItem(this.place, JSON.stringify(this.values));
    } catch {
      // switched off or full: it holds on this page
    }
    this.dispatchEvent(new CustomEvent("change", { detail: name }));
  }

  toggle(name) {
    this.set(name, !this.values[name]);
  }

  /** One step of a slider up (1) or down (-1). */
  step(name, direction) {
    this.set(name, this.values[name] + direction * RANGES[name][2]);
  }

  /** How things look goes back to the start; panels stay as they are. */
  resetLooks() {
    for (const name of Object.keys(RANGES)) this.set(name, START[name]);
  }

  #kept() {
    try {
      return JSON.parse(localStorage.getItem(this.place) ?? "{}") ?? {};
    } catch {
      return {};
    }
  }
}

function within(name, value) {
  const range = RANGES[name];
  return range ? Math.min(Math.max(value, range[0]), range[1]) : value;
}
