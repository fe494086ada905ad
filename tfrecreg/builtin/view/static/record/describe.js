/** What is known about a record, as sections beside its picture. */

import {
  alarm,
  button,
  bytes,
  copy,
  count,
  counted,
  el,
  faint,
  message,
  svg,
} from '../page/dom.js';

/** Characters of a value that are shown at first. */
const LONG = 400;
/** Kinds of which a note says more than the values do. */
const OPAQUE = new Set(['image', 'audio', 'bytes', 'pixels']);

export function describe(whole, about) {
  const inFile = about?.shards[whole.shard]?.state;
  return [
    inFile && inFile !== 'ok'
      ? alarm(inFile === 'gone' ? 'The shard is gone.' : 'The shard is damaged.')
      : null,
    ...findings(whole),
    ...place(whole),
    ...features(whole),
    ...ledger(whole),
  ].filter((each) => each !== null);
}

function section(title, ...body) {
  return [el('h3', { text: title }), ...body];
}

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

function place(whole) {
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
  ];
  return section('Where it is', list(facts));
}

/** Names and values, some of them to copy; what is not known is left out. */
function list(facts) {
  const known = facts.filter(([, value]) => value !== null && value !== '');
  return el(
    'dl',
    {},
    ...known.flatMap(([name, value, copied]) => [
      el('dt', { text: name }),
      el(
        'dd',
        {},
        el('bdi', { class: copied ? 'mono' : '', text: value }),
        copied ? copier(name, value) : null,
      ),
    ]),
  );
}

function copier(name, value) {
  return button(
    null,
    () => void copy(value),
    { class: 'copy', title: `Copy: ${name}`, 'aria-label': `Copy: ${name}` },
    svg(
      'svg',
      { viewBox: '0 0 12 12', width: 12, height: 12, 'aria-hidden': 'true' },
      svg('path', { d: 'M4 4V1.5h6.5V8H8M1.5 4H8v6.5H1.5z' }),
    ),
  );
}

function features(whole) {
  if (!whole.features.length) return whole.hex ? section('The first bytes', dump(whole.hex)) : [];
  return section(
    `Features (${whole.features.length})`,
    el('div', { class: 'features' }, ...whole.features.map(feature)),
  );
}

function feature(each) {
  return entry(each.name, about(each), ...valueOf(each));
}

function entry(name, told, ...body) {
  return el(
    'div',
    { class: 'feature' },
    el(
      'div',
      { class: 'feature-head' },
      el('bdi', { class: 'mono strong', text: name }),
      el('span', { class: 'faint', text: told }),
    ),
    ...body,
  );
}

function about(each) {
  const parts = [each.type, counted(each.count, each.unit)];
  if (each.note && OPAQUE.has(each.kind)) parts.push(each.note);
  return parts.join(' · ');
}

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
    : [faint('empty')];
}

function long(text, style) {
  const place = el('p', { class: `value ${style}`, dir: 'auto', text: text.slice(0, LONG) });
  if (text.length <= LONG) return place;
  const more = button('Show all', () => (place.textContent = text), { class: 'link' });
  place.append('… ', more);
  return place;
}

function folded(title, body) {
  return el('details', {}, el('summary', { text: title }), body);
}

/** Sixteen bytes a line, with their characters. */
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

function ledger(whole) {
  const rows = Object.entries(whole.ledger ?? {}).map(([name, value]) => [name, String(value)]);
  return rows.length ? section('Row of the ledger', list(rows)) : [];
}
