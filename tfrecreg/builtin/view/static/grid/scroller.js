/**
 * A scroll bar for more pixels than a browser can lay out.
 *
 * Browsers give no element more than about 16 million pixels, and a million records can need more.
 * Beyond `LIMIT` the bar stands for the whole by a ratio, but a wheel or a finger moves the content
 * pixel by pixel all the same: only a jump of more than a window goes by the ratio.
 */

const LIMIT = 8_000_000;
/** Milliseconds of rest after which the bar is put where the content really is. */
const REST = 150;

export class Scroller {
  /**
   * @param {HTMLElement} frame the element that scrolls
   * @param {HTMLElement} spacer an element in it whose height makes the bar
   * @param {() => void} moved is called after each move
   */
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

  /** @param {number} height @param {number} top */
  resize(height, top) {
    this.height = height;
    this.spacer.style.height = `${Math.min(height, LIMIT)}px`;
    this.to(top);
  }

  /** Put this pixel of the content at the top of the window. @param {number} top */
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

  /** @param {number} by @param {number} bar */
  after(by, bar) {
    clearTimeout(this.resting);
    this.resting = window.setTimeout(() => this.settle(), REST);
    if (bar <= 0) return 0;
    if (bar >= this.barEnd - 1) return this.end;
    if (Math.abs(by) > this.window) return (bar / this.barEnd) * this.end;
    return Math.min(Math.max(0, this.top + by), this.end);
  }
}
