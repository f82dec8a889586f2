import { TimeChart } from '../chart';
import { plainColour, type ThemeColours } from '../colours';
import type { Moment } from '../data/live';
import type { Stacks } from '../data/stacks';
import { rowAt } from '../data/steps';
import { bytes, count, percent, ticks, time } from '../format';
import type { Store } from '../store';
import type { Tip } from '../tip';
import { tickBytes } from './timeline';

/** Live bytes of some calls over time, within all that was live. */
export class StackHistory extends TimeChart {
  private values: Float64Array = new Float64Array();
  private isEstimate = false;

  constructor(
    store: Store,
    private readonly stacks: Stacks,
  ) {
    super(store, 'Live bytes of the chosen call over time, within all that was live. The table beside it has the same numbers.', 'stack-history', 200);
  }

  show(values: Float64Array, isEstimate: boolean): void {
    this.values = values;
    this.isEstimate = isEstimate;
    this.invalidate();
  }

  private get begins(): Float64Array {
    return this.store.state.unit === 'event' ? this.stacks.moments.begin_event : this.stacks.moments.begin_ns;
  }

  private get bottom(): number {
    return this.height - 22;
  }

  protected override draw(context: CanvasRenderingContext2D, colours: ThemeColours): void {
    super.draw(context, colours);
    const { begins, bottom, values } = this;
    const { total } = this.stacks.moments;
    const { from, to } = this.store.state;
    const top = 10;
    let most = 1;
    for (let row = 0; row < total.length; row += 1) {
      const end = row + 1 < begins.length ? begins[row + 1] : this.store.full;
      if (end >= from && begins[row] <= to) most = Math.max(most, total[row]);
    }
    const y = (value: number): number => bottom - (value / (most * 1.06)) * (bottom - top);
    this.drawTimeAxis(context, colours, top, bottom);
    context.textAlign = 'right';
    for (const mark of ticks(0, most * 1.06, Math.max(2, Math.floor((bottom - top) / 44)), true)) {
      context.strokeStyle = colours.line;
      context.beginPath();
      context.moveTo(this.left, Math.round(y(mark)) + 0.5);
      context.lineTo(this.right, Math.round(y(mark)) + 0.5);
      context.stroke();
      context.fillStyle = colours.muted;
      context.fillText(mark === 0 ? '0' : tickBytes(mark), this.left - 6, y(mark));
    }
    context.textAlign = 'left';
    context.save();
    context.beginPath();
    context.rect(this.left, 0, this.right - this.left, bottom);
    context.clip();
    this.fill(context, colours.band, total, y);
    this.fill(context, plainColour(), values, y);
    context.restore();
    context.strokeStyle = colours.muted;
    context.beginPath();
    context.moveTo(this.left, bottom + 0.5);
    context.lineTo(this.right, bottom + 0.5);
    context.stroke();
  }

  private fill(context: CanvasRenderingContext2D, colour: string, values: Float64Array, y: (value: number) => number): void {
    const { begins } = this;
    context.fillStyle = colour;
    context.beginPath();
    context.moveTo(this.x(0), this.bottom);
    for (let row = 0; row < values.length; row += 1) {
      const end = row + 1 < begins.length ? begins[row + 1] : this.store.full;
      context.lineTo(this.x(begins[row]), y(values[row]));
      context.lineTo(this.x(end), y(values[row]));
    }
    context.lineTo(this.x(this.store.full), this.bottom);
    context.fill();
  }

  private rowAt(x: number): number {
    return rowAt(this.begins, this.value(x));
  }

  protected override tip(x: number): Tip | null {
    const { moments } = this.stacks;
    const row = this.rowAt(x);
    if (!(row < this.values.length)) return null;
    return {
      title: `${time(moments.time_ns[row])} \u00b7 event ${count(moments.event[row])}`,
      lines: [
        ['chosen', `${this.isEstimate ? '~' : ''}${bytes(this.values[row])}`],
        ['of all', percent(this.values[row], moments.total[row])],
        ['live', bytes(moments.total[row])],
      ],
    };
  }

  protected override get keptClear(): boolean {
    return true;
  }

  protected override shownAt(x: number): Moment | null {
    const row = this.rowAt(x);
    return { event: this.stacks.moments.event[row], ns: this.stacks.moments.time_ns[row] };
  }

  protected override click(x: number): void {
    this.store.select(this.shownAt(x)!);
  }
}
