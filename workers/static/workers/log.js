// The live log: only the lines in view exist as elements, so 100,000 lines scroll as ten do.
import { language, t } from "../base/i18n.js";
import { Hits, firstError } from "./hits.js";
import { lineElement, measure } from "./line.js";
import { Lines } from "./lines.js";
import { LogFile } from "./logfile.js";
import { ROW, Rows } from "./rows.js";
import { Shown } from "./shown.js";

const SPARE = 12; // rows kept ready above and below
const NUMBERS = 56; // px of the line numbers
const NARROW_PX = 720; // a view below this width wraps its lines
const POLL_MS = 2000;
const SEARCH_MS = 250;
const number = new Intl.NumberFormat(language);

export class LogView {
  /**
   * @param {HTMLElement} root
   * @param {EventTarget} socket  of the job, see live.js
   */
  constructor(root, socket) {
    const find = (name) => root.querySelector(`[data-log-${name}]`);
    this.root = root;
    this.view = find("view");
    this.space = find("space");
    this.body = find("lines");
    this.foot = find("foot");
    this.followButton = find("follow");
    this.hitsShown = find("hits");
    this.download = /** @type {HTMLAnchorElement} */ (find("download"));
    this.lines = new Lines();
    this.file = new LogFile(root.dataset.logUrl ?? "", this.lines, "logBrief" in root.dataset);
    this.shown = new Shown(this.lines);
    this.rows = new Rows(this.shown, () => this.#across());
    this.hits = new Hits(this.shown);
    this.newest = Number(root.dataset.logAttempt);
    this.follow = true;
    this.counted = 0; // shown lines, as of the last change
    this.letter = 0; // px; measured when lines are first wrapped
    this.pointed = -1; // the line with the first error
    this.#bindControls(find);
    this.#bindFile();
    this.#bindSocket(socket);
    if (this.view.clientWidth < NARROW_PX) this.setWrap(find("wrap"));
    this.#open(this.newest);
  }

  #bindControls(find) {
    this.view.addEventListener("scroll", () => this.#scrolled(), { passive: true });
    this.view.addEventListener("keydown", (event) => {
      if (event.key === "End") this.setFollow(true);
    });
    this.followButton.addEventListener("click", () => this.setFollow(!this.follow));
    find("wrap").addEventListener("click", (event) => this.setWrap(event.currentTarget));
    find("error").addEventListener("click", () => this.firstError());
    find("next").addEventListener("click", () => this.step(1));
    find("previous").addEventListener("click", () => this.step(-1));
    const field = find("find");
    field.addEventListener("input", () => this.search(field.value));
    field.addEventListener("keydown", (event) => {
      if (event.key !== "Enter") return;
      event.preventDefault();
      this.step(event.shiftKey ? -1 : 1);
    });
    for (const chip of this.root.querySelectorAll("[data-log-phase]")) {
      chip.addEventListener("click", () => this.togglePhase(/** @type {HTMLElement} */ (chip)));
    }
    this.cardsButton = find("cards");
    this.cardsButton?.addEventListener("click", () => {
      this.shown.byCard = !this.shown.byCard;
      this.cardsButton.setAttribute("aria-pressed", String(this.shown.byCard));
      this.#anew();
    });
    this.processChoice = find("process");
    this.processChoice?.addEventListener("change", () => {
      this.shown.process = Number(this.processChoice.value);
      this.#anew();
    });
    find("rank")?.addEventListener("change", (event) => this.chooseRank(Number(event.target.value)));
    find("choose")?.addEventListener("change", (event) => this.choose(Number(event.target.value)));
    this.sizes = new ResizeObserver(() => {
      this.rows.changed();
      this.draw();
    });
    this.sizes.observe(this.view);
  }

  /** The page shows it no longer. */
  close() {
    this.#stopAsking();
    this.sizes?.disconnect();
  }

  #bindFile() {
    const { file } = this;
    file.addEventListener("reset", () => {
      this.#forgetProcesses();
      this.#changed();
      this.hits.clear();
    });
    file.addEventListener("added", ({ detail: { text, dropped } }) => {
      if (text) {
        const gone = dropped ? this.shown.before(dropped) : 0;
        this.#changed();
        if (gone && !this.follow) this.view.scrollTop -= gone * ROW;
        this.#searchSoon();
      }
      this.drawSoon();
    });
    file.addEventListener("past", () => {
      const before = this.counted;
      this.#changed();
      if (!this.follow) {
        this.draw();
        this.view.scrollTop += this.rows.topOf(Math.max(0, this.counted - before));
      }
      this.drawSoon();
    });
    file.addEventListener("read", () => this.#searchSoon());
    file.addEventListener("failed", ({ detail }) => {
      this.foot.textContent = detail.message;
    });
  }

  #bindSocket(socket) {
    socket.addEventListener("log", ({ detail }) => {
      this.#attemptIs(detail.attempt);
      if (detail.attempt === this.file.attempt && !this.file.rank) this.file.arrived(detail);
    });
    socket.addEventListener("hello", ({ detail }) => {
      if (!this.file.rank) this.#stopAsking();
      this.#attemptIs(detail.attempt);
      if (this.#current) void this.file.catchUp();
    });
    socket.addEventListener("state", ({ detail }) => {
      this.#attemptIs(detail.job.attempt_number);
      this.#ask();
    });
    socket.addEventListener("down", () => this.#keepAsking());
  }

  #keepAsking() {
    this.timer ??= setInterval(() => this.#ask(), POLL_MS);
  }

  #stopAsking() {
    clearInterval(this.timer);
    this.timer = null;
  }

  /** Other lines are there, or others are wanted. */
  #changed() {
    this.shown.changed();
    this.rows.changed();
    this.counted = this.shown.count;
    if (this.processChoice) this.#offerProcesses();
  }

