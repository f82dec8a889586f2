import type { ThemeColours } from '../colours';
import { TimeChart } from '../chart';
import { knownMoments, type Moment } from '../data/live';
import type { Model } from '../data/model';
import type { SpaceModel, Timeline } from '../data/space';
import { bytes, count, exactBytes, number, percent, shortened, shown, ticks, time } from '../format';
import { type OperationColours, type Stack, stackOf } from '../groups';
import type { Store } from '../store';
import type { Tip } from '../tip';
import { type Picks, pickColumns } from './picks';
import { drawCapacity, drawKnown, drawPeak, drawReserved, type Plot } from './timeline_marks';

/** Live bytes over time, stacked, with capacity and reserved as lines and the peak marked. */
export class TimelineChart extends TimeChart {
  private picks: Picks | null = null;

  constructor(
    store: Store,
    private readonly model: Model,
    private readonly colours: OperationColours,
    /** The space; null: the selected one. */
    private readonly fixedSpace: SpaceModel | null,
    height: number,
  ) {
    super(
      store,
      fixedSpace
        ? `Live bytes of ${shown(fixedSpace.name)} over time. The tables below have the numbers.`
        : 'Live bytes over time, stacked. The table beside it has the composition at the selected moment.',
      'timeline',
      height,
    );
  }

  private get space(): SpaceModel | undefined {
    return this.fixedSpace ?? this.store.space;
  }

  private stack(timeline: Timeline): Stack {
    return stackOf(this.model, this.space!, timeline, this.fixedSpace ? 'space' : this.store.state.by, this.colours);
  }

  /** From the largest value in the range up to the capacity or the reserved bytes, if they are near. */
  private scale(): { top: number; capacity: number; capacityAbove: boolean } {
    const { from, to } = this.store.state;
    let most = 0;
    let reserved = 0;
    for (const timeline of this.space!.allTimelines) {
      const begins = this.store.begins(timeline);
      for (let i = 0; i < timeline.length; i += 1) {
        const end = i + 1 < timeline.length ? begins[i + 1] : this.store.full;
        if (end < from || begins[i] > to) continue;
        if (timeline.total[i] > most) most = timeline.total[i];
        if (timeline.reserved && timeline.reserved[i] > reserved) reserved = timeline.reserved[i];
      }
    }
    const { capacity, capacity_is_per_core: perCore } = this.space!.profile;
    const limit = perCore ? 0 : capacity;
    let top = Math.max(most, reserved, 1);
    if (limit > 0 && limit <= top * 2) top = Math.max(top, limit);
    return { top: top * 1.06, capacity: limit, capacityAbove: limit > top };
  }

  private get top(): number {
    return 14;
  }
  private get bottom(): number {
    return this.height - 22;
  }

  protected override draw(context: CanvasRenderingContext2D, colours: ThemeColours): void {
    super.draw(context, colours);
    const { space, top, bottom } = this;
    if (!space || space.timeline.length === 0) {
      context.fillStyle = colours.muted;
      context.textAlign = 'center';
      context.fillText('Nothing was allocated.', this.width / 2, this.height / 2);
      context.textAlign = 'left';
      return;
    }
    const scale = this.scale();
    const y = (value: number): number => bottom - (value / scale.top) * (bottom - top);
    this.drawTimeAxis(context, colours, top, bottom);
    this.drawByteAxis(context, colours, scale.top, y);
    this.picks = pickColumns(this.model, this.store, space, this.right - this.left, (value) => this.x(value) - this.left);
    context.save();
    context.beginPath();
    context.rect(this.left, 0, this.right - this.left, bottom);
    context.clip();
    this.drawStack(context, colours, y);
    this.drawLow(context, colours, y);
    this.drawVeil(context, colours);
    context.restore();
    context.strokeStyle = colours.muted;
    context.beginPath();
    context.moveTo(this.left, bottom + 0.5);
    context.lineTo(this.right, bottom + 0.5);
    context.stroke();
    const plot: Plot = { context, colours, model: this.model, store: this.store, space, left: this.left, right: this.right, top, x: (value) => this.x(value), y };
    drawReserved(plot);
    if (scale.capacity > 0) drawCapacity(plot, scale.capacity, scale.capacityAbove ? top + 1 : y(scale.capacity), scale.capacityAbove);
    drawPeak(plot);
    if (!this.model.hasEvents) drawKnown(plot);
  }

  private drawByteAxis(context: CanvasRenderingContext2D, colours: ThemeColours, top: number, y: (value: number) => number): void {
    context.textAlign = 'right';
    for (const mark of ticks(0, top, Math.max(2, Math.floor((this.bottom - this.top) / 44)), true)) {
      const at = Math.round(y(mark)) + 0.5;
      context.strokeStyle = colours.line;
      context.beginPath();
      context.moveTo(this.left, at);
      context.lineTo(this.right, at);
      context.stroke();
      context.fillStyle = colours.muted;
      context.fillText(mark === 0 ? '0' : tickBytes(mark), this.left - 6, at);
    }
    context.textAlign = 'left';
  }

