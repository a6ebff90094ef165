// The draft on the server: written a second after a change, with the number of the state it was made from. What is not
// saved yet is kept in the browser, so that a reload without a network loses nothing.
import { api } from "../base/api.js";
import { t } from "../base/i18n.js";
import { toast } from "../base/toast.js";
import { settle } from "./conflict.js";
import { replace } from "./edits.js";
import { equal, layoutOf, write } from "./spec.js";

/** @typedef {"saved" | "dirty" | "saving" | "offline" | "conflict" | "refused"} Saved */

const WAIT_MS = 1000;
const AGAIN_MS = 5000;
const KEPT = "pipeline-draft:";
const TAB = "pipeline-tab";

/** A name of this tab that outlives a reload. */
function tabName() {
  try {
    const name = sessionStorage.getItem(TAB) ?? Math.random().toString(36).slice(2);
    sessionStorage.setItem(TAB, name);
    return name;
  } catch {
    return "only";
  }
}

export class Draft {
  /**
   * @param {import("./editor.js").Editor} editor
   * @param {{url: string, revision: number, owner?: string | number}} given  `owner`: whose draft it is
   */
  constructor(editor, { url, revision, owner = "" }) {
    this.editor = editor;
    this.url = url;
    this.revision = revision;
    this.stem = `${KEPT}${owner}:${url}:`;
    this.key = this.stem + tabName();
    /** @type {Saved} */
    this.state = "saved";
    this.stored = this.#now(); // what the server holds, as text
    /** @type {{revision: number, spec: any, layout: any} | null} */
    this.theirs = null;
    /** @type {Promise<boolean> | null} */
    this.going = null;
    editor.graph.watch(() => this.changed());
    addEventListener("pagehide", () => this.keep());
    addEventListener("online", () => void this.save());
    this.#takeUp();
    this.#say(this.state);
  }

  #now() {
    return JSON.stringify({ spec: write(this.editor.graph), layout: layoutOf(this.editor.graph) });
  }

  #say(state) {
    this.state = state;
    this.editor.bar?.saved(state);
  }

  changed() {
    clearTimeout(this.soon);
    this.soon = setTimeout(() => void this.save(), WAIT_MS);
    if (this.state === "saved") this.#say("dirty");
  }

  /** Keep in the browser what the server does not have yet. */
  keep() {
    if (this.state === "saved") return;
    const now = this.#now();
    try {
      if (now === this.stored) localStorage.removeItem(this.key);
      else localStorage.setItem(this.key, JSON.stringify({ revision: this.revision, at: Date.now(), ...JSON.parse(now) }));
    } catch {
      // no storage, or a full one: the server is tried again all the same
    }
  }

  #forget() {
    try {
      localStorage.removeItem(this.key);
    } catch {
      // nothing was kept, then
    }
  }

  /** What an earlier page of this browser could not save. */
  #takeUp() {
    const kept = this.#kept();
    if (!kept?.spec || equal({ spec: kept.spec, layout: kept.layout }, JSON.parse(this.stored))) return this.#forget();
    if (kept.revision === this.revision) {
      replace(this.editor.graph, kept.spec, kept.layout);
      toast(t("Locally stored changes were restored."), "ok");
      return undefined;
    }
    const theirs = { revision: this.revision, ...JSON.parse(this.stored) };
    replace(this.editor.graph, kept.spec, kept.layout);
    this.theirs = theirs;
    this.#say("conflict");
    queueMicrotask(() => this.settle());
    return undefined;
  }

  /** Of this tab, else of one that is closed. */
  #kept() {
    try {
      const keys = Object.keys(localStorage).filter((key) => key.startsWith(this.stem));
      const key = keys.includes(this.key) ? this.key : keys[0];
      if (!key) return null;
      const kept = JSON.parse(localStorage.getItem(key) ?? "null");
      if (key !== this.key) {
        localStorage.setItem(this.key, JSON.stringify(kept));
        localStorage.removeItem(key);
      }
      return kept;
    } catch {
      return null;
    }
  }

  /** Write the draft; true when the server has what the page shows. @returns {Promise<boolean>} */
  async save() {
    clearTimeout(this.soon);
    if (this.state === "conflict") {
      this.keep();
      return false;
    }
    if (this.going) {
      await this.going;
      return this.save();
    }
    if (this.#now() === this.stored) {
      this.#forget();
      this.#say("saved");
      return true;
    }
    this.keep();
    this.going = this.#put(this.#now());
    const done = await this.going;
    this.going = null;
    if (done && this.#now() !== this.stored) this.changed();
    return done;
  }

  /**
   * Do something that changes the draft on the server, such as making a version of it; nothing is written meanwhile.
   * @template T
   * @param {() => Promise<T>} act
   * @returns {Promise<T>}
   */
  async during(act) {
    await this.save();
    while (this.going) await this.going;
    if (this.state === "conflict") throw new Error(t("This draft was changed elsewhere. First choose which version to keep."));
    let done = /** @type {(value: boolean) => void} */ (() => {});
    this.going = new Promise((resolve) => (done = resolve));
    try {
      return await act();
    } finally {
      await this.#reread();
      this.going = null;
      done(true);
    }
  }

  /** Learn which revision the server has now, where it is still what was written. */
  async #reread() {
    const now = await api.get(this.url).catch(() => null);
    if (now && equal(now.spec, JSON.parse(this.stored).spec)) this.revision = now.revision;
  }

  async #put(text) {
    this.#say("saving");
    try {
      const answer = await api.put(this.url, JSON.parse(text), { headers: { "If-Match": `"${this.revision}"` } });
      this.revision = answer.revision;
      this.stored = text;
      this.#say(this.#now() === text ? "saved" : "dirty");
      if (this.state === "saved") this.#forget();
      return true;
    } catch (error) {
      return this.#failed(error);
    }
  }

  async #failed(error) {
    if (error.status === 412) {
      this.theirs = await this.#newer(error.problem);
      this.#say("conflict");
      this.keep();
      this.settle();
    } else if (error.status === 0 || error.status >= 500) {
      this.#say("offline");
      this.keep();
      this.soon = setTimeout(() => void this.save(), AGAIN_MS);
    } else {
      this.#say("refused");
      this.keep();
      toast(error.message, "fail");
    }
    return false;
  }

  /** The state that overtook this one: in the refusal, else asked for. */
  async #newer(problem) {
    const known = problem?.draft ?? problem;
    if (known?.spec && known.revision !== undefined) return known;
    return api.get(this.url).catch(() => null);
  }

  /** Ask what shall become of two states. */
  async settle() {
    if (!this.theirs) this.theirs = await this.#newer(null);
    if (!this.theirs || this.asking) return;
    const { theirs } = this;
    this.asking = true;
    const choice = await settle(write(this.editor.graph), theirs.spec, this.editor.graph.catalogue);
    this.asking = false;
    if (choice === "theirs") {
      replace(this.editor.graph, theirs.spec, theirs.layout);
      this.stored = this.#now();
      this.#go(theirs.revision);
    } else if (choice === "mine") {
      this.stored = JSON.stringify({ spec: theirs.spec, layout: theirs.layout });
      this.#go(theirs.revision);
    }
  }

  #go(revision) {
    this.revision = revision;
    this.theirs = null;
    this.#say("dirty");
    void this.save();
  }
}
