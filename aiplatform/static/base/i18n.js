// Texts for people in scripts. The catalogue comes from /jsi18n/, loaded before any module.

/** @typedef {Record<string, string | number>} Facts */

/**
 * Translate `text`; `facts` fill its %(name)s places.
 * @param {string} text
 * @param {Facts} [facts]
 */
export function t(text, facts) {
  const found = window.django?.gettext ? window.django.gettext(text) : text;
  return facts ? fill(found, facts) : found;
}

/**
 * Translate a word that has several meanings, by the one that is meant.
 * @param {string} meaning
 * @param {string} text
 */
export function pgettext(meaning, text) {
  return window.django?.pgettext ? window.django.pgettext(meaning, text) : text;
}

/**
 * Translate by number: tn("%(count)s image", "%(count)s images", 3).
 * @param {string} one
 * @param {string} many
 * @param {number} count
 * @param {Facts} [facts]
 */
export function tn(one, many, count, facts = {}) {
  const found = window.django?.ngettext ? window.django.ngettext(one, many, count) : count === 1 ? one : many;
  return fill(found, { count: grouped(count), ...facts });
}

function fill(text, facts) {
  return text.replace(/%\((\w+)\)s/g, (whole, name) => (name in facts ? String(facts[name]) : whole));
}

/** Language of the page, for Intl: "en", "zh-hans". */
export const language = document.documentElement.lang || "en";

const number = new Intl.NumberFormat(language, { maximumFractionDigits: 1 });

/** 12345 → "12,345", in every language as the `count` filter of the templates. */
export const grouped = (count) => (Number.isFinite(count) ? Math.round(count).toLocaleString("en-US") : "–");

/** 12345678 → "11.8 MiB", the same words as the `bytes` filter of the templates. */
export function bytes(size) {
  let value = Number(size);
  for (const unit of ["B", "KiB", "MiB", "GiB"]) {
    if (Math.abs(value) < 1024) return `${unit === "B" || value >= 100 ? Math.round(value) : value.toFixed(1)} ${unit}`;
    value /= 1024;
  }
  return `${value.toFixed(1)} TiB`;
}

/** @type {[(facts: Facts) => string, number][]} */
const UNITS = [
  [(facts) => t("%(n)s d", facts), 86400],
  [(facts) => t("%(n)s h", facts), 3600],
  [(facts) => t("%(n)s min", facts), 60],
  [(facts) => t("%(n)s s", facts), 1],
];

/** 3723 seconds → "1 h 2 min", the two largest units, as the `duration` filter writes them. */
export function duration(seconds) {
  if (!Number.isFinite(seconds) || seconds < 0) return "–";
  if (seconds < 10) return t("%(n)s s", { n: number.format(seconds) });
  const parts = [];
  let rest = Math.round(seconds);
  for (const [unit, size] of UNITS) {
    const count = Math.floor(rest / size);
    rest -= count * size;
    if (count) parts.push(unit({ n: count }));
  }
  return parts.slice(0, 2).join(" ");
}

const timeZone = document.documentElement.dataset.zone || "UTC";
const when = (options) => new Intl.DateTimeFormat(language, { timeZone, hourCycle: "h23", ...options });
const day = when({ month: "short", day: "numeric" }); // a month in words: 1/2 is read both ways round
const minute = when({ hour: "2-digit", minute: "2-digit" });
const second = when({ hour: "2-digit", minute: "2-digit", second: "2-digit" });
const whole = when({ year: "numeric", month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit", timeZoneName: "short" });

/** Marks of uPlot's time axis in the reader's language and zone; the day stands where it begins. */
export function timeMarks(_, ticks, __, ___, step) {
  let last = "";
  return ticks.map((tick) => {
    const date = new Date(tick * 1000);
    const today = day.format(date);
    if (step >= 86400) return today;
    const time = (step < 60 ? second : minute).format(date);
    const said = today === last ? time : `${time}\n${today}`;
    last = today;
    return said;
  });
}

/** The moment under the cursor, with its zone. */
export const momentWords = (seconds) => (seconds === null || seconds === undefined ? "–" : whole.format(new Date(seconds * 1000)));
