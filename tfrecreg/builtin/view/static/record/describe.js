/** What is known about a record, as sections beside its picture. */

import { ask, words } from '../page/api.js';
import { bytes, copy, count, counted, el, message, svg } from '../page/dom.js';

/** @typedef {import('../page/api.js').Whole} Whole */
/** Characters of a value that are shown at first. */
const LONG = 400;
/** Kinds of which a note says more than the values do. */
const OPAQUE = new Set(['image', 'audio', 'bytes', 'pixels']);

/**
 * @param {number} target @param {Whole} whole @param {import('../page/api.js').About | null} about
 * @returns {Node[]}
 */
export function describe(target, whole, about) {
  const inFile = about?.shards[whole.shard]?.state;
  return [
    inFile && inFile !== 'ok'
      ? el('p', {
          class: 'alert',
          text: inFile === 'gone' ? 'The shard is gone.' : 'The shard is damaged.',
        })
      : null,
    ...findings(whole),
    ...place(whole),
    ...features(whole),
    ...ledger(whole),
    tensors(target, whole),
  ].filter((each) => each !== null);
}

/** @param {string} title @param {...Node} body */
function section(title, ...body) {
  return [el('h3', { text: title }), ...body];
}

/** @param {Whole} whole */
function findings(whole) {
  if (!whole.findings.length) return [];
  return section(
    'Findings',
    el(
      'ul',
      { class: 'found' },
      ...whole.findings.map(({ code, severity, message: text, hint }) =>
        el(
          'li',
          { class: `finding is-${severity}` },
          el('b', { class: severity, text: code }),
          ' ',
          el('span', {}, ...message(text)),
          hint ? el('p', { class: 'hint' }, ...message(hint)) : null,
        ),
      ),
    ),
  );
}

/** @param {Whole} whole */
function place(whole) {
  /** @type {[string, string | null, boolean][]} */
  const facts = [
    ['Label', whole.label, false],
    ['Key', whole.key, true],
    ['Split', whole.split, false],
    ['Shard', whole.shard_name, true],
    ['Number', count(whole.record), false],
    ['Offset', count(whole.offset), false],
    ['Size', whole.length === null ? null : bytes(whole.length), false],
    ['Image', whole.width && whole.height ? `${whole.width} × ${whole.height}` : null, false],
    ['Digest', whole.digest, true],
    ['Raw file', whole.raw, true],
  ];
  return section(
    'Where it is',
    el(
      'dl',
      {},
      ...facts.flatMap(([name, value, copied]) =>
        value === null || value === ''
          ? []
          : [
              el('dt', { text: name }),
              el(
                'dd',
                {},
                el('bdi', { class: copied ? 'mono' : '', text: value }),
                copied ? copier(name, value) : null,
              ),
            ],
      ),
    ),
  );
}

/** @param {string} name @param {string} value */
function copier(name, value) {
  return el(
    'button',
    {
      type: 'button',
      class: 'copy',
      title: `Copy: ${name}`,
      'aria-label': `Copy: ${name}`,
      on: { click: () => void copy(value) },
    },
    svg(
      'svg',
      { viewBox: '0 0 12 12', width: 12, height: 12, 'aria-hidden': 'true' },
      svg('path', { d: 'M4 4V1.5h6.5V8H8M1.5 4H8v6.5H1.5z' }),
    ),
  );
}

/** @param {Whole} whole */
function features(whole) {
  if (!whole.features.length) return whole.hex ? section('The first bytes', dump(whole.hex)) : [];
  return section(
    `Features (${whole.features.length})`,
    el('div', { class: 'features' }, ...whole.features.map(feature)),
  );
}

/** @param {import('../page/api.js').Feature} each */
function feature(each) {
  return el(
    'div',
    { class: 'feature' },
    el(
      'div',
      { class: 'feature-head' },
      el('bdi', { class: 'mono strong', text: each.name }),
      el('span', { class: 'faint', text: about(each) }),
    ),
    ...valueOf(each),
  );
}

/** @param {import('../page/api.js').Feature} each */
function about(each) {
  const parts = [each.type, counted(each.count, each.unit)];
  if (each.note && OPAQUE.has(each.kind)) parts.push(each.note);
  return parts.join(' · ');
}

