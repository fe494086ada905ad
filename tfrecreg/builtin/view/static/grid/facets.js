/** The filters at the side: values to tick, histograms to brush, versions to compare with. */

import { safeColor } from './shapes.js';
import { button, count, el, faint, later, refill, short, svg } from '../page/dom.js';
import { go, joined, parted, view } from '../page/state.js';

/** Values shown before "Show all". */
const FEW = 12;
/** Facets that are open at first: the most useful come first. */
const OPEN = 7;

/** What the user has opened, closed, and unfolded, by column. */
const opened = new Map();
const whole = new Set();
/** What is sought among the values, by column. */
const sought = new Map();
let seek;

/** Draw all facets in place of those before; the keyboard stays where it was. */
export function drawFacets(place, facets, versions, find) {
  if (find) seek = find;
  const top = place.parentElement?.scrollTop ?? 0;
  const [useful, others] = [
    facets.filter(tells),
    facets.filter((facet) => !tells(facet) && !isNameless(facet)),
  ];
  refill(
    place,
    ...useful.map((facet, at) => drawFacet(facet, at < OPEN)),
    ...since(versions),
    ...others.map((facet) => drawFacet(facet, false)),
  );
  if (place.parentElement) place.parentElement.scrollTop = top;
}

/**
 * Whether there is a choice to make: what all records have in common, and what each has for itself,
 * comes last.
 */
function tells(facet) {
  if (isPicked(facet.column)) return true;
  if (facet.kind === 'histogram') return short(facet.edges[0]) !== short(facet.edges.at(-1));
  const all = facet.values ?? [];
  if (facet.column === 'objects') return all.length > 0; // others have none of them
  return all.length > 1 && (all.length < FEW || all.some(({ of }) => of > 1));
}

/** Files without a split have one without a name. */
function isNameless(facet) {
  return facet.column === 'split' && (facet.values ?? []).every(({ text }) => text === '');
}

function drawFacet(facet, open) {
  const body = el(
    'div',
    {},
    facet.kind === 'histogram' ? histogram(facet) : search(facet),
    facet.values ? values(facet) : null,
  );
  const picked = isPicked(facet.column);
  const details = el(
    'details',
    { class: 'facet', open: opened.get(facet.column) ?? (open || picked) },
    el(
      'summary',
      { data: { keep: `summary ${facet.column}` } },
      el('bdi', { text: facet.title }),
      picked ? el('span', { class: 'dot', title: 'filtered' }) : null,
    ),
    body,
  );
  details.addEventListener('toggle', () => opened.set(facet.column, details.open));
  return details;
}

function isPicked(column) {
  if (column === 'split' && view.split) return true;
  if (column === 'findings' && view.findings) return true;
  return view.picks.some((pick) => parted(pick)[0] === column);
}

function values(facet) {
  const all = [...(facet.values ?? []), ...pickedBeyond(facet)];
  if (!all.length) return faint('no values');
  const most = Math.max(1, ...all.map((value) => value.of));
  const shown = whole.has(facet.column)
    ? all
    : all.filter((value, at) => at < FEW || isChosen(facet.column, value));
  const list = el('ul', { class: 'values' }, ...shown.map((value) => line(facet, value, most)));
  if (shown.length === all.length) return list;
  const text = `Show ${all.length < different(facet) ? count(all.length) : 'all'} of ${count(different(facet))}`;
  const unfold = () => {
    whole.add(facet.column);
    const every = values(facet);
    body.replaceWith(every);
    every.querySelector('input')?.focus();
  };
  const more = button(text, unfold, { class: 'link' });
  const body = el('div', {}, list, more);
  return body;
}

/** The values that are picked and that the answer does not list: their counts are not known. */
function pickedBeyond(facet) {
  const listed = new Set((facet.values ?? []).map(({ where }) => where));
  return view.picks
    .map(parted)
    .filter(([column, where]) => column === facet.column && !listed.has(where) && !rangeOf(where))
    .map(([, where]) => {
      const found = / = (?:'((?:[^']|'')*)'|(-?\d+))\)?$/.exec(where);
      const text = found?.[1]?.replaceAll("''", "'") ?? found?.[2] ?? where;
      return { text, count: -1, of: -1, where };
    });
}

function different(facet) {
  return Math.max(facet.different ?? 0, facet.values?.length ?? 0);
}

