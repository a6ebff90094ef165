// The live log: only the lines in view exist as elements, so 100,000 lines scroll as ten do.
import { api } from "../base/api.js";
import { bytes, language, t, tn } from "../base/i18n.js";
import { plain } from "./ansi.js";
import { lineElement, measure } from "./line.js";
import { Lines, columns } from "./lines.js";

const ROW = 18; // px, as job.css
const SPARE = 12; // rows kept ready above and below
const NUMBERS = 56; // px of the line numbers
const PIECE = 65536;
const EAGER_BYTES = 12 * 1024 * 1024; // so much of the past is read by itself, more on scrolling up
const EAGER_LINES = 120000;
const FAR = 1024 * 1024; // a gap beyond this is not filled: the view jumps to the end
const POLL_MS = 2000;
const ERROR = /\b(error|exception|traceback|fatal|failed|killed)\b/i;
const number = new Intl.NumberFormat(language);

export class LogView {
  constructor(root, socket) {
    this.root = root;
    this.url = root.dataset.logUrl;
    this.newest = Number(root.dataset.logAttempt);
    this.attempt = this.newest;
    this.view = root.querySelector("[data-log-view]");
    this.space = root.querySelector("[data-log-space]");
    this.body = root.querySelector("[data-log-lines]");
    this.foot = root.querySelector("[data-log-foot]");
    this.lines = new Lines();
    this.follow = true;
    this.wrap = false;
    this.tops = null; // with wrapping: first row of each line, and the sum at the end
    this.hits = [];
    this.now = -1;
    this.words = "";
    this.reset();
    this.bind(socket);
    this.open();
  }

  reset() {
    this.lines.clear();
    this.start = 0; // offset of the first byte shown
    this.end = 0; // offset after the last one
    this.size = 0;
    this.ended = false;
    this.skipped = 0;
    this.generation = (this.generation || 0) + 1; // answers to questions of an earlier one are thrown away
    this.opened = false; // until the tail is here there is nothing to go on from
    this.filling = false;
    this.tops = null;
    this.hits = [];
  }

  bind(socket) {
    const find = (name) => this.root.querySelector(`[data-log-${name}]`);
    this.followButton = find("follow");
    this.view.addEventListener("scroll", () => this.scrolled(), { passive: true });
    this.view.addEventListener("keydown", (event) => {
      if (event.key === "End") this.setFollow(true);
    });
    this.followButton.addEventListener("click", () => this.setFollow(!this.follow));
    find("wrap").addEventListener("click", (event) => this.setWrap(event.currentTarget));
    find("error").addEventListener("click", () => this.firstError());
    find("next").addEventListener("click", () => this.step(1));
    find("previous").addEventListener("click", () => this.step(-1));
    this.hitsShown = find("hits");
    const field = find("find");
    field.addEventListener("input", () => this.search(field.value));
    field.addEventListener("keydown", (event) => {
      if (event.key === "Enter") {
        event.preventDefault();
        this.step(event.shiftKey ? -1 : 1);
      }
    });
    find("choose")?.addEventListener("change", (event) => this.choose(Number(event.target.value)));
    this.download = find("download");
    new ResizeObserver(() => {
      this.tops = null;
      this.draw();
    }).observe(this.view);

    socket.addEventListener("log", ({ detail }) => this.arrived(detail));
    socket.addEventListener("hello", ({ detail }) => {
      this.stopPolling();
      this.attemptIs(detail.attempt);
      if (this.attempt === this.newest) this.catchUp();
    });
    socket.addEventListener("state", ({ detail }) => {
      this.attemptIs(detail.job.attempt_number);
      if (this.attempt === this.newest && !this.ended) this.catchUp();
    });
    socket.addEventListener("down", () => this.startPolling());
  }

  startPolling() {
    this.timer ??= setInterval(() => this.attempt === this.newest && !this.ended && this.catchUp(), POLL_MS);
  }

  stopPolling() {
    clearInterval(this.timer);
    this.timer = null;
  }

  /** A newer attempt began: show it, unless the reader chose an earlier one. */
  attemptIs(attempt) {
    if (attempt <= this.newest) return;
    const wasNewest = this.attempt === this.newest;
    this.newest = attempt;
    if (wasNewest) this.choose(attempt);
  }

  choose(attempt) {
    this.attempt = attempt;
    this.reset();
    this.draw();
    this.open();
  }

