import { categoryColour } from '../colours';
import type { Operation, OperationUsage } from '../data/contract';
import type { Model } from '../data/model';
import { h } from '../dom';
import { bytes, change, count, exactBytes, shown } from '../format';
import type { OperationColours } from '../groups';
import type { Store } from '../store';
import { DataTable } from '../table';

interface Row {
  operation: Operation;
  depth: number;
  usage: OperationUsage;
}

const nothing: Omit<OperationUsage, 'space'> = {
  total_delta: 0,
  self_delta: 0,
  max_delta: 0,
  allocated: 0,
  freed: 0,
  self_allocated: 0,
  self_freed: 0,
  allocation_count: 0,
  deallocation_count: 0,
  peak: 0,
  self_peak: 0,
  live: 0,
};

/** What each operation did over the whole run, in the selected space. */
export function operationsView(model: Model, store: Store, colours: OperationColours): HTMLElement {
  const depths = model.profile.operations.map(() => 0);
  model.profile.operations.forEach((operation, i) => {
    if (operation.parent >= 0) depths[i] = depths[operation.parent] + 1;
  });
  const order = treeOrder(model.profile.operations);
  const column = (title: string, about: string, of: (row: Row) => number, signed = false, minor = false) => ({
    title,
    about,
    value: of,
    text: (row: Row) => (signed ? change(of(row)) : bytes(of(row))),
    exact: (row: Row) => exactBytes(of(row)),
    minor,
  });
  const average = (row: Row): number => (row.operation.invocations > 0 ? Math.round(row.usage.total_delta / row.operation.invocations) : 0);
  const table: DataTable<Row> = new DataTable<Row>({
    label: 'Operations over the whole run',
    noun: 'operation',
    empty: 'No operations were recorded: name them with track_operation.',
    indent: (row) => (table.isFlat ? 0 : row.depth),
    activate: {
      does: 'Show what it has live at the selected moment',
      run: (row) => {
        store.set({ view: 'live', find: row.operation.path });
        document.getElementById('live')?.scrollIntoView();
      },
    },
    columns: [
      { title: 'Operation', about: 'Nested, unless sorted by another column', value: (row) => shown(table.isFlat ? row.operation.path : row.operation.name), colour: (row) => (store.state.by !== 'operation' ? '' : colours.rank(row.operation.path) >= 0 ? colours.colour(row.operation.path) : categoryColour('other')) },
      { title: 'Count', about: 'How often it ran', value: (row) => row.operation.invocations, text: (row) => count(row.operation.invocations), exact: () => '' },
      column('Total', 'Bytes allocated, including nested operations', (row) => row.usage.allocated),
      column('Self', 'Bytes allocated by itself', (row) => row.usage.self_allocated),
      ...(isInferring(model) ? [column('Inferred', 'The part of the total by threads without an operation, for which this one was assumed', (row) => row.usage.inferred ?? 0)] : []),
      column('Average', 'Allocated minus freed per invocation, including nested operations', average, true),
      column('Max', 'Greatest of those', (row) => row.usage.max_delta, true),
      column('Peak', 'Greatest rise above the bytes at its begin, including nested operations', (row) => row.usage.peak),
      column('Self peak', 'The same without nested operations', (row) => row.usage.self_peak, false, true),
      column('Live at the end', 'Live bytes that it allocated itself', (row) => row.usage.live, false, true),
    ],
  });
  const update = (): void => {
    const name = store.space?.name ?? '';
    table.setRows(
      order.map((index) => {
        const operation = model.profile.operations[index];
        return { operation, depth: depths[index], usage: model.usage(operation, name) ?? { space: name, ...nothing } };
      }),
    );
  };
  store.on(['space'], update);
  store.on(['by'], () => table.refresh());
  update();
  return h('div', {}, table.element);
}

/** Whether any operation has bytes for which it was only inferred. */
function isInferring(model: Model): boolean {
  return model.profile.operations.some((operation) => operation.usage.some((usage) => (usage.inferred ?? 0) > 0));
}

/** Children after their parents, siblings in the order they were first called. */
function treeOrder(operations: Operation[]): number[] {
  const children = new Map<number, number[]>();
  operations.forEach((operation, index) => {
    const siblings = children.get(operation.parent);
    if (siblings) siblings.push(index);
    else children.set(operation.parent, [index]);
  });
  const result: number[] = [];
  const pending = [...(children.get(-1) ?? [])].reverse();
  while (pending.length > 0) {
    const index = pending.pop()!;
    result.push(index);
    pending.push(...[...(children.get(index) ?? [])].reverse());
  }
  return result;
}
