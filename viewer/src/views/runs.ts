import { Chart } from '../chart';
import { operationColour, plainColour, type ThemeColours } from '../colours';
import { columnsOf, type Comparison, type Curve, haveSameSegments, placesOf, pointOfMoment } from '../data/comparison';
import { bytes, change, exactBytes, shown, ticks, time, timeTick } from '../format';
import { hideTip, showTip } from '../tip';
import { fitted } from './band';

const left = 72;
const margin = 12;
const top = 22;
const bottomHeight = 22;

/** Live bytes of two runs over one axis: of time, or of the segments that both pass through. */
export class RunsChart extends Chart {
  readonly canAlign: boolean;
  private aligned: boolean;
  private cursor = -1;
  private columns: [Float64Array, Float64Array] | null = null;

  constructor(private readonly comparison: Comparison) {
    super('Live bytes of both runs. Arrows move along the axis. The cards above and the tables below have the numbers.', 'runs', 260);
    this.canAlign = haveSameSegments(comparison.curves);
    this.aligned = this.canAlign;
    const { canvas } = this;
    canvas.addEventListener('pointermove', (event) => this.select(Math.floor(event.offsetX - left), event.clientX, event.clientY));
    canvas.addEventListener('pointerleave', () => this.select(-1, 0, 0));
    canvas.addEventListener('blur', () => this.select(-1, 0, 0));
    canvas.addEventListener('keydown', (event) => this.key(event));
  }

  get axis(): 'segments' | 'time' {
    return this.aligned ? 'segments' : 'time';
  }

  setAxis(axis: 'segments' | 'time'): void {
    this.aligned = axis === 'segments';
    this.cursor = -1;
    hideTip();
    this.invalidate();
  }

  private get plotWidth(): number {
    return this.width - left - margin;
  }

  private places(curve: Curve): ArrayLike<number> {
    return this.aligned ? placesOf(curve) : curve.times_ns;
  }

  /** The end of the axis, in nanoseconds or segments. */
  private get end(): number {
    const { curves } = this.comparison;
    if (this.aligned) return Math.max(...curves.map((curve) => curve.segments.length));
    return Math.max(1, ...curves.map((curve) => Math.max(curve.segments.at(-1)?.end_ns ?? 0, curve.times_ns.at(-1) ?? 0)));
  }

  protected override draw(context: CanvasRenderingContext2D, colours: ThemeColours): void {
    const { curves } = this.comparison;
    const { plotWidth, end } = this;
    const bottom = this.height - bottomHeight;
    const columns = (this.columns = curves.map((curve) => columnsOf(curve, this.places(curve), plotWidth, end)) as [Float64Array, Float64Array]);
    const most = Math.max(1, ...columns.map((column) => column.reduce((a, b) => Math.max(a, b), 0))) * 1.06;
    const y = (value: number): number => bottom - (value / most) * (bottom - top);
    this.drawAxes(context, colours, most, y);
    this.drawBefore(context, columns[0], y, bottom);
    this.drawAfter(context, columns[1], y);
    curves.forEach((curve, run) => this.drawMoment(context, colours, curve, run, y));
    if (this.cursor >= 0) {
      context.fillStyle = colours.muted;
      context.fillRect(left + this.cursor, top, 1, bottom - top);
    }
  }

  private drawAxes(context: CanvasRenderingContext2D, colours: ThemeColours, most: number, y: (value: number) => number): void {
    const { plotWidth, end } = this;
    const bottom = this.height - bottomHeight;
    context.strokeStyle = colours.line;
    context.fillStyle = colours.muted;
    context.textAlign = 'right';
    for (const mark of ticks(0, most, 4, true)) {
      const at = Math.round(y(mark)) + 0.5;
      context.beginPath();
      context.moveTo(left, at);
      context.lineTo(left + plotWidth, at);
      context.stroke();
      context.fillText(bytes(mark), left - 6, at);
    }
    context.textAlign = 'left';
    if (this.aligned) return this.drawSegments(context, colours, bottom);
    const marks = ticks(0, end, Math.max(2, Math.floor(plotWidth / 110)), false);
    context.textAlign = 'center';
    for (const mark of marks) context.fillText(timeTick(mark, marks[1] - marks[0]), left + (mark / end) * plotWidth, bottom + bottomHeight / 2);
    context.textAlign = 'left';
  }

