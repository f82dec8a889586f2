import { TimeChart } from '../chart';
import { inkOn, type ThemeColours } from '../colours';
import type { Model } from '../data/model';
import type { InvocationTable } from '../data/space';
import { rowAt, type Step } from '../data/steps';
import { change, count, number, shown, time } from '../format';
import type { OperationColours } from '../groups';
import type { Store } from '../store';
import type { Tip } from '../tip';
import { fitted } from './band';
import { narrowStep, narrowSteps } from './picks';

const rowHeight = 16;
const mostRows = 120;
/**
 * Bars of fewer pixels, and of a step where steps are narrow, have no colours of their own: side by side they would make a pattern
 * that says nothing. A profile has few.
 */
const narrow = 3;

/** One invocation, or several consecutive ones. Its position in the range may be that of another step like its own. */
export interface Invocation {
  table: InvocationTable;
  frame: number;
  row: number;
  lane: number;
  begin: number;
  end: number;
  /** 0: as recorded; else the number of the step that another step's invocation stands for. */
  standIn: number;
}

/** Operations as lanes, one for each thread and depth. */
export class Gantt extends TimeChart {
  /** The first lane of each thread, and the number of its lanes. */
  private readonly lanes: { thread: number; first: number; count: number }[] = [];
  private readonly laneOf = new Map<number, number>();
  readonly rows: number;
  readonly leftOut: number;

  constructor(
    store: Store,
    private readonly model: Model,
    private readonly colours: OperationColours,
  ) {
    const depths = new Map<number, number>();
    const frames = model.detail?.frames.length ?? 1;
    for (let frame = 0; frame < frames; frame += 1) {
      const table = model.invocationsOf(frame);
      if (!table) continue;
      for (let i = 0; i < table.length; i += 1) {
        const thread = table.columns.thread[i];
        depths.set(thread, Math.max(depths.get(thread) ?? 0, table.columns.depth[i] + 1));
      }
    }
    let rows = 0;
    let left = 0;
    const lanes: { thread: number; first: number; count: number }[] = [];
    for (const [thread, depth] of [...depths].sort((a, b) => a[0] - b[0])) {
      const kept = Math.min(depth, mostRows - rows);
      left += depth - kept;
      if (kept > 0) lanes.push({ thread, first: rows, count: kept });
      rows += kept;
    }
    super(store, 'Invocations of operations over time, one lane for each thread and depth. The table below lists those in the range.', 'gantt', Math.max(rows, 1) * rowHeight + lanes.length * 4 + 6);
    this.lanes = lanes;
    this.rows = rows;
    this.leftOut = left;
    for (const lane of lanes) this.laneOf.set(lane.thread, lane.first);
  }

  private y(lane: number): number {
    const thread = this.lanes.findIndex((l) => lane >= l.first && lane < l.first + l.count);
    return 2 + lane * rowHeight + thread * 4;
  }

  /** Calls `visit` for every visible invocation, from the finest frame that is wide enough. */
  forEachVisible(visit: (invocation: Invocation) => void): void {
    const { model, store } = this;
    const frames = model.detail?.frames ?? [];
    const event = store.state.unit === 'event';
    const { from, to } = store.state;
    const wide = (begin: number, end: number): boolean => this.x(end) - this.x(begin) >= 64 && end > from && begin < to;
    const covered: [number, number][] = [];
    const fromFrame = (frame: number, begin: number, end: number, standIn: number): void => {
      const info = frames[frame];
      const [begin0, end0] = event ? [info.begin_event, info.end_event] : [info.begin_ns, info.end_ns];
      const scale = end0 > begin0 ? (end - begin) / (end0 - begin0) : 1;
      this.visitTable(frame, (value) => begin + (value - begin0) * scale, standIn, [], visit);
      covered.push([begin, end]);
    };
    for (let frame = 1; frame < frames.length; frame += 1) {
      const [begin, end] = event ? [frames[frame].begin_event, frames[frame].end_event] : [frames[frame].begin_ns, frames[frame].end_ns];
      if (wide(begin, end) && model.invocationsOf(frame)) fromFrame(frame, begin, end, 0);
    }
    for (const [step, frame] of standIns(model, this.store, wide)) {
      if (model.invocationsOf(frame)) fromFrame(frame, ...(event ? ([step.beginEvent, step.endEvent] as const) : ([step.beginNs, step.endNs] as const)), step.number);
    }
    this.visitTable(0, (value) => value, 0, covered, visit);
  }

