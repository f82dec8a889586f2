import { startComparison } from './comparison';
import { Data, readPage } from './data/decode';
import { Model } from './data/model';
import type { Step } from './data/steps';
import { copy, h, setText, swatch } from './dom';
import { bytes, categoryName, count, exactBytes, number, percent, shortened, shown, time } from './format';
import { longestLabel, OperationColours, stackOf } from './groups';
import { helpDialog, installKeys } from './keys';
import { shortenedApart } from './names';
import { followView, go, larger } from './navigation';
import { installStatus, say } from './status';
import { type Grouping, Store, type Unit } from './store';
import { printInLight, themeButton } from './theme';
import { installTip } from './tip';
import { allocatorView } from './views/allocator';
import { answersView } from './views/answers';
import { Band } from './views/band';
import { BlocksChart } from './views/blocks';
import { choice } from './views/choice';
import { factsView } from './views/facts';
import { Gantt } from './views/gantt';
import { holderName, LiveView } from './views/live';
import { operationsView } from './views/operations';
import { Overview } from './views/overview';
import { blocksInRange, invocationsInRange } from './views/ranges';
import { SegmentsView } from './views/segments';
import { StacksView } from './views/stacks';
import { TimelineChart } from './views/timeline';
import { startWaterfall } from './waterfall';

function start(model: Model): void {
  const store = new Store(model);
  const colours = new OperationColours(model);
  printInLight();
  installTip();
  installStatus();
  const heading = shown(model.run.title) || 'memprof';
  document.title = `${heading} \u2013 memprof`;

  const sections: [id: string, title: string, content: () => HTMLElement][] = [['answers', 'Answers', () => answersView(model, store)]];
  if (model.spaces.length > 0) {
    sections.push(['timeline', 'Timeline', () => timelineSection(model, store, colours)], ['live', 'Live', () => liveSection(model, store, colours)]);
    sections.push(['lanes', 'Lanes', () => lanesSection(model, store, colours)]);
    if (model.detail) sections.push(['blocks', 'Blocks', () => blocksSection(model, store, colours)]);
    sections.push(
      ['segments', 'Segments', () => titled('segments', model.steps.length > 0 ? 'Segments and steps' : 'Segments', new SegmentsView(model, store).element)],
      ['operations', 'Operations', () => titled('operations', 'Operations over the whole run', operationsView(model, store, colours))],
      ['allocator', 'Allocator', () => titled('allocator', 'Allocator', allocatorView(model, store))],
    );
  }
  sections.push(['facts', 'Facts', () => titled('facts', 'Facts', factsView(model))]);

  const main = h('main', {}, ...sections.map(([, , content]) => content()));
  const header = pageHeader(model, store, heading, sections.map(([id, title]) => [id, title]));
  document.getElementById('loading')?.remove();
  document.body.prepend(header, main);
  const help = helpDialog();
  document.body.append(h('footer', {}, `Made by memprof${model.profile.library_version ? ` ${shown(model.profile.library_version)}` : ''}. Bytes are exact; hold the pointer over a number for all its digits. `, h('button', { type: 'button', class: 'quiet', click: () => help.showModal() }, 'Keys')), help);
  installKeys(store, help, sections.map(([id]) => id));
  followView(store);
}

function titled(id: string, title: string, ...content: HTMLElement[]): HTMLElement {
  return h('section', { id, 'aria-labelledby': `${id}-title` }, h('h2', { id: `${id}-title` }, title), ...content);
}

/* --- The page's head ---------------------------------------------------------------------------------------------------- */

