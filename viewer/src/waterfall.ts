import { type Waterfall, type WaterfallPart, reasons } from './data/waterfall';
import { h } from './dom';
import { bytes, categoryName, change, exactBytes, number, percent, shortened, shown } from './format';
import { installStatus } from './status';
import { type ColumnOf, DataTable } from './table';
import { printInLight, themeButton } from './theme';
import { installTip } from './tip';
import { choice } from './views/choice';
import { WaterfallChart } from './views/waterfall';

/** A row of a table: bytes in each column; null where the column has no such operation. */
interface Row {
  part: string;
  operation: string;
  bytes: (number | null)[];
  changes: number[];
}

/** The page of a waterfall: several accounts of one step, and why their peaks differ. */
export function startWaterfall(waterfall: Waterfall): void {
  printInLight();
  installTip();
  installStatus();
  const heading = shown(waterfall.title);
  document.title = `${heading} \u2013 memprof`;
  const operations = operationsTable(waterfall);
  const find = (part: string): void => {
    operations.find(part);
    document.getElementById('operations')?.scrollIntoView();
    operations.focusSearch();
  };
  const sections: [id: string, title: string, content: HTMLElement[]][] = [
    ['waterfall', 'From peak to peak', chartOf(waterfall, find)],
    ['operations', 'Operations at the peak', [operations.element]],
  ];
  if (waterfall.categories.length > 0) sections.push(['categories', 'Categories at the peak', [categoriesTable(waterfall).element]]);
  const nav = h('nav', { 'aria-label': 'Sections' }, ...['answers', ...sections.map(([id]) => id)].map((id) => h('a', { href: `#${id}` }, id[0].toUpperCase() + id.slice(1))));
  const titles = waterfall.columns.map((column) => shown(column.title)).join(', ');
  const header = h('header', {}, h('div', { class: 'bar-top' }, h('h1', {}, heading), h('span', { class: 'about' }, titles), nav, themeButton()));
  const main = h('main', {}, answers(waterfall), ...sections.map(([id, title, content]) => h('section', { id, 'aria-labelledby': `${id}-title` }, h('h2', { id: `${id}-title` }, title), ...content)));
  document.getElementById('loading')?.remove();
  document.body.prepend(header, main);
  document.body.append(h('footer', {}, 'Made by memprof. Bytes are exact; hold the pointer over a number for all its digits.'));
  new ResizeObserver(() => document.documentElement.style.setProperty('--header', `${header.offsetHeight}px`)).observe(header);
}

/** A card for each peak, and one for each step between them. */
function answers(waterfall: Waterfall): HTMLElement {
  const { columns } = waterfall;
  const cards = columns.flatMap((column, index) => {
    const lines = [column.peak_segment === null ? '' : `in ${shown(column.peak_segment)}`, column.peak_operation === null ? '' : `reached by ${shown(column.peak_operation)}`, column.file === null ? '' : shown(column.file)];
    const peak = card('peak', shown(column.title), bytes(column.peak_bytes), exactBytes(column.peak_bytes), lines);
    return index === 0 ? [peak] : [changeCard(waterfall, index), peak];
  });
  const notes = [...waterfall.notes, ...remarks(waterfall)];
  const section = h('section', { id: 'answers', 'aria-label': 'Answers', class: 'with-spaces' }, ...cards);
  if (notes.length > 0) section.append(h('div', { class: 'answer wide', 'data-answer': 'notes' }, h('h2', {}, 'Notes'), ...notes.map((note) => h('p', {}, note))));
  return section;
}

function card(id: string, title: string, value: string, exact: string, lines: string[]): HTMLElement {
  return h('div', { class: 'answer', 'data-answer': id }, h('h2', {}, title), h('p', { class: 'value', title: exact }, value), ...lines.filter((line) => line).map((line) => h('p', { title: line }, shortened(line, 90))));
}

function changeCard(waterfall: Waterfall, column: number): HTMLElement {
  const by = waterfall.changes[column - 1];
  const before = waterfall.columns[column - 1];
  const parts = reasons(waterfall, column - 1);
  const title = `From ${shown(before.title)} to ${shown(waterfall.columns[column].title)}`;
  if (parts.length === 0) return card('change', title, 'Equal', exactBytes(0), ['part by part, to the byte']);
  const lines = parts.slice(0, 4).map((part) => `${shown(part.part)} ${change(part.changes[column - 1])}`);
  if (parts.length > 4) lines.push(`and ${number(parts.length - 4, 'part')} more`);
  const share = percent(Math.abs(by), before.peak_bytes);
  return card('change', title, by === 0 ? 'Equal in sum' : `${change(by)}${share ? ` (${share})` : ''}`, exactBytes(by), lines);
}

