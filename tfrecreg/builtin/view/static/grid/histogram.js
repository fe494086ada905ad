/** A histogram to brush: by the mouse, or by two number fields. */

import { count, el, short, svg } from '../page/dom.js';

const HEIGHT = 48;

/**
 * @param {import('../page/api.js').Facet} facet
 * @param {[number, number] | null} range what is chosen now
 * @param {(range: [number, number] | null, below: boolean) => void} choose `below`: without its end
 */
export function drawHistogram(facet, range, choose) {
  const edges = facet.edges ?? [];
  if (edges.length < 2) return el('p', { class: 'faint', text: 'no values' });
  const chart = bars(facet, edges);
  const brush = svg('rect', { class: 'brush', y: 0, height: HEIGHT });
  chart.append(brush);
  mark(brush, edges, range);
  const low = field(`${facet.title}: from`, range?.[0], edges[0]);
  const high = field(`${facet.title}: to`, range?.[1], edges[edges.length - 1]);
  const read = () => choose(typed(low, high, edges), false);
  for (const input of [low, high]) input.addEventListener('change', read);
  brushed(
    chart,
    edges,
    (from, to) => {
      mark(brush, edges, [from, to]);
      low.value = String(from);
      high.value = String(to);
      // A value on the edge of two bins is in the right one, but for the last.
    },
    (from, to) => choose([from, to], to !== edges[edges.length - 1]),
  );
  return el(
    'div',
    { class: 'histogram' },
    chart,
    el('div', { class: 'ends' }, low, el('span', { text: 'to' }), high),
  );
}

/** @param {import('../page/api.js').Facet} facet @param {number[]} edges */
function bars(facet, edges) {
  const counts = facet.counts ?? [];
  const all = Array.isArray(facet.of) ? facet.of : counts;
  const most = Math.max(1, ...all, ...counts);
  const each = 100 / (edges.length - 1);
  // The root keeps a bar of one record visible beside one of a million.
  const height = (/** @type {number} */ number) =>
    number ? Math.max(1.5, HEIGHT * Math.sqrt(number / most)) : 0;
  const chart = svg('svg', {
    class: 'bars',
    viewBox: `0 0 100 ${HEIGHT}`,
    preserveAspectRatio: 'none',
    role: 'img',
    'aria-label': `${facet.title}: from ${short(edges[0])} to ${short(edges[edges.length - 1])}`,
  });
  for (let bin = 0; bin < edges.length - 1; bin += 1) {
    const place = { x: bin * each, width: each * 0.9 };
    const said = `${short(edges[bin])} to ${short(edges[bin + 1])}: ${count(counts[bin] ?? 0)} of ${count(all[bin] ?? 0)}`;
    const column = svg(
      'g',
      {},
      svg('title', { text: said }),
      svg('rect', { x: bin * each, width: each, y: 0, height: HEIGHT, class: 'room' }),
    );
    for (const kind of ['all', 'some']) {
      const tall = height((kind === 'all' ? all : counts)[bin] ?? 0);
      column.append(svg('rect', { ...place, y: HEIGHT - tall, height: tall, class: kind }));
    }
    chart.append(column);
  }
  return chart;
}

/** @param {string} label @param {number | undefined} value @param {number} placeholder */
function field(label, value, placeholder) {
  return el('input', {
    type: 'number',
    step: 'any',
    'aria-label': label,
    value: value ?? null,
    placeholder: short(placeholder).replaceAll(',', ''),
  });
}

/** @param {any} low @param {any} high @param {number[]} edges @returns {[number, number] | null} */
function typed(low, high, edges) {
  if (low.value === '' && high.value === '') return null;
  const from = low.value === '' ? edges[0] : Number(low.value);
  const to = high.value === '' ? edges[edges.length - 1] : Number(high.value);
  return from <= to ? [from, to] : [to, from];
}

/** @param {SVGElement} brush @param {number[]} edges @param {[number, number] | null} range */
function mark(brush, edges, range) {
  const from = range ? share(edges, range[0]) : 0;
  const to = range ? share(edges, range[1]) : 0;
  brush.setAttribute('x', String(100 * from));
  brush.setAttribute('width', String(range ? Math.max(0.5, 100 * (to - from)) : 0));
}

/**
 * Where a value lies between the ends, as a fraction: bins are equally wide, whatever they hold.
 */
function share(/** @type {number[]} */ edges, /** @type {number} */ value) {
  const bins = edges.length - 1;
  if (value <= edges[0]) return 0;
  if (value >= edges[bins]) return 1;
  const bin = Math.max(0, edges.findIndex((edge) => edge > value) - 1);
  return (bin + (value - edges[bin]) / (edges[bin + 1] - edges[bin] || 1)) / bins;
}

/**
 * Dragging chooses whole bins.
 * @param {SVGElement} chart @param {number[]} edges
 * @param {(from: number, to: number) => void} show @param {(from: number, to: number) => void} done
 */
function brushed(chart, edges, show, done) {
  const bins = edges.length - 1;
  let start = -1;
  /** @type {[number, number]} */
  let range = [0, 0];
  const bin = (/** @type {PointerEvent} */ event) => {
    const { left, width } = chart.getBoundingClientRect();
    return Math.min(bins - 1, Math.max(0, Math.floor(((event.clientX - left) / width) * bins)));
  };
  const move = (/** @type {PointerEvent} */ event) => {
    if (start < 0) return;
    range = [edges[Math.min(start, bin(event))], edges[Math.max(start, bin(event)) + 1]];
    show(...range);
  };
  chart.addEventListener('pointerdown', (event) => {
    event.preventDefault();
    start = bin(event);
    chart.setPointerCapture(event.pointerId);
    move(event);
  });
  chart.addEventListener('pointermove', move);
  chart.addEventListener('pointerup', () => {
    if (start >= 0) done(...range);
    start = -1;
  });
  chart.addEventListener('pointercancel', () => {
    start = -1;
  });
}
