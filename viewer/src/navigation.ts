import { say } from './status';
import type { Store } from './store';

/** Scrolls to a section, which the address then names. */
export function go(store: Store, id: string): void {
  store.set({ view: id });
  document.getElementById(id)?.scrollIntoView();
}

/** Shows the section given in the address, and marks the visible one in the navigation. */
export function followView(store: Store): void {
  let arrived = store.state.view;
  if (arrived) requestAnimationFrame(() => document.getElementById(arrived)?.scrollIntoView());
  addEventListener('hashchange', () => {
    arrived = store.state.view;
    document.getElementById(arrived)?.scrollIntoView();
  });
  const links = [...document.querySelectorAll<HTMLAnchorElement>('nav a')];
  const mark = (): void => {
    const middle = (document.querySelector('header')?.offsetHeight ?? 0) + innerHeight * 0.12;
    let current = '';
    for (const section of document.querySelectorAll<HTMLElement>('main > section')) if (section.getBoundingClientRect().top < middle) current = section.id;
    for (const link of links) {
      if (link.dataset.section === current) link.setAttribute('aria-current', 'true');
      else link.removeAttribute('aria-current');
    }
  };
  addEventListener('scroll', mark, { passive: true });
  mark();
}

/** Selects the next larger peak after or before the selected moment. */
export function larger(store: Store, direction: 1 | -1): void {
  if (!store.selectLarger(direction)) say(direction > 0 ? 'Nothing larger comes later.' : 'Nothing larger came before.');
}
