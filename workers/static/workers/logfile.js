// The log file of one attempt, read in pieces: its tail first, then what follows, and the past behind it.
import { api } from "../base/api.js";
import { bytes, language, t, tn } from "../base/i18n.js";
import { MOST } from "./lines.js";

const PIECE = 65536;
const EAGER_BYTES = 12 * 1024 * 1024; // so much of the past is read by itself, more on scrolling up
const EAGER_LINES = 120000;
const FAR = 1024 * 1024; // a gap beyond this is not filled: the view jumps to the end
const MORE_LINES = 20000;
const number = new Intl.NumberFormat(language);

export class LogFile extends EventTarget {
  /**
   * Events: "reset", nothing is here yet; "added" {text, dropped}, at the end, where lines may have been dropped at the
   * top; "past" {added}, lines at the top; "read", the past that was wanted is here; "failed" with the error.
   * @param {string} url
   * @param {import("./lines.js").Lines} lines  filled from the file
   * @param {boolean} brief  the past is read only once somebody wants it
   */
  constructor(url, lines, brief = false) {
    super();
    this.url = url;
    this.lines = lines;
    this.brief = brief;
    this.generation = 0; // answers to questions of an earlier one are thrown away
    this.attempt = 0;
    this.rank = 0; // whose log of a job on several machines
    this.#reset();
  }

  #reset() {
    this.lines.clear();
    this.start = 0; // offset of the first byte shown
    this.end = 0; // offset after the last one
    this.size = 0;
    this.ended = false;
    this.generation += 1;
    this.opened = false; // until the tail is here there is nothing to go on from
    this.filling = false;
    this.again = false;
    this.reading = false;
    this.#tell("reset");
  }

  /** Whether so much is here that nothing more is read without being asked for. */
  get isFull() {
    return this.lines.count >= MOST;
  }

  get rawUrl() {
    const asked = new URLSearchParams(this.#place());
    return asked.size ? `${this.url}raw/?${asked}` : `${this.url}raw/`;
  }

  /** What is here, in words; `live` where more may come. */
  summary(live) {
    const { count, dropped } = this.lines;
    const parts = [tn("%(shown)s line", "%(shown)s lines", count, { shown: number.format(count) }), bytes(this.size)];
    if (this.start > 0) parts.push(t("earlier lines appear when you scroll up"));
    if (dropped) parts.push(t("the oldest lines were omitted, the download contains them"));
    if (!count && !this.size) parts.splice(0, 2, this.ended ? t("The log is empty.") : t("No output yet."));
    else if (!this.ended && live) parts.push(t("live"));
    return parts.join(" · ");
  }

  /** Begin anew with the file of an attempt; 0 for the one that has none yet. */
  async open(attempt) {
    this.attempt = attempt;
    this.#reset();
    const { generation } = this;
    this.reading = true; // the past as well, so that `back` does not read it a second time
    try {
      const piece = await this.#ask({ tail: PIECE });
      if (generation !== this.generation) return;
      this.start = piece.offset;
      this.end = piece.offset;
      this.#take(piece);
      this.opened = true;
      await this.catchUp();
      if (!this.brief) await this.#readPast(generation, EAGER_BYTES, EAGER_LINES);
    } catch (error) {
      this.#failed(error);
    } finally {
      if (generation === this.generation) this.reading = false;
    }
  }

  /** Text that came by itself; a gap before it is filled first. */
  arrived({ offset, next_offset: next, text }) {
    if (!this.opened) return;
    if (this.filling) {
      this.again = true;
      return;
    }
    if (offset === this.end) {
      this.end = next;
      this.size = Math.max(this.size, this.end);
      this.#add(text);
    } else if (next > this.end) {
      void this.catchUp();
    }
  }

  /** Ask for everything after what is shown, one request at a time. */
  async catchUp() {
    if (!this.opened) return;
    if (this.filling) {
      this.again = true;
      return;
    }
    const { generation } = this;
    this.filling = true;
    try {
      do {
        this.again = false;
        let piece = await this.#ask({ offset: this.end });
        if (generation !== this.generation) return;
        if (piece.size < this.end) {
          return void this.open(this.attempt); // the file was cut
        }
        if (piece.size - piece.next_offset > FAR) {
          piece = await this.#ask({ tail: PIECE });
          if (generation !== this.generation) return;
          this.lines.clear();
          this.start = piece.offset;
          this.end = piece.offset;
        }
        this.#take(piece);
        if (piece.next_offset < piece.size && piece.text) this.again = true;
      } while (this.again);
    } catch (error) {
      this.#failed(error);
    } finally {
      if (generation === this.generation) this.filling = false;
    }
  }

  /** Read further back, if there is more and nobody does already. */
  async back() {
    if (this.start === 0 || this.reading) return;
    const { generation } = this;
    this.reading = true;
    try {
      await this.#readPast(generation, this.end - this.start + 16 * PIECE, this.lines.count + MORE_LINES);
    } catch (error) {
      this.#failed(error);
    } finally {
      if (generation === this.generation) this.reading = false;
    }
  }

  /** Read backwards until `mostBytes` or `mostLines` are here. */
  async #readPast(generation, mostBytes, mostLines) {
    while (this.start > 0 && this.end - this.start < mostBytes && this.lines.count < mostLines) {
      const piece = await this.#ask({ before: this.start });
      if (generation !== this.generation || piece.next_offset === piece.offset) return;
      this.start = piece.offset;
      this.#tell("past", { added: this.lines.prepend(piece.text) });
    }
    this.#tell("read");
  }

  /** @returns {Record<string, string>} */
  #place() {
    return { ...(this.attempt ? { attempt: String(this.attempt) } : {}), ...(this.rank ? { rank: String(this.rank) } : {}) };
  }

  #ask(query) {
    const asked = new URLSearchParams({ ...query, ...this.#place() });
    return api.get(`${this.url}?${asked}`);
  }

  #take(piece) {
    this.size = piece.size;
    this.ended = piece.ended;
    this.end = piece.next_offset;
    this.#add(piece.text);
  }

  #add(text) {
    this.#tell("added", { text, dropped: text ? this.lines.append(text) : 0 });
  }

  #failed(error) {
    if (error.name !== "AbortError") this.#tell("failed", error);
  }

  #tell(name, detail) {
    this.dispatchEvent(new CustomEvent(name, { detail }));
  }
}
