import { Chart } from '../chart';
import { categoryColour, type ThemeColours } from '../colours';
import { type Bar, barsOf, type Waterfall } from '../data/waterfall';
import { bytes, change, exactBytes, percent, shown, ticks } from '../format';
import { hideTip, showTip } from '../tip';
import { fitted } from './band';

const rowHeight = 26;
const axisHeight = 22;
const mostParts = 14;
const margin = 8;

/** Peaks as bars from zero, and between them the changes from one to the next. */
export class WaterfallChart extends Chart {
  private readonly bars: Bar[];
  private cursor = -1;
  /** Whether the axis starts where the bars begin to differ. */
  private zoomed: boolean;

  constructor(
    private readonly waterfall: Waterfall,
    private readonly activate: (part: string) => void,
  ) {
    super('Peaks, and the parts of the step by which they differ. Arrows move from bar to bar. The table below has the same numbers.', 'waterfall', axisHeight + rowHeight);
    this.bars = barsOf(waterfall, mostParts);
    this.setHeight(axisHeight + rowHeight * this.bars.length + 6);
    const peak = Math.max(...waterfall.columns.map((column) => column.peak_bytes));
    const largest = Math.max(0, ...this.bars.filter((bar) => bar.kind !== 'peak').map((bar) => Math.abs(bar.to - bar.from)));
    this.zoomed = largest > 0 && largest < peak / 20;
    const { canvas } = this;
    canvas.addEventListener('pointermove', (event) => this.hover(event));
    canvas.addEventListener('pointerleave', hideTip);
    canvas.addEventListener('click', (event) => this.open(this.rowAt(event.offsetY)));
    canvas.addEventListener('keydown', (event) => this.key(event));
    canvas.addEventListener('blur', () => {
      this.cursor = -1;
      hideTip();
      this.invalidate();
    });
  }

  get axis(): 'zero' | 'differences' {
    return this.zoomed ? 'differences' : 'zero';
  }

  setAxis(axis: 'zero' | 'differences'): void {
    this.zoomed = axis === 'differences';
    this.invalidate();
  }

  private get left(): number {
    return this.width < 600 ? 120 : 220;
  }
  private get right(): number {
    return this.width - 100;
  }

  /** The start and end of the axis. */
  private range(): [number, number] {
    const levels = this.bars.flatMap((bar) => (bar.kind === 'peak' ? [bar.to] : [bar.from, bar.to]));
    const high = Math.max(1, ...levels);
    if (!this.zoomed) return [0, high];
    const low = Math.min(...levels);
    return [Math.max(0, low - Math.max(1, high - low) * 0.25), high];
  }

  protected override draw(context: CanvasRenderingContext2D, colours: ThemeColours): void {
    const [low, high] = this.range();
    const x = (value: number): number => this.left + ((Math.max(value, low) - low) / (high - low || 1)) * (this.right - this.left);
    this.drawAxis(context, colours, low, high, x);
    this.bars.forEach((bar, index) => {
      const top = axisHeight + index * rowHeight;
      const middle = top + rowHeight / 2;
      const from = x(bar.kind === 'peak' ? low : Math.min(bar.from, bar.to));
      const to = x(Math.max(bar.from, bar.to));
      if (index === this.cursor) {
        context.fillStyle = colours.band;
        context.fillRect(0, top, this.width, rowHeight);
      }
      context.fillStyle = colourOf(bar);
      context.fillRect(from, top + 5, Math.max(to - from, 1.5), rowHeight - 10);
      if (bar.kind === 'peak' && low > 0) this.drawBreak(context, colours, top);
      if (index + 1 < this.bars.length) {
        const end = Math.round(x(bar.to)) + 0.5;
        context.strokeStyle = colours.muted;
        context.beginPath();
        context.moveTo(end, top + rowHeight - 5);
        context.lineTo(end, top + rowHeight + 5);
        context.stroke();
      }
      context.fillStyle = bar.kind === 'peak' ? colours.text : colours.muted;
      const indent = bar.kind === 'peak' ? margin : margin + 14;
      context.fillText(fitted(context, shown(bar.label), this.left - indent - 10), indent, middle);
      context.textAlign = 'right';
      context.fillStyle = colours.text;
      context.fillText(textOf(bar), this.width - margin, middle);
      context.textAlign = 'left';
    });
  }