function remarks(waterfall: Waterfall): string[] {
  const { columns } = waterfall;
  const notes: string[] = [];
  if (columns.some((column) => column.peak_segment !== columns[0].peak_segment)) notes.push('The peaks are in different phases: each column has what was live at its own.');
  if (columns.some((column) => column.space !== columns[0].space)) notes.push(`The columns are of different memory spaces: ${columns.map((column) => shown(column.space)).join(', ')}.`);
  for (const { title, resident_bytes: resident, unrecorded_heap_bytes: heap } of columns) {
    if (!resident || !heap || heap < 2 ** 20 || heap <= resident / 20) continue;
    notes.push(`The process of ${shown(title)} held ${bytes(resident)}, of which ${bytes(heap)} were heap that no source recorded: its peak lacks them.`);
  }
  const lacks = columns.find((column) => !column.has_categories);
  if (lacks) notes.push(`For ${shown(lacks.title)} it is unknown which operation held which category, so parts go by name alone; a trace records it.`);
  return notes;
}

function chartOf(waterfall: Waterfall, find: (part: string) => void): HTMLElement[] {
  const chart = new WaterfallChart(waterfall, find);
  const axis = choice('Axis', [['zero', 'From zero'], ['differences', 'Around the differences']], () => chart.axis, (value) => chart.setAxis(value));
  return [h('div', { class: 'toolbar' }, axis.element, h('span', { class: 'about' }, 'Each bar begins where the one above it ended.')), chart.element];
}

/** Columns of bytes, then their changes. */
function byteColumns(waterfall: Waterfall): ColumnOf<Row>[] {
  const of = (row: Row, index: number): number => row.bytes[index] ?? 0;
  return [
    ...waterfall.columns.map((column, index) => ({
      title: shown(column.title),
      about: 'Bytes live at the peak; a dash where there is no such operation',
      value: (row: Row) => of(row, index),
      text: (row: Row) => (row.bytes[index] === null ? '\u2013' : bytes(of(row, index))),
      exact: (row: Row) => (row.bytes[index] === null ? 'no such operation' : exactBytes(of(row, index))),
    })),
    ...waterfall.changes.map((_, index) => ({
      title: waterfall.changes.length > 1 ? `Change to ${shown(waterfall.columns[index + 1].title)}` : 'Change',
      value: (row: Row) => row.changes[index],
      text: (row: Row) => change(row.changes[index]),
      exact: (row: Row) => exactBytes(row.changes[index]),
    })),
  ];
}

function operationsTable(waterfall: Waterfall): DataTable<Row> {
  const table = new DataTable<Row>({
    label: 'Operations at the peak',
    noun: 'operation',
    empty: 'Nothing was live.',
    columns: [
      { title: 'Part', value: (row) => shown(row.part) },
      { title: 'Operation', value: (row) => shown(row.operation) },
      ...byteColumns(waterfall),
    ],
  });
  table.setRows(waterfall.parts.flatMap((part) => rowsOf(part)));
  return table;
}

function rowsOf(part: WaterfallPart): Row[] {
  return part.operations.map((operation) => {
    const most = Math.max(...operation.paths);
    return {
      part: part.part,
      operation: most > 1 ? `${operation.operation} \u00d7${most}` : operation.operation,
      bytes: operation.bytes.map((held, index) => (operation.paths[index] === 0 ? null : held)),
      changes: operation.changes,
    };
  });
}

function categoriesTable(waterfall: Waterfall): DataTable<Row> {
  const table = new DataTable<Row>({
    label: 'Categories at the peak',
    noun: 'row',
    empty: 'No block had a category.',
    columns: [{ title: 'Category', value: (row) => categoryName(row.part) }, ...byteColumns(waterfall)],
  });
  table.setRows(waterfall.categories.map((row) => ({ part: row.category, operation: '', bytes: row.bytes, changes: row.changes })));
  return table;
}
