// Small parts that lists and panels of the page are made of.
import { icon } from "../base/icons.js";

const SVG = "http://www.w3.org/2000/svg";

export function element(tag, className, ...children) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  made.append(...children);
  return made;
}

export function button(name, label, act, pressed) {
  const made = element("button", "btn btn-quiet btn-icon btn-small", icon(name));
  made.type = "button";
  made.title = label;
  made.setAttribute("aria-label", label);
  if (pressed !== undefined) made.setAttribute("aria-pressed", String(pressed));
  made.addEventListener("click", act);
  return made;
}

export function dot(colour) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", "0 0 12 12");
  svg.setAttribute("class", "class-dot");
  svg.setAttribute("aria-hidden", "true");
  const circle = document.createElementNS(SVG, "circle");
  for (const [name, value] of Object.entries({ cx: 6, cy: 6, r: 5, fill: colour })) circle.setAttribute(name, value);
  svg.append(circle);
  return svg;
}
