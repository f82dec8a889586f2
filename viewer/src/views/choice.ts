import { h } from '../dom';

/** Several options side by side, one of which is chosen. */
export function choice<Value extends string>(label: string, options: [Value, string][], current: () => Value, choose: (value: Value) => void): { element: HTMLElement; update: () => void } {
  const buttons = options.map(([value, text]) =>
    h('button', { type: 'button', 'data-value': value, click: () => {
      choose(value);
      update();
    } }, text),
  );
  const update = (): void => {
    for (const button of buttons) button.setAttribute('aria-pressed', String(button.dataset.value === current()));
  };
  update();
  return { element: h('div', { class: 'choice', role: 'group', 'aria-label': label }, ...buttons), update };
}
