/** All records of a selection as tiles, of which only those in the window are made. */

import { CAPTION, drawTile } from './tile.js';
import { ask, isAbort } from '../page/api.js';
import { el, later } from '../page/dom.js';

const GAP = 8;
/** Rows above and below the window that are drawn, too. */
const SPARE = 2;
/** Milliseconds after which tiles without records are better than the records of before. */
const PATIENCE = 250;

export class Grid {
  constructor(frame, calls) {
    this.frame = frame;
    this.calls = calls;
    this.spacer = el('div', { class: 'spacer', role: 'list', 'aria-label': 'Records' });
    frame.append(this.spacer);
    this.scroller = new Scroller(frame, this.spacer, () => this.draw());
    this.pages = null;
    this.coming = null;
    this.measured = '';
    this.target = 0;
    this.size = 160;
    this.columns = 1;
    this.cell = { width: 160, height: 160 };
    /** Position of the record that the keyboard is at. */
    this.current = 0;
    this.tiles = new Map();
    // Only where scrolling rests for a moment is worth a question.
    this.fetch = later(() => this.want(), 40);
    frame.addEventListener('keydown', (event) => this.key(event));
    frame.addEventListener('focusin', (event) => this.focused(event));
    new ResizeObserver(() => this.measure()).observe(frame);
  }

  /** Show another selection. */
  async show(target, selection, total, at) {
    const pages = new Pages(target, selection, total, () => this.arrived(), this.calls.failed);
    this.coming = pages;
    // What is there stays until the new records are: an empty window in between would flicker.
    await Promise.race([
      pages.record(Math.min(at, total - 1)),
      new Promise((done) => setTimeout(done, PATIENCE)),
    ]);
    if (this.coming !== pages) return pages.close();
    this.pages?.close();
    this.pages = pages;
    this.target = target;
    this.current = Math.min(at, Math.max(0, total - 1));
    this.clear();
    this.frame.querySelector('.empty')?.remove();
    this.layout(at);
    this.want();
    return undefined;
  }

  /** Say that there is nothing. */
  empty(text) {
    this.frame.querySelector('.empty')?.remove();
    this.frame.append(el('p', { class: 'empty', text }));
  }

  /** Draw all tiles in sight again, as after another choice of layers. */
  redraw() {
    this.clear();
    this.draw();
  }

  resize(size) {
    const at = this.first();
    this.size = size;
    this.clear();
    this.layout(at);
  }

  clear() {
    for (const { element } of this.tiles.values()) element.remove();
    this.tiles.clear();
  }

  get row() {
    return this.cell.height + CAPTION + GAP;
  }

  /** The first position that is seen at the top. */
  first() {
    return Math.floor((this.scroller.top + this.row / 2) / this.row) * this.columns;
  }

  /** Put a position at the top, where it is not there already. */
  go(at) {
    if (at !== this.first() && this.frame.clientWidth)
      this.scroller.to(Math.floor(at / this.columns) * this.row);
  }

  measure() {
    if (this.frame.clientWidth === 0 || !this.pages) return;
    const before = `${this.frame.clientWidth} ${this.frame.clientHeight}`;
    if (before === this.measured) return;
    this.clear();
    this.layout(this.first());
  }

  /** Find the columns that fit, and put this position at the top. */
  layout(at) {
    const width = this.frame.clientWidth - 2 * GAP;
    this.measured = `${this.frame.clientWidth} ${this.frame.clientHeight}`;
    if (width <= 0) return;
    this.columns = Math.max(1, Math.floor((width + GAP) / (this.size + GAP)));
    const each = Math.floor((width + GAP) / this.columns) - GAP;
    this.cell = { width: each, height: Math.round(this.size * 0.85) };
    const rows = Math.ceil((this.pages?.total ?? 0) / this.columns);
    this.scroller.resize(rows * this.row + GAP, Math.floor(at / this.columns) * this.row);
    this.fetch();
  }

  /** The positions whose rows are in the window, or `spare` rows away from it. */
  range(spare) {
    const { top, window: height } = this.scroller;
    const total = this.pages?.total ?? 0;
    const from = Math.max(0, Math.floor(top / this.row) - spare) * this.columns;
    const to = Math.min(total, (Math.ceil((top + height) / this.row) + spare) * this.columns);
    return [from, to];
  }