  private drawAxis(context: CanvasRenderingContext2D, colours: ThemeColours, low: number, high: number, x: (value: number) => number): void {
    const bottom = axisHeight + rowHeight * this.bars.length;
    const marks = ticks(low, high, Math.max(2, Math.floor((this.right - this.left) / 110)), true);
    // Three digits do not distinguish marks that are close to each other.
    const label = new Set(marks.map(bytes)).size === marks.length ? bytes : exactBytes;
    context.textAlign = 'center';
    for (const mark of marks) {
      const at = Math.round(x(mark)) + 0.5;
      context.strokeStyle = colours.line;
      context.beginPath();
      context.moveTo(at, axisHeight - 4);
      context.lineTo(at, bottom);
      context.stroke();
      context.fillStyle = colours.muted;
      context.fillText(label(mark), at, axisHeight / 2 - 2);
    }
    context.textAlign = 'left';
  }

  /** Two slanted cuts: the bar starts at zero, which the axis does not show. */
  private drawBreak(context: CanvasRenderingContext2D, colours: ThemeColours, top: number): void {
    context.strokeStyle = colours.surface;
    context.lineWidth = 2;
    for (const at of [8, 13]) {
      context.beginPath();
      context.moveTo(this.left + at, top + rowHeight - 4);
      context.lineTo(this.left + at + 5, top + 4);
      context.stroke();
    }
    context.lineWidth = 1;
  }

  private rowAt(y: number): number {
    const row = Math.floor((y - axisHeight) / rowHeight);
    return row >= 0 && row < this.bars.length ? row : -1;
  }

  private hover(event: PointerEvent): void {
    const row = this.rowAt(event.offsetY);
    if (row < 0) hideTip();
    else this.tell(row, event.clientX, event.clientY);
    this.canvas.style.cursor = row >= 0 && this.bars[row].part ? 'pointer' : 'default';
  }

  private tell(row: number, x: number, y: number): void {
    const bar = this.bars[row];
    const { columns } = this.waterfall;
    const lines: [string, string][] = [];
    if (bar.kind === 'peak') {
      const column = columns[bar.column];
      lines.push(['peak', exactBytes(column.peak_bytes)]);
      if (column.peak_segment !== null) lines.push(['in', shown(column.peak_segment)]);
      if (column.peak_operation !== null) lines.push(['operation', shown(column.peak_operation)]);
    } else {
      columns.forEach((column, index) => {
        if (bar.part) lines.push([shown(column.title), exactBytes(bar.part.bytes[index])]);
      });
      lines.push([`to ${shown(columns[bar.column].title)}`, `${bar.to > bar.from ? '+' : ''}${exactBytes(bar.to - bar.from)} (${percent(Math.abs(bar.to - bar.from), columns[bar.column - 1].peak_bytes)})`]);
    }
    showTip({ title: shown(bar.label), lines, note: bar.part ? 'Click or press Enter to show its operations in the table.' : undefined }, x, y);
  }

  private open(row: number): void {
    const part = row >= 0 ? this.bars[row].part : null;
    if (part) this.activate(part.part);
  }

  private key(event: KeyboardEvent): void {
    const by = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0;
    if (event.key === 'Enter') this.open(this.cursor);
    if (by === 0) return;
    event.preventDefault();
    this.cursor = Math.min(this.bars.length - 1, Math.max(0, this.cursor + by));
    this.invalidate();
    const box = this.canvas.getBoundingClientRect();
    this.tell(this.cursor, box.left + this.left, box.top + axisHeight + (this.cursor + 1) * rowHeight);
  }
}

function colourOf(bar: Bar): string {
  return categoryColour(bar.kind === 'peak' ? 'parameter' : bar.kind === 'more' ? 'temporary' : 'optimizer_state');
}

const textOf = (bar: Bar): string => (bar.kind === 'peak' ? bytes(bar.to) : change(bar.to - bar.from));
