/**
 * Two versions: how many records differ and how, the number that asks for, and both states of each.
 */

import { isAbort, lastOnly, words } from '../page/api.js';
import { openTarget, references } from '../page/targets.js';
import { alarm, button, count, el, faint, message, refill } from '../page/dom.js';
import { single } from './findings.js';
import { amend, go, view } from '../page/state.js';
import { CAPTION, drawTile } from '../grid/tile.js';

const KINDS = ['changed', 'added', 'removed', 'moved', 'renamed'];
const SIZE = { width: 160, height: 136 };
const PAGE = 60;

export class Compare {
  constructor(place, calls) {
    this.place = place;
    this.calls = calls;
    this.ask = lastOnly();
    this.askRows = lastOnly();
    this.shown = '';
    this.compared = '';
    this.kind = '';
    this.head = el('div', { class: 'versions' });
    this.body = el('div', { class: 'compared' });
    place.append(
      el('div', { class: 'column' }, el('h2', { text: 'Compare' }), this.head, this.body),
    );
  }

  /** The numbers of the two targets, or -1. */
  get pair() {
    const [a, b] = view.compare.split(',').map((each) => Number.parseInt(each, 10));
    return [Number.isInteger(a) ? a : -1, Number.isInteger(b) ? b : -1];
  }

  async show(targets) {
    const shown = `${view.compare} ${view.kind} ${targets.targets.length}`;
    if (shown === this.shown) return;
    this.shown = shown;
    const [a, b] = this.pair;
    this.head.replaceChildren(
      this.choice(targets, 'Before', a, 0),
      el('span', { 'aria-hidden': 'true', text: '→' }),
      this.choice(targets, 'After', b, 1),
    );
    if (a < 0 || b < 0)
      this.body.replaceChildren(faint('Choose two versions to compare.'));
    else await this.compare(a, b);
  }

  choice(targets, title, chosen, which) {
    const named = new Set(targets.targets.map(({ name }) => name));
    const choice = el(
      'select',
      {},
      el('option', { value: '', text: 'Choose…' }),
      ...targets.targets.map(({ id, name }) =>
        el('option', { value: `t${id}`, text: name, selected: id === chosen }),
      ),
      ...references(targets)
        .filter((name) => !named.has(name))
        .map((name) => el('option', { value: `r${name}`, text: name })),
    );
    choice.addEventListener('change', async () => {
      const value = choice.value;
      const id = value.startsWith('r')
        ? await openTarget(value.slice(1))
        : value
          ? Number(value.slice(1))
          : -1;
      const pair = this.pair;
      pair[which] = id;
      go({ compare: pair.map((each) => (each < 0 ? '' : each)).join(',') });
    });
    return el('label', { class: 'inline' }, el('span', { text: title }), choice);
  }

  async compare(a, b) {
    // Another kind of change of the same two: what is there stays until the records are.
    if (this.compared !== view.compare)
      this.body.replaceChildren(faint('Comparing…', { role: 'status' }));
    try {
      const told = await this.ask('api/compare', { a, b });
      this.rows = el('div', { class: 'rows' });
      this.kind = view.kind || KINDS.find((kind) => told[kind]) || KINDS[0];
      this.none = told[this.kind] === 0;
      refill(this.body, verdict(told), kinds(told, this.kind), ...features(told), this.rows);
      this.compared = view.compare;
      await this.fill(a, b, 0);
    } catch (error) {
      if (!isAbort(error))
        this.body.replaceChildren(alarm(words(error)));
    }
  }

  async fill(a, b, from) {
    const told = await this.askRows('api/compare/records', {
      a,
      b,
      kind: this.kind,
      from,
      count: PAGE,
    });
    this.rows.append(...told.records.map((row) => this.row(a, b, row)));
    if (this.none)
      this.rows.append(faint(`No records are ${this.kind}.`));
    const next = from + told.records.length;
    if (next >= told.of || !told.records.length) return;
    const more = button(`Show more (${count(told.of - next)} left)`, () => {
      more.remove();
      this.fill(a, b, next).catch((error) =>
        this.rows.append(alarm(words(error))),
      );
    });
    this.rows.append(more);
  }

  row(a, b, row) {
    const state = (target, record, none) => {
      const box = el('div', {
        class: 'holder',
        style: { width: `${SIZE.width}px`, height: `${SIZE.height + CAPTION}px` },
      });
      box.append(
        record
          ? single(drawTile(target, record, SIZE, (opened) => this.calls.open(target, opened)))
          : el('p', { class: 'said faint', text: none }),
      );
      return box;
    };
    return el(
      'article',
      { class: 'change' },
      el('bdi', { class: 'mono strong', text: row.key ?? 'a record without a key' }),
      el(
        'div',
        { class: 'states' },
        state(a, row.a, 'not in the first'),
        el('span', { class: 'arrow', 'aria-hidden': 'true', text: '→' }),
        state(b, row.b, 'not in the second'),
      ),
      row.differs.length
        ? el(
            'p',
            {},
            el('span', { class: 'faint', text: 'differs in ' }),
            ...row.differs.map((name) => el('code', { class: 'chip', text: name })),
          )
        : null,
    );
  }
}

function verdict(told) {
  return el(
    'div',
    { class: 'verdict' },
    el('strong', { text: told.verdict }),
    el('span', {}, ...message(told.why)),
    told.version ? el('span', {}, 'next number: ', el('b', { text: told.version })) : null,
    told.hint ? el('p', { class: 'hint' }, ...message(told.hint)) : null,
  );
}

/** A number of records; a dash where the indexes that count them are missing. */
function total(number) {
  return number === null ? '–' : count(number);
}

function kinds(told, chosen) {
  return el(
    'div',
    { class: 'kinds-of-change', role: 'group', 'aria-label': 'Kind of change' },
    ...KINDS.map((kind) =>
      button(
        null,
        () => amend({ kind }),
        {
          class: `big is-${kind}`,
          'aria-pressed': String(kind === chosen),
          data: { kind, keep: kind },
        },
        el('b', { text: total(told[kind]) }),
        el('span', { text: kind }),
      ),
    ),
    el(
      'div',
      { class: 'big' },
      el('b', { text: total(told.unchanged) }),
      el('span', { class: 'faint', text: 'unchanged' }),
    ),
  );
}

function features(told) {
  if (!told.features.length) return [];
  return [
    el(
      'ul',
      { class: 'chips', 'aria-label': 'Features' },
      ...told.features.map(({ name, change }) =>
        el(
          'li',
          {},
          el('code', { class: 'chip', text: name }),
          el('span', { class: 'faint', text: change }),
        ),
      ),
    ),
  ];
}
