import type { Comparison } from './comparison';
import type { Column, Run, Table, TableName } from './contract';
import type { Waterfall } from './waterfall';

/** Columns of one table; numbers, since all values are below 2^53. */
export type Columns = Record<string, Float64Array>;

/** The page's data: the document, and its tables on demand. */
export class Data {
  private readonly decoded = new Map<Table, Columns>();

  constructor(
    readonly run: Run,
    private readonly columns: Uint8Array,
  ) {}

  /** The table, or null if the page has none of that name, frame and space. */
  table(name: TableName, frame = 0, space = -1): Columns | null {
    const table = this.run.detail?.tables.find((t) => t.name === name && t.frame === frame && t.space === space);
    if (!table) return null;
    let result = this.decoded.get(table);
    if (!result) {
      result = {};
      for (const column of table.columns) result[column.name] = decodeColumn(this.columns, column, table.rows);
      this.decoded.set(table, result);
    }
    return result;
  }
}

/** Reads the data blocks of the page. Throws with a sentence if they are damaged. */
export async function readPage(): Promise<Data | Waterfall | Comparison> {
  const document = await block('memprof-run');
  if (!document) throw new Error('This page has no data: it is a report template, or was cut off.');
  const run = JSON.parse(keepAddresses(new TextDecoder().decode(document))) as Run | Waterfall | Comparison;
  if ((run.format === 'memprof-waterfall' || run.format === 'memprof-comparison') && run.version === 1) return run;
  if (run.format !== 'memprof-page' || run.version !== 1) throw new Error('This page combines two versions of memprof.');
  const columns = run.detail ? await block('memprof-columns') : new Uint8Array();
  if (!columns) throw new Error('This page was cut off: its tables are missing.');
  return new Data(run, columns);
}

async function block(id: string): Promise<Uint8Array | null> {
  const element = document.getElementById(id);
  if (!element) return null;
  const text = atob((element.textContent ?? '').trim());
  const packed = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i += 1) packed[i] = text.charCodeAt(i);
  element.remove();
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream('gzip'));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/**
 * Puts addresses of 2^53 and above into quotes, which JSON.parse would round. Inside a string a quote has a backslash before
 * it, and no string is followed by a colon unless it is a key: only keys match.
 */
export function keepAddresses(json: string): string {
  return json.replace(/"address":(\s*)(\d{16,})/g, '"address":$1"$2"');
}

export function decodeColumn(source: Uint8Array, column: Column, rows: number): Float64Array {
  const result = new Float64Array(rows);
  const end = column.begin + column.bytes;
  if (end > source.length) throw new Error(`This page was cut off within the column '${column.name}'.`);
  const differences = column.encoding === 'delta';
  let at = column.begin;
  let previous = 0;
  for (let row = 0; row < rows; row += 1) {
    // Four groups of seven bits fit the integers of bitwise operators; what is above is counted in doubles, exact below 2^53.
    let byte = source[at++];
    let value = byte & 0x7f;
    let shift = 7;
    while (byte >= 0x80 && shift < 28) {
      byte = source[at++];
      value |= (byte & 0x7f) << shift;
      shift += 7;
    }
    let factor = 2 ** 28;
    while (byte >= 0x80) {
      byte = source[at++];
      value += (byte & 0x7f) * factor;
      factor *= 128;
    }
    if (differences) {
      previous += value % 2 === 1 ? -(value + 1) / 2 : value / 2;
      value = previous;
    }
    result[row] = value;
  }
  if (at !== end) throw new Error(`The column '${column.name}' of this page has the wrong number of rows.`);
  return result;
}
