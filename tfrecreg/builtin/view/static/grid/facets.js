/** The filters at the side: values to tick, histograms to brush, versions to compare with. */

import { count, el, later, refill, short } from '../page/dom.js';
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
/** What is sought among the values, by column. @type {Map<string, string>} */
const sought = new Map();
/** @type {(column: string, find: string) => Promise<Facet>} */
let seek;

/**
 * Draw all facets in place of those before; the keyboard stays where it was.
 * @param {HTMLElement} place
 * @param {Facet[]} facets
 * @param {string[]} versions of which records may have changed since
 * @param {typeof seek} [find] the facet of a column, with the values that contain a text
 */
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

/** @param {string} column */
function isPicked(column) {
  if (column === 'split' && view.split) return true;
  if (column === 'findings' && view.findings) return true;
  return view.picks.some((pick) => parted(pick)[0] === column);
}

/** @param {Facet} facet */
function values(facet) {
  const all = [...(facet.values ?? []), ...pickedBeyond(facet)];
  if (!all.length) return el('p', { class: 'faint', text: 'no values' });
  const most = Math.max(1, ...all.map((value) => value.of));
  const shown = whole.has(facet.column)
    ? all
    : all.filter((value, at) => at < FEW || isChosen(facet.column, value));
  const list = el('ul', { class: 'values' }, ...shown.map((value) => line(facet, value, most)));
  if (shown.length === all.length) return list;
  const text = `Show ${all.length < different(facet) ? count(all.length) : 'all'} of ${count(different(facet))}`;
  const more = el('button', { type: 'button', class: 'link', text });
  more.addEventListener('click', () => {
    whole.add(facet.column);
    const every = values(facet);
    body.replaceWith(every);
    /** @type {HTMLElement | null} */ (every.querySelector('input'))?.focus();
  });
  const body = el('div', {}, list, more);
  return body;
}

/**
 * The values that are picked and that the answer does not list: their counts are not known.
 * @param {Facet} facet
 * @returns {NonNullable<Facet['values']>}
 */
function pickedBeyond(facet) {
  const listed = new Set((facet.values ?? []).map(({ where }) => where));
  return view.picks
    .map(parted)
    .filter(([column, where]) => column === facet.column && !listed.has(where) && !rangeOf(where))
    .map(([, where]) => {
      const found = / = (?:'((?:[^']|'')*)'|(-?\d+))\)?$/.exec(where);
      const text = found?.[1]?.replaceAll("''", "'") ?? found?.[2] ?? where;
      return { value: text, text, count: -1, of: -1, where };
    });
}

/** @param {Facet} facet */
function different(facet) {
  return Math.max(facet.different ?? 0, facet.values?.length ?? 0);
}

/** A field that finds values by a part of them, where there are many. @param {Facet} facet */
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
