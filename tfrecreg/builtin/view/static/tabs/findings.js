/** What checks have found, as cards with the records they are about. */

import { words } from '../page/api.js';
import { count, counted, el, message } from '../page/dom.js';
import { fetchRecord } from '../record/record.js';
import { drawStrip } from './strip.js';
import { CAPTION, drawTile } from '../grid/tile.js';

/** @typedef {import('../page/api.js').Card} Card */
/** @typedef {import('../page/api.js').Place} Place */
const SIZE = { width: 140, height: 119 };
/** Records and pairs that a card shows at first. */
const FEW = 6;

/**
 * @param {HTMLElement} place
 * @param {number} target
 * @param {import('../page/api.js').Findings} found
 * @param {{open: (place: Place) => void, filter: (code: string) => void, filters: boolean}} calls
 */
export function drawFindings(place, target, found, calls) {
  const strips = found.strips.map(drawStrip);
  place.replaceChildren(
    el(
      'div',
      { class: 'column' },
      el('h2', { text: heading(found) }),
      ...state(found),
      ...(strips.length
        ? [
            el('h3', {
              text:
                strips.length === 1
                  ? 'The damaged shard'
                  : `${count(strips.length)} damaged shards`,
            }),
            ...strips,
          ]
        : []),
      ...found.cards.map((card) => drawCard(target, card, calls)),
    ),
  );
}

/** @param {import('../page/api.js').Findings} found */
function heading(found) {
  if (found.cards.length) return counted(found.cards.length, 'finding');
  return found.state === 'checking' ? 'Checking…' : 'No findings';
}

/** @param {import('../page/api.js').Findings} found */
function state(found) {
  if (found.state === 'checking') {
    const progress = found.of
      ? `Checked ${count(found.done ?? 0)} of ${count(found.of)} records.`
      : 'The check is running.';
    return [
      el('p', { class: 'faint', role: 'status', text: progress }),
      found.of
        ? el('progress', {
            max: found.of,
            value: found.done ?? 0,
            'aria-label': 'Progress of the check',
          })
        : null,
    ].filter((each) => each !== null);
  }
  if (found.cards.length) return [];
  const text =
    found.state === 'none'
      ? (found.why ?? 'Nothing has checked these records yet: run tfrecreg check.')
      : 'The last check has found nothing in these records.';
  return [el('p', { class: 'faint' }, ...message(text))];
}

/** @param {number} target @param {Card} card @param {Parameters<typeof drawFindings>[3]} calls */
function drawCard(target, card, calls) {
  const filter =
    calls.filters && card.records.length
      ? el('button', {
          type: 'button',
          class: 'link',
          text: 'Show these records',
          on: { click: () => calls.filter(card.code) },
        })
      : null;
  return el(
    'article',
    { class: `card is-${card.severity}` },
    el(
      'header',
      {},
      el('b', { class: card.severity, text: card.code }),
      el('span', {
        class: 'faint',
        text: `${card.severity} · ${counted(card.count, 'place')}${card.rule ? ` · ${card.rule}` : ''}`,
      }),
      filter,
    ),
    el('p', {}, ...message(card.message)),
    card.hint ? el('p', { class: 'hint' }, ...message(card.hint)) : null,
    more(card.pairs, 'pairs', (pair) =>
      el('div', { class: 'pair' }, ...pair.map((place) => lazyTile(target, place, calls.open))),
    ),
    card.pairs.length
      ? null
      : more(card.records, 'tiles', (place) => lazyTile(target, place, calls.open)),
    card.pairs.length
      ? null
      : more(card.places, 'damages', (text) => el('p', {}, ...message(text))),
    card.named && card.count > card.named
      ? el('p', {
          class: 'faint',
          text: `${count(card.named)} of ${counted(card.count, 'place')} ${card.named === 1 ? 'is' : 'are'} shown.`,
        })
      : null,
  );
}

/**
 * The first few, and a button for the others.
 * @template T
 * @param {T[]} all @param {string} style @param {(each: T) => Node} draw
 */
function more(all, style, draw) {
  if (!all.length) return null;
  const place = el('div', { class: style }, ...all.slice(0, FEW).map(draw));
  if (all.length <= FEW) return place;
  const button = el('button', {
    type: 'button',
    class: 'link',
    text: `Show ${count(all.length - FEW)} more`,
    on: {
      click: () => {
        place.append(...all.slice(FEW).map(draw));
        button.remove();
      },
    },
  });
  return el('div', {}, place, button);
}

/**
 * A tile that fetches its record when it comes into sight.
 * @param {number} target @param {Place} place @param {(place: Place) => void} open
 */
export function lazyTile(target, place, open) {
  const holder = el(
    'div',
    { class: 'holder', style: { width: `${SIZE.width}px`, height: `${SIZE.height + CAPTION}px` } },
    drawTile(target, undefined, SIZE, open),
  );
  const watch = new IntersectionObserver((entries) => {
    if (!entries.some(({ isIntersecting }) => isIntersecting)) return;
    watch.disconnect();
    fetchRecord(target, place).then(
      (record) => holder.replaceChildren(single(drawTile(target, record, SIZE, open))),
      (error) => holder.replaceChildren(el('p', { class: 'said problem', text: words(error) })),
    );
  });
  watch.observe(holder);
  return holder;
}

/** A tile outside of the grid is a stop of the Tab key. @param {HTMLElement} tile */
export function single(tile) {
  tile.querySelector('.picture')?.setAttribute('tabindex', '0');
  return tile;
}
