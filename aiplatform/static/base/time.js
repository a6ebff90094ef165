// <time datetime data-ago>: keeps "3 min ago" true while the page stays open; of data-moment that on hover.
import { language, t } from "./i18n.js";

const relative = new Intl.RelativeTimeFormat(language, { numeric: "auto", style: "short" });
/** @type {[Intl.RelativeTimeFormatUnit, number][]} */
const UNITS = [["day", 86400], ["hour", 3600], ["minute", 60]];

/** @param {Intl.RelativeTimeFormatUnit} unit */
const words = (count, unit) => relative.format(count, unit).replace(".", "");

/** A Date (or ISO text) in words relative to now: "3 min ago", "in 2 hr": no full stops, since it stands inside sentences. */
export function ago(moment) {
  const seconds = (new Date(moment).getTime() - Date.now()) / 1000;
  if (Math.abs(seconds) < 45) return t("just now");
  for (const [unit, size] of UNITS) {
    if (Math.abs(seconds) >= size * 0.95) return words(Math.round(seconds / size), unit);
  }
  return words(Math.round(seconds / 60), "minute");
}

/**
 * Refresh every relative time under `root`.
 * @param {ParentNode} root
 */
export function refreshTimes(root = document) {
  /** @type {Iterable<HTMLTimeElement>} */
  const elements = root.querySelectorAll?.("time[data-ago]") ?? [];
  for (const element of elements) {
    const words = ago(element.dateTime);
    if (element.textContent !== words) element.textContent = words;
  }
  /** @type {Iterable<HTMLTimeElement>} */
  const moments = root.querySelectorAll?.("time[data-moment]") ?? [];
  for (const element of moments) {
    element.title = `${ago(element.dateTime)} (${element.dataset.moment})`;
  }
}

refreshTimes();
setInterval(refreshTimes, 20_000);
document.addEventListener("htmx:afterSwap", (event) => refreshTimes(event.detail.elt));
