// The list of keys, and the place to change them: choose a key, press another one. A clash is said with both
// names and can be swapped. What changed is kept with the person on the server before it counts.
import { icon } from "../base/icons.js";
import { t } from "../base/i18n.js";
import { keyMap, readable, written } from "./keys.js";
import { clashes, effective, give, isKept, isModifier, nine, reset, swap } from "./ownkeys.js";

const element = (tag, props = {}, ...children) => {
  const made = Object.assign(document.createElement(tag), props);
  made.append(...children);
  return made;
};
const button = (text, act, className = "btn btn-small") => {
  const made = element("button", { type: "button", className }, text);
  made.addEventListener("click", act);
  return made;
};

/**
 * Show the keys.
 * @param keys Keys of the page
 * @param keep async (own) => "" or the sentence why it was not kept
 */
export function showKeys(keys, keep) {
  new Help(keys, keep).open();
}

class Help {
  constructor(keys, keep) {
    this.keys = keys;
    this.keep = keep;
    this.map = keyMap();
    /** @type {{entry: any, place: number} | null} */
    this.recording = null;
    /** @type {{entry: any, place: number, node: HTMLElement} | null} */
    this.asked = null; // a clash under its row
    this.groups = element("div", { className: "annotator-help-groups" });
    this.body = element("div", { className: "dialog-body annotator-help-body", tabIndex: 0 }, this.groups);
    this.said = element("p", { className: "annotator-help-said" });
    this.said.setAttribute("role", "status");
    this.resetAll = button(t("Reset all shortcuts"), () => this.#change({}, t("All shortcuts are reset."), null), "btn");
  }

  open() {
    const close = button(t("Close"), () => this.dialog.close(), "btn btn-primary");
    const head = element("div", { className: "dialog-head" }, element("h2", { id: "help-title", textContent: t("Keys") }));
    const foot = element("div", { className: "dialog-foot" }, this.said, this.resetAll, close);
    this.dialog = element("dialog", { className: "dialog annotator-help" }, head, this.body, foot);
    this.dialog.setAttribute("aria-labelledby", "help-title");
    this.dialog.addEventListener("keydown", (event) => this.#pressed(event), true);
    this.dialog.addEventListener("cancel", (event) => {
      if (!this.recording && !this.asked) return;
      event.preventDefault(); // Escape gives up the change first, then the list
      this.#rest();
    });
    this.dialog.addEventListener("close", () => this.dialog.remove());
    this.#draw();
    this.#say(t("To change a shortcut, click it and press another key."));
    document.body.append(this.dialog);
    this.dialog.showModal();
    close.focus();
  }

  // --- what it shows

  #draw() {
    const groups = new Map();
    for (const entry of this.map) {
      if (!this.keys.offers(entry.id)) continue;
      if (!groups.has(entry.group)) groups.set(entry.group, element("dl"));
      const term = element("dt", {}, ...this.#marks(entry));
      const text = element("dd", {}, entry.text);
      if (this.keys.own[entry.id]) text.append(this.#undo(entry));
      if (this.asked?.entry.id === entry.id) text.append(this.asked?.node ?? "");
      groups.get(entry.group).append(term, text);
    }
    this.groups.replaceChildren(...[...groups].map(([name, list]) => element("section", {}, element("h3", { textContent: name }), list)));
    this.resetAll.hidden = !Object.keys(this.keys.own).length;
  }

  #marks(entry) {
    const { keys } = effective(entry, this.keys.own, this.map);
    const fixed = (entry.fixed ? (entry.shown ?? keys.map(readable)) : (entry.beside ?? [])).map((key) => element("kbd", { textContent: key }));
    if (entry.fixed) return fixed;
    const shown = entry.digits ? [`${readable(keys[0])} … 9`] : keys.map(readable);
    const changed = shown.map((name, place) => this.#mark(entry, place, name));
    if (!changed.length) changed.push(this.#mark(entry, 0, ""));
    return [...changed, ...fixed];
  }

  #mark(entry, place, name) {
    const now = this.recording?.entry.id === entry.id && this.recording?.place === place;
    const made = button(element("kbd", { textContent: now ? t("Press a key") : name || "–" }), () => this.#listen(entry, place), "annotator-key");
    made.dataset.key = `${entry.id} ${place}`;
    if (now) made.classList.add("is-listening");
    made.setAttribute("aria-label", name ? t("%(key)s: %(action)s. Change", { key: name, action: entry.text }) : t("No shortcut: %(action)s. Choose one", { action: entry.text }));
    return made;
  }

  #undo(entry) {
    const made = button(icon("undo"), () => this.#reset(entry), "btn btn-quiet btn-icon btn-small");
    made.title = t("Reset");
    made.setAttribute("aria-label", t("Reset: %(action)s", { action: entry.text }));
    return made;
  }

  #say(text) {
    this.said.textContent = text;
  }

  #focus(entry, place = 0) {
    const found = entry && this.body.querySelector(`[data-key="${entry.id} ${place}"]`);
    (found || this.body).focus();
  }

  // --- changing

  #listen(entry, place) {
    this.recording = { entry, place };
    this.asked = null;
    this.#draw();
    this.#focus(entry, place);
    const wanted = entry.digits ? t("Press a digit with the desired modifiers; all nine follow.") : t("Press a key. Esc cancels.");
    this.#say(wanted);
  }

  #rest() {
    const { entry, place } = /** @type {{entry: any, place: number}} */ (this.recording ?? this.asked);
    this.recording = this.asked = null;
    this.#draw();
    this.#focus(entry, place);
    this.#say(t("Unchanged."));
  }