  private drawStack(context: CanvasRenderingContext2D, colours: ThemeColours, y: (value: number) => number): void {
    const picks = this.picks!;
    const columns = picks.row.length;
    const stacks = picks.timelines.map((timeline) => this.stack(timeline));
    const groups = stacks[0]?.groups ?? [];
    const below = new Float64Array(columns);
    const above = new Float64Array(columns);
    groups.forEach((group, g) => {
      for (let column = 0; column < columns; column += 1) {
        const which = picks.timeline[column];
        above[column] = below[column] + (which < 0 ? 0 : valueOf(stacks[which], g, group.key, picks.row[column]));
      }
      this.fillBand(context, group.colour(), below, above, y);
      below.set(above);
    });
    // Thin lines between bands distinguish neighbours without relying on colour.
    below.fill(0);
    context.strokeStyle = colours.surface;
    context.lineWidth = 1;
    groups.forEach((group, g) => {
      for (let column = 0; column < columns; column += 1) {
        const which = picks.timeline[column];
        below[column] += which < 0 ? 0 : valueOf(stacks[which], g, group.key, picks.row[column]);
      }
      if (g + 1 < groups.length) this.strokeSteps(context, below, y);
    });
    context.strokeStyle = colours.text;
    context.globalAlpha = 0.55;
    this.strokeSteps(context, below, y);
    context.globalAlpha = 1;
  }

  private fillBand(context: CanvasRenderingContext2D, colour: string, below: Float64Array, above: Float64Array, y: (value: number) => number): void {
    context.fillStyle = colour;
    context.beginPath();
    // Runs of equal columns are one rectangle: few points where little changes.
    let begin = 0;
    for (let column = 1; column <= below.length; column += 1) {
      if (column < below.length && below[column] === below[begin] && above[column] === above[begin]) continue;
      if (above[begin] > below[begin]) {
        const high = y(above[begin]);
        context.rect(this.left + begin, high, column - begin, y(below[begin]) - high);
      }
      begin = column;
    }
    context.fill();
  }

  private strokeSteps(context: CanvasRenderingContext2D, values: Float64Array, y: (value: number) => number): void {
    context.beginPath();
    let at = NaN;
    for (let column = 0; column < values.length; column += 1) {
      const next = Math.round(y(values[column])) + 0.5;
      if (next === at) continue;
      if (Number.isNaN(at)) context.moveTo(this.left + column, next);
      else {
        context.lineTo(this.left + column, at);
        context.lineTo(this.left + column, next);
      }
      at = next;
    }
    if (!Number.isNaN(at)) context.lineTo(this.left + values.length, at);
    context.stroke();
  }

  /** The least of the moments that a column stands for. */
  private drawLow(context: CanvasRenderingContext2D, colours: ThemeColours, y: (value: number) => number): void {
    const picks = this.picks!;
    // If columns have few events, the curve itself shows the drops, unless each step is its largest moment.
    const { from, to } = this.store.state;
    const part = (to - from) / this.store.full;
    const events = this.model.hasEvents ? this.model.events : this.space!.profile.allocation_count + this.space!.profile.deallocation_count;
    if (!picks.isEnvelope && (events * part) / picks.row.length < 40) return;
    context.strokeStyle = colours.text;
    context.globalAlpha = 0.45;
    context.beginPath();
    let open = false;
    for (let column = 0; column < picks.row.length; column += 1) {
      const which = picks.timeline[column];
      const high = which < 0 ? 0 : picks.timelines[which].total[picks.row[column]];
      if (which < 0 || y(picks.low[column]) - y(high) < 2) {
        open = false;
        continue;
      }
      const at = y(picks.low[column]);
      if (open) context.lineTo(this.left + column + 0.5, at);
      else context.moveTo(this.left + column + 0.5, at);
      open = true;
    }
    context.setLineDash([2, 2]);
    context.stroke();
    context.setLineDash([]);
    context.globalAlpha = 1;
  }

  /** A veil over what was taken from another step. */
  private drawVeil(context: CanvasRenderingContext2D, colours: ThemeColours): void {
    const { standIn } = this.picks!;
    context.fillStyle = colours.surface;
    context.globalAlpha = 0.35;
    for (let column = 0; column < standIn.length; ) {
      let end = column + 1;
      while (end < standIn.length && standIn[end] === standIn[column]) end += 1;
      if (standIn[column] > 0) context.fillRect(this.left + column, 0, end - column, this.bottom);
      column = end;
    }
    context.globalAlpha = 1;
  }