  want() {
    const [from, to] = this.range(SPARE);
    if (to > from) this.pages?.want(from, to - 1);
  }

  arrived() {
    this.calls.came();
    this.draw();
  }

  draw() {
    if (!this.pages || this.frame.clientWidth === 0) return;
    const [from, to] = this.range(SPARE);
    this.drop(from, to);
    for (let at = from; at < to; at += 1) this.place(at);
    this.calls.scrolled(this.first());
    this.fetch();
  }

  drop(from, to) {
    for (const [at, tile] of this.tiles) {
      if (at >= from && at < to) continue;
      // A tile that leaves takes the focus with it: the frame keeps it for the keyboard.
      if (tile.element.contains(document.activeElement)) this.frame.focus({ preventScroll: true });
      tile.element.remove();
      this.tiles.delete(at);
    }
  }

  place(at) {
    const record = this.pages?.get(at);
    let tile = this.tiles.get(at);
    if (!tile || tile.record !== record) {
      const element = this.make(at, record);
      const focused = tile?.element.contains(document.activeElement);
      if (tile) tile.element.replaceWith(element);
      else this.spacer.append(element);
      tile = { element, record, place: '' };
      this.tiles.set(at, tile);
      if (focused) this.focus(at);
    }
    const left = GAP + (at % this.columns) * (this.cell.width + GAP);
    const top = GAP + Math.floor(at / this.columns) * this.row + this.scroller.shift;
    const place = `translate(${left}px, ${top}px)`;
    // Setting it again would cost a layout, of all tiles at every step of the wheel.
    if (tile.place !== place) tile.element.style.transform = place;
    tile.place = place;
  }

  make(at, record) {
    const element = drawTile(this.target, record, this.cell, (opened) => {
      this.current = at;
      this.calls.open(opened);
    });
    element.setAttribute('role', 'listitem');
    element.setAttribute('aria-posinset', String(at + 1));
    element.setAttribute('aria-setsize', String(this.pages?.total));
    element.dataset.at = String(at);
    element.style.width = `${this.cell.width}px`;
    element.style.height = `${this.cell.height + CAPTION}px`;
    // One stop for the Tab key: the arrow keys go on from there.
    if (at === this.current) element.querySelector('.picture')?.setAttribute('tabindex', '0');
    return element;
  }

  focused(event) {
    const tile = event.target.closest?.('.tile');
    if (!(tile instanceof HTMLElement)) return;
    this.tab(-1);
    this.current = Number(tile.dataset.at);
    this.tab(0);
  }

  tab(index) {
    this.tiles
      .get(this.current)
      ?.element.querySelector('.picture')
      ?.setAttribute('tabindex', String(index));
  }

  key(event) {
    if (
      event.ctrlKey ||
      event.metaKey ||
      event.altKey ||
      event.target.closest('audio')
    )
      return;
    const page = Math.max(1, Math.floor(this.scroller.window / this.row)) * this.columns;
    const last = (this.pages?.total ?? 0) - 1;
    const to = {
      ArrowRight: this.current + 1,
      ArrowLeft: this.current - 1,
      ArrowDown: this.current + this.columns,
      ArrowUp: this.current - this.columns,
      PageDown: this.current + page,
      PageUp: this.current - page,
      Home: 0,
      End: last,
    };
    if (!(event.key in to) || last < 0) return;
    event.preventDefault();
    this.focus(Math.min(Math.max(0, to[event.key]), last));
  }

  /** Bring a record into sight, and give it the focus. */
  focus(at) {
    this.tab(-1);
    this.current = at;
    this.reveal(at);
    this.tab(0);
    const tile = this.tiles.get(at)?.element;
    const button = tile?.querySelector('.picture') ?? null;
    (button ?? tile ?? this.frame).focus({ preventScroll: true });
  }

  /** Scroll just as far as a record needs to be seen. */
  reveal(at) {
    const top = Math.floor(at / this.columns) * this.row;
    const { top: seen, window: height } = this.scroller;
    if (top < seen) this.scroller.to(top);
    else if (top + this.row + GAP > seen + height) this.scroller.to(top + this.row + GAP - height);
    else this.draw();
  }
}

