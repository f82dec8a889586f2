import type { Moment } from './data/live';
import type { Model } from './data/model';
import type { SpaceModel, Timeline } from './data/space';
import { rowAt } from './data/steps';
import { hasCategories } from './format';

/** What all views share: one range of the time axis, one selected moment, one memory space. The address has it too. */

export type Unit = 'time' | 'event';
export type Grouping = 'category' | 'operation' | 'space';

export interface State {
  view: string;
  space: number;
  by: Grouping;
  unit: Unit;
  /** The visible range, in nanoseconds or events. */
  from: number;
  to: number;
  at: Moment;
  /** What a table is searched for after following a link. */
  find: string;
}

type Part = keyof State | 'hover';

/** Time, unless the clock stood still or so many moments share a reading that they would overlap. */
function defaultUnit(model: Model): Unit {
  const timeline = model.spaces[model.mainSpace]?.timeline;
  if (!model.hasEvents || !timeline) return 'time';
  if (model.profile.duration_ns === 0) return 'event';
  return new Set(timeline.beginNs).size * 8 < timeline.length ? 'event' : 'time';
}

/** Categories, if any block has one. */
function defaultGrouping(model: Model): Grouping {
  const known = model.detail ? model.detail.owners.some((o) => o.category !== 'other') : model.spaces.some((s) => hasCategories(s.profile.live_at_peak.by_category));
  return known || model.profile.operations.length === 0 ? 'category' : 'operation';
}

/** Side by side, more steps than this are a pattern of pixels that says nothing. */
const leastStepWidth = 24;

/** The step that holds a moment, with a margin; null if the whole run can be seen at once, or the moment is in no step. */
export function stepRange(model: Model, unit: Unit, at: Moment): [from: number, to: number] | null {
  const step = model.stepAt(at);
  if (!step || model.steps.count * leastStepWidth <= innerWidth) return null;
  const [begin, end] = unit === 'event' ? [step.beginEvent, step.endEvent] : [step.beginNs, step.endNs];
  const margin = (end - begin) * 0.02;
  return [Math.max(0, begin - margin), end + margin];
}

export class Store {
  readonly state: State;
  /** The position of the pointer on the shared axis; null if it is not over a chart. */
  hover: number | null = null;
  private hoverMoment: Moment | null = null;
  private readonly listeners: [Set<Part>, () => void][] = [];
  private lastAddress = '';
  private writing: ReturnType<typeof setTimeout> | undefined;

  constructor(readonly model: Model) {
    const space = model.mainSpace;
    this.state = {
      view: '',
      space,
      by: defaultGrouping(model),
      unit: defaultUnit(model),
      from: 0,
      to: 0,
      at: model.spaces.length > 0 ? model.peak(model.spaces[space]) : { event: 0, ns: 0 },
      find: '',
    };
    [this.state.from, this.state.to] = stepRange(model, this.state.unit, this.state.at) ?? [0, this.full];
    this.readAddress();
    addEventListener('hashchange', () => {
      if (location.hash !== this.lastAddress) this.readAddress();
    });
    // Who leaves the page, or looks elsewhere to copy its address, finds the view there.
    addEventListener('pagehide', () => {
      if (this.writing !== undefined) this.writeAddressNow();
    });
  }

  get space(): SpaceModel | undefined {
    return this.model.spaces[this.state.space];
  }

  get showsAll(): boolean {
    return this.state.from <= 0 && this.state.to >= this.full;
  }

  /** The end of the axis, which starts at 0. */
  get full(): number {
    return this.fullOf(this.state.unit);
  }

  fullOf(unit: Unit): number {
    return unit === 'event' ? Math.max(1, this.model.events) : this.model.durationNs;
  }

  on(parts: Part[], listener: () => void): void {
    this.listeners.push([new Set(parts), listener]);
  }

  set(change: Partial<State>): void {
    const changed: Part[] = [];
    for (const key of Object.keys(change) as (keyof State)[]) {
      if (this.state[key] === change[key]) continue;
      (this.state as unknown as Record<string, unknown>)[key] = change[key];
      changed.push(key);
    }
    this.notify(changed);
    if (changed.length > 0) this.writeAddress();
  }

