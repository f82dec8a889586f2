import { categoryColour, plainColour } from '../colours';
import { type Answer, answersFor, ownersAtPeak, whereIsPeak } from '../data/answers';
import type { Model } from '../data/model';
import { workerLines } from '../data/workers';
import { bar, h, swatch } from '../dom';
import { bytes, categoryName, exactBytes, hasCategories, number, percent, shortened, shown, time } from '../format';
import { shortenedApart, shortenedName } from '../names';
import type { Store } from '../store';

/** The first section of the page. */
export function answersView(model: Model, store: Store): HTMLElement {
  const section = h('section', { id: 'answers', 'aria-label': 'Answers' });
  const draw = (): void => {
    const space = store.space;
    if (!space) {
      section.replaceChildren(h('div', { class: 'answer wide' }, h('h2', {}, 'Nothing was recorded'), h('p', { class: 'value' }, 'No memory was allocated'), h('p', {}, 'The capture saw no allocation in any memory space.')));
      return;
    }
    const cards = [peakCard(model, store), ownersCard(model, store), ...answersFor(model, space).map((a) => answerCard(store, a))];
    if (model.spaces.length > 1) cards.push(spacesCard(model, store));
    section.classList.toggle('with-spaces', model.spaces.length > 1);
    section.replaceChildren(...cards);
  };
  store.on(['space'], draw);
  // Links carry the range and moment from when they were made; nobody follows one while those change.
  let waiting: ReturnType<typeof setTimeout> | undefined;
  store.on(['from', 'to', 'unit', 'by', 'at'], () => {
    clearTimeout(waiting);
    waiting = setTimeout(draw, 250);
  });
  addEventListener('themechange', draw);
  draw();
  return section;
}

function peakCard(model: Model, store: Store): HTMLElement {
  const space = store.space!;
  const peak = space.profile.cumulative_peak;
  const whole = h('div', { class: 'composition', 'aria-hidden': 'true' });
  const legend = h('ul', { class: 'keys' });
  for (const part of space.profile.live_at_peak.by_category) {
    if (part.bytes <= 0) continue;
    const colour = categoryColour(part.owner ?? 'other');
    const piece = h('span', { title: `${categoryName(part.owner ?? 'other')} ${bytes(part.bytes)}` });
    piece.style.flexGrow = String(part.bytes);
    piece.style.backgroundColor = colour;
    whole.append(piece);
    legend.append(h('li', { title: exactBytes(part.bytes) }, swatch(colour), `${categoryName(part.owner ?? 'other')} `, h('b', {}, bytes(part.bytes)), ` ${percent(part.bytes, peak)}`));
  }
  return h(
    'div',
    { class: 'answer peak', 'data-answer': 'peak' },
    h('h2', {}, `Peak of ${shown(space.name)}`),
    h('p', { class: 'value', title: exactBytes(peak) }, h('a', { href: store.link('timeline', { at: 'peak' }) }, bytes(peak))),
    ...whereIsPeak(model, space).map((line) => h('p', { title: line }, shortenedName(line, 90))),
    ...(hasCategories(space.profile.live_at_peak.by_category) ? [whole, legend] : []),
  );
}