const PAGE = 60;
/** Pages that are kept: 12,000 records of about a kilobyte. */
const KEPT = 200;

class Pages {
  constructor(target, selection, total, arrived, failed) {
    this.target = target;
    this.selection = selection;
    this.total = total;
    this.arrived = arrived;
    this.failed = failed;
    this.pages = new Map();
    this.asked = new Map();
  }

  /** The record at a position, where its page is there. */
  get(at) {
    return this.pages.get(Math.floor(at / PAGE))?.[at % PAGE];
  }

  /** Fetch the pages with these positions, and stop fetching all others. */
  want(first, last) {
    const from = Math.max(0, Math.floor(first / PAGE));
    const to = Math.floor(Math.min(last, this.total - 1) / PAGE);
    for (const [page, controller] of this.asked) {
      if (page < from - 1 || page > to + 1) controller.abort();
    }
    for (let page = from; page <= to; page += 1) this.fetch(page);
  }

  /** The record at a position, fetched where it must be. */
  async record(at) {
    if (at < 0 || at >= this.total) return undefined;
    await this.fetch(Math.floor(at / PAGE));
    return this.get(at);
  }

  /** Forget everything: what is still under way does not arrive. */
  close() {
    for (const controller of this.asked.values()) controller.abort();
    this.asked.clear();
    this.pages.clear();
  }

  async fetch(page) {
    if (this.pages.has(page) || this.asked.has(page)) return;
    const controller = new AbortController();
    this.asked.set(page, controller);
    try {
      const question = { selection: this.selection, from: page * PAGE, count: PAGE };
      const told = await ask(`api/t/${this.target}/records`, question, controller.signal);
      this.keep(page, told.records);
    } catch (error) {
      if (!isAbort(error)) this.failed(error);
      return;
    } finally {
      if (this.asked.get(page) === controller) this.asked.delete(page);
    }
    this.arrived();
  }

  keep(page, records) {
    this.pages.set(page, records);
    const oldest = this.pages.keys().next().value;
    if (this.pages.size > KEPT && oldest !== undefined) this.pages.delete(oldest);
  }
}

const LIMIT = 8_000_000;
/** Milliseconds of rest after which the bar is put where the content really is. */
const REST = 150;

export class Scroller {
  constructor(frame, spacer, moved) {
    this.frame = frame;
    this.spacer = spacer;
    this.moved = moved;
    /** Height of the content in pixels, and the part of it above the window. */
    this.height = 0;
    this.top = 0;
    this.bar = 0;
    this.resting = 0;
    frame.addEventListener('scroll', () => this.follow(), { passive: true });
  }

  get window() {
    return this.frame.clientHeight;
  }

  get end() {
    return Math.max(0, this.height - this.window);
  }

  get barEnd() {
    return Math.max(0, Math.min(this.height, LIMIT) - this.window);
  }

  /** Pixels to add to a place in the content, to place it in the spacer. */
  get shift() {
    return this.bar - this.top;
  }

  resize(height, top) {
    this.height = height;
    this.spacer.style.height = `${Math.min(height, LIMIT)}px`;
    this.to(top);
  }

  /** Put this pixel of the content at the top of the window. */
  to(top) {
    this.top = Math.min(Math.max(0, top), this.end);
    this.settle();
  }

  settle() {
    this.frame.scrollTop = this.end > this.barEnd ? (this.top / this.end) * this.barEnd : this.top;
    // The browser rounds to its pixels: what it made of the number is the number.
    this.bar = this.frame.scrollTop;
    if (this.end <= this.barEnd) this.top = this.bar;
    this.moved();
  }

  follow() {
    const bar = this.frame.scrollTop;
    const by = bar - this.bar;
    if (by === 0) return;
    this.bar = bar;
    if (this.end <= this.barEnd) this.top = bar;
    else this.top = this.after(by, bar);
    this.moved();
  }

  after(by, bar) {
    clearTimeout(this.resting);
    this.resting = window.setTimeout(() => this.settle(), REST);
    if (bar <= 0) return 0;
    if (bar >= this.barEnd - 1) return this.end;
    if (Math.abs(by) > this.window) return (bar / this.barEnd) * this.end;
    return Math.min(Math.max(0, this.top + by), this.end);
  }
}
