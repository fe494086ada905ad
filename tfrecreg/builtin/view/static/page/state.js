/**
 * What is shown, as the address says it: kept in one object, written to the address, read from it
 * when the user goes back, and told to the parts of the page.
 */

const EMPTY = {
  t: -1,
  tab: 'grid',
  split: '',
  where: '',
  picks: [],
  sort: '',
  desc: false,
  findings: '',
  since: '',
  at: 0,
  open: '',
  position: -1,
  compare: '',
  kind: '',
};

export function parse(search) {
  const query = new URLSearchParams(search);
  const text = (name) => query.get(name) ?? EMPTY[name];
  const number = (name) => {
    const value = Number.parseInt(query.get(name) ?? '', 10);
    return Number.isSafeInteger(value) && value >= 0 ? value : EMPTY[name];
  };
  return {
    t: number('t'),
    tab: text('tab'),
    split: text('split'),
    where: text('where'),
    picks: query.getAll('pick'),
    sort: text('sort'),
    desc: query.get('desc') === '1',
    findings: text('findings'),
    since: text('since'),
    at: number('at'),
    open: text('open'),
    position: number('position'),
    compare: text('compare'),
    kind: text('kind'),
  };
}

function format(view) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(view)) {
    if (name === 'picks') for (const pick of view.picks) query.append('pick', pick);
    else if (value !== EMPTY[name])
      query.set(name, value === true ? '1' : String(value));
  }
  return query.size ? `?${query}` : '';
}

export const view = { ...EMPTY };

const listeners = [];

/** Call `act` with the last view after every change. */
export function onChange(act) {
  listeners.push(act);
}

function set(changes) {
  const before = { ...view };
  Object.assign(view, changes);
  return before;
}

function tell(before) {
  for (const act of listeners) act(before);
}

// Browsers allow about a hundred changes of the address in ten seconds, so scrolling writes late.
let writing = 0;

/** Write the view to the address, whose path a frame of a notebook has for itself. */
function replace() {
  history.replaceState(null, '', location.pathname + format(view));
}

/** Go to another view: an entry of the history. */
export function go(changes) {
  if (writing) replace();
  clearTimeout(writing);
  writing = 0;
  const before = set(changes);
  const to = format(view);
  if (to !== location.search) history.pushState(null, '', location.pathname + to);
  tell(before);
}

/** Change the view in place, as scrolling does. */
export function amend(changes) {
  const before = set(changes);
  replace();
  tell(before);
}

/** Write down the position, of which nobody is told. */
export function scrolled(at) {
  view.at = at;
  clearTimeout(writing);
  writing = window.setTimeout(() => {
    writing = 0;
    replace();
  }, 250);
}

/** Read the address, and follow it when the user goes back or forward. */
export function begin() {
  set(parse(location.search));
  window.addEventListener('popstate', () => {
    clearTimeout(writing);
    writing = 0;
    tell(set(parse(location.search)));
  });
}

/** The filters of a view without any. */
export const NO_FILTERS = { split: '', where: '', picks: [], findings: '', since: '' };

/** The question that names the records of the view. */
export function question(of) {
  return {
    split: of.split,
    where: [of.where.trim(), ...alternatives(of.picks).values()].filter(Boolean),
    sort: of.sort,
    desc: of.sort && of.desc ? '1' : '',
    findings: of.findings,
    changed_since: of.since,
  };
}

/** The condition of each facet that chooses, as "column~SQL". */
export function ownConditions(of) {
  return [...alternatives(of.picks)].map(([column, sql]) => joined(column, sql));
}

/**
 * Conditions by column. Picks are "column~SQL": those of one column are alternatives, those of two
 * both hold.
 */
function alternatives(picks) {
  const columns = new Map();
  for (const pick of picks) {
    const [column, sql] = parted(pick);
    columns.set(column, [...(columns.get(column) ?? []), sql]);
  }
  return new Map(
    [...columns].map(([column, sqls]) => [
      column,
      sqls.length === 1 ? sqls[0] : sqls.map((sql) => `(${sql})`).join(' OR '),
    ]),
  );
}

export function parted(pick) {
  const at = pick.indexOf('~');
  return [decodeURIComponent(pick.slice(0, at)), pick.slice(at + 1)];
}

export function joined(column, sql) {
  return `${encodeURIComponent(column).replaceAll('~', '%7E')}~${sql}`;
}
