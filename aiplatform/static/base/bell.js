// The bell: keeps its number, opens with the last few, says what is new as a toast, and as the browser's own notification
// where the person chose that (in this browser: it asks for leave, and keeps the choice).
import { t } from "./i18n.js";
import { toast } from "./toast.js";

const EVERY_MS = 20_000;
const SAID = "aip.bell"; // number of the newest one that was shown as a toast, shared by all windows
const SEEN = "aip.bell.window"; // number of the newest one when this window looked last
const FRESH_S = 60; // an older one is not shown by the next page of a window
const CHOICE = "aip.desktop";
const KINDS = { finished: "ok", failed: "fail" };

/** @type {HTMLDetailsElement | null} */
const bell = document.querySelector("#bell");

/** Storage of all windows, or of this one, where the browser lets us. */
const kept = {
  get(name, storage = "localStorage") {
    try {
      return window[storage].getItem(name) ?? "";
    } catch {
      return "";
    }
  },
  set(name, value, storage = "localStorage") {
    try {
      window[storage].setItem(name, value);
    } catch {
      // storage is switched off: nothing is remembered
    }
  },
};

function count(unread, label) {
  const mark = bell?.querySelector(".bell-count");
  if (!bell || !mark) return;
  bell.dataset.unread = String(unread);
  mark.hidden = unread === 0;
  mark.textContent = unread > 99 ? "99+" : String(unread);
  bell.querySelector("summary")?.setAttribute("aria-label", label);
}

/** Whether news also come as notifications of the browser. */
const desktop = () => kept.get(CHOICE) === "1" && "Notification" in window && Notification.permission === "granted";

/** The newest one that this window has nothing to say about. */
const known = () => Math.max(Number(kept.get(SAID)), Number(kept.get(SEEN, "sessionStorage")));

function say(news) {
  const item = toast(news.title, KINDS[news.kind] ?? "info", { href: news.url, more: t("Show") });
  item.dataset.news = String(news.id);
  if (!desktop() || !document.hidden) return;
  const note = new Notification(news.title, { body: news.text, tag: `aip-${news.id}` });
  note.addEventListener("click", () => {
    window.focus();
    location.href = news.url;
  });
}

/** Update the number and show what came since the last look. @param {number} maxAgeS  older ones are not shown */
async function look(maxAgeS = Infinity) {
  if (!bell?.dataset.bell || (document.hidden && !desktop())) return;
  const answer = await fetch(`${bell.dataset.bell}?after=${known()}`, { credentials: "same-origin" }).catch(() => null);
  if (!answer?.ok || answer.redirected) return; // away for a moment, or signed out: the page says so itself
  const found = await answer.json();
  count(found.unread, found.label);
  const before = known(); // another window may have shown some meanwhile
  kept.set(SEEN, String(Math.max(before, found.newest)), "sessionStorage");
  if (before >= found.newest) return;
  kept.set(SAID, String(found.newest));
  for (const news of found.news.reverse()) if (news.id > before && news.age_s <= maxAgeS) say(news);
}

if (bell) {
  bell.addEventListener("toggle", () => {
    const list = bell.querySelector("#bell-list");
    if (bell.open && list) window.htmx.trigger(list, "open");
  });
  document.addEventListener("htmx:afterSwap", (event) => {
    if (event.detail.elt.id === "bell-list" && !event.detail.elt.querySelector("[data-bell-read]")) look();
  });
  document.addEventListener("visibilitychange", () => look());
  setInterval(() => look(), EVERY_MS);
  const newest = Number(bell.dataset.newest); // of those that are unread
  // A new window shows nothing that came before it; the next page of a window what came between its two pages.
  if (!kept.get(SEEN, "sessionStorage")) kept.set(SEEN, String(Math.max(newest, known())), "sessionStorage");
  else if (newest > known()) look(FRESH_S);
}

// the choice, on the page of notification settings
const choice = document.querySelector("[data-desktop]");

function showChoice() {
  if (!choice) return;
  const able = "Notification" in window && window.isSecureContext;
  const denied = able && Notification.permission === "denied";
  const button = choice.querySelector("button");
  button.disabled = !able || denied;
  button.textContent = desktop() ? t("Disable in this browser") : t("Enable in this browser");
  choice.querySelector("[data-desktop-state]").textContent = !able
    ? t("This browser shows notifications only for pages served over https.")
    : denied
      ? t("Notifications of this site are blocked in this browser. Change this in the browser settings.")
      : desktop()
        ? t("On: notifications also appear while another window is active.")
        : t("Off: notifications appear only inside the platform.");
  choice.hidden = false;
}

choice?.querySelector("button")?.addEventListener("click", async () => {
  if (desktop()) kept.set(CHOICE, "");
  else if ((await Notification.requestPermission()) === "granted") kept.set(CHOICE, "1");
  showChoice();
});
showChoice();