/** @param {import('../page/api.js').Feature} each @returns {Node[]} */
function valueOf(each) {
  if (each.hex && (each.kind === 'bytes' || each.kind === 'image' || each.kind === 'audio'))
    return [folded('Bytes', dump(each.hex))];
  if (each.text) return [long(each.text, each.kind === 'text' ? 'prose' : 'mono')];
  const values = each.values
    .map((value) =>
      typeof value === 'number' ? String(Number(value.toPrecision(8))) : String(value),
    )
    .join(', ');
  const rest = each.count - each.values.length;
  if (values) return [long(rest > 0 ? `${values}, … ${count(rest)} more` : values, 'mono')];
  return each.hex
    ? [folded('Bytes', dump(each.hex))]
    : [el('p', { class: 'faint', text: 'empty' })];
}

/** @param {string} text @param {string} style */
function long(text, style) {
  const place = el('p', { class: `value ${style}`, dir: 'auto', text: text.slice(0, LONG) });
  if (text.length <= LONG) return place;
  const more = el('button', {
    type: 'button',
    class: 'link',
    text: 'Show all',
    on: {
      click: () => {
        place.textContent = text;
      },
    },
  });
  place.append('… ', more);
  return place;
}

/** @param {string} title @param {Node} body */
function folded(title, body) {
  return el('details', {}, el('summary', { text: title }), body);
}

/** Sixteen bytes a line, with their characters. @param {string} hex */
function dump(hex) {
  const pairs = hex.replaceAll(/\s/g, '').match(/../g) ?? [];
  const lines = [];
  for (let at = 0; at < pairs.length; at += 16) {
    const row = pairs.slice(at, at + 16);
    const letters = row
      .map((pair) => Number.parseInt(pair, 16))
      .map((code) => (code >= 32 && code < 127 ? String.fromCharCode(code) : '·'))
      .join('');
    lines.push(`${at.toString(16).padStart(4, '0')}  ${row.join(' ').padEnd(47)}  ${letters}`);
  }
  return el('pre', { class: 'hex', tabindex: 0, text: lines.join('\n') });
}

/** @param {Whole} whole */
function ledger(whole) {
  if (!whole.ledger) return [];
  return section(
    'Row of the ledger',
    el(
      'dl',
      {},
      ...Object.entries(whole.ledger).flatMap(([name, value]) => [
        el('dt', { text: name }),
        el(
          'dd',
          {},
          el('bdi', {
            text:
              typeof value === 'object' && value !== null ? JSON.stringify(value) : String(value),
          }),
        ),
      ]),
    ),
  );
}

/**
 * "As TensorFlow sees it", which takes seconds, so on request.
 * @param {number} target
 * @param {Whole} whole
 */
function tensors(target, whole) {
  const place = el('div', { 'aria-live': 'polite' });
  const button = el('button', { type: 'button', text: 'As TensorFlow sees it' });
  button.addEventListener('click', async () => {
    button.disabled = true;
    place.replaceChildren(el('p', { class: 'faint', text: 'TensorFlow is parsing the record…' }));
    try {
      const { tensors: all } = await ask(`api/t/${target}/tensors/${whole.shard}/${whole.record}`);
      place.replaceChildren(tensorTable(all));
    } catch (error) {
      place.replaceChildren(el('p', { class: 'alert' }, ...message(words(error))));
    }
    button.disabled = false;
  });
  return el('div', { class: 'tensors' }, button, place);
}

/** @param {{name: string, dtype: string, shape: any, values: string}[]} all */
function tensorTable(all) {
  return el(
    'div',
    { class: 'features' },
    ...all.map(({ name, dtype, shape, values }) =>
      el(
        'div',
        { class: 'feature' },
        el(
          'div',
          { class: 'feature-head' },
          el('bdi', { class: 'mono strong', text: name }),
          el('span', {
            class: 'faint',
            text: `${dtype} · ${Array.isArray(shape) ? `(${shape.join(', ')})` : shape}`,
          }),
        ),
        long(values, 'mono'),
      ),
    ),
  );
}
