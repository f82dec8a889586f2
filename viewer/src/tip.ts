import { h, swatch } from './dom';

/** The contents of a tooltip: a heading, and lines with a name and a value. */
export interface Tip {
  title: string;
  lines: [name: string, value: string, colour?: string][];
  note?: string;
}

const box = h('div', { class: 'tip', role: 'tooltip', id: 'tip' });
box.hidden = true;

export function installTip(): void {
  document.body.append(box);
  addEventListener('scroll', hideTip, { passive: true, capture: true });
}

export function hideTip(): void {
  box.hidden = true;
}

/** Beside the pointer or, where there is room, above what is to be kept clear. */
export function showTip(tip: Tip, x: number, y: number, clear: DOMRect | null = null): void {
  const list = h('dl');
  for (const [name, value, colour] of tip.lines) {
    list.append(h('dt', {}, colour ? swatch(colour) : null, name), h('dd', {}, value));
  }
  box.replaceChildren(h('p', { class: 'tip-title' }, tip.title), list, ...(tip.note ? [h('p', { class: 'tip-note' }, tip.note)] : []));
  box.hidden = false;
  const { offsetWidth: width, offsetHeight: height } = box;
  const left = x + 16 + width > innerWidth ? Math.max(4, x - 16 - width) : x + 16;
  const above = clear ? clear.top - height : 0;
  const top = clear && above >= 4 ? above : Math.min(Math.max(4, y + 16), innerHeight - height - 4);
  box.style.transform = `translate(${Math.round(left)}px, ${Math.round(top)}px)`;
}
