import type { Detail, Frame, LiveBlock, LiveSet, Operation, OperationUsage, Profile, Run, Space } from './contract';
import type { Columns, Data } from './decode';
import { address } from '../format';

/**
 * What views ask: the same questions whether the page was made from a trace, where all is known at every drawn moment, or
 * from a profile, where compositions are known at the peaks of segments.
 */

/** Live bytes of one space over one frame. Row i is about the stretch from `begin[i]` to `begin[i + 1]`. */
export interface Timeline {
  frame: Frame | null;
  length: number;
  /** null in a profile, which knows no events. */
  beginEvent: Float64Array | null;
  beginNs: Float64Array;
  event: Float64Array | null;
  ns: Float64Array;
  /** The maximum of the stretch, live at the row's moment. */
  total: Float64Array;
  blocks: Float64Array | null;
  /** The minimum of the stretch, or of a profile's what was live at its end. */
  low: Float64Array;
  reserved: Float64Array | null;
  active: Float64Array | null;
  composition: Composition | null;
}

/** Bytes and blocks of every owner at every row of a timeline. */
export interface Composition {
  /** Indices into `detail.owners` of those that ever have bytes, and for each of them a value for each row. */
  owners: number[];
  bytes: Float64Array[];
  blocks: Float64Array[];
}

/** Blocks of one space in one frame. */
export interface BlockTable {
  frame: Frame;
  length: number;
  columns: Columns;
  /** Blocks of the frame that are not in the table. */
  left: number;
}

export interface InvocationTable {
  frame: Frame;
  length: number;
  columns: Columns;
  left: number;
}

export interface Segment {
  index: number;
  name: string;
  beginNs: number;
  endNs: number;
  beginEvent: number;
  endEvent: number;
}

export interface Step {
  row: number;
  /** Number of the first, from 1, and how many follow each other in this row. */
  number: number;
  count: number;
  beginNs: number;
  endNs: number;
  beginEvent: number;
  endEvent: number;
  pattern: number;
  segment: number;
}

/** A point of the time axis that is selected: an event where there are events. */
export interface Moment {
  event: number;
  ns: number;
}

/** Whose: `path` null is outside every operation; `rest` are operations that have no row of their own. */
export interface Holder {
  path: string | null;
  rest: boolean;
  bytes: number;
  blocks: number;
}

export interface LiveRow extends Holder {
  /** null: not known apart. */
  category: string | null;
}

export interface ShownBlock {
  path: string | null;
  rest: boolean;
  category: string;
  bytes: number;
  name: string;
  shape: string;
  dtype: string;
  address: string;
  /** Events and times of its allocation and deallocation; NaN where they are not known. */
  beginEvent: number;
  endEvent: number;
  beginNs: number;
  endNs: number;
  stays: boolean;
}

/** What was live at one moment. */
export interface Live {
  moment: Moment;
  total: number;
  blocks: number;
  /** Of what the moment is the largest one: events of the bucket, 1 if it is every event. */
  bucketEvents: number;
  /** What is known of it; `rows` are null where nothing is. */
  byOperation: Holder[] | null;
  byCategory: { category: string; bytes: number; blocks: number }[] | null;
  /** By operation and category together; from a profile with category null. */
  rows: LiveRow[] | null;
  blockRows: ShownBlock[];
}

export class SpaceModel {
  private readonly timelines = new Map<number, Timeline | null>();
  private readonly blockTables = new Map<number, BlockTable | null>();

  constructor(
    private readonly data: Data,
    readonly index: number,
    readonly profile: Space,
  ) {}

  get name(): string {
    return this.profile.name;
  }

  /** Of the whole run. */
  get timeline(): Timeline {
    return this.timelineOf(0) ?? this.profileTimeline();
  }

  timelineOf(frame: number): Timeline | null {
    if (!this.timelines.has(frame)) this.timelines.set(frame, this.makeTimeline(frame));
    return this.timelines.get(frame) ?? null;
  }

  /** Those of all frames that have one, the whole run's first. */
  get allTimelines(): Timeline[] {
    const frames = this.data.run.detail?.frames ?? [];
    const found = frames.map((_, frame) => this.timelineOf(frame)).filter((t) => t !== null);
    return found.length > 0 ? found : [this.timeline];
  }

  blocksOf(frame: number): BlockTable | null {
    if (!this.blockTables.has(frame)) {
      const columns = this.data.table('blocks', frame, this.index);
      const info = this.data.run.detail?.frames[frame];
      this.blockTables.set(
        frame,
        columns && info
          ? { frame: info, length: columns.bytes.length, columns, left: Math.max(0, (info.blocks[this.index] ?? 0) - columns.bytes.length) }
          : null,
      );
    }
    return this.blockTables.get(frame) ?? null;
  }