/** A field that finds values by a part of them, where there are many. */
function search(facet) {
  if (different(facet) <= 2 * FEW) return null;
  const field = el('input', {
    type: 'search',
    value: sought.get(facet.column) ?? '',
    placeholder: `find one of ${count(different(facet))}`,
    'aria-label': `Find in ${facet.title}`,
    data: { keep: `find ${facet.column}` },
  });
  const find = async () => {
    sought.set(facet.column, field.value);
    const found = field.value
      ? await seek(facet.column, field.value).catch(() => null)
      : facet;
    // An answer that comes late, or never, changes nothing.
    if (found && field.value === sought.get(facet.column))
      field.nextElementSibling?.replaceWith(values({ ...facet, ...found }));
  };
  field.addEventListener('input', later(find, 150));
  if (field.value) queueMicrotask(find);
  return field;
}

function line(facet, value, most) {
  const box = el('input', { type: 'checkbox', data: { keep: `${facet.column} ${value.text}` } });
  box.checked = isChosen(facet.column, value);
  box.addEventListener('change', () => go({ ...toggled(facet.column, value), at: 0 }));
  const bar = el(
    'span',
    { class: 'share', 'aria-hidden': 'true' },
    el('i', { class: 'all', style: { width: `${(100 * value.of) / most}%` } }),
    el('i', { class: 'some', style: { width: `${(100 * value.count) / most}%` } }),
  );
  return el(
    'li',
    {},
    el(
      'label',
      {},
      box,
      value.color
        ? el('span', { class: 'swatch', style: { background: safeColor(value.color) } })
        : null,
      el('bdi', {
        class: 'value',
        title: value.text,
        text: value.text === '' ? '(empty)' : value.text,
      }),
      value.of < 0
        ? null
        : el(
            'span',
            {
              class: 'number',
              title: `${count(value.count)} in the selection, ${count(value.of)} in all`,
            },
            count(value.count),
            value.count === value.of
              ? null
              : el('span', { class: 'faint', text: ` / ${count(value.of)}` }),
          ),
      value.of < 0 ? null : bar,
    ),
  );
}

function isChosen(column, value) {
  if (value.where) return view.picks.includes(joined(column, value.where));
  return view[column === 'findings' ? 'findings' : 'split'] === value.text;
}

/** The view after a click on a value; without a catalog there is no condition but the split. */
function toggled(column, value) {
  const chosen = isChosen(column, value);
  if (!value.where)
    return { [column === 'findings' ? 'findings' : 'split']: chosen ? '' : value.text };
  const pick = joined(column, value.where);
  return { picks: chosen ? view.picks.filter((each) => each !== pick) : [...view.picks, pick] };
}

/** The one facet of data without a catalog. */
export function splitsOnly(about) {
  const values = about.splits
    .filter(({ name }) => name)
    .map(({ name, records }) => ({
      text: name,
      count: records,
      of: records,
      where: '',
    }));
  return [{ column: 'split', title: 'Split', kind: 'values', values }];
}

function histogram(facet) {
  const column = facet.column_sql;
  const others = view.picks.filter((pick) => parted(pick)[0] !== facet.column);
  const chosen = view.picks.find(
    (pick) => parted(pick)[0] === facet.column && rangeOf(parted(pick)[1]),
  );
  return drawHistogram(facet, chosen ? rangeOf(parted(chosen)[1]) : null, (range, below) => {
    const picks = range
      ? [
          joined(
            facet.column,
            `${column} >= ${range[0]} AND ${column} ${below ? '<' : '<='} ${range[1]}`,
          ),
        ]
      : [];
    go({ picks: [...others, ...picks], at: 0 });
  });
}

/** The range that a condition of ours says. */
function rangeOf(sql) {
  const found = / >= (\S+) AND .* <=? (\S+)$/.exec(sql);
  const range = found ? [Number(found[1]), Number(found[2])] : [];
  return range.length && range.every(Number.isFinite)
    ? range
    : null;
}

function since(versions) {
  if (!versions.length) return [];
  const choice = el(
    'select',
    { 'aria-label': 'Changed since', data: { keep: 'since' } },
    el('option', { value: '', text: 'any time' }),
    ...versions.map((version) =>
      el('option', { value: version, text: version, selected: version === view.since }),
    ),
  );
  choice.addEventListener('change', () => go({ since: choice.value, at: 0 }));
  return [
    el('details', { class: 'facet', open: true }, el('summary', { text: 'Changed since' }), choice),
  ];
}

const HEIGHT = 48;

