/** Boxes, masks and keypoints over an image, and which of them are shown. */

import { el, svg } from '../page/dom.js';

/** What is drawn: kinds of shapes, and the classes that are hidden. */
export const layers = { boxes: true, masks: true, points: true, names: true, hidden: new Set() };

/** The name that a shape without a class has in `layers.hidden`. */
export const UNNAMED = '';

/** @param {{class?: string | null, number?: number | null}} shape */
export function className(shape) {
  return (
    shape.class ??
    (shape.number === null || shape.number === undefined ? UNNAMED : `#${shape.number}`)
  );
}

/** A color that the server sent: anything else would be none of ours. @param {unknown} color */
export function safeColor(color) {
  return typeof color === 'string' && /^#[0-9a-f]{6}$/i.test(color) ? color : '#ffb000';
}

/** Black or white, whichever can be read on this color. @param {string} color */
export function inkOn(color) {
  const [red, green, blue] = [1, 3, 5]
    .map((at) => Number.parseInt(color.slice(at, at + 2), 16) / 255)
    .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.179 ? '#000000' : '#ffffff';
}

/** @param {import('../page/api.js').Rec} record */
export function hasShapes(record) {
  return record.boxes.length + record.polygons.length + record.points.length > 0;
}

/** @param {{class?: string | null, number?: number | null}} shape */
function isShown(shape) {
  return !layers.hidden.has(className(shape));
}

/**
 * The shapes of a record, to lie over its image: everything is placed in fractions, so it fits
 * whatever size the image is given.
 * @param {import('../page/api.js').Rec} record
 * @param {boolean} named whether boxes carry the names of their classes
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
  if (layers.points) drawing.append(...record.points.filter(isPoint).flatMap(drawPoint));
  const names = named && layers.names ? boxes.map(drawName) : [];
  return el('div', { class: 'over', 'aria-hidden': 'true' }, drawing, ...names);
}

/** @param {import('../page/api.js').Box} box */
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

/** @param {import('../page/api.js').Polygon[]} polygons */
function drawMasks(polygons) {
  /** @type {Map<string, string[]>} */
  const strips = new Map();
  const outlines = [];
  for (const { points, color } of polygons) {
    const outline = points
      .filter(isPoint)
      .map(([x, y]) => `${x},${y}`)
      .join(' ');
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

/**
 * Whether a polygon is an upright rectangle: a part of a mask, of which there may be hundreds.
 * @param {number[][]} points
 */
function isStrip(points) {
  return (
    points.length === 4 &&
    new Set(points.map(([x]) => x)).size === 2 &&
    new Set(points.map(([, y]) => y)).size === 2
  );
}

/** @param {any} point */
function isPoint(point) {
  return Array.isArray(point) && Number.isFinite(point[0]) && Number.isFinite(point[1]);
}

/** @param {any} point */
function drawPoint([x, y]) {
  // A line without length and round ends is a dot of the same size at any zoom.
  const line = { d: `M${x} ${y}h0` };
  return [svg('path', { ...line, class: 'point edge' }), svg('path', { ...line, class: 'point' })];
}

/**
 * The name of a box: above it where there is room, and never past the right end of the image.
 * @param {import('../page/api.js').Box} box
 */
function drawName(box) {
  const color = safeColor(box.color);
  const percent = (/** @type {number} */ share) => `${100 * Math.min(Math.max(share, 0), 1)}%`;
  const side = box.x0 > 0.6 ? { right: percent(1 - box.x1) } : { left: percent(box.x0) };
  const style = { ...side, top: percent(box.y0), background: color, color: inkOn(color) };
  return el('bdi', {
    class: box.y0 > 0.12 ? 'name above' : 'name',
    style,
    text: className(box) || 'object',
  });
}
