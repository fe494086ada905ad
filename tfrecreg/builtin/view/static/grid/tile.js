/**
 * One record as a tile: an image with its shapes, a text, numbers, a sound, bytes, or a problem.
 */

import { address } from '../page/api.js';
import { el } from '../page/dom.js';
import { drawShapes } from './shapes.js';

/** Height of the caption below the picture, in pixels, as the style sheet has it. */
export const CAPTION = 38;
/** Pixels of width that a name on a box needs: of many in a small tile none could be read. */
const NAME = 25;
/** Pixels of a tile from which names of boxes do not cover its image. */
const LEAST_NAMED = 120;

/** A tile that opens its record when it is pressed. */
export function drawTile(target, record, size, open) {
  if (!record) return el('div', { class: 'tile waiting', tabindex: -1, 'aria-busy': 'true' });
  const button = el(
    'button',
    {
      class: 'picture',
      type: 'button',
      tabindex: -1,
      'aria-label': record.kind === 'audio' && !record.problem ? spoken(record) : null,
      on: { click: () => open(record) },
    },
    picture(target, record, size),
  );
  const sound = record.kind === 'audio' && !record.problem ? player(target, record) : null;
  return el(
    'div',
    { class: `tile is-${record.problem ? 'problem' : record.kind}` },
    button,
    sound,
    caption(record),
  );
}

function spoken(record) {
  const parts = [record.label, record.key];
  if (record.findings.length) parts.push(`findings: ${record.findings.join(', ')}`);
  return `Record ${record.record} of shard ${record.shard}: ${parts.filter(Boolean).join(', ') || record.kind}`;
}

function picture(target, record, size) {
  if (record.problem)
    return el(
      'span',
      { class: 'said problem' },
      el('b', { text: 'Cannot be shown' }),
      el('span', { text: record.problem }),
    );
  if (record.thumb) return image(record, record.thumb, size);
  if (record.kind === 'audio') return el('span', { class: 'said sound', text: '♪' });
  if (record.text)
    return el('span', {
      class: `said ${record.kind === 'text' ? 'prose' : 'mono'}`,
      dir: 'auto',
      text: record.text,
    });
  return el('span', {
    class: 'said faint',
    text: record.kind === 'none' ? 'no value to draw' : record.kind,
  });
}

/** The thumbnail with its shapes, as large as fits. */
function image(record, thumb, size) {
  const frame = el('span', { class: 'fit' });
  // Thumbnails come in two sizes only, so that a slider does not make the server draw each again.
  const wanted =
    Math.max(size.width, size.height) * Math.min(window.devicePixelRatio, 2) > 200 ? 400 : 160;
  const picture = el('img', { alt: spoken(record), decoding: 'async', draggable: 'false' });
  picture.addEventListener('error', () =>
    frame.replaceChildren(el('span', { class: 'said problem', text: 'The image cannot be drawn' })),
  );
  picture.addEventListener('load', () => picture.classList.add('here'));
  const { width, height } = record;
  fit(frame, width, height, size);
  if (Math.max(width, height) <= 64) picture.classList.add('pixels');
  picture.src = sized(thumb, wanted);
  frame.append(picture, drawShapes(record, Math.max(record.boxes.length * NAME, LEAST_NAMED) <= size.width));
  return frame;
}

/** The address of a thumbnail in another size. */
function sized(thumb, size) {
  const to = new URL(thumb, location.href);
  to.searchParams.set('size', String(size));
  return to.pathname + to.search;
}

function fit(frame, width, height, size) {
  const scale = Math.min(size.width / width, size.height / height);
  frame.style.width = `${Math.max(1, width * scale)}px`;
  frame.style.height = `${Math.max(1, height * scale)}px`;
}

function player(target, record) {
  const src = address(`api/t/${target}/media/${record.shard}/${record.record}`, {
    feature: record.feature,
  });
  return el('audio', {
    controls: true,
    preload: 'none',
    src,
    'aria-label': `Sound of record ${record.record}`,
  });
}

function caption(record) {
  const first = record.label ?? record.key ?? `Record ${record.record}`;
  const second =
    [record.caption, record.key].find((text) => text && text !== first) ??
    `${record.split} shard ${record.shard}`.trim();
  const found = record.findings.length
    ? el('span', { class: 'mark', title: record.findings.join(', '), text: record.findings[0] })
    : null;
  return el(
    'div',
    { class: 'caption' },
    el('div', { class: 'line' }, el('bdi', { class: 'first', title: first, text: first }), found),
    el('div', { class: 'line faint' }, el('bdi', { title: second, text: second })),
  );
}