function pageHeader(model: Model, store: Store, heading: string, sections: [string, string][]): HTMLElement {
  const { profile } = model;
  const rank = profile.process.rank >= 0 ? `rank ${profile.process.rank} of ${profile.process.world_size}` : '';
  const about = [shown(profile.device), time(model.durationNs), model.hasEvents ? number(model.events, 'event') : 'from a profile', rank].filter((s) => s).join(' \u00b7 ');
  const spaces = h('select', { 'aria-label': 'Memory space', change: () => store.set({ space: spaces.selectedIndex, at: model.peak(model.spaces[spaces.selectedIndex]) }) });
  for (const space of model.spaces) spaces.append(h('option', {}, `${shortened(shown(space.name), 40)} \u2013 ${bytes(space.profile.cumulative_peak)}`));
  store.on(['space'], () => (spaces.selectedIndex = store.state.space));
  spaces.selectedIndex = store.state.space;

  const nav = h('nav', { 'aria-label': 'Sections' }, ...sections.map(([id, title]) => h('a', { href: `#${id}`, 'data-section': id, click: (event: Event) => {
    event.preventDefault();
    go(store, id);
  } }, title)));
  const bar = h(
    'div',
    { class: 'bar-top' },
    h('h1', { title: shown(profile.process.command_line) || heading }, heading),
    h('span', { class: 'about' }, about),
    model.spaces.length > 1 ? spaces : null,
    nav,
    h('button', { type: 'button', class: 'quiet', title: 'Copy a link to the current view', click: () => void copyLink(store) }, 'Copy link'),
    themeButton(),
  );
  const header = h('header', {}, bar, model.spaces.length > 0 ? new Overview(store, model).element : null);
  new ResizeObserver(() => document.documentElement.style.setProperty('--header', `${header.offsetHeight}px`)).observe(header);
  return header;
}

async function copyLink(store: Store): Promise<void> {
  store.writeAddressNow();
  say((await copy(location.href)) ? 'Copied the link.' : 'The browser did not allow copying.');
}

/* --- Sections with charts ----------------------------------------------------------------------------------------------- */

function timelineSection(model: Model, store: Store, colours: OperationColours): HTMLElement {
  const chart = new TimelineChart(store, model, colours, null, 260);
  const lanes = model.spaces.length > 1 ? h('div', { class: 'space-lanes' }) : null;
  const legend = h('div', { class: 'legend', 'aria-hidden': 'true' });
  const draw = (): void => drawLegend(model, store, colours, legend);
  store.on(['hover', 'at', 'space', 'by'], draw);
  addEventListener('themechange', draw);
  draw();
  const arrange = (): void => {
    const bySpace = store.state.by === 'space' && lanes !== null;
    chart.element.hidden = bySpace;
    legend.hidden = bySpace;
    if (!lanes) return;
    lanes.hidden = !bySpace;
    if (!bySpace || lanes.childElementCount > 0) return;
    for (const space of model.spaces) {
      if (space.profile.cumulative_peak <= 0) continue;
      lanes.append(h('h3', {}, `${shown(space.name)} `, h('span', { class: 'muted' }, `peak ${bytes(space.profile.cumulative_peak)}`)), new TimelineChart(store, model, colours, space, 130).element);
    }
  };
  store.on(['by'], arrange);
  arrange();
  return titled('timeline', 'Live bytes over time', toolbar(model, store), rangeNote(model, store), chart.element, ...(lanes ? [lanes] : []), new Band(store, model).element, legend);
}

function toolbar(model: Model, store: Store): HTMLElement {
  const options: [Grouping, string][] = [['category', 'Category'], ['operation', 'Operation']];
  if (model.spaces.length > 1) options.push(['space', 'Space']);
  const by = choice<Grouping>('Stacked by', options, () => store.state.by, (value) => store.set({ by: value }));
  store.on(['by'], by.update);
  const unit = choice<Unit>('Along the axis', [['time', 'Time'], ['event', 'Events']], () => store.state.unit, (value) => store.setUnit(value));
  store.on(['unit'], unit.update);
  const button = (text: string, label: string, act: () => void): HTMLElement => h('button', { type: 'button', title: label, 'aria-label': label, click: act }, text);
  return h(
    'div',
    { class: 'toolbar' },
    by.element,
    model.hasEvents ? unit.element : null,
    h('div', { class: 'choice', role: 'group', 'aria-label': 'Zoom' }, button('\u2212', 'Zoom out', () => store.zoom(2)), button('+', 'Zoom in', () => store.zoom(0.5)), button('Whole run', 'Show the whole run', () => store.setRange(0, store.full))),
    h(
      'div',
      { class: 'choice', role: 'group', 'aria-label': 'Moment' },
      button('\u2039', 'Previous moment', () => store.move(-1)),
      button('\u203a', 'Next moment', () => store.move(1)),
      button('Peak', 'Select the peak', () => store.selectPeak()),
      button('\u2191 before', 'Previous larger peak', () => larger(store, -1)),
      button('\u2191 after', 'Next larger peak', () => larger(store, 1)),
    ),
  );
}