  private makeTimeline(frame: number): Timeline | null {
    const columns = this.data.table('timeline', frame, this.index);
    const detail = this.data.run.detail;
    if (!columns || !detail) return frame === 0 ? this.profileTimeline() : null;
    const rows = columns.total.length;
    return {
      frame: detail.frames[frame],
      length: rows,
      beginEvent: columns.begin_event,
      beginNs: columns.begin_ns,
      event: columns.event,
      ns: columns.time_ns,
      total: columns.total,
      blocks: columns.blocks,
      low: columns.low,
      reserved: columns.reserved ?? null,
      active: columns.active ?? null,
      composition: unfoldParts(this.data.table('parts', frame, this.index), rows),
    };
  }

  private profileTimeline(): Timeline {
    const points = this.profile.timeline.points;
    return {
      frame: null,
      length: points.length,
      beginEvent: null,
      beginNs: Float64Array.from(points, (p) => p.time_ns),
      event: null,
      ns: Float64Array.from(points, (p) => p.time_ns),
      total: Float64Array.from(points, (p) => p.peak),
      blocks: null,
      low: Float64Array.from(points, (p) => p.current),
      reserved: null,
      active: null,
      composition: null,
    };
  }
}

/** Every owner's value at every row, from the rows in which it changed. */
function unfoldParts(parts: Columns | null, rows: number): Composition | null {
  if (!parts) return null;
  const places = new Map<number, number>();
  const result: Composition = { owners: [], bytes: [], blocks: [] };
  const filled: number[] = [];
  for (let i = 0; i < parts.bucket.length; i += 1) {
    let place = places.get(parts.owner[i]);
    if (place === undefined) {
      place = result.owners.length;
      places.set(parts.owner[i], place);
      result.owners.push(parts.owner[i]);
      result.bytes.push(new Float64Array(rows));
      result.blocks.push(new Float64Array(rows));
      filled.push(0);
    }
    fillUpTo(result, filled, place, parts.bucket[i]);
    result.bytes[place][parts.bucket[i]] = parts.bytes[i];
    result.blocks[place][parts.bucket[i]] = parts.blocks[i];
    filled[place] = parts.bucket[i] + 1;
  }
  for (let place = 0; place < filled.length; place += 1) fillUpTo(result, filled, place, rows);
  return result;
}

function fillUpTo(composition: Composition, filled: number[], place: number, row: number): void {
  const from = filled[place];
  if (from === 0 || from >= row) return;
  composition.bytes[place].fill(composition.bytes[place][from - 1], from, row);
  composition.blocks[place].fill(composition.blocks[place][from - 1], from, row);
}

/** Steps in the order of time. There may be 100,000: each is made when it is asked for. */
export class Steps {
  readonly length: number;
  readonly begins: Begins;
  private readonly numbers: Float64Array;

  constructor(private readonly columns: Columns | null) {
    this.length = columns?.begin_ns.length ?? 0;
    this.begins = { event: columns?.begin_event ?? new Float64Array(), ns: columns?.begin_ns ?? new Float64Array() };
    this.numbers = new Float64Array(this.length + 1);
    this.numbers[0] = 1;
    for (let row = 0; row < this.length; row += 1) this.numbers[row + 1] = this.numbers[row] + columns!.count[row];
  }

  /** How many steps the rows stand for. */
  get count(): number {
    return this.numbers[this.length] - 1;
  }

  /** The row must be there. */
  at(row: number): Step {
    const columns = this.columns!;
    return {
      row,
      number: this.numbers[row],
      count: columns.count[row],
      beginNs: columns.begin_ns[row],
      endNs: columns.end_ns[row],
      beginEvent: columns.begin_event[row],
      endEvent: columns.end_event[row],
      pattern: columns.pattern[row] - 1,
      segment: columns.segment[row],
    };
  }
}

/** Begins on both axes, for searching. */
export interface Begins {
  event: Float64Array;
  ns: Float64Array;
}

const beginsOf = (things: { beginEvent: number; beginNs: number }[]): Begins => ({
  event: Float64Array.from(things, (t) => t.beginEvent),
  ns: Float64Array.from(things, (t) => t.beginNs),
});

/** The last row whose begin is at or before the value; 0 if none is. */
export function rowAt(begins: ArrayLike<number>, value: number): number {
  let low = 0;
  let high = begins.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (begins[middle] <= value) low = middle;
    else high = middle - 1;
  }
  return low;
}