  /** Offer a choice of the processes that lines come from; none where all come from one. */
  #offerProcesses() {
    const { processChoice: choice, shown } = this;
    const known = new Set([...choice.options].map((option) => option.value));
    for (const process of shown.processes) {
      if (!known.has(String(process))) choice.add(new Option(t("Process %(number)s", { number: String(process) }), String(process)));
    }
    choice.hidden = choice.options.length < 2;
    this.cardsButton.hidden = choice.hidden;
  }

  /** Another log has processes of its own. */
  #forgetProcesses() {
    this.shown.process = -1;
    if (this.processChoice) this.processChoice.options.length = 1;
  }

  #anew() {
    this.#changed();
    this.hits.refresh();
    this.setFollow(true);
  }

  /** Whether a filter leaves room in the view, and the log has more further up. */
  get #wantsMore() {
    const { file, rows, shown, view } = this;
    return (shown.phases.size > 0 || shown.process >= 0) && file.start > 0 && rows.topOf(shown.count) < view.clientHeight;
  }

  togglePhase(chip) {
    const { phases } = this.shown;
    const phase = chip.dataset.logPhase ?? "";
    if (!phases.delete(phase)) phases.add(phase);
    chip.setAttribute("aria-pressed", String(phases.has(phase)));
    this.#anew();
  }

  /** Show what another machine of the job prints; the socket tells of the first one only. */
  chooseRank(rank) {
    this.file.rank = rank;
    this.#open(this.file.attempt);
    if (rank) this.#keepAsking();
    else this.#stopAsking();
    this.draw();
  }

  get #current() {
    return this.file.attempt === this.newest;
  }

  #ask() {
    if (this.#current && !this.file.ended) void this.file.catchUp();
  }

  /** A newer attempt began: show it, unless the reader chose an earlier one. */
  #attemptIs(attempt) {
    if (attempt <= this.newest) return;
    const wasCurrent = this.#current;
    this.newest = attempt;
    if (wasCurrent) this.choose(attempt);
  }

  choose(attempt) {
    this.#open(attempt);
    this.draw();
  }

  #open(attempt) {
    void this.file.open(attempt);
    this.download.href = this.file.rawUrl;
  }

  #scrolled() {
    const bottom = this.view.scrollHeight - this.view.clientHeight - this.view.scrollTop;
    if (!this.moving) this.setFollow(bottom < 2 * ROW, false);
    this.moving = false;
    this.drawSoon();
    if (this.view.scrollTop < 40 * ROW) void this.file.back();
  }

  setFollow(on, jump = true) {
    if (on === this.follow && !jump) return;
    this.follow = on;
    this.followButton.setAttribute("aria-pressed", String(on));
    if (on && jump) this.drawSoon();
  }

  setWrap(button) {
    const { rows } = this;
    const top = rows.lineAt(this.view.scrollTop);
    rows.wrap = !rows.wrap;
    button.setAttribute("aria-pressed", String(rows.wrap));
    this.root.classList.toggle("log-wrapped", rows.wrap);
    rows.changed();
    this.draw();
    if (!this.follow) this.view.scrollTop = rows.topOf(top);
  }

  #across() {
    this.letter ||= measure(this.view);
    return Math.floor((this.view.clientWidth - NUMBERS - 12) / this.letter);
  }

  drawSoon() {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = null;
      this.draw();
    });
  }

  draw() {
    const { rows, view } = this;
    const height = rows.topOf(this.shown.count);
    this.space.style.height = `${height}px`;
    if (this.follow && Math.abs(view.scrollTop - Math.max(0, height - view.clientHeight)) > 1) {
      this.moving = true;
      view.scrollTop = view.scrollHeight;
    }
    const first = Math.max(0, rows.lineAt(view.scrollTop) - SPARE);
    const last = Math.min(this.shown.count, rows.lineAt(view.scrollTop + view.clientHeight) + SPARE + 1);
    const shown = document.createDocumentFragment();
    for (let i = first; i < last; i += 1) shown.append(this.#line(i));
    this.body.replaceChildren(shown);
    this.body.style.transform = `translateY(${rows.topOf(first)}px)`;
    this.#tell();
    if (this.#wantsMore && !this.file.isFull) void this.file.back();
  }

  #line(index) {
    const line = this.shown.at(index);
    const isHit = this.hits.has(line);
    const isNow = (isHit ? this.hits.line : this.pointed) === index;
    const place = this.file.start === 0 ? String(this.shown.placeOf(index) + 1 + this.lines.dropped) : "\u00b7";
    return lineElement(line, { place, isHit, isNow, words: this.hits.words, tag: this.shown.tagAt(index) });
  }

  search(words) {
    this.hits.search(words, this.rows.lineAt(this.view.scrollTop));
    this.#showHit();
    this.draw();
  }

  #searchSoon() {
    if (!this.hits.words) return;
    clearTimeout(this.searching);
    this.searching = setTimeout(() => {
      this.hits.refresh();
      this.drawSoon();
    }, SEARCH_MS);
  }

  step(by) {
    this.hits.step(by);
    this.#showHit();
  }

  #showHit() {
    if (this.hits.line !== undefined) this.show(this.hits.line);
  }

  firstError() {
    const found = firstError(this.shown);
    if (found >= 0) {
      this.pointed = found;
      this.show(found);
    } else this.foot.textContent = t("No error found in the log.");
  }

  show(index) {
    this.setFollow(false, false);
    this.view.scrollTop = Math.max(0, this.rows.topOf(index) - this.view.clientHeight / 3);
    this.draw();
  }

  #tell() {
    const { found, now, words } = this.hits;
    this.hitsShown.textContent = words ? `${found.length ? now + 1 : 0} / ${number.format(found.length)}` : "";
    const parts = [this.file.summary(this.#current)];
    if (this.#wantsMore) parts.push(this.file.isFull ? t("earlier lines were not searched, the download contains all") : t("searching earlier lines …"));
    this.foot.textContent = parts.join(" \u00b7 ");
  }
}
