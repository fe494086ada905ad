/** Boxes, masks and keypoints over an image, and the menu of which of them are shown. */

import { button, count, el, faint, svg } from '../page/dom.js';
import { menu } from '../page/menu.js';

/** What is drawn: kinds of shapes, and the classes that are hidden. */
export const layers = { boxes: true, masks: true, points: true, names: true, hidden: new Set() };

/** The name that a shape without a class has in `layers.hidden`. */
const UNNAMED = '';

function className(shape) {
  return (
    shape.class ??
    (shape.number === null || shape.number === undefined ? UNNAMED : `#${shape.number}`)
  );
}

/** A color that the server sent: anything else would be none of ours. */
export function safeColor(color) {
  return typeof color === 'string' && /^#[0-9a-f]{6}$/i.test(color) ? color : '#ffb000';
}

export function hasShapes(record) {
  return record.boxes.length + record.polygons.length + record.points.length > 0;
}

function isShown(shape) {
  return !layers.hidden.has(className(shape));
}

/**
 * The shapes of a record, to lie over its image: everything is placed in fractions, so it fits
 * whatever size the image is given.
 */
export function drawShapes(record, named) {
  const drawing = svg('svg', {
    class: 'shapes',
    viewBox: '0 0 1 1',
    preserveAspectRatio: 'none',
  });
  const boxes = layers.boxes ? record.boxes.filter(isShown) : [];
  if (layers.masks) drawing.append(...drawMasks(record.polygons.filter(isShown)));
  drawing.append(...boxes.flatMap(drawBox));
  if (layers.points) drawing.append(...record.points.flatMap(drawPoint));
  const names = named && layers.names ? boxes.map(drawName) : [];
  return el('div', { class: 'over', 'aria-hidden': 'true' }, drawing, ...names);
}

function drawBox(box) {
  const place = {
    x: box.x0,
    y: box.y0,
    width: Math.max(0, box.x1 - box.x0),
    height: Math.max(0, box.y1 - box.y0),
  };
  // The dark line below keeps the colored one visible on an image of its own color.
  return [
    svg('rect', { ...place, class: 'edge' }),
    svg('rect', { ...place, class: 'box', stroke: safeColor(box.color) }),
  ];
}

function drawMasks(polygons) {
  const strips = new Map();
  const outlines = [];
  for (const { points, color } of polygons) {
    const outline = points.map(([x, y]) => `${x},${y}`).join(' ');
    const fill = safeColor(color);
    if (isStrip(points)) strips.set(fill, [...(strips.get(fill) ?? []), `M${outline}z`]);
    else outlines.push(svg('polygon', { points: outline, class: 'mask', fill, stroke: fill }));
  }
  // The strips of a mask in one shape: each by itself would leave seams.
  const masks = [...strips].map(([fill, parts]) =>
    svg('path', { d: parts.join(''), class: 'mask', fill, 'shape-rendering': 'crispEdges' }),
  );
  return [...masks, ...outlines];
}

/** Whether a polygon is an upright rectangle: a part of a mask, of which there may be hundreds. */
function isStrip(points) {
  return (
    points.length === 4 &&
    new Set(points.map(([x]) => x)).size === 2 &&
    new Set(points.map(([, y]) => y)).size === 2
  );
}

function drawPoint([x, y]) {
  // A line without length and round ends is a dot of the same size at any zoom.
  const line = { d: `M${x} ${y}h0` };
  return [svg('path', { ...line, class: 'point edge' }), svg('path', { ...line, class: 'point' })];
}

/** The name of a box: above it where there is room, and never past the right end of the image. */
function drawName(box) {
  const percent = (share) => `${100 * Math.min(Math.max(share, 0), 1)}%`;
  const side = box.x0 > 0.6 ? { right: percent(1 - box.x1) } : { left: percent(box.x0) };
  const style = { ...side, top: percent(box.y0), background: safeColor(box.color) };
  return el('bdi', {
    class: box.y0 > 0.12 ? 'name above' : 'name',
    style,
    text: className(box) || 'object',
  });
}

/** Classes that the menu lists at once; its search box finds the others. */
const LISTED = 200;

const classes = new Map();

/** Start with these classes, in their order. */
export function setClasses(known) {
  classes.clear();
  for (const each of known) classes.set(each.name, safeColor(each.color));
}

/** Add the classes of a record that no list had. */
export function seeClasses(record) {
  for (const shape of [...record.boxes, ...record.polygons]) {
    const name = className(shape);
    if (!classes.has(name)) classes.set(name, safeColor(shape.color));
  }
}

/** The button with its menu. */
export function layersMenu(changed) {
  return menu('Drawing', 'Choose what is drawn over images', () => [
    el('div', { class: 'kinds' }, ...KINDS.map(([key, title]) => kind(key, title, changed))),
    ...(classes.size ? classList(changed) : []),
  ]);
}

const KINDS = [
  ['boxes', 'Boxes'],
  ['masks', 'Masks'],
  ['points', 'Keypoints'],
  ['names', 'Names of classes'],
];

function kind(key, title, changed) {
  return tick(title, layers[key], null, (on) => {
    layers[key] = on;
    changed();
  });
}

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
      list.append(faint(`and ${count(found.length - LISTED)} others`));
  };
  const all = (text, hidden) =>
    button(
      text,
      () => {
        layers.hidden = new Set(hidden);
        fill();
        changed();
      },
      { class: 'link' },
    );
  search.addEventListener('input', fill);
  fill();
  return [
    el('div', { class: 'head' }, el('b', { text: 'Classes' }), all('Show all', []), all('Hide all', classes.keys())),
    classes.size > 12 ? search : null,
    list,
  ];
}

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