export class Model {
  readonly run: Run;
  readonly profile: Profile;
  readonly detail: Detail | null;
  readonly spaces: SpaceModel[];
  readonly segments: Segment[];
  readonly steps: Steps;
  readonly segmentBegins: Begins;
  /** The run's length on both axes. */
  readonly durationNs: number;
  readonly events: number;
  private readonly invocationTables = new Map<number, InvocationTable | null>();
  private readonly clockEvents: Float64Array;
  private readonly clockNs: Float64Array;

  constructor(readonly data: Data) {
    this.run = data.run;
    this.profile = data.run.profile;
    this.detail = data.run.detail;
    this.spaces = this.profile.spaces.map((space, index) => new SpaceModel(data, index, space));
    this.events = this.detail?.events ?? 0;
    let longest = this.profile.duration_ns;
    for (const segment of this.profile.segments) longest = Math.max(longest, segment.end_ns);
    this.durationNs = Math.max(longest, 1);
    [this.clockEvents, this.clockNs] = this.clock();
    this.steps = new Steps(this.data.table('steps'));
    this.segments = this.readSegments();
    this.segmentBegins = beginsOf(this.segments);
  }

  get hasEvents(): boolean {
    return this.events > 0;
  }

  /** The space to show first: of a device with a capacity, else the one with the largest peak. */
  get mainSpace(): number {
    let best = 0;
    const rank = (s: Space): number => (s.capacity > 0 && s.cumulative_peak > 0 && !s.capacity_is_per_core ? 2 ** 60 : 0) + s.cumulative_peak;
    this.profile.spaces.forEach((space, index) => {
      if (rank(space) > rank(this.profile.spaces[best])) best = index;
    });
    return best;
  }

  /** An event's time: that of the nearest one before it whose time is known. */
  nsOfEvent(event: number): number {
    if (this.clockEvents.length === 0) return 0;
    if (event >= this.events) return this.durationNs;
    return this.clockNs[rowAt(this.clockEvents, event)];
  }

  eventOfNs(ns: number): number {
    if (this.clockEvents.length === 0) return 0;
    if (ns >= this.durationNs) return this.events;
    return this.clockEvents[rowAt(this.clockNs, ns)];
  }

  invocationsOf(frame: number): InvocationTable | null {
    if (!this.invocationTables.has(frame)) {
      const columns = this.data.table('invocations', frame);
      const info = this.detail?.frames[frame];
      let table: InvocationTable | null = null;
      if (columns && info) {
        let told = 0;
        for (const count of columns.count) told += count;
        table = { frame: info, length: columns.thread.length, columns, left: Math.max(0, info.invocations - told) };
      }
      this.invocationTables.set(frame, table);
    }
    return this.invocationTables.get(frame) ?? null;
  }

  /** Path of a row's operation, as in `Owner.operation`. */
  ownerPath(owner: number): { path: string | null; rest: boolean } {
    const operation = this.detail?.owners[owner]?.operation ?? -1;
    return { path: operation >= 0 ? (this.profile.operations[operation]?.path ?? null) : null, rest: operation === -2 };
  }

  /** Its address, from an offset of `regions`. */
  addressOf(space: number, offset: number): string {
    const regions = this.detail?.regions[space] ?? [];
    if (regions.length === 0) return '';
    const region = regions[rowAt(regions.map((r) => r.offset), offset)];
    return address(BigInt(region.address) + BigInt(offset - region.offset));
  }

  usage(operation: Operation, space: string): OperationUsage | undefined {
    return operation.usage.find((u) => u.space === space);
  }

  segmentAt(moment: Moment): Segment | null {
    const segments = this.segments;
    if (segments.length === 0) return null;
    const byEvent = this.hasEvents;
    const found = segments[rowAt(byEvent ? this.segmentBegins.event : this.segmentBegins.ns, byEvent ? moment.event : moment.ns)];
    const ends = byEvent ? found.endEvent : found.endNs;
    return (byEvent ? moment.event < ends : moment.ns <= ends) ? found : null;
  }

  stepAt(moment: Moment): Step | null {
    const steps = this.steps;
    if (steps.length === 0) return null;
    const byEvent = this.hasEvents;
    const found = steps.at(rowAt(byEvent ? steps.begins.event : steps.begins.ns, byEvent ? moment.event : moment.ns));
    const at = byEvent ? moment.event : moment.ns;
    return at >= (byEvent ? found.beginEvent : found.beginNs) && at < (byEvent ? found.endEvent : found.endNs) ? found : null;
  }