  async open() {
    const generation = this.generation;
    this.download.href = `${this.url}raw/?attempt=${this.attempt || ""}`.replace(/\?attempt=$/, "");
    try {
      const piece = await this.ask({ tail: PIECE });
      if (generation !== this.generation) return;
      this.start = piece.offset;
      this.end = piece.offset;
      this.take(piece);
      this.opened = true;
      await this.catchUp();
      await this.readPast(generation, EAGER_BYTES, EAGER_LINES);
    } catch (error) {
      this.failed(error);
    }
  }

  ask(query) {
    const asked = new URLSearchParams({ ...query, ...(this.attempt ? { attempt: this.attempt } : {}) });
    return api.get(`${this.url}?${asked}`);
  }

  /** A frame of the socket. */
  arrived(frame) {
    this.attemptIs(frame.attempt);
    if (frame.attempt !== this.attempt || !this.opened) return;
    if (this.filling) {
      this.again = true;
      return;
    }
    if (frame.offset === this.end) {
      this.end = frame.next_offset;
      this.size = Math.max(this.size, this.end);
      this.add(frame.text);
    } else if (frame.next_offset > this.end) {
      this.catchUp();
    }
  }

  /** Ask for everything after what is shown, one request at a time. */
  async catchUp() {
    if (!this.opened) return;
    if (this.filling) {
      this.again = true;
      return;
    }
    const generation = this.generation;
    this.filling = true;
    try {
      do {
        this.again = false;
        let piece = await this.ask({ offset: this.end });
        if (generation !== this.generation) return;
        if (piece.size < this.end) {
          this.reset(); // the file was cut
          return void this.open();
        }
        if (piece.size - piece.next_offset > FAR) {
          this.skipped += piece.size - PIECE - this.end;
          piece = await this.ask({ tail: PIECE });
          if (generation !== this.generation) return;
          this.lines.clear();
          this.start = piece.offset;
          this.end = piece.offset;
        }
        this.take(piece);
        if (piece.next_offset < piece.size && piece.text) this.again = true;
      } while (this.again);
    } catch (error) {
      this.failed(error);
    } finally {
      if (generation === this.generation) this.filling = false;
    }
  }

  take(piece) {
    this.size = piece.size;
    this.ended = piece.ended;
    this.end = piece.next_offset;
    this.add(piece.text);
  }

  add(text) {
    if (text) {
      const dropped = this.lines.append(text);
      this.tops = null;
      if (dropped) this.view.scrollTop -= this.follow ? 0 : dropped * ROW;
      this.searchSoon();
    }
    this.drawSoon();
  }

  /** Read backwards until `mostBytes` or `mostLines` are here. */
  async readPast(generation, mostBytes, mostLines) {
    while (this.start > 0 && this.end - this.start < mostBytes && this.lines.count < mostLines) {
      const piece = await this.ask({ before: this.start });
      if (generation !== this.generation || piece.next_offset === piece.offset) return;
      this.start = piece.offset;
      const added = this.lines.prepend(piece.text);
      this.tops = null;
      if (!this.follow) {
        this.draw();
        this.view.scrollTop += added * ROW;
      }
      this.drawSoon();
    }
    this.searchSoon();
  }

  async scrolled() {
    const bottom = this.view.scrollHeight - this.view.clientHeight - this.view.scrollTop;
    if (!this.moving) this.setFollow(bottom < 2 * ROW, false);
    this.moving = false;
    this.drawSoon();
    if (this.view.scrollTop < 40 * ROW && this.start > 0 && !this.reading) {
      this.reading = true;
      try {
        const more = this.end - this.start + 16 * PIECE;
        await this.readPast(this.generation, more, this.lines.count + 20000);
      } catch (error) {
        this.failed(error);
      } finally {
        this.reading = false;
      }
    }
  }

  setFollow(on, jump = true) {
    if (on === this.follow && !jump) return;
    this.follow = on;
    this.followButton.setAttribute("aria-pressed", String(on));
    if (on && jump) this.drawSoon();
  }

  setWrap(button) {
    const top = this.lineAt(this.view.scrollTop);
    this.wrap = !this.wrap;
    button.setAttribute("aria-pressed", String(this.wrap));
    this.root.classList.toggle("log-wrapped", this.wrap);
    this.tops = null;
    this.draw();
    if (!this.follow) this.view.scrollTop = this.topOf(top);
  }

