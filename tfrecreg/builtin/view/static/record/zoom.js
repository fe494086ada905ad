/** An image to zoom and pan: wheel, drag, pinch, keys, buttons. */

import { button, el } from '../page/dom.js';

const MOST = 40;
const STEP = 1.25;

export class Zoom {
  constructor(content) {
    this.content = content;
    this.stage = el('div', { class: 'stage' }, content);
    this.width = 1;
    this.height = 1;
    this.scale = 1;
    this.fitted = true;
    this.x = 0;
    this.y = 0;
    this.pointers = new Map();
    this.listen();
    this.watch = new ResizeObserver(() => (this.fitted ? this.fit() : this.place()));
    this.watch.observe(this.stage);
  }

  listen() {
    this.stage.addEventListener(
      'wheel',
      (event) => {
        event.preventDefault();
        const { left, top } = this.stage.getBoundingClientRect();
        this.by(
          Math.exp(-event.deltaY * (event.deltaMode ? 0.03 : 0.0015)),
          event.clientX - left,
          event.clientY - top,
        );
      },
      { passive: false },
    );
    this.stage.addEventListener('pointerdown', (event) => {
      this.stage.setPointerCapture(event.pointerId);
      this.pointers.set(event.pointerId, event);
    });
    this.stage.addEventListener('pointermove', (event) => this.drag(event));
    for (const end of ['pointerup', 'pointercancel']) {
      this.stage.addEventListener(end, (event) => this.pointers.delete(event.pointerId));
    }
    this.stage.addEventListener('dblclick', () => this.fit());
  }

  drag(event) {
    const before = this.pointers.get(event.pointerId);
    if (!before) return;
    this.pointers.set(event.pointerId, event);
    const other = [...this.pointers.values()].find((each) => each.pointerId !== event.pointerId);
    if (other) this.pinch(before, event, other);
    else this.move(event.clientX - before.clientX, event.clientY - before.clientY);
  }

  pinch(before, now, other) {
    const { left, top } = this.stage.getBoundingClientRect();
    const apart = (one) =>
      Math.hypot(one.clientX - other.clientX, one.clientY - other.clientY);
    const middle = [
      (now.clientX + other.clientX) / 2 - left,
      (now.clientY + other.clientY) / 2 - top,
    ];
    this.by(apart(now) / Math.max(1, apart(before)), middle[0], middle[1]);
  }

  /** Size of the image in its own pixels. */
  measure(width, height) {
    this.width = Math.max(1, width);
    this.height = Math.max(1, height);
    if (this.fitted) this.fit();
    else this.place();
  }

  fit() {
    const { clientWidth, clientHeight } = this.stage;
    if (!clientWidth || !clientHeight) return;
    this.fitted = true;
    this.scale = Math.min((clientWidth - 16) / this.width, (clientHeight - 16) / this.height, 24);
    this.x = (clientWidth - this.width * this.scale) / 2;
    this.y = (clientHeight - this.height * this.scale) / 2;
    this.place();
  }

  /** Zoom about a point of the stage, or its middle. */
  by(factor, x = this.stage.clientWidth / 2, y = this.stage.clientHeight / 2) {
    const scale = Math.min(MOST, Math.max(0.02, this.scale * factor));
    this.x = x - ((x - this.x) * scale) / this.scale;
    this.y = y - ((y - this.y) * scale) / this.scale;
    this.scale = scale;
    this.fitted = false;
    this.place();
  }

  move(x, y) {
    this.x += x;
    this.y += y;
    this.fitted = false;
    this.place();
  }

  place() {
    // A strip of the image stays inside, so it cannot get lost.
    this.x = Math.min(this.stage.clientWidth - 32, Math.max(32 - this.width * this.scale, this.x));
    this.y = Math.min(
      this.stage.clientHeight - 32,
      Math.max(32 - this.height * this.scale, this.y),
    );
    const { style } = this.content;
    style.width = `${this.width * this.scale}px`;
    style.height = `${this.height * this.scale}px`;
    style.transform = `translate(${this.x}px, ${this.y}px)`;
    this.content.classList.toggle('pixels', this.scale >= 2);
  }

  /** Whether a key was one of the zoom's. */
  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return false;
    if (event.key === '+' || event.key === '=') this.by(STEP);
    else if (event.key === '-') this.by(1 / STEP);
    else if (event.key === '0') this.fit();
    else if (event.shiftKey && event.key.startsWith('Arrow')) this.pan(event.key);
    else return false;
    return true;
  }

  pan(key) {
    const step = 60;
    this.move(
      key === 'ArrowLeft' ? step : key === 'ArrowRight' ? -step : 0,
      key === 'ArrowUp' ? step : key === 'ArrowDown' ? -step : 0,
    );
  }

  buttons() {
    const all = [
      ['−', 'Zoom out (−)', () => this.by(1 / STEP)],
      ['+', 'Zoom in (+)', () => this.by(STEP)],
      ['Fit', 'Fit into the window (0)', () => this.fit()],
    ];
    return el(
      'div',
      { class: 'zoom-buttons' },
      ...all.map(([text, title, act]) =>
        button(text, act, { title, 'aria-label': title }),
      ),
    );
  }

  close() {
    this.watch.disconnect();
  }
}