  #pressed(event) {
    if (!this.recording || isModifier(event.key)) return;
    event.preventDefault();
    event.stopPropagation();
    if (event.key === "Escape") return void this.#rest();
    const key = written(event);
    const { entry, place } = this.recording;
    if (isKept(key)) return void this.#say(t("%(key)s is reserved by the page or the browser. Press another key.", { key: readable(key) }));
    if (entry.digits && !/^((Ctrl|Alt|Shift)\+)*[1-9]$/.test(key)) return void this.#say(t("Press a digit from 1 to 9."));
    this.recording = null;
    const wanted = entry.digits ? nine(key) : [key];
    const [other] = clashes(entry.id, wanted, this.keys.own, this.map);
    if (other) return void this.#ask(entry, place, key, other);
    void this.#change(give(this.keys.own, this.map, entry, place, key), t("%(key)s now does: %(action)s", { key: readable(key), action: entry.text }), entry, place);
  }

  #ask(entry, place, key, other) {
    const facts = { key: readable(key), action: entry.text, other: other.text, given: readable(effective(entry, this.keys.own, this.map).keys[place] ?? "") };
    const free = !other.fixed && !other.digits && !entry.digits;
    let text = t("%(key)s already does “%(other)s” and cannot be reassigned to “%(action)s”. Choose another key.", facts);
    if (free) {
      const both = t("%(key)s already does “%(other)s”. Swap, so that it does “%(action)s” and %(given)s does “%(other)s”?", facts);
      text = facts.given ? both : t("%(key)s already does “%(other)s”. Reassign it to “%(action)s”?", facts);
    }
    const leave = button(t("Leave explicit mode"), () => this.#rest());
    const acts = element("div", { className: "row" }, leave);
    if (free) {
      const next = () => swap(this.keys.own, this.map, entry, place, key, other);
      const done = t("%(key)s now does: %(action)s", facts);
      acts.prepend(button(facts.given ? t("Swap") : t("Reassign"), () => this.#change(next(), done, entry, place), "btn btn-small btn-primary"));
    }
    const node = element("div", { className: "notice notice-warn annotator-clash" }, element("p", { textContent: text }), acts);
    node.setAttribute("role", "alert");
    this.asked = { entry, place, node };
    this.#draw();
    node.scrollIntoView({ block: "nearest" });
    acts.firstElementChild.focus();
    this.#say("");
  }

  #reset(entry) {
    const { own, ids } = reset(this.keys.own, this.map, entry.id);
    const names = ids.map((id) => `“${this.map.find((one) => one.id === id)?.text}”`).join(", ");
    return this.#change(own, t("Defaults: %(actions)s", { actions: names }), entry);
  }

  /** Keep it on the server, then use it. */
  async #change(own, done, entry, place = 0) {
    this.recording = this.asked = null;
    const problem = await this.keep(own);
    if (!problem) this.keys.use(own);
    this.#draw();
    this.#focus(entry, place);
    this.#say(problem || done);
  }
}