  /** With wrapping, the row at which each line begins. */
  rows() {
    if (!this.wrap) return null;
    if (this.tops) return this.tops;
    this.letter ??= measure(this.view);
    const across = Math.max(10, Math.floor((this.view.clientWidth - NUMBERS - 12) / this.letter));
    const tops = new Uint32Array(this.lines.count + 1);
    for (let i = 0; i < this.lines.count; i += 1) {
      tops[i + 1] = tops[i] + Math.max(1, Math.ceil(columns(plain(this.lines.at(i))) / across));
    }
    this.tops = tops;
    return tops;
  }

  topOf(index) {
    const tops = this.rows();
    return (tops ? tops[Math.min(index, this.lines.count)] : index) * ROW;
  }

  lineAt(pixel) {
    const row = Math.max(0, Math.floor(pixel / ROW));
    const tops = this.rows();
    if (!tops) return Math.min(row, Math.max(0, this.lines.count - 1));
    let low = 0;
    let high = this.lines.count - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (tops[middle] <= row) low = middle;
      else high = middle - 1;
    }
    return Math.max(0, low);
  }

  drawSoon() {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = null;
      this.draw();
    });
  }

  draw() {
    const height = this.topOf(this.lines.count);
    this.space.style.height = `${height}px`;
    if (this.follow) {
      const wanted = Math.max(0, height - this.view.clientHeight);
      if (Math.abs(this.view.scrollTop - wanted) > 1) {
        this.moving = true;
        this.view.scrollTop = this.view.scrollHeight;
      }
    }
    const first = Math.max(0, this.lineAt(this.view.scrollTop) - SPARE);
    const last = Math.min(this.lines.count, this.lineAt(this.view.scrollTop + this.view.clientHeight) + SPARE + 1);
    const rows = document.createDocumentFragment();
    for (let i = first; i < last; i += 1) rows.append(this.row(i));
    this.body.replaceChildren(rows);
    this.body.style.transform = `translateY(${this.topOf(first)}px)`;
    this.tell();
  }

  row(index) {
    const line = this.lines.at(index);
    const isHit = Boolean(this.words) && plain(line).toLowerCase().includes(this.words);
    const isNow = isHit ? this.hits[this.now] === index : this.pointed === index;
    const place = this.start === 0 ? String(index + 1 + this.lines.dropped) : "\u00b7";
    return lineElement(line, { place, isHit, isNow, words: this.words });
  }

  search(words) {
    this.words = words.toLowerCase();
    this.findHits();
    this.now = this.hits.length ? this.hits.findIndex((line) => line >= this.lineAt(this.view.scrollTop)) : -1;
    if (this.hits.length && this.now < 0) this.now = 0;
    if (this.words && this.hits.length) this.show(this.hits[this.now]);
    this.draw();
  }

  findHits() {
    this.hits = [];
    if (this.words) {
      for (let i = 0; i < this.lines.count; i += 1) {
        if (plain(this.lines.at(i)).toLowerCase().includes(this.words)) this.hits.push(i);
      }
    }
    this.now = Math.min(this.now, this.hits.length - 1);
  }

  searchSoon() {
    if (!this.words) return;
    clearTimeout(this.searching);
    this.searching = setTimeout(() => {
      this.findHits();
      this.drawSoon();
    }, 250);
  }

  step(by) {
    if (!this.hits.length) return;
    this.now = (this.now + by + this.hits.length) % this.hits.length;
    this.show(this.hits[this.now]);
  }

  firstError() {
    for (let i = 0; i < this.lines.count; i += 1) {
      if (ERROR.test(plain(this.lines.at(i)))) {
        this.pointed = i;
        this.show(i);
        return;
      }
    }
    this.foot.textContent = t("No line looks like an error.");
  }

  show(index) {
    this.setFollow(false, false);
    this.view.scrollTop = Math.max(0, this.topOf(index) - this.view.clientHeight / 3);
    this.draw();
  }

  failed(error) {
    if (error.name === "AbortError") return;
    this.foot.textContent = error.message;
  }

  tell() {
    this.hitsShown.textContent = this.words ? `${this.hits.length ? this.now + 1 : 0} / ${number.format(this.hits.length)}` : "";
    const count = this.lines.count;
    const parts = [tn("%(shown)s line", "%(shown)s lines", count, { shown: number.format(count) }), bytes(this.size)];
    if (this.start > 0) parts.push(t("earlier lines appear when you scroll up"));
    if (this.lines.dropped) parts.push(t("the oldest lines were left out, the download has them"));
    if (!count && !this.size) parts.splice(0, 2, this.ended ? t("The log is empty.") : t("Nothing was written yet."));
    else if (!this.ended && this.attempt === this.newest) parts.push(t("live"));
    this.foot.textContent = parts.join(" · ");
  }
}
