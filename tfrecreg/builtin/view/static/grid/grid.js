/** All records of a selection as tiles, of which only those in the window are made. */

import { el, later } from '../page/dom.js';
import { Pages } from './pages.js';
import { Scroller } from './scroller.js';
import { CAPTION, drawTile } from './tile.js';

/** @typedef {import('../page/api.js').Rec} Rec */
const GAP = 8;
/** Rows above and below the window that are drawn, too. */
const SPARE = 2;
/** Milliseconds after which tiles without records are better than the records of before. */
const PATIENCE = 250;

export class Grid {
  /**
   * @param {HTMLElement} frame
   * @param {{open: (record: Rec) => void, scrolled: (at: number) => void,
   *   failed: (error: unknown) => void, came: () => void}} calls
   */
  constructor(frame, calls) {
    this.frame = frame;
    this.calls = calls;
    this.spacer = el('div', { class: 'spacer', role: 'list', 'aria-label': 'Records' });
    frame.append(this.spacer);
    this.scroller = new Scroller(frame, this.spacer, () => this.draw());
    /** @type {Pages | null} */
    this.pages = null;
    /** @type {Pages | null} */
    this.coming = null;
    this.measured = '';
    this.target = 0;
    this.size = 160;
    this.columns = 1;
    this.cell = { width: 160, height: 160 };
    /** Position of the record that the keyboard is at. */
    this.current = 0;
    /** @type {Map<number, {element: HTMLElement, record: Rec | undefined, place: string}>} */
    this.tiles = new Map();
    // Only where scrolling rests for a moment is worth a question.
    this.fetch = later(() => this.want(), 40);
    frame.addEventListener('keydown', (event) => this.key(event));
    frame.addEventListener('focusin', (event) => this.focused(event));
    new ResizeObserver(() => this.measure()).observe(frame);
  }

  /**
   * Show another selection.
   * @param {number} target @param {string} selection @param {number} total @param {number} at
   */
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

  /** Say that there is nothing. @param {string} text */
  empty(text) {
    this.frame.querySelector('.empty')?.remove();
    this.frame.append(el('p', { class: 'empty', text }));
  }

  /** Draw all tiles in sight again, as after another choice of layers. */
  redraw() {
    this.clear();
    this.draw();
  }

  /** @param {number} size */
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

  /** Put a position at the top, where it is not there already. @param {number} at */
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

  /** Find the columns that fit, and put this position at the top. @param {number} at */
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

  /**
   * The positions whose rows are in the window, or `spare` rows away from it.
   * @param {number} spare
   */
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

  /** @param {number} from @param {number} to */
  drop(from, to) {
    for (const [at, tile] of this.tiles) {
      if (at >= from && at < to) continue;
      // A tile that leaves takes the focus with it: the frame keeps it for the keyboard.
      if (tile.element.contains(document.activeElement)) this.frame.focus({ preventScroll: true });
      tile.element.remove();
      this.tiles.delete(at);
    }
  }

  /** @param {number} at */
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

  /** @param {number} at @param {Rec | undefined} record */
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

  /** @param {FocusEvent} event */
  focused(event) {
    const tile = /** @type {HTMLElement} */ (event.target).closest?.('.tile');
    if (!(tile instanceof HTMLElement)) return;
    this.tab(-1);
    this.current = Number(tile.dataset.at);
    this.tab(0);
  }

  /** @param {number} index */
  tab(index) {
    this.tiles
      .get(this.current)
      ?.element.querySelector('.picture')
      ?.setAttribute('tabindex', String(index));
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (
      event.ctrlKey ||
      event.metaKey ||
      event.altKey ||
      /** @type {Element} */ (event.target).closest('audio')
    )
      return;
    const page = Math.max(1, Math.floor(this.scroller.window / this.row)) * this.columns;
    const last = (this.pages?.total ?? 0) - 1;
    /** @type {Record<string, number>} */
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

  /** Bring a record into sight, and give it the focus. @param {number} at */
  focus(at) {
    this.tab(-1);
    this.current = at;
    this.reveal(at);
    this.tab(0);
    const tile = this.tiles.get(at)?.element;
    const button = /** @type {HTMLElement | null} */ (tile?.querySelector('.picture') ?? null);
    (button ?? tile ?? this.frame).focus({ preventScroll: true });
  }

  /** Scroll just as far as a record needs to be seen. @param {number} at */
  reveal(at) {
    const top = Math.floor(at / this.columns) * this.row;
    const { top: seen, window: height } = this.scroller;
    if (top < seen) this.scroller.to(top);
    else if (top + this.row + GAP > seen + height) this.scroller.to(top + this.row + GAP - height);
    else this.draw();
  }
}
