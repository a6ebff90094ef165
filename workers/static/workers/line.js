// One line of a log as elements: its place, its colours, the words that were searched.
import { t } from "../base/i18n.js";
import { segments } from "./ansi.js";
import { isCut } from "./lines.js";

/** A line as it stands in the view. `words`, in small letters, are marked in it; `tag` is the phase that it begins with. */
export function lineElement(line, { place, isHit, isNow, words, tag = "" }) {
  const element = document.createElement("div");
  element.className = "log-line";
  if (isNow) element.classList.add("log-line-now");
  else if (isHit) element.classList.add("log-line-hit");
  const number = document.createElement("span");
  number.className = "log-number";
  number.textContent = place;
  element.append(number);
  const end = tag ? line.indexOf("]") + 1 : 0;
  if (tag) {
    const badge = document.createElement("span");
    badge.className = `log-tag log-tag-${tag}`;
    element.classList.add("log-line-own");
    element.append(marked(badge, line.slice(0, end), words));
  }
  for (const one of segments(line.slice(end))) element.append(part(one, words));
  if (isCut(line)) {
    const cut = document.createElement("em");
    cut.textContent = ` ${t("line truncated, download the log for the complete line")}`;
    element.append(cut);
  }
  return element;
}

function part({ text, classes, colour }, words) {
  if (!classes.length && !colour) return marked(document.createDocumentFragment(), text, words);
  const holder = document.createElement("span");
  if (classes.length) holder.className = classes.join(" ");
  if (colour) holder.style.color = colour;
  return marked(holder, text, words);
}

/** `holder` with the text, and the words in it marked. */
function marked(holder, text, words) {
  if (!words) {
    holder.append(text);
    return holder;
  }
  const lower = text.toLowerCase();
  let at = 0;
  for (let hit = lower.indexOf(words); hit >= 0; hit = lower.indexOf(words, at)) {
    const mark = document.createElement("mark");
    mark.textContent = text.slice(hit, hit + words.length);
    holder.append(text.slice(at, hit), mark);
    at = hit + words.length;
  }
  holder.append(text.slice(at));
  return holder;
}

/** Width of one letter in px. */
export function measure(view) {
  const probe = document.createElement("span");
  probe.textContent = "0".repeat(100);
  probe.className = "log-line";
  probe.style.position = "absolute";
  probe.style.padding = "0";
  view.append(probe);
  const width = probe.getBoundingClientRect().width / 100;
  probe.remove();
  return width || 7.2;
}
