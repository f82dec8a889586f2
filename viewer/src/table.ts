import { plainColour } from './colours';
import { csvRecord } from './csv';
import { bar, copy, h, setText, swatch } from './dom';
import { count, number as numberOf } from './format';
import { shortenedApart } from './names';
import { say } from './status';

/** A column of a table. `value` is sorted, copied and, if it is text, searched; `text` is shown. */
export interface ColumnOf<Row> {
  title: string;
  /** Explains the title. */
  about?: string;
  value: (row: Row) => number | string;
  text?: (row: Row) => string;
  /** The exact value of a number. */
  exact?: (row: Row) => string;
  /** A bar behind the number, from 0 to 1. */
  part?: (row: Row) => number;
  /** Of its bar, or of a mark before its text; empty: none of its own. */
  colour?: (row: Row) => string;
  /** Hidden if the page is narrow. */
  minor?: boolean;
}

interface Options<Row> {
  label: string;
  columns: ColumnOf<Row>[];
  /** Rows in the order that is shown when no column is sorted. */
  sort?: { column: number; descending: boolean };
  /** What activating a row does, and its description. */
  activate?: { does: string; run: (row: Row) => void };
  /** What a row's first cell shows before its text. */
  indent?: (row: Row) => number;
  noun: string;
  empty: string;
}

const rowHeight = 26;
/** Browsers lose rows beyond a few million pixels; the search finds those. */
const mostRows = 300_000;
const printedRows = 400;
const mostShortened = 5000;

/** A table of any length that sorts, searches and copies. Only visible rows are elements. */
export class DataTable<Row> {
  readonly element: HTMLElement;
  private readonly scroller: HTMLElement;
  private readonly table: HTMLTableElement;
  private readonly body: HTMLTableSectionElement;
  private readonly counter: HTMLElement;
  private readonly search: HTMLInputElement;
  private readonly heads: HTMLTableCellElement[] = [];
  /** For columns of text: what their cells show, in the order of `shown`; null if all texts fit. */
  private names: (string[] | null)[] = [];
  private rows: Row[] = [];
  private shown: Row[] = [];
  private sort: { column: number; descending: boolean } | null;
  private first = -1;
  private printing = false;
  private note = '';

  constructor(private readonly options: Options<Row>) {
    this.sort = options.sort ?? null;
    this.search = h('input', { type: 'search', placeholder: 'Search', 'aria-label': `Search ${options.label}`, spellcheck: 'false', input: () => this.update() });
    this.counter = h('span', { class: 'counter' });
    const head = h('tr', {});
    options.columns.forEach((column, index) => {
      const cell = h(
        'th',
        { scope: 'col', class: `${this.isNumber(index) ? 'number' : 'text'}${column.minor ? ' minor' : ''}` },
        h('button', { type: 'button', title: column.about, click: () => this.sortBy(index) }, column.title),
      );
      this.heads.push(cell);
      head.append(cell);
    });
    this.body = h('tbody');
    this.table = h('table', { 'aria-label': options.label }, h('thead', {}, head), this.body);
    this.scroller = h('div', { class: 'rows', tabindex: 0, role: 'region', 'aria-label': options.label }, this.table);
    this.scroller.addEventListener('scroll', () => this.render(), { passive: true });
    this.element = h(
      'div',
      { class: 'data-table' },
      h('div', { class: 'table-tools' }, this.search, this.counter, h('button', { type: 'button', class: 'quiet', click: () => void this.copyCsv() }, 'Copy as CSV')),
      this.scroller,
    );
    new ResizeObserver(() => this.render(true)).observe(this.scroller);
    addEventListener('themechange', () => this.refresh());
    addEventListener('beforeprint', () => this.print(true));
    addEventListener('afterprint', () => this.print(false));
  }

  /** `note` says what the rows leave out. */
  setRows(rows: Row[], note = ''): void {
    this.rows = rows;
    this.note = note;
    this.update();
  }

  /** Draws the same rows again, as their colours have changed. */
  refresh(): void {
    this.render(true);
  }

  find(text: string): void {
    this.search.value = text;
    this.update();
  }

  /** Whether rows are reordered since `setRows`, or only some are shown: then a tree makes no sense. */
  get isFlat(): boolean {
    return this.sort !== null || this.search.value.trim() !== '';
  }

  focusSearch(): void {
    this.search.focus();
  }

  private isNumber(column: number): boolean {
    return this.options.columns[column].text !== undefined && this.options.columns[column].exact !== undefined;
  }

  private sortBy(column: number): void {
    if (this.sort?.column !== column) this.sort = { column, descending: this.isNumber(column) };
    else if (this.sort.descending === this.isNumber(column)) this.sort = { column, descending: !this.sort.descending };
    else this.sort = this.options.sort ?? null;
    this.update();
  }

  private update(): void {
    const { columns } = this.options;
    const wanted = this.search.value.toLowerCase().split(/\s+/).filter((word) => word);
    let shown = this.rows;
    if (wanted.length > 0) {
      shown = shown.filter((row) => {
        const text = columns.map((c) => (c.exact ? '' : (c.text ?? c.value)(row))).join('\n').toLowerCase();
        return wanted.every((word) => text.includes(word));
      });
    }
    if (this.sort) {
      const { column, descending } = this.sort;
      const keyed = shown.map((row) => ({ row, key: columns[column].value(row) }));
      const sign = descending ? -1 : 1;
      keyed.sort((a, b) => (a.key < b.key ? -sign : a.key > b.key ? sign : 0));
      shown = keyed.map((k) => k.row);
    }
    this.shown = shown;
    this.heads.forEach((cell, index) => {
      if (this.sort?.column === index) cell.setAttribute('aria-sort', this.sort.descending ? 'descending' : 'ascending');
      else cell.removeAttribute('aria-sort');
    });
    const { noun } = this.options;
    const of = shown.length < this.rows.length ? `${count(shown.length)} of ${numberOf(this.rows.length, noun)}` : numberOf(this.rows.length, noun);
    setText(this.counter, this.note ? `${of}; ${this.note}` : of);
    this.table.setAttribute('aria-rowcount', String(shown.length + 1));
    this.scroller.style.height = '';
    this.render(true);
  }

