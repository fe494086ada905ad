/** The bar over the grid: order, size of tiles, drawing, and what to do with the selection. */

import { address } from '../page/api.js';
import { button, copy, counted, el, faint, keep, kept, refill, toast } from '../page/dom.js';
import { layersMenu } from './shapes.js';
import { menu } from '../page/menu.js';
import { go, view } from '../page/state.js';

const SIZES = { min: 80, max: 400, step: 8 };

export function drawBar(place, calls) {
  const { sort, direction } = order(calls.about());
  refill(
    place,
    el('label', { class: 'inline' }, el('span', { text: 'Sort' }), sort),
    direction,
    slider(calls.resize),
    layersMenu(calls.redraw),
    use(calls),
  );
}

function order(about) {
  const columns = about.columns ?? [];
  const sort = el(
    'select',
    {
      disabled: !columns.length,
      data: { keep: 'sort' },
      title: columns.length ? 'Sort by a column' : 'Sorting needs the catalog',
    },
    el('option', { value: '', text: 'as stored' }),
    ...columns.map(({ name }) =>
      el('option', { value: name, text: name, selected: name === view.sort }),
    ),
  );
  sort.addEventListener('change', () => go({ sort: sort.value, desc: false, at: 0 }));
  const direction = button(view.desc ? '↓' : '↑', () => go({ desc: !view.desc, at: 0 }), {
    class: 'icon',
    disabled: !view.sort,
    'aria-pressed': String(view.desc),
    'aria-label': 'Largest first',
    data: { keep: 'direction' },
    title: view.desc ? 'Largest first' : 'Smallest first',
  });
  return { sort, direction };
}

/** The size of tiles that this browser was left with. */
export function keptSize() {
  const size = Number(kept('tfrecreg-size'));
  return size >= SIZES.min && size <= SIZES.max ? size : 160;
}

function slider(resize) {
  const input = el('input', {
    type: 'range',
    ...SIZES,
    value: keptSize(),
    'aria-label': 'Size of tiles',
    data: { keep: 'size' },
  });
  input.addEventListener('input', () => {
    keep('tfrecreg-size', input.value);
    resize(Number(input.value));
  });
  return el(
    'label',
    { class: 'inline slider', title: 'Size of tiles' },
    el('span', { text: 'Size' }),
    input,
  );
}

function use(calls) {
  return menu('Use', 'Copy or save the selection', (close) => {
    const selection = calls.selection();
    if (!selection) return [faint('There is no selection yet.')];
    const item = (title, what, options, act) =>
      button(
        null,
        () => void act().then(close),
        { class: 'item', ...options },
        el('span', { text: title }),
        what,
      );
    const line = (title, text) =>
      item(title, el('code', { text }), { title: text }, () => copy(text));
    const file = (as, title, what) =>
      item(title, el('span', { class: 'faint', text: what }), { data: { save: as } }, () =>
        save(selection, as),
      );
    return [
      el('h3', { text: `Copy what gives these ${counted(selection.count, 'record')}` }),
      line('Command line', selection.cli),
      line('Python', selection.python),
      line('Address of this view', location.href),
      el('h3', { text: 'Save the selection' }),
      file('keys', 'Keys', 'CSV: split, key, shard, record'),
      selection.toml ? file('toml', 'Derived dataset', 'TOML that builds it') : null,
    ];
  });
}

/** Save a file of the server; what it refuses is said instead of saved. */
async function save(selection, as) {
  const answer = await fetch(
    address(`api/t/${view.t}/save`, { selection: selection.selection, as }),
  ).catch(() => null);
  if (!answer?.ok) {
    const told = await answer?.json().catch(() => null);
    toast(told?.error?.message ?? 'the viewer does not answer');
    return;
  }
  const name = /filename="?([^";]+)"?/.exec(answer.headers.get('Content-Disposition') ?? '')?.[1];
  const url = URL.createObjectURL(await answer.blob());
  const link = el('a', { href: url, download: name ?? `${as}.${as === 'keys' ? 'csv' : 'toml'}` });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
  toast(`Saved ${link.download}`);
}
