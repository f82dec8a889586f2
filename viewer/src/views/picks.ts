import type { Model } from '../data/model';
import { endOfStep, segmentsByName } from '../data/segments';
import type { SpaceModel, Timeline } from '../data/space';
import { rowAt, type Step } from '../data/steps';
import type { Store } from '../store';
import { standIns } from './gantt';

/** The row of a timeline that each column of pixels shows: the one with the largest total, so that no maximum is lost. */
export interface Picks {
  timelines: Timeline[];
  timeline: Int16Array;
  row: Int32Array;
  low: Float64Array;
  /** The number of the step that another one like it stands for; 0: as recorded. */
  standIn: Float64Array;
  /** Whether each step is its largest moment. */
  isEnvelope: boolean;
}

/** Steps of fewer pixels are drawn as their largest moments: what the columns of pixels meet within them is a moiré. */
export const narrowStep = 16;

/** A stretch of the axis whose largest moment stands for the columns from `from` to `to`. */
interface Stretch {
  begin: number;
  end: number;
  from: number;
  to: number;
}

/**
 * The visible steps, if they are wider than a pixel and too narrow to be seen; else none. A profile does not know where its steps
 * were, only how many and how long: there each stretch is half a step longer than a step, so that it has a whole one.
 */
export function narrowSteps(model: Model, store: Store, space: SpaceModel, [from, to]: [number, number], x: (value: number) => number): Stretch[] {
  const { unit } = store.state;
  const isNarrow = (width: number): boolean => width >= 1 && width < narrowStep;
  const { steps } = model;
  if (steps.length > 0) {
    const begins = steps.begins[unit === 'event' ? 'event' : 'ns'];
    const first = rowAt(begins, from);
    const last = rowAt(begins, to);
    if (!isNarrow((x(begins[last]) - x(begins[first])) / Math.max(1, last - first))) return [];
    const result: Stretch[] = [];
    for (let row = first; row <= last; row += 1) {
      const step = steps.at(row);
      const [begin, end] = unit === 'event' ? [step.beginEvent, step.endEvent] : [step.beginNs, step.endNs];
      result.push({ begin, end, from: x(begin), to: x(end) });
    }
    return result;
  }
  const name = model.hasEvents ? null : endOfStep(segmentsByName(model.profile, space.profile));
  if (!name || name.count < 2) return [];
  const endOf = (number: number): number => model.segments.find((s) => s.index === number)?.endNs ?? NaN;
  const [begin, end] = [endOf(name.firstNumber), endOf(name.lastNumber)];
  const length = (end - begin) / (name.count - 1);
  if (!isNarrow(x(length) - x(0))) return [];
  const result: Stretch[] = [];
  for (let at = begin; at <= end; at += length) {
    if (at >= from && at - length <= to) result.push({ begin: at - length * 1.25, end: at + length * 0.25, from: x(at - length), to: x(at) });
  }
  return result;
}

/** Lets each stretch have its largest moment in all of its columns. */
function drawAsLargest(store: Store, picks: Picks, stretches: Stretch[]): void {
  const timeline = picks.timelines[0];
  const begins = store.begins(timeline);
  const moments = store.state.unit === 'event' && timeline.event ? timeline.event : timeline.ns;
  for (const { begin, end, from, to } of stretches) {
    let best = -1;
    let low = Infinity;
    for (let row = rowAt(begins, begin); row < timeline.length && begins[row] < end; row += 1) {
      if (moments[row] < begin || moments[row] >= end) continue;
      if (best < 0 || timeline.total[row] > timeline.total[best]) best = row;
      low = Math.min(low, timeline.low[row]);
    }
    if (best < 0) continue;
    for (let column = Math.max(0, Math.floor(from)); column < Math.min(picks.row.length, Math.ceil(to)); column += 1) {
      const which = picks.timeline[column];
      if (which < 0 || picks.timelines[which].total[picks.row[column]] < timeline.total[best]) {
        picks.timeline[column] = 0;
        picks.row[column] = best;
      }
      picks.low[column] = Math.min(picks.low[column], low);
    }
  }
}

function emptyPicks(timelines: Timeline[], columns: number): Picks {
  return {
    timelines: timelines.filter((t) => t.length > 0),
    timeline: new Int16Array(columns).fill(-1),
    row: new Int32Array(columns),
    low: new Float64Array(columns).fill(Infinity),
    standIn: new Float64Array(columns),
    isEnvelope: false,
  };
}