function drawHistogram(facet, range, choose) {
  const { edges } = facet;
  const chart = bars(facet);
  const brush = svg('rect', { class: 'brush', y: 0, height: HEIGHT });
  chart.append(brush);
  mark(brush, edges, range);
  const low = field(`${facet.title}: from`, range?.[0], edges[0]);
  const high = field(`${facet.title}: to`, range?.[1], edges[edges.length - 1]);
  const read = () => choose(typed(low, high, edges), false);
  for (const input of [low, high]) input.addEventListener('change', read);
  brushed(
    chart,
    edges,
    (from, to) => {
      mark(brush, edges, [from, to]);
      low.value = String(from);
      high.value = String(to);
      // A value on the edge of two bins is in the right one, but for the last.
    },
    (from, to) => choose([from, to], to !== edges[edges.length - 1]),
  );
  return el(
    'div',
    { class: 'histogram' },
    chart,
    el('div', { class: 'ends' }, low, el('span', { text: 'to' }), high),
  );
}

function bars({ title, edges, counts, of: all }) {
  const most = Math.max(1, ...all, ...counts);
  const each = 100 / (edges.length - 1);
  // The root keeps a bar of one record visible beside one of a million.
  const height = (number) => (number ? Math.max(1.5, HEIGHT * Math.sqrt(number / most)) : 0);
  const chart = svg('svg', {
    class: 'bars',
    viewBox: `0 0 100 ${HEIGHT}`,
    preserveAspectRatio: 'none',
    role: 'img',
    'aria-label': `${title}: from ${short(edges[0])} to ${short(edges[edges.length - 1])}`,
  });
  for (let bin = 0; bin < edges.length - 1; bin += 1) {
    const place = { x: bin * each, width: each * 0.9 };
    const said = `${short(edges[bin])} to ${short(edges[bin + 1])}: ${count(counts[bin])} of ${count(all[bin])}`;
    const column = svg(
      'g',
      {},
      svg('title', { text: said }),
      svg('rect', { x: bin * each, width: each, y: 0, height: HEIGHT, class: 'room' }),
    );
    for (const kind of ['all', 'some']) {
      const tall = height((kind === 'all' ? all : counts)[bin]);
      column.append(svg('rect', { ...place, y: HEIGHT - tall, height: tall, class: kind }));
    }
    chart.append(column);
  }
  return chart;
}

function field(label, value, placeholder) {
  return el('input', {
    type: 'number',
    step: 'any',
    'aria-label': label,
    value: value ?? null,
    placeholder: short(placeholder).replaceAll(',', ''),
  });
}

function typed(low, high, edges) {
  if (low.value === '' && high.value === '') return null;
  const from = low.value === '' ? edges[0] : Number(low.value);
  const to = high.value === '' ? edges[edges.length - 1] : Number(high.value);
  return from <= to ? [from, to] : [to, from];
}

function mark(brush, edges, range) {
  const from = range ? share(edges, range[0]) : 0;
  const to = range ? share(edges, range[1]) : 0;
  brush.setAttribute('x', String(100 * from));
  brush.setAttribute('width', String(range ? Math.max(0.5, 100 * (to - from)) : 0));
}

/** Where a value lies between the ends, as a fraction: bins are equally wide. */
function share(edges, value) {
  const bins = edges.length - 1;
  if (value <= edges[0]) return 0;
  if (value >= edges[bins]) return 1;
  const bin = Math.max(0, edges.findIndex((edge) => edge > value) - 1);
  return (bin + (value - edges[bin]) / (edges[bin + 1] - edges[bin] || 1)) / bins;
}

/** Dragging chooses whole bins. */
function brushed(chart, edges, show, done) {
  const bins = edges.length - 1;
  let start = -1;
  let range = [0, 0];
  const bin = (event) => {
    const { left, width } = chart.getBoundingClientRect();
    return Math.min(bins - 1, Math.max(0, Math.floor(((event.clientX - left) / width) * bins)));
  };
  const move = (event) => {
    if (start < 0) return;
    range = [edges[Math.min(start, bin(event))], edges[Math.max(start, bin(event)) + 1]];
    show(...range);
  };
  chart.addEventListener('pointerdown', (event) => {
    event.preventDefault();
    start = bin(event);
    chart.setPointerCapture(event.pointerId);
    move(event);
  });
  chart.addEventListener('pointermove', move);
  chart.addEventListener('pointerup', () => {
    if (start >= 0) done(...range);
    start = -1;
  });
  chart.addEventListener('pointercancel', () => {
    start = -1;
  });
}