  /** The moment of a space's overall peak. */
  peak(space: SpaceModel): Moment {
    const timeline = space.timeline;
    let best = -1;
    for (let i = 0; i < timeline.length; i += 1) if (best < 0 || timeline.total[i] > timeline.total[best]) best = i;
    if (best < 0) return { event: 0, ns: 0 };
    if (!timeline.event) return { event: 0, ns: space.profile.peak_time_ns };
    return { event: timeline.event[best], ns: timeline.ns[best] };
  }

  /** The finest timeline that knows the moment, and its row. */
  locate(space: SpaceModel, moment: Moment): { timeline: Timeline; row: number } | null {
    let found: { timeline: Timeline; row: number } | null = null;
    for (const timeline of space.allTimelines) {
      if (timeline.length === 0) continue;
      const frame = timeline.frame;
      if (frame && this.hasEvents && frame.step >= 0 && (moment.event < frame.begin_event || moment.event >= frame.end_event)) continue;
      const row =
        timeline.beginEvent && this.hasEvents ? rowAt(timeline.beginEvent, moment.event) : rowAt(timeline.beginNs, moment.ns);
      if (!found || (frame && frame.step >= 0)) found = { timeline, row };
    }
    return found;
  }

  /** What was live at the moment that the row of the finest timeline shows there. */
  liveAt(space: SpaceModel, moment: Moment): Live | null {
    return this.hasEvents ? this.liveInTrace(space, moment) : this.liveInProfile(space, moment);
  }

  private liveInTrace(space: SpaceModel, at: Moment): Live | null {
    const found = this.locate(space, at);
    if (!found || !this.detail) return null;
    const { timeline, row } = found;
    const moment = { event: timeline.event?.[row] ?? 0, ns: timeline.ns[row] };
    const end = row + 1 < timeline.length ? (timeline.beginEvent?.[row + 1] ?? 0) : (timeline.frame?.end_event ?? this.events);
    const live: Live = {
      moment,
      total: timeline.total[row],
      blocks: timeline.blocks?.[row] ?? 0,
      bucketEvents: Math.max(1, end - (timeline.beginEvent?.[row] ?? 0)),
      byOperation: null,
      byCategory: null,
      rows: null,
      blockRows: this.blocksAt(space, moment),
    };
    const composition = timeline.composition;
    if (!composition) return live;
    live.rows = [];
    const operations = new Map<number, Holder>();
    const categories = new Map<string, { category: string; bytes: number; blocks: number }>();
    composition.owners.forEach((owner, place) => {
      const bytes = composition.bytes[place][row];
      const blocks = composition.blocks[place][row];
      if (bytes === 0 && blocks === 0) return;
      const { operation, category } = this.detail!.owners[owner];
      const whose = this.ownerPath(owner);
      live.rows!.push({ ...whose, category, bytes, blocks });
      const one = operations.get(operation) ?? { ...whose, bytes: 0, blocks: 0 };
      one.bytes += bytes;
      one.blocks += blocks;
      operations.set(operation, one);
      const other = categories.get(category) ?? { category, bytes: 0, blocks: 0 };
      other.bytes += bytes;
      other.blocks += blocks;
      categories.set(category, other);
    });
    const larger = (a: { bytes: number }, b: { bytes: number }): number => b.bytes - a.bytes;
    live.rows.sort(larger);
    live.byOperation = [...operations.values()].sort(larger);
    live.byCategory = [...categories.values()].sort(larger);
    return live;
  }

  /** Blocks live at an event, of those that a table has, largest first. */
  private blocksAt(space: SpaceModel, moment: Moment): ShownBlock[] {
    let table: BlockTable | null = null;
    this.detail!.frames.forEach((frame, index) => {
      if (index === 0 || (moment.event >= frame.begin_event && moment.event < frame.end_event)) table = space.blocksOf(index) ?? table;
    });
    if (!table) return [];
    const { columns, length } = table as BlockTable;
    const result: ShownBlock[] = [];
    for (let i = 0; i < length && columns.begin_event[i] <= moment.event; i += 1) {
      if (columns.end_event[i] > moment.event || columns.stays[i] === 1) result.push(this.blockRow(space.index, columns, i));
    }
    return result.sort((a, b) => b.bytes - a.bytes);
  }

  blockRow(space: number, columns: Columns, row: number): ShownBlock {
    const strings = this.detail!.strings;
    const owner = columns.owner[row];
    return {
      ...this.ownerPath(owner),
      category: this.detail!.owners[owner]?.category ?? 'other',
      bytes: columns.bytes[row],
      name: strings[columns.name[row]] ?? '',
      shape: strings[columns.shape[row]] ?? '',
      dtype: strings[columns.dtype[row]] ?? '',
      address: this.addressOf(space, columns.offset[row]),
      beginEvent: columns.begin_event[row],
      endEvent: columns.end_event[row],
      beginNs: columns.begin_ns[row],
      endNs: columns.end_ns[row],
      stays: columns.stays[row] === 1,
    };
  }