function ownersCard(model: Model, store: Store): HTMLElement {
  const space = store.space!;
  const owners = ownersAtPeak(space.profile);
  const set = space.profile.live_at_peak;
  const list = h('table', { class: 'owners', 'aria-label': 'Largest owners at the peak' });
  const most = owners[0]?.bytes ?? 1;
  const first = owners.slice(0, 7);
  const times = first.map((owner) => (owner.paths > 1 ? ` \u00d7${owner.paths}` : ''));
  const letters = (matchMedia('(max-width: 640px)').matches ? 22 : 42) - Math.max(0, ...times.map((text) => text.length));
  const short = shortenedApart(first.map((owner) => shown(owner.label)), letters);
  for (const [index, owner] of first.entries()) {
    const name = shown(owner.label);
    list.append(
      h(
        'tr',
        {},
        h('td', { title: name + times[index] }, h('a', { href: store.link('live', { at: 'peak', find: owner.paths > 1 ? owner.label.split('*')[0] : owner.label }) }, short[index] + times[index])),
        h('td', { class: 'bar-cell' }, bar(owner.bytes / most, plainColour())),
        h('td', { class: 'number', title: exactBytes(owner.bytes) }, bytes(owner.bytes)),
        h('td', { class: 'number' }, percent(owner.bytes, set.bytes)),
      ),
    );
  }
  const left = owners.slice(7);
  const rest = set.remaining_bytes + left.reduce((sum, o) => sum + o.bytes, 0);
  if (rest > 0) list.append(h('tr', { class: 'muted' }, h('td', {}, `${number(set.remaining_operations + left.reduce((sum, o) => sum + o.paths, 0), 'other operation')}`), h('td'), h('td', { class: 'number' }, bytes(rest)), h('td', { class: 'number' }, percent(rest, set.bytes))));
  return h('div', { class: 'answer owners-answer', 'data-answer': 'owners' }, h('h2', {}, 'Who held it'), owners.length > 0 ? list : h('p', {}, 'Nothing was live.'), ...workerLines(model.profile, space.profile).map((line) => h('p', {}, line)));
}

function answerCard(store: Store, answer: Answer): HTMLElement {
  const rest = answer.lines.length - 4;
  return h(
    'div',
    { class: `answer ${answer.mood}`, 'data-answer': answer.id },
    h('h2', {}, answer.question),
    h('p', { class: 'value' }, answer.value),
    ...answer.lines.slice(0, 4).map((line) => h('p', { title: line }, shortened(line, 110))),
    rest > 0 ? h('p', {}, `and ${rest} more`) : null,
    h('p', { class: 'more' }, h('a', { href: store.link(answer.view, { at: answer.at }) }, answer.link)),
  );
}

function spacesCard(model: Model, store: Store): HTMLElement {
  const list = h('table', { class: 'owners', 'aria-label': 'Memory spaces' });
  const most = Math.max(1, ...model.spaces.map((s) => s.profile.cumulative_peak));
  for (const space of [...model.spaces].sort((a, b) => b.profile.cumulative_peak - a.profile.cumulative_peak).slice(0, 8)) {
    list.append(
      h(
        'tr',
        space.index === store.state.space ? { 'aria-current': 'true' } : {},
        h('td', { title: shown(space.name) }, h('a', { href: store.link('answers', { space: space.index, at: 'peak' }) }, shortened(shown(space.name), 40))),
        h('td', { class: 'bar-cell' }, bar(space.profile.cumulative_peak / most, plainColour())),
        h('td', { class: 'number', title: exactBytes(space.profile.cumulative_peak) }, bytes(space.profile.cumulative_peak)),
      ),
    );
  }
  const card = h('div', { class: 'answer', 'data-answer': 'spaces' }, h('h2', {}, 'Memory spaces, by their peaks'), list);
  for (const memory of model.profile.memories ?? []) {
    const used = model.profile.spaces.filter((s) => s.cumulative_peak > 0 && memory.spaces.some((part) => part.owner === s.name));
    if (used.length < 2) continue;
    const parts = memory.spaces.map((part) => `${shown(part.owner ?? '')} ${bytes(part.bytes)}`).join(', ');
    const line = `Together in ${shown(memory.name)}: ${bytes(memory.cumulative_peak)} at ${time(memory.peak_time_ns)} (${parts})`;
    const by = memory.peak_operation === null ? '' : `, by ${shown(memory.peak_operation)}`;
    card.append(h('p', { class: 'together', title: `${line}${by}: ${exactBytes(memory.cumulative_peak)}` }, shortened(line, 110)));
  }
  return card;
}
