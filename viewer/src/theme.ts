import { isDark } from './colours';
import { h, setText } from './dom';

/** Paper is light. Charts draw themselves before printing, so this listener must be registered before there are any. */
export function printInLight(): void {
  let before: string | undefined;
  addEventListener('beforeprint', () => {
    before = document.documentElement.dataset.theme;
    document.documentElement.dataset.theme = 'light';
    dispatchEvent(new Event('themechange'));
  });
  addEventListener('afterprint', () => {
    if (before === undefined) delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = before;
    dispatchEvent(new Event('themechange'));
  });
}

export function themeButton(): HTMLElement {
  const remembered = (() => {
    try {
      return localStorage.getItem('memprof-theme');
    } catch {
      return null;
    }
  })();
  if (remembered === 'dark' || remembered === 'light') document.documentElement.dataset.theme = remembered;
  const button = h('button', { type: 'button', class: 'quiet theme', click: () => {
    const next = isDark() ? 'light' : 'dark';
    document.documentElement.dataset.theme = next;
    try {
      localStorage.setItem('memprof-theme', next);
    } catch {
      // A browser that stores nothing for files forgets the choice with the page.
    }
    changed();
  } });
  const changed = (): void => {
    setText(button, isDark() ? 'Light' : 'Dark');
    button.setAttribute('aria-label', isDark() ? 'Use light colours' : 'Use dark colours');
    dispatchEvent(new Event('themechange'));
  };
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', changed);
  changed();
  return button;
}
