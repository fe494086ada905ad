/** A button with a panel that it opens: Escape, a click elsewhere or leaving it closes it. */

import { el } from './dom.js';

let last = 0;

/**
 * @param {string} title
 * @param {string} description
 * @param {(close: () => void) => (Node | null)[]} fill makes what the panel shows, each time it opens
 */
export function menu(title, description, fill) {
  last += 1;
  const id = `menu-${last}`;
  const panel = el('div', { class: 'menu-panel', id, hidden: true });
  const button = el('button', {
    type: 'button',
    class: 'menu-button',
    data: { keep: `menu ${title}` },
    title: description,
    text: title,
    'aria-expanded': 'false',
    'aria-controls': id,
  });
  const around = el('div', { class: 'menu' }, button, panel);
  const show = (/** @type {boolean} */ open) => {
    panel.hidden = !open;
    button.setAttribute('aria-expanded', String(open));
    if (open) {
      panel.replaceChildren(
        ...fill(() => {
          show(false);
          button.focus();
        }).filter((each) => each !== null),
      );
      within(panel);
    }
  };
  button.addEventListener('click', () => show(panel.hidden));
  around.addEventListener('keydown', (/** @type {KeyboardEvent} */ event) => {
    if (event.key !== 'Escape' || panel.hidden) return;
    event.preventDefault();
    event.stopPropagation();
    show(false);
    button.focus();
  });
  around.addEventListener('focusout', (/** @type {FocusEvent} */ event) => {
    if (event.relatedTarget instanceof Node && !around.contains(event.relatedTarget)) show(false);
  });
  document.addEventListener('pointerdown', (event) => {
    if (!panel.hidden && !around.contains(/** @type {Node} */ (event.target))) show(false);
  });
  return around;
}

/** Keep a panel inside the window. @param {HTMLElement} panel */
function within(panel) {
  panel.style.transform = '';
  const { left, right } = panel.getBoundingClientRect();
  const by = Math.min(0, document.documentElement.clientWidth - 8 - right) || Math.max(0, 8 - left);
  if (by) panel.style.transform = `translateX(${by}px)`;
}
