/** The page of a waterfall: the contents of the block `memprof-run`. docs/waterfall.schema.json describes the fields. */
export interface Waterfall {
  format: 'memprof-waterfall';
  version: 1;
  title: string;
  /** What readers who trust the numbers must know, in sentences. */
  notes: string[];
  columns: WaterfallColumn[];
  /** Of the peaks. */
  changes: number[];
  parts: WaterfallPart[];
  categories: (Bytes & { category: string })[];
}

/** Bytes in each column; `changes[n]` is the difference of column n + 1 from column n. */
interface Bytes {
  bytes: number[];
  changes: number[];
}

export interface WaterfallColumn {
  title: string;
  file: string | null;
  space: string;
  mode: 'normal' | 'no_dispatch';
  peak_bytes: number;
  peak_segment: string | null;
  peak_operation: string | null;
  has_categories: boolean;
  /** Of the process; null if unknown. Not in waterfalls of older versions, like the next. */
  resident_bytes?: number | null;
  unrecorded_heap_bytes?: number | null;
}

export interface WaterfallPart extends Bytes {
  part: string;
  operations: WaterfallOperation[];
}

/** If `paths` is 0, the column has no such operation. */
export interface WaterfallOperation extends Bytes {
  operation: string;
  blocks: number[];
  paths: number[];
}

/** A bar of the chart: a column's peak, or the change of a part on the way to the next peak. */
export interface Bar {
  label: string;
  from: number;
  to: number;
  /** What the bar is about; null: a peak, or the sum of several parts. */
  part: WaterfallPart | null;
  kind: 'peak' | 'more' | 'less';
  /** The column that the bar leads to. */
  column: number;
}

/** Peaks, and between them the changed parts, greatest change first; those beyond `most` share a bar. Each bar begins where the last ended. */
export function barsOf(waterfall: Waterfall, most: number): Bar[] {
  const bars: Bar[] = [];
  waterfall.columns.forEach((column, index) => {
    bars.push({ label: column.title, from: 0, to: column.peak_bytes, part: null, kind: 'peak', column: index });
    if (index + 1 === waterfall.columns.length) return;
    const changing = reasons(waterfall, index);
    let level = column.peak_bytes;
    const add = (label: string, change: number, part: WaterfallPart | null): void => {
      bars.push({ label, from: level, to: level + change, part, kind: change < 0 ? 'less' : 'more', column: index + 1 });
      level += change;
    };
    const shown = changing.length > most ? changing.slice(0, most - 1) : changing;
    for (const part of shown) add(part.part, part.changes[index], part);
    const rest = changing.slice(shown.length);
    if (rest.length > 0) add(`${rest.length} other parts`, rest.reduce((sum, part) => sum + part.changes[index], 0), null);
  });
  return bars;
}

/** Why a column is higher or lower than the one before, greatest change first. */
export function reasons(waterfall: Waterfall, change: number): WaterfallPart[] {
  return waterfall.parts.filter((part) => part.changes[change] !== 0).sort((a, b) => Math.abs(b.changes[change]) - Math.abs(a.changes[change]));
}