  /** In a profile, a click near a moment whose composition is known selects that moment. */
  protected override click(x: number, y: number): void {
    const { space, model, store } = this;
    if (this.fixedSpace) store.set({ space: this.fixedSpace.index });
    if (!space || model.hasEvents) {
      const picked = this.pickedAt(x);
      if (picked && picked.standIn === 0) store.select({ event: picked.timeline.event?.[picked.row] ?? 0, ns: picked.timeline.ns[picked.row] });
      else super.click(x, y);
      return;
    }
    let best: number | null = null;
    for (const known of knownMoments(model, space)) {
      if (Math.abs(this.x(known.ns) - x) > 24) continue;
      if (best === null || Math.abs(this.x(known.ns) - x) < Math.abs(this.x(best) - x)) best = known.ns;
    }
    if (best !== null) store.select({ event: 0, ns: best });
    else super.click(x, y);
  }

  private pickedAt(x: number): { timeline: Timeline; row: number; standIn: number } | null {
    const { picks } = this;
    if (!picks) return null;
    const column = Math.min(Math.max(Math.floor(x - this.left), 0), picks.row.length - 1);
    const which = picks.timeline[column];
    return which < 0 ? null : { timeline: picks.timelines[which], row: picks.row[column], standIn: picks.standIn[column] };
  }

  /** What the legend below does not say: the moment, and the part under the pointer. */
  protected override tip(x: number, y: number): Tip | null {
    const { space, model } = this;
    const picked = this.pickedAt(x);
    if (!space || !picked) return null;
    const { timeline, row } = picked;
    const lines: Tip['lines'] = [['live', `${bytes(timeline.total[row])} (${exactBytes(timeline.total[row])})`]];
    const part = this.partAt(y, timeline, row);
    if (part) lines.push(part);
    if (timeline.reserved) lines.push(['reserved', bytes(timeline.reserved[row])]);
    const low = this.picks!.low[Math.floor(x - this.left)];
    if (timeline.event && picked.standIn === 0 && low < timeline.total[row]) lines.push(['least here', bytes(low)]);
    const moment = { event: timeline.event?.[row] ?? 0, ns: timeline.ns[row] };
    const segment = model.segmentAt(moment);
    const step = model.stepAt(moment);
    const place = [segment ? shortened(shown(segment.name), 32) : '', step ? `step ${step.count > 1 ? `${count(step.number)}\u2013${count(step.number + step.count - 1)}` : count(step.number)}` : ''].filter((s) => s);
    if (picked.standIn > 0) {
      const like = model.steps.at(timeline.frame!.step).number;
      return { title: `Step ${count(picked.standIn)}`, lines, note: `As in step ${count(like)}: the same segments, bytes and peak. Its own moments are not kept.` };
    }
    if (place.length > 0) lines.push(['in', place.join(', ')]);
    return { title: `${time(timeline.ns[row])}${timeline.event ? ` \u00b7 event ${count(timeline.event[row])}` : ''}`, lines, note: this.tipNote(timeline) };
  }

  /** The band of the stack at a height. */
  private partAt(y: number, timeline: Timeline, row: number): Tip['lines'][number] | null {
    const stack = this.stack(timeline);
    if (stack.groups[0]?.key === 'live') return null;
    let left = ((this.bottom - y) / (this.bottom - this.top)) * this.scale().top;
    if (left < 0) return null;
    for (let g = 0; g < stack.groups.length; g += 1) {
      const value = stack.values[g][row];
      if (left < value) return [stack.labels[g], `${bytes(value)}, ${percent(value, timeline.total[row])}`, stack.groups[g].colour()];
      left -= value;
    }
    return null;
  }

  private tipNote(timeline: Timeline): string | undefined {
    if (this.picks!.isEnvelope) return timeline.event ? 'The largest moment of its step.' : 'The largest moment of a step here.';
    return timeline.event ? undefined : `The largest moment of ${number(this.space!.profile.timeline.events_per_point, 'event')}.`;
  }

  protected override get keptClear(): boolean {
    return true;
  }

  protected override shownAt(x: number): Moment | null {
    const picked = this.pickedAt(x);
    return picked && picked.standIn === 0 && this.model.hasEvents ? { event: picked.timeline.event?.[picked.row] ?? 0, ns: picked.timeline.ns[picked.row] } : null;
  }
}

function valueOf(stack: Stack, g: number, key: string, row: number): number {
  if (stack.groups[g]?.key === key) return stack.values[g][row];
  const found = stack.groups.findIndex((group) => group.key === key);
  return found < 0 ? 0 : stack.values[found][row];
}

/** Round binary values need no decimals: "512 MiB", "1.5 GiB". */
export function tickBytes(value: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
  let unit = 0;
  while (value >= 1024 && unit + 1 < units.length) {
    value /= 1024;
    unit += 1;
  }
  return `${Number(value.toFixed(2))} ${units[unit]}`;
}