  /** `moment`: what the chart under the pointer shows there, where it is known. */
  setHover(value: number | null, moment: Moment | null = null): void {
    if (this.hover === value && this.hoverMoment?.event === moment?.event && this.hoverMoment?.ns === moment?.ns) return;
    this.hover = value;
    this.hoverMoment = moment;
    this.notify(['hover']);
  }

  /** The moment under the pointer, or the selected one. */
  get lookedAt(): Moment {
    return this.hoverMoment ?? (this.hover !== null ? this.momentOf(this.hover) : this.state.at);
  }

  private notify(parts: Part[]): void {
    if (parts.length === 0) return;
    for (const [wanted, listener] of this.listeners) if (parts.some((p) => wanted.has(p))) listener();
  }

  /* --- The axis ------------------------------------------------------------------------------------------------------- */

  begins(timeline: Timeline): Float64Array {
    return this.state.unit === 'event' && timeline.beginEvent ? timeline.beginEvent : timeline.beginNs;
  }

  valueOf(moment: Moment): number {
    return this.state.unit === 'event' ? moment.event : moment.ns;
  }

  momentOf(value: number): Moment {
    const { model } = this;
    if (this.state.unit === 'event') return { event: Math.floor(value), ns: model.nsOfEvent(Math.floor(value)) };
    return { event: model.eventOfNs(value), ns: value };
  }

  setRange(from: number, to: number): void {
    const { full } = this;
    const least = Math.min(full, this.state.unit === 'event' ? 4 : 100);
    const width = Math.min(full, Math.max(least, to - from));
    const centre = (from + to) / 2;
    const begin = Math.min(Math.max(0, width === to - from ? from : centre - width / 2), full - width);
    this.set({ from: begin, to: begin + width });
  }

  zoom(factor: number, around = this.centre()): void {
    const { from, to } = this.state;
    this.setRange(around - (around - from) * factor, around + (to - around) * factor);
  }

  pan(part: number): void {
    const { from, to } = this.state;
    const by = (to - from) * part;
    const moved = Math.min(Math.max(by, -from), this.full - to);
    this.setRange(from + moved, to + moved);
  }

  private centre(): number {
    const at = this.valueOf(this.state.at);
    const { from, to } = this.state;
    return at >= from && at <= to ? at : (from + to) / 2;
  }

  setUnit(unit: Unit): void {
    if (unit === this.state.unit || (unit === 'event' && !this.model.hasEvents)) return;
    const { from, to } = this.state;
    const { model } = this;
    const whole = this.showsAll;
    const convert = (value: number): number => (unit === 'event' ? model.eventOfNs(value) : model.nsOfEvent(value));
    const range: [number, number] = whole ? [0, this.fullOf(unit)] : [convert(from), convert(to)];
    this.set({ unit });
    this.setRange(...range);
  }

  /* --- The selected moment -------------------------------------------------------------------------------------------- */

  /** Selects a moment, and brings it into view if necessary. */
  select(at: Moment): void {
    this.set({ at });
    const value = this.valueOf(at);
    const { from, to } = this.state;
    if (value < from || value > to) this.setRange(value - (to - from) / 2, value + (to - from) / 2);
  }

  /** The row's moment. */
  private rowMoment(timeline: Timeline, row: number): Moment {
    return { event: timeline.event?.[row] ?? 0, ns: timeline.ns[row] };
  }

  selectPeak(): void {
    if (this.space) this.select(this.model.peak(this.space));
  }

  /** The step of the selected space's peak, where steps are too many to be seen side by side. */
  get peakRange(): [from: number, to: number] | null {
    return this.space ? stepRange(this.model, this.state.unit, this.model.peak(this.space)) : null;
  }

  /** The drawn moment `by` rows from the selected one. */
  move(by: number): void {
    const { space } = this;
    if (!space) return;
    const found = this.model.locate(space, this.state.at);
    if (!found) return;
    const row = Math.min(found.timeline.length - 1, Math.max(0, found.row + by));
    if (row === found.row && found.timeline.frame && found.timeline.frame.step >= 0) {
      // After the end of a finer frame, the timeline of the whole run continues.
      const whole = space.timeline;
      const next = rowAt(whole.beginEvent ?? whole.beginNs, this.state.at.event) + Math.sign(by);
      if (next >= 0 && next < whole.length) this.select(this.rowMoment(whole, next));
      return;
    }
    this.select(this.rowMoment(found.timeline, row));
  }

