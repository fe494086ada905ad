/** One record, enlarged: what it shows, where it is, what is found in it, all its features. */

import { ask, isAbort, lastOnly, words } from '../page/api.js';
import { alarm, button, count, el } from '../page/dom.js';
import { describe } from './describe.js';
import { drawShapes } from '../grid/shapes.js';
import { Zoom } from './zoom.js';

export class RecordPanel {
  constructor(dialog, calls) {
    this.dialog = dialog;
    this.calls = calls;
    this.ask = lastOnly();
    this.record = null;
    this.zoom = null;
    this.target = 0;
    /** Position in the selection, or -1 where it is not known. */
    this.at = -1;
    this.build();
    dialog.addEventListener('keydown', (event) => this.key(event));
    dialog.addEventListener('cancel', (event) => {
      event.preventDefault();
      calls.close();
    });
    // Some browsers close a dialog at the second Escape, whatever the page says.
    dialog.addEventListener('close', () => {
      if (this.record) calls.close();
    });
    dialog.addEventListener('pointerdown', (event) => {
      if (event.target === dialog) calls.close();
    });
  }

  build() {
    const icon = (text, title, act) =>
      button(text, act, { class: 'icon', title, 'aria-label': title });
    this.title = el('h2', { id: 'record-title' });
    this.position = el('span', { class: 'faint position', role: 'status' });
    this.before = icon('←', 'The record before (left arrow)', () => void this.step(-1));
    this.after = icon('→', 'The next record (right arrow)', () => void this.step(1));
    this.picture = el('div', { class: 'show' });
    this.facts = el('div', {
      class: 'facts',
      tabindex: 0,
      role: 'region',
      'aria-label': 'About the record',
    });
    this.dialog.append(
      el(
        'header',
        {},
        this.title,
        this.position,
        this.before,
        this.after,
        icon('✕', 'Close (Escape)', () => this.calls.close()),
      ),
      el('div', { class: 'halves' }, this.picture, this.facts),
    );
  }

  /** Show a record of a target. What was shown stays until the new one is there. */
  async show(target, { shard, record }, at) {
    this.target = target;
    this.at = at;
    if (!this.dialog.open) {
      this.blank('Loading…');
      this.dialog.showModal();
      // Up and down scroll what is known about the record, left and right go on.
      this.facts.focus();
    }
    try {
      const whole = await this.ask(`api/t/${target}/record/${shard}/${record}`);
      await this.locate(whole);
      this.draw(whole);
    } catch (error) {
      if (!isAbort(error)) this.fail(error, { shard, record });
    }
  }

  /** Keep the position only where the selection has the record there. */
  async locate(whole) {
    const there = await this.calls.pages()?.record(this.at);
    if (there?.shard !== whole.shard || there.record !== whole.record) this.at = -1;
  }

  blank(text) {
    this.zoom?.close();
    this.zoom = null;
    this.title.textContent = text;
    this.position.textContent = '';
    this.picture.replaceChildren();
    this.facts.replaceChildren();
  }

  fail(error, { shard, record }) {
    this.record = null;
    this.blank(`Record ${record} of shard ${shard}`);
    this.dialog.classList.add('plain');
    this.facts.replaceChildren(alarm(words(error)));
  }

  draw(whole) {
    this.record = whole;
    const total = this.calls.pages()?.total ?? 0;
    this.title.textContent = whole.label ?? whole.key ?? `Record ${whole.record}`;
    this.position.textContent =
      this.at >= 0
        ? `${count(this.at + 1)} of ${count(total)}`
        : `record ${count(whole.record)} of ${whole.shard_name}`;
    this.before.disabled = this.at >= 0 ? this.at === 0 : !whole.previous;
    this.after.disabled = this.at >= 0 ? this.at >= total - 1 : !whole.next;
    this.drawPicture(whole);
    this.facts.replaceChildren(...describe(whole, this.calls.about()));
    this.facts.scrollTop = 0;
  }

  drawPicture(whole) {
    const images = whole.features.filter(({ kind }) => kind === 'image' || kind === 'pixels');
    const others = images.length ? [] : this.other(whole);
    // Of numbers alone the list of features shows all there is.
    this.dialog.classList.toggle('plain', !whole.problem && !images.length && !others.length);
    if (whole.problem) this.say(alarm(whole.problem));
    else if (images.length)
      this.drawImage(
        whole,
        images.map(({ name }) => name),
        images[0].name,
      );
    else this.say(...others);
  }

