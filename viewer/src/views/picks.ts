import type { Model } from '../data/model';
import type { SpaceModel, Timeline } from '../data/space';
import type { Step } from '../data/steps';
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
}

/**
 * Picks for a chart of `columns` pixels. `x` maps a value of the axis to a pixel. Where a step is wide enough, its own timeline
 * is used, or that of another step like it.
 */
export function pickColumns(model: Model, store: Store, space: SpaceModel, columns: number, x: (value: number) => number): Picks {
  const picks: Picks = {
    timelines: space.allTimelines.filter((t) => t.length > 0),
    timeline: new Int16Array(columns).fill(-1),
    row: new Int32Array(columns),
    low: new Float64Array(columns).fill(Infinity),
    standIn: new Float64Array(columns),
  };
  picks.timelines.forEach((_, which) => pickFrom(store, picks, which, x, 0));
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