  private visitTable(frame: number, place: (value: number) => number, standIn: number, covered: [number, number][], visit: (invocation: Invocation) => void): void {
    const table = this.model.invocationsOf(frame);
    if (!table) return;
    const { columns } = table;
    const event = this.store.state.unit === 'event';
    const begins = event ? columns.begin_event : columns.begin_ns;
    const ends = event ? columns.end_event : columns.end_ns;
    const { from, to } = this.store.state;
    for (let row = 0; row < table.length; row += 1) {
      const begin = place(begins[row]);
      if (begin > to && standIn === 0 && covered.length === 0) break;
      const end = place(ends[row]);
      if (end < from || begin > to) continue;
      if (covered.some(([a, b]) => begin >= a && end <= b)) continue;
      const first = this.laneOf.get(columns.thread[row]);
      if (first === undefined) continue;
      const lane = first + columns.depth[row];
      if (lane < this.rows) visit({ table, frame, row, lane, begin, end, standIn });
    }
  }

  protected override draw(context: CanvasRenderingContext2D, colours: ThemeColours): void {
    super.draw(context, colours);
    if (this.rows === 0) {
      context.fillStyle = colours.muted;
      context.fillText(this.model.profile.operations.length > 0 ? 'No invocations are known.' : 'No operations were recorded.', this.left, this.height / 2);
      return;
    }
    this.drawLanes(context, colours);
    // Each pixel of a lane is painted once: further invocations in it are counted in the tooltip, not drawn.
    const painted = new Float64Array(this.rows).fill(-1);
    const { from, to } = this.store.state;
    const { space } = this.store;
    const least = space && narrowSteps(this.model, this.store, space, [from, to], (value) => this.x(value)).length > 0 ? narrowStep : narrow;
    this.forEachVisible((invocation) => {
      const x0 = Math.max(this.x(invocation.begin), this.left);
      const width = this.x(invocation.end) - this.x(invocation.begin);
      const isPlain = width < least && this.model.hasEvents;
      const x1 = Math.min(Math.max(this.x(invocation.end), x0 + (width < narrow ? narrow : 1)), this.right);
      if (x1 <= painted[invocation.lane] || x1 <= x0) return;
      painted[invocation.lane] = Math.max(painted[invocation.lane], Math.floor(x1));
      const top = this.y(invocation.lane);
      const operation = invocation.table.columns.operation[invocation.row];
      const path = operation > 0 ? (this.model.profile.operations[operation - 1]?.path ?? '') : '';
      const colour = operation > 0 && !isPlain ? this.colours.anyColour(path) : colours.band;
      context.fillStyle = colour;
      const gap = x1 - x0 > 3 ? 0.5 : 0;
      context.globalAlpha = invocation.standIn > 0 ? 0.6 : 1;
      context.fillRect(x0, top, x1 - x0 - gap, rowHeight - 2);
      context.globalAlpha = 1;
      if (x1 - x0 < 30) return;
      context.fillStyle = operation > 0 ? inkOn(colour) : colours.text;
      context.fillText(fitted(context, this.text(invocation), x1 - x0 - 6), x0 + 3, top + rowHeight / 2 - 1);
    });
  }

  private drawLanes(context: CanvasRenderingContext2D, colours: ThemeColours): void {
    this.lanes.forEach((lane, i) => {
      const top = this.y(lane.first);
      if (i > 0) {
        context.fillStyle = colours.line;
        context.fillRect(this.left, top - 3, this.right - this.left, 1);
      }
      context.fillStyle = colours.muted;
      context.textAlign = 'right';
      const name = this.model.detail?.threads[lane.thread]?.name;
      context.fillText(fitted(context, name ? shown(name) : `thread ${lane.thread}`, this.left - 10), this.left - 6, top + rowHeight / 2 - 1);
      context.textAlign = 'left';
    });
  }

