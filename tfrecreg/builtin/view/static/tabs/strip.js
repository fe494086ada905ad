/** A shard as a strip of its bytes: the damage in place, and below it what salvage would keep. */

import { bytes, count, counted, el, message, svg } from '../page/dom.js';

const WIDTH = 1000;
/** A damaged byte of a gigabyte is drawn this wide, to be seen. */
const LEAST = 4;
const DOUBTED = 'records with valid checksums that salvage doubts';

/** @param {import('../page/api.js').Strip} strip */
export function drawStrip(strip) {
  const size = Math.max(1, strip.bytes);
  const kept = strip.kept.reduce((sum, { from, to }) => sum + to - from, 0);
  const said = `${counted(strip.damage.length, 'damaged place')} in ${bytes(strip.bytes)}; salvage keeps ${bytes(kept)} (${Math.floor((100 * kept) / size)} %)`;
  const drawing = svg(
    'svg',
    {
      class: 'strip',
      viewBox: `0 0 ${WIDTH} 30`,
      preserveAspectRatio: 'none',
      role: 'img',
      'aria-label': said,
    },
    svg('rect', { class: 'whole', x: 0, y: 0, width: WIDTH, height: 18 }),
    ...strip.damage.map((damage) =>
      part(damage, size, 'damage', 0, 18, `${damage.code}: ${damage.text}`),
    ),
    ...strip.doubted.map((range) => part(range, size, 'doubted', 0, 18, DOUBTED)),
    ...strip.kept.map((range) => part(range, size, 'kept', 22, 8, 'salvage keeps this')),
  );
  return el(
    'figure',
    { class: 'strip-figure' },
    el(
      'figcaption',
      {},
      el('bdi', { class: 'mono strong', text: strip.name }),
      el('span', { class: 'faint', text: said }),
    ),
    drawing,
    el(
      'div',
      { class: 'key faint' },
      el('span', {}, el('i', { class: 'swatch damage' }), 'damaged'),
      strip.doubtful ? el('span', {}, el('i', { class: 'swatch doubted' }), 'doubted') : null,
      el('span', {}, el('i', { class: 'swatch kept' }), 'what salvage keeps'),
      el('span', { class: 'ends' }, `0 to ${count(strip.bytes)}`),
    ),
    strip.doubtful
      ? el(
          'p',
          {},
          ...message(
            `${counted(strip.doubtful, 'record')} with valid checksums may be of the payload of a lost one: \`tfrecreg salvage\` writes them to a file beside.`,
          ),
        )
      : null,
    el(
      'ul',
      { class: 'damages' },
      ...strip.damage
        .slice(0, 20)
        .map((damage) =>
          el(
            'li',
            {},
            el('b', { class: 'error', text: damage.code }),
            ' ',
            el('span', { class: 'mono', text: `${count(damage.from)} to ${count(damage.to)}` }),
            ' ',
            el('span', { text: damage.text }),
          ),
        ),
    ),
  );
}

/**
 * @param {{from: number, to: number}} range @param {number} size @param {string} kind
 * @param {number} y @param {number} height @param {string} said
 */
function part({ from, to }, size, kind, y, height, said) {
  const width = Math.max(LEAST, (WIDTH * (to - from)) / size);
  const x = Math.min(WIDTH - width, (WIDTH * from) / size);
  return svg(
    'rect',
    { class: kind, x, y, width, height },
    svg('title', { text: `${said}, bytes ${count(from)} to ${count(to)}` }),
  );
}
