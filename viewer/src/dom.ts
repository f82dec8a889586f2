/** Builds elements without HTML text: names from the program only ever become text nodes and attribute values. */

type Attribute = string | number | boolean | undefined | ((event: never) => void);
type Child = Node | string | null | undefined | false;

/** An element. Functions become listeners for the event named by their key; true is an empty attribute, false and undefined none. */
export function h<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  attributes: Record<string, Attribute> = {},
  ...children: Child[]
): HTMLElementTagNameMap[Tag] {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === 'function') element.addEventListener(key, value as EventListener);
    else if (value === true) element.setAttribute(key, '');
    else if (value !== undefined && value !== false) element.setAttribute(key, String(value));
  }
  for (const child of children) if (child !== null && child !== undefined && child !== false) element.append(child);
  return element;
}

/** Replaces the children unless the text is the same: a live region announces only changes. */
export function setText(element: HTMLElement, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}

/** A colour swatch. The page's policy forbids `style` attributes, but not the property. */
export function swatch(colour: string): HTMLElement {
  const element = h('span', { class: 'swatch', 'aria-hidden': 'true' });
  element.style.backgroundColor = colour;
  return element;
}

/** A bar that fills a share of its cell, from 0 to 1. */
export function bar(part: number, colour: string): HTMLElement {
  const fill = h('span', { class: 'bar-fill' });
  fill.style.width = `${Math.max(0, Math.min(1, part)) * 100}%`;
  fill.style.backgroundColor = colour;
  return h('span', { class: 'bar', 'aria-hidden': 'true' }, fill);
}

/** Copies text, even in files opened from disk. */
export async function copy(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = h('textarea', { class: 'offscreen', readonly: true });
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand('copy');
    area.remove();
    return done;
  }
}
