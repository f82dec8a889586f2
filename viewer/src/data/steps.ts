import type { Columns } from './decode';

export interface Step {
  row: number;
  /** Number of the first step, from 1, and how many consecutive ones are in this row. */
  number: number;
  count: number;
  beginNs: number;
  endNs: number;
  beginEvent: number;
  endEvent: number;
  pattern: number;
  segment: number;
}

/** Steps in order of time. There may be 100,000, so each is made on request. */
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

  /** The number of steps that the rows stand for. */
  get count(): number {
    return this.numbers[this.length] - 1;
  }

  /** The row that a step, by its number from 1, is in. */
  rowOf(number: number): number {
    return Math.min(rowAt(this.numbers, number), this.length - 1);
  }

  /** The step at a value of an axis; null if there is none. */
  on(axis: keyof Begins, value: number): Step | null {
    if (this.length === 0) return null;
    const found = this.at(rowAt(this.begins[axis], value));
    const [begin, end] = axis === 'event' ? [found.beginEvent, found.endEvent] : [found.beginNs, found.endNs];
    return value >= begin && value < end ? found : null;
  }

  /** The row must exist. */
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

export const beginsOf = (things: { beginEvent: number; beginNs: number }[]): Begins => ({
  event: Float64Array.from(things, (t) => t.beginEvent),
  ns: Float64Array.from(things, (t) => t.beginNs),
});

/** The last row whose begin is at or before the value; 0 if there is none. */
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