  say(...nodes) {
    this.zoom?.close();
    this.zoom = null;
    this.picture.replaceChildren(el('div', { class: 'alone', tabindex: 0 }, ...nodes));
  }

  /** Its sounds and texts. */
  other(whole) {
    const sounds = whole.features
      .filter(({ kind }) => kind === 'audio')
      .map(({ name }) =>
        el(
          'figure',
          {},
          el('figcaption', { text: name }),
          player(
            name,
            `api/t/${this.target}/media/${whole.shard}/${whole.record}?feature=${encodeURIComponent(name)}`,
          ),
        ),
      );
    const texts = whole.features
      .filter(({ kind, text }) => kind === 'text' && text)
      .map(({ name, text }) =>
        el(
          'figure',
          {},
          el('figcaption', { text: name }),
          el('p', { class: 'prose', dir: 'auto', text }),
        ),
      );
    return [...sounds, ...texts];
  }

  drawImage(whole, names, name) {
    const image = el('img', {
      alt: whole.caption || whole.label || 'the image of the record',
      draggable: 'false',
    });
    // Shapes belong to the image that the record is drawn with, the first.
    this.over = name === names[0] ? drawShapes(whole, true) : el('div');
    const zoom = new Zoom(el('div', { class: 'zoomed' }, image, this.over));
    // The natural sides are those of the image as EXIF turns it, which is not how it is drawn.
    const known = name === names[0] && whole.width && whole.height;
    image.addEventListener('load', () => {
      if (!known) zoom.measure(image.naturalWidth, image.naturalHeight);
    });
    image.addEventListener('error', () =>
      this.say(alarm('The image cannot be drawn. Its bytes are below “Features”.')),
    );
    image.src = `api/t/${this.target}/image/${whole.shard}/${whole.record}?feature=${encodeURIComponent(name)}`;
    this.zoom?.close();
    this.zoom = zoom;
    this.picture.replaceChildren(
      zoom.stage,
      el('div', { class: 'under' }, zoom.buttons(), this.choice(whole, names, name)),
    );
    if (whole.width && whole.height) zoom.measure(whole.width, whole.height);
  }

  choice(whole, names, name) {
    if (names.length < 2) return null;
    const choice = el(
      'select',
      { 'aria-label': 'Image' },
      ...names.map((each) => el('option', { value: each, text: each, selected: each === name })),
    );
    choice.addEventListener('change', () => this.drawImage(whole, names, choice.value));
    return choice;
  }

  /** Draw the shapes again, as after another choice of layers. */
  redraw() {
    if (this.record) this.drawPicture(this.record);
  }

  /** Go on to a neighbor: in the selection, or else in the file. */
  async step(by) {
    const pages = this.calls.pages();
    if (this.at >= 0 && pages) {
      const to = await pages.record(this.at + by);
      if (to) this.calls.open(to, this.at + by);
      return;
    }
    const place = by < 0 ? this.record?.previous : this.record?.next;
    if (place) this.calls.open(place, -1);
  }

  key(event) {
    const target = event.target;
    if (target.closest('input, select, audio')) return;
    if (this.zoom?.key(event)) event.preventDefault();
    else if (event.altKey || event.ctrlKey || event.metaKey) return;
    else if (event.key === 'ArrowRight' || event.key === 'ArrowLeft') {
      event.preventDefault();
      void this.step(event.key === 'ArrowRight' ? 1 : -1);
    }
  }

  close() {
    this.blank('');
    this.record = null;
    if (this.dialog.open) this.dialog.close();
  }
}

/** A sound; where the browser finds pictures in it, a video. */
function player(name, src) {
  const place = el(
    'div',
    {},
    el('audio', { controls: true, preload: 'metadata', 'aria-label': name, src }),
  );
  const video = el('video', { preload: 'metadata', 'aria-label': name, src });
  video.addEventListener('loadedmetadata', () => {
    if (!video.videoWidth) return;
    video.controls = true;
    place.replaceChildren(video);
  });
  return place;
}

/** The record at a place, as a tile wants it: the codes of its findings only. */
export async function fetchRecord(target, { shard, record }) {
  const whole = await ask(`api/t/${target}/record/${shard}/${record}`);
  return { ...whole, findings: whole.findings.map(({ code }) => code) };
}
