/** A button with a panel that it opens: Escape, a click elsewhere or leaving it closes it. */

import { button, el } from './dom.js';

let last = 0;

export function menu(title, description, fill) {
  last += 1;
  const id = `menu-${last}`;
  const panel = el('div', { class: 'menu-panel', id, hidden: true });
  const opener = button(title, () => show(panel.hidden), {
    class: 'menu-button',
    data: { keep: `menu ${title}` },
    title: description,
    'aria-expanded': 'false',
    'aria-controls': id,
  });
  const around = el('div', { class: 'menu' }, opener, panel);
  const show = (open) => {
    panel.hidden = !open;
    opener.setAttribute('aria-expanded', String(open));
    if (open) {
      panel.replaceChildren(
        ...fill(() => {
          show(false);
          opener.focus();
        }).filter((each) => each !== null),
      );
      within(panel);
    }
  };
  around.addEventListener('keydown', (event) => {
    if (event.key !== 'Escape' || panel.hidden) return;
    event.preventDefault();
    event.stopPropagation();
    show(false);
    opener.focus();
  });
  around.addEventListener('focusout', (event) => {
    if (event.relatedTarget instanceof Node && !around.contains(event.relatedTarget)) show(false);
  });
  document.addEventListener('pointerdown', (event) => {
    if (!panel.hidden && !around.contains(event.target)) show(false);
  });
  return around;
}

/** Keep a panel inside the window. */
function within(panel) {
  panel.style.transform = '';
  const { left, right } = panel.getBoundingClientRect();
  const by = Math.min(0, document.documentElement.clientWidth - 8 - right) || Math.max(0, 8 - left);
  if (by) panel.style.transform = `translateX(${by}px)`;
}