  /** Cells are cut at their ends, where stacks are alike, so names that are too long are shortened first. */
  private shortenNames(): void {
    const width = this.table.clientWidth || 1200;
    const lettersOf = (place: number): number => (width <= 640 ? 24 : place === 0 ? Math.max(40, Math.floor(width / 14)) : 56);
    this.names = this.options.columns.map((column, place) => {
      if (this.isNumber(place) || column.text || this.shown.length > mostShortened) return null;
      const letters = lettersOf(place);
      const texts = this.shown.map((row) => String(column.value(row)));
      return texts.some((text) => text.length > letters) ? shortenedApart(texts, letters) : null;
    });
  }

  private render(force = false): void {
    if (force) this.shortenNames();
    const total = Math.min(this.shown.length, this.printing ? printedRows : mostRows);
    const height = this.scroller.clientHeight || 400;
    const first = this.printing ? 0 : Math.max(0, Math.min(Math.floor(this.scroller.scrollTop / rowHeight) - 8, total - 1));
    const last = this.printing ? total : Math.min(total, first + Math.ceil(height / rowHeight) + 16);
    if (!force && first === this.first) return;
    this.first = first;
    const focused = document.activeElement instanceof HTMLElement && this.body.contains(document.activeElement) ? document.activeElement.dataset.index : undefined;
    const rows: HTMLElement[] = [];
    if (first > 0) rows.push(this.spacer(first));
    for (let i = first; i < last; i += 1) rows.push(this.row(i));
    if (last < total) rows.push(this.spacer(total - last));
    if (total === 0) rows.push(h('tr', {}, h('td', { colspan: this.options.columns.length, class: 'empty' }, this.rows.length > 0 ? 'Nothing found.' : this.options.empty)));
    if (this.printing && this.shown.length > total) {
      rows.push(h('tr', {}, h('td', { colspan: this.options.columns.length, class: 'empty' }, `and ${numberOf(this.shown.length - total, this.options.noun)} more`)));
    }
    this.body.replaceChildren(...rows);
    if (focused !== undefined) this.body.querySelector<HTMLElement>(`[data-index="${focused}"]`)?.focus({ preventScroll: true });
  }

  private spacer(rows: number): HTMLElement {
    const row = h('tr', { 'aria-hidden': 'true', class: 'spacer' }, h('td', { colspan: this.options.columns.length }));
    row.style.height = `${rows * rowHeight}px`;
    return row;
  }

  private row(index: number): HTMLElement {
    const row = this.shown[index];
    const { columns, activate, indent } = this.options;
    const element = h('tr', { 'aria-rowindex': index + 2, class: activate ? 'active' : undefined });
    columns.forEach((column, place) => {
      const text = (column.text ?? ((r: Row) => String(column.value(r))))(row);
      const cell = h('td', { class: `${this.isNumber(place) ? 'number' : 'text'}${column.minor ? ' minor' : ''}`, title: column.exact ? column.exact(row) : text });
      const colour = column.colour?.(row) ?? '';
      if (column.part) cell.append(bar(column.part(row), colour || plainColour()));
      else if (colour) cell.append(swatch(colour));
      if (place === 0 && indent) cell.style.paddingLeft = `${8 + 14 * Math.min(indent(row), 16)}px`;
      const short = this.names[place]?.[index] ?? text;
      if (place === 0 && activate) {
        cell.append(h('button', { type: 'button', class: 'row-action', 'data-index': index, title: `${text}\n${activate.does}`, keydown: (event: KeyboardEvent) => this.rowKey(event, index) }, short));
      } else cell.append(h('span', { class: 'cell' }, short));
      element.append(cell);
    });
    if (activate) element.addEventListener('click', () => activate.run(row));
    return element;
  }

  private rowKey(event: KeyboardEvent, index: number): void {
    const to = event.key === 'ArrowDown' ? index + 1 : event.key === 'ArrowUp' ? index - 1 : -1;
    if (to < 0 || to >= this.shown.length) return;
    event.preventDefault();
    event.stopPropagation();
    const top = to * rowHeight;
    if (top < this.scroller.scrollTop) this.scroller.scrollTop = top;
    else if (top + rowHeight * 3 > this.scroller.scrollTop + this.scroller.clientHeight) this.scroller.scrollTop = top + rowHeight * 3 - this.scroller.clientHeight;
    this.render(true);
    this.body.querySelector<HTMLElement>(`[data-index="${to}"]`)?.focus({ preventScroll: true });
  }

  private print(on: boolean): void {
    this.printing = on;
    this.render(true);
  }

  csv(): string {
    const { columns } = this.options;
    return [csvRecord(columns.map((c) => c.title)), ...this.shown.map((row) => csvRecord(columns.map((c) => c.value(row))))].join('');
  }

  private async copyCsv(): Promise<void> {
    say((await copy(this.csv())) ? `Copied ${numberOf(this.shown.length, this.options.noun)} as CSV.` : 'The browser did not allow copying.');
  }
}
