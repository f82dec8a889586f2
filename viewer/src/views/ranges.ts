import { categoryColour } from '../colours';
import { blockRow, type ShownBlock } from '../data/live';
import type { Model } from '../data/model';
import { h } from '../dom';
import { bytes, categoryName, change, count, exactBytes, exactTime, shown, time } from '../format';
import type { Store } from '../store';
import { DataTable } from '../table';
import type { BlocksChart } from './blocks';
import type { Gantt, Invocation } from './gantt';
import { holderName } from './live';

const mostRows = 50_000;

/** A collapsed table, filled when it is opened: what a chart shows in its range. */
function folded(summary: string, table: HTMLElement, store: Store, fill: () => void): HTMLElement {
  const details = h('details', {}, h('summary', {}, summary), table);
  let waiting: ReturnType<typeof setTimeout> | undefined;
  const refill = (): void => {
    clearTimeout(waiting);
    if (details.open) waiting = setTimeout(fill, 120);
  };
  details.addEventListener('toggle', () => details.open && fill());
  store.on(['from', 'to', 'unit', 'space'], refill);
  return details;
}

export function invocationsInRange(model: Model, store: Store, gantt: Gantt): HTMLElement {
  type Row = { invocation: Invocation; path: string; delta: number | null; beginNs: number; endNs: number; times: number; thread: string };
  const table = new DataTable<Row>({
    label: 'Invocations of operations in the range',
    noun: 'invocation',
    empty: 'No invocations in the range.',
    activate: { does: 'Show it on the time axis', run: (row) => showRange(store, row.invocation.begin, row.invocation.end) },
    columns: [
      { title: 'Operation', value: (row) => row.path },
      { title: 'Times', about: 'More than 1: too short to keep one by one', value: (row) => row.times, text: (row) => count(row.times), exact: () => '' },
      { title: 'Begin', value: (row) => row.beginNs, text: (row) => time(row.beginNs), exact: (row) => exactTime(row.beginNs) },
      { title: 'Duration', value: (row) => row.endNs - row.beginNs, text: (row) => time(row.endNs - row.beginNs), exact: (row) => exactTime(row.endNs - row.beginNs) },
      { title: 'Memory', about: 'Allocated minus freed, including nested operations', value: (row) => row.delta ?? 0, text: (row) => (row.delta === null ? 'unknown' : change(row.delta)), exact: (row) => (row.delta === null ? 'The profile kept this invocation for another memory space.' : exactBytes(row.delta)) },
      { title: 'Thread', value: (row) => row.thread, minor: true },
    ],
  });
  return folded('Invocations in this range as a table', table.element, store, () => {
    const rows: Row[] = [];
    gantt.forEachVisible((invocation) => {
      if (rows.length >= mostRows || invocation.standIn > 0) return;
      const { columns } = invocation.table;
      const operation = model.profile.operations[columns.operation[invocation.row] - 1];
      const thread = columns.thread[invocation.row];
      rows.push({
        invocation,
        path: operation ? shown(operation.path) : '(several)',
        delta: gantt.delta(invocation),
        beginNs: columns.begin_ns[invocation.row],
        endNs: columns.end_ns[invocation.row],
        times: columns.count[invocation.row],
        thread: shown(model.detail?.threads[thread]?.name ?? '') || String(thread),
      });
    });
    table.setRows(rows);
  });
}

export function blocksInRange(model: Model, store: Store, chart: BlocksChart): HTMLElement {
  const table = new DataTable<ShownBlock>({
    label: 'Blocks in the range',
    noun: 'block',
    empty: 'No blocks in the range.',
    sort: { column: 0, descending: true },
    activate: {
      does: 'Select the moment of its allocation',
      run: (row) => store.select({ event: row.beginEvent, ns: row.beginNs }),
    },
    columns: [
      { title: 'Bytes', value: (row) => row.bytes, text: (row) => bytes(row.bytes), exact: (row) => exactBytes(row.bytes) },
      { title: 'Name', value: (row) => shown(row.name) },
      { title: 'Operation', value: (row) => holderName(row) },
      { title: 'Category', value: (row) => categoryName(row.category), colour: (row) => categoryColour(row.category) },
      { title: 'Shape', value: (row) => shown(row.shape), minor: true },
      { title: 'Allocated', value: (row) => row.beginNs, text: (row) => time(row.beginNs), exact: (row) => `event ${count(row.beginEvent)}` },
      { title: 'Lived', about: 'Empty: not freed within the recording', value: (row) => (row.stays ? Infinity : row.endNs - row.beginNs), text: (row) => (row.stays ? 'stays' : time(row.endNs - row.beginNs)), exact: (row) => (row.stays ? '' : `${count(row.endEvent - row.beginEvent)} events`), minor: true },
      { title: 'Address', value: (row) => row.address, minor: true },
    ],
  });
  return folded('Blocks in this range as a table', table.element, store, () => {
    const rows: ShownBlock[] = [];
    chart.forEachVisible((block) => {
      if (rows.length < mostRows && block.standIn === 0) rows.push(blockRow(model, store.state.space, block.table.columns, block.row));
    });
    table.setRows(rows);
  });
}

function showRange(store: Store, begin: number, end: number): void {
  const margin = Math.max((end - begin) * 0.05, 1);
  store.setRange(Math.max(0, begin - margin), Math.min(store.full, end + margin));
}