/** The first and the last step of which at least a quarter is visible; null where there is none. */
function visibleSteps(model: Model, store: Store): [Step | null, Step | null] {
  const { from, to, unit } = store.state;
  const axis = unit === 'event' ? 'event' : 'ns';
  const quarter = (step: Step | null): number => (step === null ? 0 : (axis === 'event' ? step.endEvent - step.beginEvent : step.endNs - step.beginNs) / 4);
  const at = (value: number): Step | null => model.steps.on(axis, value);
  return [at(from + quarter(at(from))), at(to - quarter(at(to)))];
}

/** Where there are too many steps to be seen at once: which are shown, and the way to the others. */
function rangeNote(model: Model, store: Store): HTMLElement {
  const note = h('p', { class: 'about range-note' });
  const go = (text: string, range: [number, number]): HTMLElement => h('button', { type: 'button', click: () => store.setRange(...range) }, text);
  const draw = (): void => {
    const peak = store.peakRange;
    note.hidden = peak === null;
    if (!peak) return;
    const all = `of ${count(model.steps.count)} steps`;
    if (store.showsAll) {
      note.replaceChildren(`The whole run, each ${all} as its largest moment. `, go('Show the step with the peak', peak));
      return;
    }
    const [first, last] = visibleSteps(model, store);
    const held = model.stepAt(model.peak(store.space!))?.row;
    const hasPeak = first !== null && last !== null && held !== undefined && first.row <= held && held <= last.row;
    const numbers = first && last ? (first.row === last.row ? `Step ${count(first.number)} ${all}` : `Steps ${count(first.number)} to ${count(last.number)} ${all}`) : '';
    note.replaceChildren(
      numbers && `${numbers}${hasPeak ? `, which ${first.row === last.row ? 'holds' : 'hold'} the peak` : ''}. `,
      go('Show the whole run', [0, store.full]),
      ...(hasPeak && first.row === last.row ? [] : [' \u00b7 ', go('Show the step with the peak', peak)]),
    );
  };
  store.on(['from', 'to', 'unit', 'space'], draw);
  draw();
  return note;
}

/** The bands, with their bytes at the pointer or at the selected moment. */
function drawLegend(model: Model, store: Store, colours: OperationColours, legend: HTMLElement): void {
  const { space } = store;
  if (!space) return;
  const found = model.locate(space, store.lookedAt);
  if (!found) {
    legend.replaceChildren();
    return;
  }
  const total = found.timeline.total[found.row];
  if (!found.timeline.composition) {
    // In a profile, owners are known only at some moments.
    const live = model.liveAt(space, store.state.at);
    if (store.state.by === 'category') {
      legend.replaceChildren(...(live?.byCategory ?? []).map((c) => legendEntry('', categoryName(c.category), categoryName(c.category), c.bytes, live!.total)));
      return;
    }
    const rows = (live?.byOperation ?? []).slice(0, 9);
    const names = rows.map((row) => holderName(row));
    const short = shortenedApart(names, longestLabel);
    legend.replaceChildren(...rows.map((row, index) => legendEntry('', names[index], short[index], row.bytes, live!.total)));
    return;
  }
  const stack = stackOf(model, space, found.timeline, store.state.by, colours);
  legend.replaceChildren(...stack.groups.map((group, g) => legendEntry(group.colour(), shown(group.label), stack.labels[g], stack.values[g][found.row], total)));
}

function legendEntry(colour: string, name: string, short: string, value: number, total: number): HTMLElement {
  return h('div', { class: value === 0 ? 'none' : undefined, title: `${name}\n${exactBytes(value)}` }, colour ? swatch(colour) : null, h('span', { class: 'name' }, short), h('span', { class: 'number' }, value === 0 ? '\u2013' : bytes(value)), h('span', { class: 'number part' }, value === 0 ? '' : percent(value, total)));
}

