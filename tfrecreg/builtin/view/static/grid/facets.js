/** The filters at the side: values to tick, histograms to brush, versions to compare with. */

import { count, el, refill, short } from '../page/dom.js';
import { drawHistogram } from './histogram.js';
import { safeColor } from './shapes.js';
import { go, joined, parted, view } from '../page/state.js';

/** @typedef {import('../page/api.js').Facet} Facet */
/** Values shown before "Show all". */
const FEW = 12;
/** Facets that are open at first: the most useful come first. */
const OPEN = 7;

/** What the user has opened, closed, and unfolded, by column. @type {Map<string, boolean>} */
const opened = new Map();
/** @type {Set<string>} */
const whole = new Set();

/**
 * Draw all facets in place of those before; the keyboard stays where it was.
 * @param {HTMLElement} place
 * @param {Facet[]} facets
 * @param {string[]} versions of which records may have changed since
 */
export function drawFacets(place, facets, versions) {
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
 * @param {Facet} facet
 */
function tells(facet) {
  if (isPicked(facet.column)) return true;
  const edges = facet.edges ?? [];
  if (facet.kind === 'histogram')
    return edges.length > 1 && short(edges[0]) !== short(edges[edges.length - 1]);
  const all = facet.values ?? [];
  if (facet.column === 'objects') return all.length > 0; // others have none of them
  return all.length > 1 && (all.length < FEW || all.some(({ of }) => of > 1));
}

/** Files without a split have one without a name. @param {Facet} facet */
function isNameless(facet) {
  return facet.column === 'split' && (facet.values ?? []).every(({ text }) => text === '');
}

/** @param {Facet} facet @param {boolean} open */
function drawFacet(facet, open) {
  const body = facet.kind === 'histogram' ? histogram(facet) : values(facet);
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

/** @param {string} column */
function isPicked(column) {
  if (column === 'split' && view.split) return true;
  if (column === 'findings' && view.findings) return true;
  return view.picks.some((pick) => parted(pick)[0] === column);
}

/** @param {Facet} facet */
function values(facet) {
  const all = facet.values ?? [];
  if (!all.length) return el('p', { class: 'faint', text: 'no values' });
  const most = Math.max(1, ...all.map((value) => value.of));
  const shown = whole.has(facet.column)
    ? all
    : all.filter((value, at) => at < FEW || isChosen(facet.column, value));
  const list = el('ul', { class: 'values' }, ...shown.map((value) => line(facet, value, most)));
  if (shown.length === all.length) return list;
  const more = el('button', { type: 'button', class: 'link', text: `Show all ${all.length}` });
  more.addEventListener('click', () => {
    whole.add(facet.column);
    const every = values(facet);
    body.replaceWith(every);
    /** @type {HTMLElement | null} */ (every.querySelector('input'))?.focus();
  });
  const body = el('div', {}, list, more);
  return body;
}

/** @param {Facet} facet @param {NonNullable<Facet['values']>[0]} value @param {number} most */
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
      el(
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
      bar,
    ),
  );
}

/** @param {string} column @param {NonNullable<Facet['values']>[0]} value */
function isChosen(column, value) {
  if (value.where) return view.picks.includes(joined(column, value.where));
  return view[column === 'findings' ? 'findings' : 'split'] === value.text;
}

/**
 * The view after a click on a value; without a catalog there is no condition but the split.
 * @param {string} column @param {NonNullable<Facet['values']>[0]} value
 * @returns {Partial<import('../page/state.js').View>}
 */
function toggled(column, value) {
  const chosen = isChosen(column, value);
  if (!value.where)
    return { [column === 'findings' ? 'findings' : 'split']: chosen ? '' : value.text };
  const pick = joined(column, value.where);
  return { picks: chosen ? view.picks.filter((each) => each !== pick) : [...view.picks, pick] };
}

/**
 * The one facet of data without a catalog.
 * @param {import('../page/api.js').About} about
 * @returns {Facet[]}
 */
export function splitsOnly(about) {
  const values = about.splits
    .filter(({ name }) => name)
    .map(({ name, records }) => ({
      value: name,
      text: name,
      count: records,
      of: records,
      where: '',
    }));
  return [{ column: 'split', title: 'Split', kind: 'values', values }];
}

/** @param {Facet} facet */
function histogram(facet) {
  const column = facet.column_sql ?? '';
  const others = view.picks.filter((pick) => parted(pick)[0] !== facet.column);
  const chosen = view.picks.find((pick) => parted(pick)[0] === facet.column);
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

/**
 * The range that a condition of ours says.
 * @param {string} sql
 * @returns {[number, number] | null}
 */
export function rangeOf(sql) {
  const found = / >= (\S+) AND .* <=? (\S+)$/.exec(sql);
  const range = found ? [Number(found[1]), Number(found[2])] : [];
  return range.length && range.every(Number.isFinite)
    ? /** @type {[number, number]} */ (range)
    : null;
}

/** @param {string[]} versions */
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
