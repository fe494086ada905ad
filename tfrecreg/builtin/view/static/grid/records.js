/** The tab of all records: the search, the filters at the side, and the grid. */

import { isAbort, lastOnly, words } from '../page/api.js';
import { drawBar, keptSize } from './bar.js';
import { byId, count, counted, el, later, message } from '../page/dom.js';
import { drawFacets, splitsOnly } from './facets.js';
import { Grid } from './grid.js';
import { hasShapes, seeClasses, setClasses } from './shapes.js';
import { go, NO_FILTERS, ownConditions, question, scrolled, view } from '../page/state.js';

/** Milliseconds after which a search is shown, to be cancelled. */
const PATIENCE = 700;

export class Records {
  constructor(calls) {
    this.calls = calls;
    this.about = null;
    this.selection = null;
    this.versions = [];
    this.asked = '';
    this.filled = '';
    /** Why the records of the view are not shown. */
    this.failed = null;
    /** The condition of the records that are shown. */
    this.applied = '';
    this.searches = 0;
    this.select = lastOnly();
    this.preview = lastOnly();
    this.facets = lastOnly();
    this.sought = lastOnly();
    this.grid = new Grid(byId('grid'), {
      open: (record) => calls.open(record, this.grid.current),
      scrolled,
      failed: (error) => this.fail(error),
      came: () => this.learn(),
    });
    this.grid.size = keptSize();
    this.listen();
  }

  listen() {
    const where = byId('where');
    const tell = later(() => void this.count(where.value), 200);
    where.addEventListener('input', tell);
    byId('search').addEventListener('submit', (event) => {
      event.preventDefault();
      this.preview.cancel();
      go({ where: where.value.trim(), at: 0 });
    });
    byId('clear').addEventListener('click', () => {
      where.value = '';
      go({ ...NO_FILTERS, at: 0 });
    });
    byId('cancel').addEventListener('click', () => {
      for (const each of [this.select, this.preview]) each.cancel('The search was cancelled.');
    });
    for (const id of ['side-open', 'side-close'])
      byId(id).addEventListener('click', () => this.side(id === 'side-open'));
  }

  /** The drawer of the filters, in a narrow window. */
  side(open) {
    document.body.classList.toggle('with-side', open);
    byId('side-open').setAttribute('aria-expanded', String(open));
    byId(open ? 'side-close' : 'side-open').focus();
  }

  /** Another target, or the same one with its catalog. */
  set(about, versions) {
    this.about = about;
    this.versions = versions;
    this.asked = '';
    setClasses(about.classes);
    byId('where').placeholder = `a condition in SQL${example(about)}`;
    this.bar();
  }

  /** The catalog is there now: the records on the screen stay, the filters come. */
  ready(about) {
    const shown = this.selection;
    const stays = shown?.selection === '' && this.asked !== '';
    const asked = this.asked;
    this.set(about, this.versions);
    if (!stays || !shown) return;
    this.asked = asked;
    void this.drawSide(shown.selection);
  }

  bar() {
    if (!this.about) return;
    drawBar(byId('bar'), {
      about: () => this.about,
      selection: () => this.selection,
      resize: (size) => this.grid.resize(size),
      redraw: () => {
        this.grid.redraw();
        this.calls.redraw();
      },
    });
  }

  /** Show the records that the view asks for, where they are others than before. */
  async update() {
    const asks = question(view);
    const asked = JSON.stringify([view.t, asks]);
    if (asked === this.asked) {
      this.grid.go(view.at);
      return;
    }
    const isSameOrder = this.selection !== null && this.asked !== '';
    this.asked = asked;
    this.failed = null;
    byId('where-error').replaceChildren();
    this.fill();
    if (!isSameOrder) this.selection = null;
    try {
      await this.show(
        isEverything(asks)
          ? this.everything()
          : await this.searched(this.select(`api/t/${view.t}/select`, asks)),
      );
    } catch (error) {
      if (isAbort(error)) return;
      this.failed = error;
      this.fail(error);
      if (!this.selection) this.grid.empty('These records cannot be chosen.');
    }
  }

  /** An answer; a search that takes long can be cancelled. */
  async searched(answer) {
    this.searches += 1;
    const timer = setTimeout(() => (byId('searching').hidden = false), PATIENCE);
    try {
      return await answer;
    } finally {
      clearTimeout(timer);
      this.searches -= 1;
      if (!this.searches) byId('searching').hidden = true;
    }
  }

