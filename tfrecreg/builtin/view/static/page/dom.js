/** Elements, made without markup: text from data is text, whatever it contains. */

const SVG = 'http://www.w3.org/2000/svg';

/** @typedef {Node | string | number | null | undefined | false} Child */

/**
 * Set what `options` names: `class`, `text`, `on` (listeners by event), `style` (by the CSSOM, which
 * the page's policy allows), `data`, and attributes. `false` and `null` leave an attribute out.
 * @param {Element} element
 * @param {Record<string, any>} options
 */
function equip(element, options) {
  for (const [name, value] of Object.entries(options)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === 'class') element.setAttribute('class', value);
    else if (name === 'text') element.textContent = String(value);
    else if (name === 'on')
      for (const [event, act] of Object.entries(value)) element.addEventListener(event, act);
    else if (name === 'style')
      for (const [key, to] of Object.entries(value))
        /** @type {any} */ (element).style.setProperty(key, to);
    else if (name === 'data') Object.assign(/** @type {any} */ (element).dataset, value);
    else element.setAttribute(name, value === true ? '' : String(value));
  }
}

/**
 * An HTML element with its children.
 * @param {string} tag
 * @param {Record<string, any>} [options]
 * @param {...Child} children
 * @returns {any}
 */
export function el(tag, options = {}, ...children) {
  const element = document.createElement(tag);
  equip(element, options);
  element.append(...kept(children));
  return element;
}

/**
 * An SVG element with its children.
 * @param {string} tag
 * @param {Record<string, any>} [options]
 * @param {...Child} children
 * @returns {any}
 */
export function svg(tag, options = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  equip(element, options);
  element.append(...kept(children));
  return element;
}

/**
 * @param {Child[]} children
 * @returns {(Node | string)[]}
 */
function kept(children) {
  return /** @type {(Node | string)[]} */ (
    children
      .filter((child) => child !== null && child !== undefined && child !== false)
      .map((child) => (child instanceof Node ? child : String(child)))
  );
}

/**
 * A message of the program as nodes: what it has in backticks is code.
 * @param {string} text
 * @returns {Node[]}
 */
export function message(text) {
  return text
    .split('`')
    .map((part, at) => (at % 2 ? el('code', { text: part }) : document.createTextNode(part)));
}

/**
 * The element with this id, which the page has.
 * @param {string} id
 * @returns {any}
 */
export function byId(id) {
  return document.getElementById(id);
}

/** @param {number} number */
export function count(number) {
  return number.toLocaleString('en');
}

/**
 * "1 record", "1,234 records".
 * @param {number} number
 * @param {string} noun
 */
export function counted(number, noun) {
  return `${count(number)} ${noun}${number === 1 ? '' : 's'}`;
}

/** @param {number} size */
export function bytes(size) {
  if (size < 1000) return `${size} B`;
  const unit = Math.min(4, Math.floor(Math.log10(size) / 3));
  return `${(size / 1000 ** unit).toPrecision(3)} ${['', 'kB', 'MB', 'GB', 'TB'][unit]}`;
}

/**
 * A number in at most `digits` significant digits, without exponents where they are not needed.
 * @param {number} number
 */
export function short(number, digits = 4) {
  if (Number.isInteger(number) && Math.abs(number) < 1e9) return count(number);
  return String(Number(number.toPrecision(digits)));
}

/**
 * Call `act` once, `wait` milliseconds after the last call.
 * @template {any[]} A
 * @param {(...args: A) => void} act
 * @param {number} wait
 * @returns {(...args: A) => void}
 */
export function later(act, wait) {
  let timer = 0;
  return (...args) => {
    clearTimeout(timer);
    timer = window.setTimeout(() => act(...args), wait);
  };
}

/**
 * Put other elements into a place; the keyboard stays at the one with the same `data-keep`.
 * @param {HTMLElement} place
 * @param {...Node} nodes
 */
export function refill(place, ...nodes) {
  const focused = place.contains(document.activeElement)
    ? document.activeElement?.getAttribute('data-keep')
    : null;
  place.replaceChildren(...nodes);
  if (!focused) return;
  for (const each of place.querySelectorAll('[data-keep]')) {
    if (each.getAttribute('data-keep') === focused) /** @type {HTMLElement} */ (each).focus();
  }
}

let toasting = 0;

/** Say something that passes: a line was copied, a file was saved. @param {string} text */
export function toast(text) {
  const place = byId('toast');
  // An open dialog covers the page, and with it the line: it moves into the dialog.
  (document.querySelector('dialog[open]') ?? document.body).append(place);
  place.textContent = text;
  place.hidden = false;
  clearTimeout(toasting);
  toasting = window.setTimeout(() => {
    place.hidden = true;
  }, 2500);
}

/**
 * Put text on the clipboard; where the browser refuses, show it to be copied by hand.
 * @param {string} text
 */
export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    toast(`Copied: ${text}`);
  } catch {
    toast(text);
  }
}
