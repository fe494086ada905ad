/** The targets that are open, and the datasets of the registry that can be. */

import { ask, words } from './api.js';
import { button, bytes, counted, el, toast } from './dom.js';
import { amend, go, NO_FILTERS, view } from './state.js';

/** Characters of a name that fit into the choice. */
const LONG = 36;

/** The choice of the dataset at the top: what was named, and what the registry has. */
export function drawTargets(choice, targets) {
  const named = targets.targets.map(({ id, name }) =>
    el('option', { value: `t${id}`, text: tail(name), title: name, selected: id === view.t }),
  );
  const names = new Set(targets.targets.map(({ name }) => name));
  const others = references(targets)
    .filter((name) => !names.has(name))
    .map((name) => el('option', { value: `r${name}`, text: name }));
  choice.replaceChildren(
    ...(view.t < 0 ? [el('option', { value: '', text: 'Choose a dataset', selected: true })] : []),
    ...named,
    ...(others.length ? [el('optgroup', { label: 'In the registry' }, ...others)] : []),
  );
}

/** The end of a long path, which tells it from others. */
function tail(name) {
  return name.length > LONG ? `…${name.slice(1 - LONG)}` : name;
}

/** All references of a registry: builds, and versions with the newest first. */
export function references(targets) {
  return targets.datasets.flatMap(({ name, versions, build }) => [
    ...(build ? [name] : []),
    ...[...versions].reverse().map((version) => `${name}@${version}`),
  ]);
}

/** The number of the target with this name, opened where it must be. */
export async function openTarget(name) {
  try {
    return (await ask('api/open', { name })).id;
  } catch (error) {
    toast(words(error));
    return -1;
  }
}

/** Fit the address to what the server has: a number of a target that is none is the first one. */
export function settleTarget(targets) {
  const known = targets.targets.some(({ id }) => id === view.t);
  if (!known && targets.targets.length) amend({ t: targets.targets[0].id });
  else if (!known) amend({ t: -1 });
}

export function drawDatasets(place, targets) {
  const cards = targets.datasets.map(({ name, versions, build, records, bytes: size }) => {
    const newest = versions[versions.length - 1];
    const links = [
      ...(build ? [['build', name]] : []),
      ...[...versions].reverse().map((version) => [version, `${name}@${version}`]),
    ];
    const first = newest ? `${name}@${newest}` : name;
    return el(
      'article',
      { class: 'card dataset' },
      el(
        'h3',
        {},
        links.length
          ? button(null, () => void visit(first), { class: 'link' }, el('bdi', { text: name }))
          : el('bdi', { text: name }),
      ),
      records === null
        ? null
        : el('p', { text: `${counted(records, 'record')}, ${bytes(size ?? 0)}` }),
      el('p', {
        class: 'faint',
        text: `${counted(versions.length, 'release')}${newest ? `, newest ${newest}` : ''}${build ? ', a build' : ''}`,
      }),
      el(
        'div',
        { class: 'links' },
        ...links.map(([text, reference]) =>
          button(text, () => void visit(reference), { 'aria-label': `Open ${reference}` }),
        ),
      ),
    );
  });
  place.replaceChildren(
    el(
      'div',
      { class: 'column' },
      el('h2', { text: counted(cards.length, 'dataset') }),
      el('p', { class: 'faint' }, el('bdi', { class: 'mono', text: targets.registry })),
      el('div', { class: 'datasets' }, ...cards),
    ),
  );
}

export async function visit(reference) {
  const t = await openTarget(reference);
  if (t >= 0) go({ t, tab: 'grid', at: 0, open: '', sort: '', desc: false, ...NO_FILTERS });
}
