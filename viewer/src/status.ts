import { h, setText } from './dom';

/** Says what happened, on the screen and to screen readers. */
const line = h('div', { class: 'status', role: 'status', 'aria-live': 'polite' });
const spoken = h('div', { class: 'offscreen', 'aria-live': 'polite' });
let hiding: ReturnType<typeof setTimeout> | undefined;

export function installStatus(): void {
  document.body.append(line, spoken);
}

export function say(text: string): void {
  setText(line, text);
  line.classList.add('shown');
  clearTimeout(hiding);
  hiding = setTimeout(() => line.classList.remove('shown'), 2500);
}

/** Only for screen readers: announces what is visible anyway. */
export function speak(text: string): void {
  setText(spoken, text);
}
