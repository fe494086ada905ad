/** The datasets of a registry, where no target was named. */

import { openTarget } from '../page/targets.js';
import { bytes, counted, el } from '../page/dom.js';
import { go, NO_FILTERS } from '../page/state.js';

/** @param {HTMLElement} place @param {import('../page/api.js').Targets} targets */
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
          ? el(
              'button',
              { type: 'button', class: 'link', on: { click: () => void visit(first) } },
              el('bdi', { text: name }),
            )
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
          el('button', {
            type: 'button',
            text,
            'aria-label': `Open ${reference}`,
            on: { click: () => void visit(reference) },
          }),
        ),
      ),
    );
  });
  place.replaceChildren(
    el(
      'div',
      { class: 'column' },
      el('h2', { text: targets.registry ? counted(cards.length, 'dataset') : 'No datasets' }),
      el(
        'p',
        { class: 'faint' },
        targets.registry
          ? el('bdi', { class: 'mono', text: targets.registry })
          : 'This folder is no registry. Name what to look at: tfrecreg view FILES',
      ),
      el('div', { class: 'datasets' }, ...cards),
    ),
  );
}

/** @param {string} reference */
export async function visit(reference) {
  const t = await openTarget(reference);
  if (t >= 0) go({ t, tab: 'grid', at: 0, open: '', sort: '', desc: false, ...NO_FILTERS });
}
