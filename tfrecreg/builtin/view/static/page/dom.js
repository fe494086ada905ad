/** Elements, made without markup: text from data is text, whatever it contains. */

const SVG = 'http://www.w3.org/2000/svg';

/**
 * Set what `options` names: `class`, `text`, `on` (listeners by event), `style` (by the CSSOM, which
 * the page's policy allows), `data`, and attributes. `false` and `null` leave an attribute out.
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
        element.style.setProperty(key, to);
    else if (name === 'data') Object.assign(element.dataset, value);
    else element.setAttribute(name, value === true ? '' : String(value));
  }
}

/** An HTML element with its children. */
export function el(tag, options = {}, ...children) {
  const element = document.createElement(tag);
  equip(element, options);
  element.append(...children.filter(isChild));
  return element;
}

/** A button that does something. */
export function button(text, act, options = {}, ...children) {
  return el('button', { type: 'button', text, on: { click: act }, ...options }, ...children);
}

/** An SVG element with its children. */
export function svg(tag, options = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  equip(element, options);
  element.append(...children.filter(isChild));
  return element;
}

function isChild(child) {
  return child !== null && child !== undefined && child !== false;
}

/** A message of the program as nodes: what it has in backticks is code. */
export function message(text) {
  return text
    .split('`')
    .map((part, at) => (at % 2 ? el('code', { text: part }) : document.createTextNode(part)));
}

/** A line that steps back. */
export function faint(text, options = {}) {
  return el('p', { class: 'faint', text, ...options });
}

/** A line that warns, in the program's words. */
export function alarm(text) {
  return el('p', { class: 'alert', role: 'alert' }, ...message(text));
}

/** The element with this id, which the page has. */
export function byId(id) {
  return document.getElementById(id);
}

export function count(number) {
  return number.toLocaleString('en');
}

/** "1 record", "1,234 records". */
export function counted(number, noun) {
  return `${count(number)} ${noun}${number === 1 ? '' : 's'}`;
}

export function bytes(size) {
  if (size < 1000) return `${size} B`;
  const unit = Math.min(4, Math.floor(Math.log10(size) / 3));
  return `${(size / 1000 ** unit).toPrecision(3)} ${['', 'kB', 'MB', 'GB', 'TB'][unit]}`;
}

/** A number in at most `digits` significant digits, without exponents where they are not needed. */
export function short(number, digits = 4) {
  if (Number.isInteger(number) && Math.abs(number) < 1e9) return count(number);
  return String(Number(number.toPrecision(digits)));
}

/** Call `act` once, `wait` milliseconds after the last call. */
export function later(act, wait) {
  let timer = 0;
  return (...args) => {
    clearTimeout(timer);
    timer = window.setTimeout(() => act(...args), wait);
  };
}

/** Put other elements into a place; the keyboard stays at the one with the same `data-keep`. */
export function refill(place, ...nodes) {
  const focused = place.contains(document.activeElement)
    ? document.activeElement?.getAttribute('data-keep')
    : null;
  place.replaceChildren(...nodes);
  if (!focused) return;
  for (const each of place.querySelectorAll('[data-keep]')) {
    if (each.getAttribute('data-keep') === focused) each.focus();
  }
}

let toasting = 0;

/** Say something that passes: a line was copied, a file was saved. */
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

/** Put text on the clipboard; where the browser refuses, show it to be copied by hand. */
export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    toast(`Copied: ${text}`);
  } catch {
    toast(text);
  }
}

/** What this browser keeps of a user's choices, where it may. */
export function kept(name) {
  try {
    return localStorage.getItem(name);
  } catch {
    return null;
  }
}

export function keep(name, value) {
  try {
    localStorage.setItem(name, value);
  } catch {
    // It is as it was at the next start.
  }
}