  text(invocation: Invocation): string {
    const { operation, count: calls } = invocation.table.columns;
    const index = operation[invocation.row];
    const times = calls[invocation.row] > 1 ? ` \u00d7${count(calls[invocation.row])}` : '';
    return index > 0 ? shown(this.model.profile.operations[index - 1]?.name ?? '?') + times : number(calls[invocation.row], 'invocation');
  }

  delta(invocation: Invocation): number | null {
    return this.model.deltaOf(invocation.frame, invocation.row, this.store.state.space);
  }

  private at(x: number, y: number): Invocation | null {
    let found: Invocation | null = null;
    this.forEachVisible((invocation) => {
      const top = this.y(invocation.lane);
      if (y < top || y >= top + rowHeight) return;
      if (x >= this.x(invocation.begin) - 1 && x <= Math.max(this.x(invocation.end), this.x(invocation.begin) + 1) + 1) {
        if (!found || invocation.end - invocation.begin < found.end - found.begin) found = invocation;
      }
    });
    return found;
  }

  protected override tip(x: number, y: number): Tip | null {
    const found = this.at(x, y);
    if (!found) return null;
    const { columns } = found.table;
    const operation = this.model.profile.operations[columns.operation[found.row] - 1];
    const delta = this.delta(found);
    const beginNs = columns.begin_ns[found.row];
    const endNs = columns.end_ns[found.row];
    const event = (at: number): string => (this.model.hasEvents ? ` \u00b7 event ${count(at)}` : '');
    return {
      title: this.text(found),
      lines: [
        ...(operation && operation.path !== operation.name ? ([['path', shown(operation.path)]] as Tip['lines']) : []),
        ['duration', time(endNs - beginNs)],
        ...(delta !== null ? ([['memory', `${change(delta)} in ${shown(this.store.space?.name ?? '')}`]] as Tip['lines']) : []),
        ['begins', time(beginNs) + event(columns.begin_event[found.row])],
        ['ends', time(endNs) + event(columns.end_event[found.row])],
      ],
      note:
        found.standIn > 0
          ? `From another step with the same segments and bytes, instead of step ${count(found.standIn)}.`
          : columns.count[found.row] > 1
            ? 'Invocations too short to keep one by one.'
            : undefined,
    };
  }

  /** Zooms in on the invocation on a second click; the first click selects its begin. */
  protected override click(x: number, y: number): void {
    const found = this.at(x, y);
    if (!found) {
      super.click(x, y);
      return;
    }
    this.store.select(this.store.momentOf(this.value(x)));
  }
}

/** For visible steps without a frame of their own: the frame of another step of their pattern. */
export function standIns(model: Model, store: Store, wide: (begin: number, end: number) => boolean): [Step, number][] {
  const frames = model.detail?.frames ?? [];
  if (frames.length < 2) return [];
  const byPattern = new Map<number, number>();
  const own = new Set<number>();
  for (let frame = 1; frame < frames.length; frame += 1) {
    const row = frames[frame].step;
    if (row < 0 || row >= model.steps.length) continue;
    const { pattern } = model.steps.at(row);
    own.add(row);
    if (pattern >= 0 && !byPattern.has(pattern)) byPattern.set(pattern, frame);
  }
  const { from, to, unit } = store.state;
  const result: [Step, number][] = [];
  const begins = model.steps.begins[unit === 'event' ? 'event' : 'ns'];
  for (let i = rowAt(begins, from); i < model.steps.length; i += 1) {
    const step = model.steps.at(i);
    const [begin, end] = unit === 'event' ? [step.beginEvent, step.endEvent] : [step.beginNs, step.endNs];
    if (end < from) continue;
    if (begin > to || result.length > 60) break;
    const frame = byPattern.get(step.pattern);
    if (frame === undefined || own.has(step.row) || step.count > 1 || !wide(begin, end)) continue;
    result.push([step, frame]);
  }
  return result;
}
