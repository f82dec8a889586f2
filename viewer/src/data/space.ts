import type { Frame, Space } from './contract';
import type { Columns, Data } from './decode';

/** One memory space: its timelines and blocks, for the whole run and for the steps kept in more detail. */

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
  /** The minimum of the stretch or, in a profile, what was live at its end. */
  low: Float64Array;
  reserved: Float64Array | null;
  active: Float64Array | null;
  composition: Composition | null;
}

/** Bytes and blocks of every owner at every row of a timeline. */
export interface Composition {
  /** Indices into `detail.owners` of those that ever have bytes, and for each of them one value per row. */
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
  length: number;
  columns: Columns;
  /** Of the frame or, in a profile, of the run; and how many of them have no row. */
  invocations: number;
  left: number;
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

  /** For the whole run. */
  get timeline(): Timeline {
    return this.timelineOf(0) ?? this.profileTimeline();
  }

  timelineOf(frame: number): Timeline | null {
    if (!this.timelines.has(frame)) this.timelines.set(frame, this.makeTimeline(frame));
    return this.timelines.get(frame) ?? null;
  }

  /** The timelines of all frames that have one, the whole run's first. */
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

/** Every owner's value at every row, computed from the rows in which it changed. */
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
