import { h } from './dom';
import { go, larger } from './navigation';
import type { Grouping, Store } from './store';
import { hideTip } from './tip';

const keys: [string, string][] = [
  ['+ \u2212', 'zoom in and out around the selected moment'],
  ['A D', 'pan left and right'],
  ['\u2190 \u2192', 'the previous or next moment; with Shift, ten of them'],
  ['P', 'select the peak'],
  ['N B', 'the next larger peak after or before the selected moment'],
  ['0', 'the whole run'],
  ['Home End', 'the start or end of the run'],
  ['X', 'time or events along the axis'],
  ['C', 'colours by category, operation or memory space'],
  ['Wheel', 'zoom; sideways or with Shift, pan; with Alt over the blocks, zoom their addresses'],
  ['Drag', 'pan; with Shift, zoom into a range; double-click for the whole run'],
  ['1 \u2026 9', 'go to a section'],
  ['/', 'search the nearest table'],
  ['?', 'this list'],
];

export function helpDialog(): HTMLDialogElement {
  const dialog: HTMLDialogElement = h('dialog', { 'aria-label': 'Keys', click: (event: Event) => {
    if (event.target === dialog) dialog.close();
  } }, h('h2', {}, 'Keys'), h('dl', {}, ...keys.flatMap(([key, does]) => [h('dt', {}, key), h('dd', {}, does)])), h('form', { method: 'dialog' }, h('button', {}, 'Close')));
  return dialog;
}

export function installKeys(store: Store, help: HTMLDialogElement, sections: string[]): void {
  addEventListener('keydown', (event) => {
    const { target } = event;
    if (event.ctrlKey || event.metaKey || event.altKey || help.open) return;
    if (target instanceof HTMLInputElement || target instanceof HTMLSelectElement || target instanceof HTMLTextAreaElement) {
      if (event.key === 'Escape') target.blur();
      return;
    }
    // Arrows and Home belong to a scrolled region while it has focus.
    const scrolls = target instanceof HTMLElement && target.closest('.rows, .scrolled') !== null && !(target instanceof HTMLCanvasElement);
    if (!handleKey(store, help, sections, event, scrolls)) return;
    event.preventDefault();
    hideTip();
  });
}

function handleKey(store: Store, help: HTMLDialogElement, sections: string[], event: KeyboardEvent, scrolls: boolean): boolean {
  const { key } = event;
  if (/^[1-9]$/.test(key)) {
    const id = sections[Number(key) - 1];
    if (id) go(store, id);
    return id !== undefined;
  }
  if (scrolls && (key.startsWith('Arrow') || key === 'Home' || key === 'End')) return false;
  switch (key) {
    case '+':
    case '=':
    case 'w':
      store.zoom(1 / 1.5);
      return true;
    case '-':
    case 's':
      store.zoom(1.5);
      return true;
    case 'a':
      store.pan(-0.2);
      return true;
    case 'd':
      store.pan(0.2);
      return true;
    case '0':
      store.setRange(0, store.full);
      return true;
    case 'ArrowLeft':
    case 'ArrowRight':
      store.move((key === 'ArrowLeft' ? -1 : 1) * (event.shiftKey ? 10 : 1));
      return true;
    case 'Home':
      store.select({ event: 0, ns: 0 });
      return true;
    case 'End':
      store.select(store.model.end);
      return true;
    case 'p':
      store.selectPeak();
      return true;
    case 'n':
      larger(store, 1);
      return true;
    case 'b':
      larger(store, -1);
      return true;
    case 'x':
      store.setUnit(store.state.unit === 'time' ? 'event' : 'time');
      return true;
    case 'c': {
      const all: Grouping[] = store.model.spaces.length > 1 ? ['category', 'operation', 'space'] : ['category', 'operation'];
      store.set({ by: all[(all.indexOf(store.state.by) + 1) % all.length] });
      return true;
    }
    case '/':
      searchNearest();
      return true;
    case '?':
      help.showModal();
      return true;
    default:
      return false;
  }
}

/** The search field of the table nearest to the middle of the window. */
function searchNearest(): void {
  let best: HTMLInputElement | null = null;
  let distance = Infinity;
  for (const input of document.querySelectorAll<HTMLInputElement>('input[type=search]')) {
    const box = input.getBoundingClientRect();
    const away = Math.abs(box.top - innerHeight * 0.4);
    if (box.width > 0 && away < distance) [best, distance] = [input, away];
  }
  best?.focus();
}