  /** All records as stored: no question of the server's, and so the grid is there at once. */
  everything() {
    const { records, commands } = this.about;
    return {
      selection: '',
      count: records,
      of: records,
      ...commands,
      toml: false,
    };
  }

  /** Put into the fields what the view says. */
  fill() {
    const where = byId('where');
    // What is being typed stays, whatever else changes meanwhile.
    if (view.where !== this.filled) where.value = view.where;
    this.filled = view.where;
    byId('clear').hidden = !(
      view.where ||
      view.split ||
      view.picks.length ||
      view.findings ||
      view.since
    );
    this.bar();
  }

  async show(told) {
    this.selection = told;
    this.applied = view.where;
    this.say(told);
    void this.drawSide(told.selection);
    await this.grid.show(view.t, told.selection, told.count, view.at);
    if (told.count === 0)
      this.grid.empty(
        told.of === 0
          ? 'There are no records.'
          : 'No record fits. Take back a filter, or change the condition.',
      );
  }

  say(told) {
    byId('where-error').replaceChildren();
    byId('where').removeAttribute('aria-invalid');
    this.tell(told);
  }

  tell(told) {
    byId('count').textContent =
      told.count === told.of
        ? counted(told.of, 'record')
        : `${count(told.count)} of ${counted(told.of, 'record')}`;
    if (told.note) byId('count').textContent += ` – ${told.note}`;
  }

  /** The count of what is typed, before it is applied. */
  async count(where) {
    if (where.trim() === view.where) {
      if (this.failed) this.fail(this.failed);
      else if (this.selection) this.say(this.selection);
      return;
    }
    try {
      const told = await this.searched(
        this.preview(`api/t/${view.t}/select`, question({ ...view, where })),
      );
      this.say(told);
      byId('count').textContent += ' – Enter shows them';
    } catch (error) {
      if (!isAbort(error)) this.fail(error);
    }
  }

  fail(error) {
    const applied = this.applied
      ? ['Still applied: ', el('code', { text: this.applied })]
      : ['No condition is applied.'];
    byId('where-error').replaceChildren(
      el('p', { class: 'error' }, ...message(words(error))),
      this.selection ? el('p', { class: 'faint' }, ...applied) : '',
    );
    if (this.selection) this.tell(this.selection);
    else byId('count').textContent = '';
    if (view.where || byId('where').value) byId('where').setAttribute('aria-invalid', 'true');
  }

  async drawSide(selection) {
    const about = this.about;
    if (about.catalog.state !== 'ready') {
      drawFacets(byId('facets'), splitsOnly(about), []);
      return;
    }
    try {
      const own = ownConditions(view);
      const { facets } = await this.facets(`api/t/${view.t}/facets`, { selection, own });
      drawFacets(byId('facets'), facets, this.versions, async (column, find) => {
        const found = await this.sought(`api/t/${view.t}/facets`, { selection, own, column, find });
        return found.facets[0];
      });
    } catch (error) {
      if (isAbort(error)) return;
      // What is left is the split to choose.
      drawFacets(byId('facets'), splitsOnly(about), []);
      byId('facets').append(el('p', { class: 'faint' }, ...message(words(error))));
    }
  }

  /** Classes that only the records name. */
  learn() {
    for (const { record } of this.grid.tiles.values())
      if (record && hasShapes(record)) seeClasses(record);
  }
}

/** A condition that these columns can be asked for. */
function example(about) {
  const numbers = (about.columns ?? []).filter(({ type }) => /INT|DOUBLE|FLOAT/.test(type));
  const known = ['boxes', 'objects', 'width', 'label'].map((name) =>
    numbers.find((column) => column.name === name),
  );
  const others = numbers.filter(({ name }) => !['record', 'offset'].includes(name));
  const column = known.find(Boolean) ?? others.find(({ name }) => name !== 'bytes') ?? others[0];
  return column
    ? `, for example: ${/^[a-z_]+$/.test(column.name) ? column.name : `"${column.name}"`} > 2`
    : '';
}

function isEverything(asks) {
  return Object.values(asks).every((value) => value.length === 0);
}