/** What was live by operation or, where the recording has stacks, by the calls that asked for it. */
function liveSection(model: Model, store: Store, colours: OperationColours): HTMLElement {
  const live = new LiveView(model, store, colours);
  const { stacks } = model;
  const section = titled('live', 'What was live at the selected moment', live.element);
  if (!stacks) return section;
  const heading = section.querySelector('h2')!;
  let calls: HTMLElement | null = null;
  let shows: 'by-operation' | 'by-call' = 'by-operation';
  const by = choice('Shown by', [['by-operation', 'Operations'], ['by-call', 'Call stacks']], () => shows, (value) => {
    shows = value;
    update();
  });
  const bar = h('div', { class: 'toolbar' }, by.element);
  const update = (): void => {
    bar.hidden = store.state.space !== model.detail!.stacks!.space;
    const showsCalls = shows === 'by-call' && !bar.hidden;
    if (showsCalls && !calls) live.element.after((calls = new StacksView(stacks, store, colours).element));
    live.element.hidden = showsCalls;
    if (calls) calls.hidden = !showsCalls;
    setText(heading, showsCalls ? 'The calls that asked for memory' : 'What was live at the selected moment');
  };
  heading.after(bar);
  store.on(['space'], update);
  update();
  return section;
}

function lanesSection(model: Model, store: Store, colours: OperationColours): HTMLElement {
  const gantt = new Gantt(store, model, colours);
  const table = model.invocationsOf(0);
  const notes: string[] = [];
  if (!model.detail) notes.push(`${table ? `A profile has of each operation the first, the last and the largest invocation, here ${count(table.length)} of ${count(table.invocations)}.` : 'This profile has no invocations.'} A trace has all, and blocks over time too: set trace_file in capture_options, or MEMPROF_TRACE=1 for a session, and give the file to memprof report.`);
  else if (table && table.left > 0) notes.push(`${count(table.left)} of ${count(table.invocations)} invocations were too short to keep.`);
  if (gantt.leftOut > 0) notes.push(`${count(gantt.leftOut)} deeper lanes not drawn.`);
  return titled('lanes', 'Operations over time', h('div', { class: 'scrolled' }, gantt.element), notes.length > 0 ? h('p', { class: 'about' }, notes.join(' ')) : h('span'), invocationsInRange(model, store, gantt));
}

function blocksSection(model: Model, store: Store, colours: OperationColours): HTMLElement {
  const chart = new BlocksChart(store, model, colours);
  const button = (text: string, label: string, act: () => void): HTMLElement => h('button', { type: 'button', title: label, 'aria-label': label, click: act }, text);
  const tools = h(
    'div',
    { class: 'toolbar' },
    h('div', { class: 'choice', role: 'group', 'aria-label': 'Addresses' }, button('\u2212', 'Zoom out of the addresses', () => chart.zoomOffsets(2)), button('+', 'Zoom into the addresses', () => chart.zoomOffsets(0.5)), button('\u2193', 'Lower addresses', () => chart.panOffsets(-0.4)), button('\u2191', 'Higher addresses', () => chart.panOffsets(0.4)), button('All addresses', 'Show all addresses', () => chart.showAll())),
    h('span', { class: 'about' }, 'Height is size, width is lifetime. Dotted lines mark address ranges that no block ever used. A block smaller than a pixel is drawn as one.'),
  );
  return titled('blocks', 'Blocks over time by address', tools, chart.element, blocksInRange(model, store, chart));
}

function failed(error: unknown): void {
  const place = document.getElementById('loading') ?? document.body;
  place.textContent = error instanceof Error ? error.message : String(error);
  place.setAttribute('role', 'alert');
}

readPage()
  .then((page) => {
    if (page instanceof Data) start(new Model(page));
    else if (page.format === 'memprof-waterfall') startWaterfall(page);
    else startComparison(page);
    // From the start of the page to the frame after the first complete one, for measurements.
    requestAnimationFrame(() => requestAnimationFrame(() => performance.measure('memprof-first-paint')));
  })
  .catch(failed);
