/** The page of a comparison: the contents of the block `memprof-run`. docs/comparison.schema.json describes all but the title, notes and curves. */
export interface Comparison {
  format: 'memprof-comparison';
  version: 1;
  title: string;
  /** What readers who trust the numbers must know, in sentences. */
  notes: string[];
  moment: 'peak' | 'end' | 'segment';
  equal: boolean;
  change_bytes: number;
  same_moment: boolean;
  more_than_noise: boolean | null;
  before: ComparedRun;
  after: ComparedRun;
  other_spaces: (ComparedRow & { space: string })[];
  unchanged_bytes: number;
  operations: (ComparedRow & { operation: string })[];
  categories: (ComparedRow & { category: string })[];
  sizes: (ComparedRow & { least_size: number })[];
  callers: (ComparedRow & { caller: string | null })[];
  /** Of the run from before, and of the one from after. */
  curves: [Curve, Curve];
}

export interface ComparedRun {
  title: string;
  file: string | null;
  space: string;
  mode: 'normal' | 'no_dispatch';
  exact: boolean;
  bytes: number;
  segment: string | null;
  step: number | null;
  operation: string | null;
  runs: number;
  least_bytes: number;
  greatest_bytes: number;
}

export interface ComparedRow {
  before_bytes: number;
  after_bytes: number;
  change_bytes: number;
  before_blocks: number;
  after_blocks: number;
  operations: number;
  what: 'equal' | 'more' | 'less' | 'came' | 'went' | 'moved_in' | 'moved_out';
}

/** Live bytes of a run over time: `peaks[n]` is the greatest value from `times_ns[n]` to the next of them. */
export interface Curve {
  moment_ns: number | null;
  times_ns: number[];
  peaks: number[];
  segments: { name: string; begin_ns: number; end_ns: number }[];
}

/** Whether both runs pass through the same segments, so that the same places of the program can lie above each other; one may have more of them. */
export function haveSameSegments([before, after]: [Curve, Curve]): boolean {
  const common = Math.min(before.segments.length, after.segments.length);
  if (common === 0) return false;
  for (let i = 0; i < common; i += 1) if (before.segments[i].name !== after.segments[i].name) return false;
  return true;
}

/** The last of `times` that is not after `time`; -1 if there is none. */
function lastBefore(times: ArrayLike<number>, time: number): number {
  let low = 0;
  let high = times.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (times[middle] <= time) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

/**
 * The places of a curve's points on an axis on which every segment is as long as the others: "2.5" is the middle of the third. The points of a segment
 * have the same distance from each other: each covers as many events, so that the same work of two runs lies above each other, however long it took.
 */
export function placesOf(curve: Curve): Float64Array {
  const { times_ns: times, segments } = curve;
  const begins = segments.map((segment) => segment.begin_ns);
  const segmentOf = times.map((time) => Math.max(0, lastBefore(begins, time)));
  const places = new Float64Array(times.length);
  for (let first = 0; first < times.length; ) {
    let end = first;
    while (end < times.length && segmentOf[end] === segmentOf[first]) end += 1;
    for (let i = first; i < end; i += 1) places[i] = segmentOf[first] + (i - first) / (end - first);
    first = end;
  }
  return places;
}

/** The point of the compared moment, at which `bytes` were live; -1 if it is unknown. Of points at the same time it is one that reaches them. */
export function pointOfMoment({ moment_ns: moment, times_ns: times, peaks }: Curve, bytes: number): number {
  if (moment === null) return -1;
  const distance = (i: number): number => Math.abs(times[i] - moment);
  let found = lastBefore(times, moment);
  for (let i = 0; i < peaks.length; i += 1) {
    if (peaks[i] === bytes && (found < 0 || peaks[found] !== bytes || distance(i) < distance(found))) found = i;
  }
  return found;
}

/** The greatest value in each of `columns` equal parts of [0, end), where the points are at `places`; -1 before the first point and after the last. */
export function columnsOf({ peaks }: Curve, places: ArrayLike<number>, columns: number, end: number): Float64Array {
  const greatest = new Float64Array(columns).fill(-1);
  const columnAt = (place: number): number => Math.min(columns - 1, Math.floor((place / end) * columns));
  for (let i = 0; i < peaks.length; i += 1) {
    const first = columnAt(places[i]);
    const last = i + 1 < peaks.length ? Math.max(first, columnAt(places[i + 1])) : first;
    for (let column = first; column <= last; column += 1) if (peaks[i] > greatest[column]) greatest[column] = peaks[i];
  }
  return greatest;
}