  /** The next local maximum in a direction that is larger than the selected one. False if there is none. */
  selectLarger(direction: 1 | -1): boolean {
    const { space } = this;
    if (!space) return false;
    const timeline = space.timeline;
    const { total } = timeline;
    if (total.length === 0) return false;
    const here = rowAt(timeline.beginEvent ?? timeline.beginNs, timeline.beginEvent ? this.state.at.event : this.state.at.ns);
    const size = total[here];
    for (let row = here + direction; row >= 0 && row < total.length; row += direction) {
      if (total[row] <= size) continue;
      while (row + direction >= 0 && row + direction < total.length && total[row + direction] >= total[row]) row += direction;
      this.select(this.rowMoment(timeline, row));
      return true;
    }
    return false;
  }

  /* --- The address ---------------------------------------------------------------------------------------------------- */

  /** A link to a view with part of the state changed and the rest as it is. */
  link(view: string, change: { at?: Moment | 'peak' | 'end'; space?: number; find?: string; by?: Grouping; from?: number; to?: number } = {}): string {
    const { state, model } = this;
    const parameters = new URLSearchParams();
    const space = change.space ?? state.space;
    if (model.spaces.length > 1) parameters.set('space', model.spaces[space].name);
    parameters.set('by', change.by ?? state.by);
    if (model.hasEvents) parameters.set('unit', state.unit);
    const from = change.from ?? state.from;
    const to = change.to ?? state.to;
    if (from > 0 || to < this.full) {
      parameters.set('from', String(Math.round(from)));
      parameters.set('to', String(Math.round(to)));
    }
    const at = change.at ?? state.at;
    parameters.set('at', typeof at === 'string' ? at : model.hasEvents ? `e${at.event}` : `${Math.round(at.ns)}`);
    if (change.find) parameters.set('find', change.find);
    return `#${view}?${parameters}`;
  }

  private writeAddress(): void {
    // Browsers reject more than a few hundred changes of the address in half a minute.
    clearTimeout(this.writing);
    this.writing = setTimeout(() => this.writeAddressNow(), 250);
  }

  writeAddressNow(): void {
    clearTimeout(this.writing);
    this.writing = undefined;
    // A link was followed, and the browser has yet to say so: what it leads to is not to be lost.
    if (location.hash !== this.lastAddress) return;
    history.replaceState(null, '', this.link(this.state.view || 'timeline', { find: this.state.find }));
    this.lastAddress = location.hash;
  }

  private readAddress(): void {
    this.lastAddress = location.hash;
    const [view, query] = location.hash.replace(/^#/, '').split('?', 2);
    if (!view) return;
    const { model } = this;
    const parameters = new URLSearchParams(query ?? '');
    const space = model.spaces.findIndex((s) => s.name === parameters.get('space'));
    const by = parameters.get('by');
    const wanted = parameters.get('unit');
    const unit = !model.hasEvents || wanted === 'time' ? 'time' : wanted === 'event' ? 'event' : defaultUnit(model);
    const change: Partial<State> = { unit, find: parameters.get('find') ?? '' };
    if (space >= 0) change.space = space;
    if (by === 'category' || by === 'operation' || by === 'space') change.by = by;
    const number = (name: string, otherwise: number): number => {
      const value = Number(parameters.get(name) ?? NaN);
      return Number.isFinite(value) && value >= 0 ? value : otherwise;
    };
    const full = this.fullOf(unit);
    const from = Math.min(number('from', 0), full);
    const to = Math.min(number('to', full), full);
    [change.from, change.to] = to > from ? [from, to] : [0, full];
    const at = parameters.get('at');
    const of = model.spaces[change.space ?? this.state.space];
    if (at === 'peak' && of) change.at = model.peak(of);
    else if (at === 'end') change.at = model.end;
    else if (at && /^e\d+$/.test(at) && model.hasEvents) {
      const event = Math.min(Number(at.slice(1)), model.events);
      change.at = { event, ns: model.nsOfEvent(event) };
    } else if (at && /^\d+$/.test(at)) change.at = { event: model.eventOfNs(Number(at)), ns: Math.min(Number(at), model.durationNs) };
    this.state.view = '';
    this.set({ ...change, view });
  }
}
