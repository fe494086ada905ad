/** What checks have found, as cards with records. */

import { CAPTION, drawTile } from '../grid/tile.js';
import { words } from '../page/api.js';
import { button, count, counted, el, message } from '../page/dom.js';
import { fetchRecord } from '../record/record.js';

const SIZE = { width: 140, height: 119 };
/** Records that a card shows at first. */
const FEW = 6;

export function drawFindings(place, target, found, calls) {
  place.replaceChildren(
    el(
      'div',
      { class: 'column' },
      el('h2', { text: heading(found) }),
      ...state(found),
      ...found.cards.map((card) => drawCard(target, card, calls)),
    ),
  );
}

function heading(found) {
  if (found.cards.length) return counted(found.cards.length, 'finding');
  return found.state === 'checking' ? 'Checking…' : 'No findings';
}

function state(found) {
  if (found.state === 'checking') {
    const progress = found.of
      ? `Checked ${count(found.done)} of ${count(found.of)} records.`
      : 'The check is running.';
    return [
      el('p', { class: 'faint', role: 'status', text: progress }),
      found.of
        ? el('progress', {
            max: found.of,
            value: found.done,
            'aria-label': 'Progress of the check',
          })
        : null,
    ].filter((each) => each !== null);
  }
  if (found.cards.length) return [];
  const text =
    found.state === 'none'
      ? found.why
      : 'The last check has found nothing in these records.';
  return [el('p', { class: 'faint' }, ...message(text))];
}

function drawCard(target, card, calls) {
  const filter =
    calls.filters && card.records.length
      ? button('Show these records', () => calls.filter(card.code), { class: 'link' })
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
    more(card.records, 'tiles', (place) => lazyTile(target, place, calls.open)),
    more(card.places, 'damages', (text) => el('p', {}, ...message(text))),
    card.named && card.count > card.named
      ? el('p', {
          class: 'faint',
          text: `${count(card.named)} of ${counted(card.count, 'place')} ${card.named === 1 ? 'is' : 'are'} shown.`,
        })
      : null,
  );
}

/** The first few, and a button for the others. */
function more(all, style, draw) {
  if (!all.length) return null;
  const place = el('div', { class: style }, ...all.slice(0, FEW).map(draw));
  if (all.length <= FEW) return place;
  const others = button(
    `Show ${count(all.length - FEW)} more`,
    () => {
      place.append(...all.slice(FEW).map(draw));
      others.remove();
    },
    { class: 'link' },
  );
  return el('div', {}, place, others);
}

/** A tile that fetches its record when it comes into sight. */
function lazyTile(target, place, open) {
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

/** A tile outside of the grid is a stop of the Tab key. */
export function single(tile) {
  tile.querySelector('.picture')?.setAttribute('tabindex', '0');
  return tile;
}
