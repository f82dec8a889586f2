/** Elements without HTML text: names from the program only ever become text nodes and attribute values. */

type Attribute = string | number | boolean | undefined | ((event: never) => void);
type Child = Node | string | null | undefined | false;

/** An element. Functions are listeners of the event that their key names; true is an empty attribute, false and undefined none. */
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

/** Replaces the children, unless the text is the same already: a live region speaks only on changes. */
export function setText(element: HTMLElement, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}

/** A swatch of a colour. `style` attributes are forbidden by the page's policy, the property is not. */
export function swatch(colour: string): HTMLElement {
  const element = h('span', { class: 'swatch', 'aria-hidden': 'true' });
  element.style.backgroundColor = colour;
  return element;
}

/** A bar from 0 to 1 of its cell. */
export function bar(part: number, colour: string): HTMLElement {
  const fill = h('span', { class: 'bar-fill' });
  fill.style.width = `${Math.max(0, Math.min(1, part)) * 100}%`;
  fill.style.backgroundColor = colour;
  return h('span', { class: 'bar', 'aria-hidden': 'true' }, fill);
}

/** Copies text, in files opened from disk too. */
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
