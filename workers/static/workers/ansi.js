// Colours of terminal text. Only SGR ("\x1b[31m") is honoured; every other control character shows as a sign,
// so a log can set no title, move no cursor, make no link.

const SGR = /\x1b\[([0-9;:]*)m/g;
const CONTROL = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/g;
const LEVELS = [0, 95, 135, 175, 215, 255];

/** The text without colours, as search and width see it. */
export function plain(line) {
  return line.includes("\x1b") ? line.replace(SGR, "") : line;
}

/** Control characters as visible signs. */
export function visible(text) {
  return text.replace(CONTROL, (sign) => {
    const code = sign.codePointAt(0);
    if (code < 0x20) return String.fromCodePoint(0x2400 + code);
    return code === 0x7f ? "\u2421" : "\ufffd";
  });
}

/** [{text, classes, colour}] of one line; colour is "" or a CSS colour for the 256-colour and RGB codes. */
export function segments(line) {
  if (!line.includes("\x1b")) return [{ text: visible(line), classes: [], colour: "" }];
  const found = [];
  const style = { classes: new Set(), colour: "" };
  let at = 0;
  const add = (text) => {
    if (text) found.push({ text: visible(text), classes: [...style.classes], colour: style.colour });
  };
  for (const match of line.matchAll(SGR)) {
    add(line.slice(at, match.index));
    apply(style, match[1].split(/[;:]/).map((part) => Number(part) || 0));
    at = match.index + match[0].length;
  }
  add(line.slice(at));
  return found;
}

const MARKS = { 1: "b", 2: "d", 3: "i", 4: "u" };
const ENDS = { 22: ["b", "d"], 23: ["i"], 24: ["u"] };

function apply(style, codes) {
  for (let i = 0; i < codes.length; i += 1) {
    const code = codes[i];
    if (code === 0) {
      style.classes.clear();
      style.colour = "";
    } else if (MARKS[code]) {
      style.classes.add(`ansi-${MARKS[code]}`);
    } else if (ENDS[code]) {
      for (const mark of ENDS[code]) style.classes.delete(`ansi-${mark}`);
    } else if ((code >= 30 && code <= 37) || (code >= 90 && code <= 97)) {
      hue(style, code % 10);
    } else if (code === 39) {
      hue(style, -1);
    } else if (code === 38 || code === 48) {
      const long = codes[i + 1] === 2;
      if (code === 38) extended(style, codes.slice(i + 1, i + (long ? 5 : 3)));
      i += long ? 4 : 2;
    }
  }
}

function hue(style, number) {
  for (const name of [...style.classes]) if (/^ansi-\d$/.test(name)) style.classes.delete(name);
  style.colour = "";
  if (number >= 0) style.classes.add(`ansi-${number}`);
}

function extended(style, [kind, first, second, third]) {
  hue(style, -1);
  if (kind === 5 && first < 16) hue(style, first % 8);
  else if (kind === 5 && first < 232) {
    const cube = first - 16;
    const parts = [Math.floor(cube / 36), Math.floor(cube / 6) % 6, cube % 6].map((level) => LEVELS[level]);
    style.colour = readable(parts);
  } else if (kind === 5) style.colour = readable([8 + (first - 232) * 10, 8 + (first - 232) * 10, 8 + (first - 232) * 10]);
  else if (kind === 2) style.colour = readable([first, second, third].map((part) => Math.min(255, part || 0)));
}

/** A colour lifted until it can be read on the dark ground of a log. */
function readable(parts) {
  const light = (0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]) / 255;
  const lift = light < 0.45 ? (0.45 - light) * 255 : 0;
  return `rgb(${parts.map((part) => Math.round(Math.min(255, part + lift))).join(" ")})`;
}