/** The largest moment of the whole run in each of `columns` pixels, or of its step where steps are narrow. */
export function largestInColumns(model: Model, store: Store, space: SpaceModel, columns: number, x: (value: number) => number): Float64Array {
  const picks = emptyPicks([space.timeline], columns);
  const result = new Float64Array(columns);
  if (picks.timelines.length === 0) return result;
  pickFrom(store, picks, 0, x, 0);
  drawAsLargest(store, picks, narrowSteps(model, store, space, [0, store.full], x));
  return result.map((_, column) => (picks.timeline[column] < 0 ? 0 : space.timeline.total[picks.row[column]]));
}

/**
 * Picks for a chart of `columns` pixels. `x` maps a value of the axis to a pixel. Where a step is wide enough, its own timeline
 * is used, or that of another step like it.
 */
export function pickColumns(model: Model, store: Store, space: SpaceModel, columns: number, x: (value: number) => number): Picks {
  const picks = emptyPicks(space.allTimelines, columns);
  if (picks.timelines.length === 0) return picks;
  picks.timelines.forEach((_, which) => pickFrom(store, picks, which, x, 0));
  const narrow = narrowSteps(model, store, space, [store.state.from, store.state.to], x);
  if (narrow.length > 0) {
    picks.isEnvelope = true;
    drawAsLargest(store, picks, narrow);
    return picks;
  }
  for (const [step, frame] of standIns(model, store, (begin, end) => isWide(store, x, begin, end))) {
    const which = picks.timelines.findIndex((t) => t.frame === model.detail!.frames[frame]);
    if (which <= 0 || !isLike(model, space, step, picks.timelines[which].frame!.step)) continue;
    const place = placeIn(store, step, picks.timelines[which]);
    pickFrom(store, picks, which, (value) => x(place(value)), step.number);
  }
  return picks;
}

function isWide(store: Store, x: (value: number) => number, begin: number, end: number): boolean {
  const { from, to } = store.state;
  return x(end) - x(begin) >= 64 && end > from && begin < to;
}

/** Whether two steps of one pattern also began with the same bytes and had the same peak. */
function isLike(model: Model, space: SpaceModel, step: Step, other: number): boolean {
  const usage = model.data.table('step_usage', 0, space.index);
  if (!usage || step.row === 0 || other <= 0) return false;
  return usage.peak[step.row] === usage.peak[other] && usage.current[step.row] === usage.current[other] && usage.current[step.row - 1] === usage.current[other - 1];
}

function placeIn(store: Store, step: Step, { frame }: Timeline): (value: number) => number {
  const event = store.state.unit === 'event';
  const [begin, end] = event ? [step.beginEvent, step.endEvent] : [step.beginNs, step.endNs];
  const [begin0, end0] = event ? [frame!.begin_event, frame!.end_event] : [frame!.begin_ns, frame!.end_ns];
  const scale = end0 > begin0 ? (end - begin) / (end0 - begin0) : 1;
  return (value) => begin + (value - begin0) * scale;
}

/** `x` maps a value of this timeline to a pixel. */
function pickFrom(store: Store, picks: Picks, which: number, x: (value: number) => number, standIn: number): void {
  const timeline = picks.timelines[which];
  const columns = picks.row.length;
  const begins = store.begins(timeline);
  const { frame } = timeline;
  const event = store.state.unit === 'event';
  const end = frame ? (event ? frame.end_event : frame.end_ns) : store.full;
  const first = x(which === 0 || !frame ? begins[0] : event ? frame.begin_event : frame.begin_ns);
  const last = x(end);
  if (which > 0) {
    // A frame is drawn where it is more than a few columns wide, instead of the coarser buckets there.
    if (last - first < 64) return;
    for (let column = Math.max(0, Math.floor(first)); column < Math.min(columns, Math.ceil(last)); column += 1) {
      // A column that the frame shares keeps its other contents, unless all of them only stand in for something.
      const isShared = column < first || column + 1 > last;
      if (isShared && (standIn === 0 || picks.timeline[column] !== 0)) continue;
      picks.timeline[column] = -1;
      picks.low[column] = Infinity;
      picks.standIn[column] = standIn;
    }
  }
  for (let row = 0; row < timeline.length; row += 1) {
    const begin = x(begins[row]);
    if (begin >= columns) break;
    const stop = row + 1 < timeline.length ? x(begins[row + 1]) : last;
    if (stop < 0) continue;
    const from = Math.max(0, Math.floor(begin));
    const to = Math.min(columns, Math.max(Math.floor(begin) + 1, Math.ceil(stop)));
    for (let column = from; column < to; column += 1) {
      const before = picks.timeline[column];
      if (before < 0 || timeline.total[row] > picks.timelines[before].total[picks.row[column]]) {
        picks.timeline[column] = which;
        picks.row[column] = row;
      }
      if (timeline.low[row] < picks.low[column]) picks.low[column] = timeline.low[row];
    }
  }
}
