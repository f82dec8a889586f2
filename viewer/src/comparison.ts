import { operationColour, plainColour } from './colours';
import type { ComparedRow, ComparedRun, Comparison } from './data/comparison';
import { h, swatch } from './dom';
import { bytes, categoryName, change, count, exactBytes, number, percent, shortened, shown } from './format';
import { installStatus } from './status';
import { type ColumnOf, DataTable } from './table';
import { printInLight, themeButton } from './theme';
import { installTip } from './tip';
import { choice } from './views/choice';
import { RunsChart } from './views/runs';

const words: Record<ComparedRow['what'], string> = { equal: '', more: '', less: '', came: 'new', went: 'gone', moved_in: 'was not live', moved_out: 'no longer live' };

/** The page of a comparison: two runs on one axis, and what makes the difference. */
export function startComparison(comparison: Comparison): void {
  printInLight();
  installTip();
  installStatus();
  const heading = shown(comparison.title);
  document.title = `${heading} \u2013 memprof`;
  const sections: [id: string, title: string, content: HTMLElement[]][] = [['runs', 'Live bytes of both runs', chartOf(comparison)]];
  const add = <Row extends ComparedRow>(id: string, title: string, rows: Row[], name: string, nameOf: (row: Row) => string, noun: string): void => {
    if (rows.length > 0) sections.push([id, title, [tableOf(title, comparison, rows, name, nameOf, noun)]]);
  };
  add('operations', 'Operations that differ', comparison.operations, 'Operation', (row) => (row.operations > 1 ? `${shown(row.operation)} \u00d7${count(row.operations)}` : shown(row.operation)), 'operation');
  add('callers', 'Code that asked for what differs', comparison.callers, 'Asked for by', (row) => (row.caller === null ? 'blocks without a stack' : shown(row.caller)), 'caller');
  add('categories', 'Categories that differ', comparison.categories, 'Category', (row) => categoryName(row.category), 'row');
  add('sizes', 'Sizes of blocks that differ', comparison.sizes, 'Size of block', (row) => `from ${bytes(row.least_size)}`, 'size');
  add('spaces', 'Peaks of other memory spaces', comparison.other_spaces, 'Memory space', (row) => shown(row.space), 'memory space');
  const nav = h('nav', { 'aria-label': 'Sections' }, ...['answers', ...sections.map(([id]) => id)].map((id) => h('a', { href: `#${id}` }, id[0].toUpperCase() + id.slice(1))));
  const about = `${shown(comparison.before.title)}, ${shown(comparison.after.title)}`;
  const header = h('header', {}, h('div', { class: 'bar-top' }, h('h1', {}, heading), h('span', { class: 'about' }, about), nav, themeButton()));
  const main = h('main', {}, answers(comparison), ...sections.map(([id, title, content]) => h('section', { id, 'aria-labelledby': `${id}-title` }, h('h2', { id: `${id}-title` }, title), ...content)));
  document.getElementById('loading')?.remove();
  document.body.prepend(header, main);
  document.body.append(h('footer', {}, 'Made by memprof. Bytes are exact; hold the pointer over a number for all its digits.'));
  new ResizeObserver(() => document.documentElement.style.setProperty('--header', `${header.offsetHeight}px`)).observe(header);
}

function answers(comparison: Comparison): HTMLElement {
  const { before, after } = comparison;
  const section = h('section', { id: 'answers', 'aria-label': 'Answers', class: 'with-spaces' }, runCard(before, comparison.moment), changeCard(comparison), runCard(after, comparison.moment));
  const notes = [...comparison.notes, ...remarks(comparison)];
  if (notes.length > 0) section.append(h('div', { class: 'answer wide', 'data-answer': 'notes' }, h('h2', {}, 'Notes'), ...notes.map((note) => h('p', {}, note))));
  return section;
}

function card(id: string, title: string, value: string, exact: string, lines: string[]): HTMLElement {
  return h('div', { class: 'answer', 'data-answer': id }, h('h2', {}, title), h('p', { class: 'value', title: exact }, value), ...lines.filter((line) => line).map((line) => h('p', { title: line }, shortened(line, 90))));
}