  /** Lines between the segments and their names, as far as there is room. */
  private drawSegments(context: CanvasRenderingContext2D, colours: ThemeColours, bottom: number): void {
    const { plotWidth, end } = this;
    const [before, after] = this.comparison.curves;
    const { segments } = after.segments.length < before.segments.length ? before : after;
    const width = plotWidth / end;
    const every = Math.max(1, Math.ceil(8 / width));
    for (let i = 0; i < segments.length; i += every) {
      const x = Math.round(left + i * width) + 0.5;
      context.strokeStyle = colours.line;
      context.beginPath();
      context.moveTo(x, top);
      context.lineTo(x, bottom + 4);
      context.stroke();
      if (width >= 40) context.fillText(fitted(context, shown(segments[i].name), width - 8), x + 4, bottom + bottomHeight / 2);
    }
    if (width < 40) context.fillText(`${segments.length.toLocaleString('en-US')} segments`, left, bottom + bottomHeight / 2);
  }

  private drawBefore(context: CanvasRenderingContext2D, column: Float64Array, y: (value: number) => number, bottom: number): void {
    context.fillStyle = plainColour();
    column.forEach((value, x) => {
      if (value >= 0) context.fillRect(left + x, y(value), 1, bottom - y(value));
    });
  }

  private drawAfter(context: CanvasRenderingContext2D, column: Float64Array, y: (value: number) => number): void {
    context.strokeStyle = operationColour(5);
    context.lineWidth = 2;
    context.beginPath();
    let drawing = false;
    column.forEach((value, x) => {
      if (value < 0) {
        drawing = false;
        return;
      }
      if (drawing) context.lineTo(left + x, y(value));
      else context.moveTo(left + x, y(value));
      context.lineTo(left + x + 1, y(value));
      drawing = true;
    });
    context.stroke();
    context.lineWidth = 1;
  }

  /** A mark where the compared moment is. */
  private drawMoment(context: CanvasRenderingContext2D, colours: ThemeColours, curve: Curve, run: number, y: (value: number) => number): void {
    const { before, after } = this.comparison;
    const { bytes: reached } = run === 0 ? before : after;
    const point = pointOfMoment(curve, reached);
    if (point < 0) return;
    const x = left + Math.min(1, this.places(curve)[point] / this.end) * this.plotWidth;
    const at = y(reached);
    context.fillStyle = run === 0 ? plainColour() : operationColour(5);
    context.strokeStyle = colours.text;
    context.beginPath();
    context.arc(x, at, 4, 0, 2 * Math.PI);
    context.fill();
    context.stroke();
  }

  private select(column: number, x: number, y: number): void {
    this.cursor = column >= 0 && column < this.plotWidth ? column : -1;
    this.invalidate();
    if (this.cursor < 0 || !this.columns) return hideTip();
    const { before, after } = this.comparison;
    const [first, second] = this.columns.map((values) => values[this.cursor]);
    const textOf = (value: number): string => (value < 0 ? 'not running' : exactBytes(value));
    const lines: [string, string, string?][] = [
      [shown(before.title), textOf(first), plainColour()],
      [shown(after.title), textOf(second), operationColour(5)],
    ];
    if (first >= 0 && second >= 0) lines.push(['change', change(second - first)]);
    showTip({ title: this.titleAt(this.cursor), lines, note: 'The most in this pixel of the axis' }, x, y);
  }

  private titleAt(column: number): string {
    const at = ((column + 0.5) / this.plotWidth) * this.end;
    if (!this.aligned) return time(at);
    const [before, after] = this.comparison.curves;
    const index = Math.floor(at);
    return `${shown((after.segments[index] ?? before.segments[index])?.name ?? '')}, segment ${index + 1}`;
  }

  private key(event: KeyboardEvent): void {
    const by = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0;
    if (by === 0) return;
    event.preventDefault();
    const step = event.shiftKey ? 10 : 1;
    const column = Math.min(this.plotWidth - 1, Math.max(0, this.cursor + by * step));
    const box = this.canvas.getBoundingClientRect();
    this.select(column, box.left + left + column, box.top + top);
  }
}
