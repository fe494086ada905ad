/** The menu of what is drawn: boxes, masks, keypoints, names, and each class. */

import { count, el } from '../page/dom.js';
import { menu } from '../page/menu.js';
import { className, layers, safeColor, UNNAMED } from './shapes.js';

/** Classes that the menu lists at once; its search box finds the others. */
const LISTED = 200;

/** @type {Map<string, string>} */
const classes = new Map();

/** Start with these classes, in their order. @param {import('../page/api.js').Class[]} known */
export function setClasses(known) {
  classes.clear();
  for (const each of known) classes.set(each.name, safeColor(each.color));
}

/** Add the classes of a record that no list had. @param {import('../page/api.js').Rec} record */
export function seeClasses(record) {
  for (const shape of [...record.boxes, ...record.polygons]) {
    const name = className(shape);
    if (!classes.has(name)) classes.set(name, safeColor(shape.color));
  }
}

/** The button with its menu. @param {() => void} changed is called after each choice */
export function layersMenu(changed) {
  return menu('Drawing', 'Choose what is drawn over images', () => [
    el('div', { class: 'kinds' }, ...KINDS.map(([key, title]) => kind(key, title, changed))),
    ...(classes.size ? classList(changed) : []),
  ]);
}

/** @type {['boxes' | 'masks' | 'points' | 'names', string][]} */
const KINDS = [
  ['boxes', 'Boxes'],
  ['masks', 'Masks'],
  ['points', 'Keypoints'],
  ['names', 'Names of classes'],
];

/**
 * @param {'boxes' | 'masks' | 'points' | 'names'} key
 * @param {string} title
 * @param {() => void} changed
 */
function kind(key, title, changed) {
  return tick(title, layers[key], null, (on) => {
    layers[key] = on;
    changed();
  });
}

/**
 * @param {string} title
 * @param {boolean} on
 * @param {string | null} color
 * @param {(on: boolean) => void} act
 */
function tick(title, on, color, act) {
  const box = el('input', { type: 'checkbox' });
  box.checked = on;
  box.addEventListener('change', () => act(box.checked));
  return el(
    'label',
    { class: 'tick' },
    box,
    color ? el('span', { class: 'swatch', style: { background: color } }) : null,
    el('bdi', { text: title }),
  );
}

/** @param {() => void} changed */
function classList(changed) {
  const list = el('div', { class: 'ticks' });
  const search = el('input', {
    type: 'search',
    placeholder: `Find one of ${count(classes.size)} classes`,
    'aria-label': 'Find a class',
  });
  const fill = () => {
    const word = search.value.toLowerCase();
    const found = [...classes].filter(([name]) => name.toLowerCase().includes(word));
    list.replaceChildren(
      ...found.slice(0, LISTED).map(([name, color]) => one(name, color, changed)),
    );
    if (found.length > LISTED)
      list.append(el('p', { class: 'faint', text: `and ${count(found.length - LISTED)} others` }));
  };
  const all = (/** @type {boolean} */ on) =>
    el('button', {
      type: 'button',
      class: 'link',
      text: on ? 'Show all' : 'Hide all',
      on: {
        click: () => {
          layers.hidden = new Set(on ? [] : classes.keys());
          fill();
          changed();
        },
      },
    });
  search.addEventListener('input', fill);
  fill();
  return [
    el('div', { class: 'head' }, el('b', { text: 'Classes' }), all(true), all(false)),
    classes.size > 12 ? search : null,
    list,
  ];
}

/** @param {string} name @param {string} color @param {() => void} changed */
function one(name, color, changed) {
  return tick(
    name === UNNAMED ? 'objects without a class' : name,
    !layers.hidden.has(name),
    color,
    (on) => {
      if (on) layers.hidden.delete(name);
      else layers.hidden.add(name);
      changed();
    },
  );
}