const countChange = (value: number): string => (value > 0 ? '+' : '') + count(value);

function runCard(run: ComparedRun, moment: Comparison['moment']): HTMLElement {
  const step = run.step === null ? '' : `, step ${count(run.step + 1)}`;
  const range = run.runs > 1 ? `median of ${count(run.runs)} runs, from ${bytes(run.least_bytes)} to ${bytes(run.greatest_bytes)}` : '';
  const lines = [run.segment === null ? '' : `in ${shown(run.segment)}${step}`, run.operation === null ? '' : `reached by ${shown(run.operation)}`, range, run.file === null ? '' : shown(run.file)];
  const what = moment === 'end' ? 'live at the end' : 'peak';
  return card(run.title, `${shown(run.title)}: ${what} of ${shown(run.space)}`, bytes(run.bytes), exactBytes(run.bytes), lines);
}

function changeCard(comparison: Comparison): HTMLElement {
  const { before, change_bytes: by, operations } = comparison;
  if (comparison.equal) return card('change', 'Change', 'Equal', exactBytes(0), ['operation by operation, to the byte']);
  const share = percent(Math.abs(by), before.bytes);
  const lines = operations.slice(0, 4).map((row) => `${shown(row.operation)} ${change(row.change_bytes)}`);
  if (operations.length > 4) lines.push(`and ${number(operations.length - 4, 'operation')} more`);
  return card('change', 'Change', by === 0 ? 'Equal in sum' : `${change(by)}${share ? ` (${by > 0 ? '+' : '\u2212'}${share})` : ''}`, exactBytes(by), lines);
}

function remarks(comparison: Comparison): string[] {
  const { before, after } = comparison;
  const notes: string[] = [];
  if (before.space !== after.space) notes.push(`The runs are compared in different memory spaces: ${shown(before.space)} and ${shown(after.space)}.`);
  else if (!comparison.same_moment) notes.push('It is another moment of the program: what was live then differs even where no operation changed.');
  const inexact = [before, after].filter((run) => !run.exact).map((run) => shown(run.title));
  if (inexact.length > 0) notes.push(`Not exact: ${inexact.join(' and ')}. The difference is not exact either.`);
  if (comparison.more_than_noise === false) notes.push('The ranges of the runs overlap: the difference may be chance.');
  return notes;
}

function chartOf(comparison: Comparison): HTMLElement[] {
  const chart = new RunsChart(comparison);
  const legend = h('span', { class: 'about' }, swatch(plainColour()), `${shown(comparison.before.title)} `, swatch(operationColour(5)), shown(comparison.after.title));
  const axis = choice('Axis', [['segments', 'Segment by segment'], ['time', 'Time']], () => chart.axis, (value) => chart.setAxis(value));
  // Without the same segments there is nothing to choose.
  return [h('div', { class: 'toolbar' }, chart.canAlign ? axis.element : null, legend), chart.element];
}

function tableOf<Row extends ComparedRow>(label: string, comparison: Comparison, rows: Row[], name: string, nameOf: (row: Row) => string, noun: string): HTMLElement {
  const bytesOf = (title: string, value: (row: Row) => number): ColumnOf<Row> => ({ title, value, text: (row) => bytes(value(row)), exact: (row) => exactBytes(value(row)) });
  const table = new DataTable<Row>({
    label,
    noun,
    empty: 'Nothing differs.',
    columns: [
      { title: name, value: nameOf },
      bytesOf(shown(comparison.before.title), (row) => row.before_bytes),
      bytesOf(shown(comparison.after.title), (row) => row.after_bytes),
      { title: 'Change', value: (row) => row.change_bytes, text: (row) => change(row.change_bytes), exact: (row) => exactBytes(row.change_bytes) },
      { title: 'Blocks', about: 'The change of the number of blocks', minor: true, value: (row) => row.after_blocks - row.before_blocks, text: (row) => countChange(row.after_blocks - row.before_blocks), exact: (row) => `${count(row.before_blocks)}, then ${count(row.after_blocks)}` },
      { title: 'What', value: (row) => words[row.what] },
    ],
  });
  table.setRows(rows);
  return table.element;
}