  /** Moments of a profile at which it says who held what: the peak, and the peaks of segments. */
  knownMoments(space: SpaceModel): { ns: number; set: LiveSet; segment: number }[] {
    const result: { ns: number; set: LiveSet; segment: number }[] = [];
    space.profile.segments.forEach((usage, index) => {
      if (usage.live_at_peak && usage.live_at_peak.bytes > 0) {
        result.push({ ns: usage.peak_time_ns, set: usage.live_at_peak, segment: this.run.kept_segments?.[index] ?? index });
      }
    });
    if (space.profile.cumulative_peak > 0) {
      const { peak_time_ns: ns, live_at_peak: set, peak_segment: segment } = space.profile;
      result.push({ ns, set, segment });
    }
    return result.sort((a, b) => a.ns - b.ns);
  }

  private liveInProfile(space: SpaceModel, at: Moment): Live | null {
    const { timeline } = space;
    if (timeline.length === 0) return null;
    // The moment itself, or else that of the segment around it: the one place near it of which the profile says more.
    let known = this.knownMoments(space).filter((k) => k.ns === at.ns);
    if (known.length > 1) known = known.filter((k) => k.set.bytes === Math.max(...known.map((o) => o.set.bytes)));
    const row = rowAt(timeline.beginNs, at.ns);
    if (known.length === 0) {
      return {
        moment: { event: 0, ns: timeline.ns[row] },
        total: timeline.total[row],
        blocks: 0,
        bucketEvents: space.profile.timeline.events_per_point,
        byOperation: null,
        byCategory: null,
        rows: null,
        blockRows: [],
      };
    }
    const { set, ns } = known[0];
    return { moment: { event: 0, ns }, bucketEvents: 1, ...liveOfSet(set) };
  }

  private clock(): [Float64Array, Float64Array] {
    if (!this.detail) return [new Float64Array(), new Float64Array()];
    const points: [number, number][] = [];
    for (const space of this.spaces) {
      for (const timeline of space.allTimelines) {
        if (!timeline.beginEvent) continue;
        for (let i = 0; i < timeline.length; i += 1) points.push([timeline.beginEvent[i], timeline.beginNs[i]]);
      }
    }
    points.push([0, 0]);
    points.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
    return [Float64Array.from(points, (p) => p[0]), Float64Array.from(points, (p) => p[1])];
  }

  private readSegments(): Segment[] {
    const events = this.data.table('segments');
    return this.profile.segments.map((segment, i) => ({
      index: this.run.kept_segments?.[i] ?? i,
      name: segment.name,
      beginNs: segment.begin_ns,
      endNs: segment.end_ns,
      beginEvent: events?.begin_event[i] ?? this.eventOfNs(segment.begin_ns),
      endEvent: events?.end_event[i] ?? this.eventOfNs(segment.end_ns),
    }));
  }
}

export function liveOfSet(set: LiveSet): Pick<Live, 'total' | 'blocks' | 'byOperation' | 'byCategory' | 'rows' | 'blockRows'> {
  const byOperation: Holder[] = set.by_operation.map((o) => ({ path: o.owner, rest: false, bytes: o.bytes, blocks: o.blocks }));
  if (set.remaining_bytes > 0) {
    const blocks = set.blocks - set.by_operation.reduce((sum, o) => sum + o.blocks, 0);
    byOperation.push({ path: null, rest: true, bytes: set.remaining_bytes, blocks });
  }
  return {
    total: set.bytes,
    blocks: set.blocks,
    byOperation,
    byCategory: set.by_category.map((c) => ({ category: c.owner ?? 'other', bytes: c.bytes, blocks: c.blocks })),
    rows: byOperation.map((o) => ({ ...o, category: null })),
    blockRows: set.largest_blocks.map((b) => blockOfProfile(b, set)),
  };
}

function blockOfProfile(block: LiveBlock, set: LiveSet): ShownBlock {
  return {
    path: block.operation,
    rest: !set.by_operation.some((o) => o.owner === block.operation),
    category: block.category,
    bytes: block.bytes,
    name: block.name,
    shape: block.shape,
    dtype: block.dtype,
    address: address(block.address),
    beginEvent: NaN,
    endEvent: NaN,
    beginNs: NaN,
    endNs: NaN,
    stays: false,
  };
}
