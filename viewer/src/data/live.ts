import { address } from '../format';
import type { LiveBlock, LiveSet, Owned, Space } from './contract';
import type { Columns } from './decode';
import type { Model } from './model';
import type { BlockTable, SpaceModel } from './space';
import { rowAt } from './steps';

/** What was live at one moment, and who owned it. */

/** A point of the time axis that is selected: an event where there are events. */
export interface Moment {
  event: number;
  ns: number;
}

/** The owner: `path` null is outside every operation; `rest` stands for operations without a row of their own. */
export interface Holder {
  path: string | null;
  rest: boolean;
  bytes: number;
  blocks: number;
}

export interface LiveRow extends Holder {
  /** null: not known separately. */
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
  /** Events and times of its allocation and deallocation; NaN if unknown. */
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
  /** The number of events of the bucket of which this is the largest moment; 1 if every event has its own. */
  bucketEvents: number;
  /** What is known about it; `rows` is null if nothing is. */
  byOperation: Holder[] | null;
  byCategory: { category: string; bytes: number; blocks: number }[] | null;
  /** By operation and category together; from a profile with category null. */
  rows: LiveRow[] | null;
  blockRows: ShownBlock[];
}

export function liveInTrace(model: Model, space: SpaceModel, at: Moment): Live | null {
  const found = model.locate(space, at);
  if (!found || !model.detail) return null;
  const { timeline, row } = found;
  const moment = { event: timeline.event?.[row] ?? 0, ns: timeline.ns[row] };
  // The last bucket is a single event, and nothing changed after it.
  const begin = timeline.beginEvent?.[row] ?? 0;
  const end = row + 1 < timeline.length ? (timeline.beginEvent?.[row + 1] ?? 0) : begin + 1;
  const live: Live = {
    moment,
    total: timeline.total[row],
    blocks: timeline.blocks?.[row] ?? 0,
    bucketEvents: Math.max(1, end - begin),
    byOperation: null,
    byCategory: null,
    rows: null,
    blockRows: blocksAt(model, space, moment),
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
    const { operation, category } = model.detail!.owners[owner];
    const whose = model.ownerPath(owner);
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

/** Blocks live at an event, of those in a table, largest first. */
function blocksAt(model: Model, space: SpaceModel, moment: Moment): ShownBlock[] {
  let table: BlockTable | null = null;
  model.detail!.frames.forEach((frame, index) => {
    if (index === 0 || (moment.event >= frame.begin_event && moment.event < frame.end_event)) table = space.blocksOf(index) ?? table;
  });
  if (!table) return [];
  const { columns, length } = table as BlockTable;
  const result: ShownBlock[] = [];
  for (let i = 0; i < length && columns.begin_event[i] <= moment.event; i += 1) {
    if (columns.end_event[i] > moment.event || columns.stays[i] === 1) result.push(blockRow(model, space.index, columns, i));
  }
  return result.sort((a, b) => b.bytes - a.bytes);
}

/** A row of a table of blocks. */
export function blockRow(model: Model, space: number, columns: Columns, row: number): ShownBlock {
  const strings = model.detail!.strings;
  const owner = columns.owner[row];
  return {
    ...model.ownerPath(owner),
    category: model.detail!.owners[owner]?.category ?? 'other',
    bytes: columns.bytes[row],
    name: strings[columns.name[row]] ?? '',
    shape: strings[columns.shape[row]] ?? '',
    dtype: strings[columns.dtype[row]] ?? '',
    address: model.addressOf(space, columns.offset[row]),
    beginEvent: columns.begin_event[row],
    endEvent: columns.end_event[row],
    beginNs: columns.begin_ns[row],
    endNs: columns.end_ns[row],
    stays: columns.stays[row] === 1,
  };
}

/** What operations have live at the end, largest first. */
export function liveAtEnd(model: Model, space: Space): { path: string; live: number }[] {
  return model.profile.operations
    .map((operation) => ({ path: operation.path, live: operation.usage.find((u) => u.space === space.name)?.live ?? 0 }))
    .filter((o) => o.live > 0)
    .sort((a, b) => b.live - a.live);
}

/** The same as a set; the number of blocks of each is unknown. */
function setAtEnd(model: Model, space: Space): LiveSet {
  const rows: Owned[] = liveAtEnd(model, space).map((o) => ({ owner: o.path, bytes: o.live, blocks: NaN }));
  const outside = space.cumulative_current - rows.reduce((sum, o) => sum + o.bytes, 0);
  if (outside > 0) rows.push({ owner: null, bytes: outside, blocks: NaN });
  return {
    bytes: space.cumulative_current,
    blocks: space.allocation_count - space.deallocation_count,
    by_operation: rows.sort((a, b) => b.bytes - a.bytes),
    remaining_bytes: 0,
    remaining_operations: 0,
    by_category: space.current_by_category ?? [],
    largest_blocks: [],
  };
}

/** The moments of a profile at which owners are known: the peak, the peaks of segments, and the end. */
export function knownMoments(model: Model, space: SpaceModel): { ns: number; set: LiveSet }[] {
  const result: { ns: number; set: LiveSet }[] = [];
  for (const { peak_time_ns: ns, live_at_peak: set } of space.profile.segments) if (set && set.bytes > 0) result.push({ ns, set });
  if (space.profile.cumulative_peak > 0) {
    const { peak_time_ns: ns, live_at_peak: set } = space.profile;
    result.push({ ns, set });
  }
  if (space.profile.cumulative_current > 0) result.push({ ns: model.durationNs, set: setAtEnd(model, space.profile) });
  return result.sort((a, b) => a.ns - b.ns);
}

export function liveInProfile(model: Model, space: SpaceModel, at: Moment): Live | null {
  const { timeline } = space;
  if (timeline.length === 0) return null;
  // The moment itself, or else that of the segment around it: the one nearby place about which the profile says more.
  let known = knownMoments(model, space).filter((k) => k.ns === at.ns);
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
