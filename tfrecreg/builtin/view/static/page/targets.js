/** The targets that are open, and the datasets of the registry that can be. */

import { ask, words } from './api.js';
import { el, toast } from './dom.js';
import { amend, view } from './state.js';

/** Characters of a name that fit into the choice. */
const LONG = 36;

/**
 * The choice of the dataset at the top: what was named, and what the registry has.
 * @param {any} choice @param {import('../page/api.js').Targets} targets
 */
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

/** The end of a long path, which tells it from others. @param {string} name */
function tail(name) {
  return name.length > LONG ? `…${name.slice(1 - LONG)}` : name;
}

/**
 * All references of a registry: builds, and versions with the newest first.
 * @param {import('../page/api.js').Targets} targets
 */
export function references(targets) {
  return targets.datasets.flatMap(({ name, versions, build }) => [
    ...(build ? [name] : []),
    ...[...versions].reverse().map((version) => `${name}@${version}`),
  ]);
}

/**
 * The number of the target with this name, opened where it must be.
 * @param {string} name @returns {Promise<number>}
 */
export async function openTarget(name) {
  try {
    return (await ask('api/open', { name })).id;
  } catch (error) {
    toast(words(error));
    return -1;
  }
}

/**
 * Fit the address to what the server has: a number of a target that is none is the first one.
 * @param {import('../page/api.js').Targets} targets
 */
export function settleTarget(targets) {
  const known = targets.targets.some(({ id }) => id === view.t);
  if (!known && targets.targets.length) amend({ t: targets.targets[0].id });
  else if (!known) amend({ t: -1 });
}
