/** Light or dark: what the system says, until the user says something else. */

import { el } from './dom.js';
import { keep, kept } from './kept.js';

const KEY = 'tfrecreg-theme';

/** @param {HTMLElement} button */
export function beginTheme(button) {
  const system = matchMedia('(prefers-color-scheme: dark)');
  let chosen = kept(KEY);
  const isDark = () => (chosen ?? (system.matches ? 'dark' : 'light')) === 'dark';
  const show = () => {
    document.documentElement.dataset.theme = isDark() ? 'dark' : 'light';
    button.replaceChildren(el('span', { 'aria-hidden': 'true', text: isDark() ? '☀' : '☾' }));
    button.title = isDark() ? 'Light colors' : 'Dark colors';
    button.setAttribute('aria-label', button.title);
  };
  button.addEventListener('click', () => {
    chosen = isDark() ? 'light' : 'dark';
    keep(KEY, chosen);
    show();
  });
  system.addEventListener('change', show);
  show();
}
