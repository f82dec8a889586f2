import { Chart } from '../chart';
import type { ThemeColours } from '../colours';
import type { Model } from '../data/model';
import { bytes, time } from '../format';
import type { Store } from '../store';
import { largestInColumns } from './picks';

/** The whole run as a strip, with the visible range marked: drag it, its edges, or a new one. */
export class Overview extends Chart {
  private drag: { kind: 'new' | 'move' | 'from' | 'to'; at: number; from: number; to: number } | null = null;

  constructor(
    private readonly store: Store,
    private readonly model: Model,
  ) {
    super('The whole run, and the range shown in the views. Keys: plus and minus zoom, A and D pan, P goes to the peak.', 'overview', 34);
    store.on(['from', 'to', 'unit', 'space', 'at', 'hover'], () => this.invalidate());
    const { canvas } = this;
    canvas.addEventListener('pointerdown', (event) => this.down(event));
    canvas.addEventListener('pointermove', (event) => this.move(event));
    canvas.addEventListener('pointerup', () => (this.drag = null));
    canvas.addEventListener('pointercancel', () => (this.drag = null));
    canvas.addEventListener('dblclick', () => store.setRange(0, store.full));
  }

  private get left(): number {
    return this.width < 600 ? 58 : 72;
  }
  private get right(): number {
    return this.width - 12;
  }
  private x(value: number): number {
    return this.left + (value / this.store.full) * (this.right - this.left);
  }
  private value(x: number): number {
    return Math.min(1, Math.max(0, (x - this.left) / (this.right - this.left))) * this.store.full;
  }

  private down(event: PointerEvent): void {
    if (event.button > 0) return;
    this.canvas.setPointerCapture(event.pointerId);
    const { from, to } = this.store.state;
    const x = event.offsetX;
    const whole = from <= 0 && to >= this.store.full;
    const kind = Math.abs(x - this.x(from)) < 6 && !whole ? 'from' : Math.abs(x - this.x(to)) < 6 && !whole ? 'to' : !whole && x > this.x(from) && x < this.x(to) ? 'move' : 'new';
    this.drag = { kind, at: this.value(x), from, to };
  }

  private move(event: PointerEvent): void {
    const at = this.value(event.offsetX);
    if (!this.drag) {
      const { from, to } = this.store.state;
      const edge = Math.abs(event.offsetX - this.x(from)) < 6 || Math.abs(event.offsetX - this.x(to)) < 6;
      this.canvas.style.cursor = edge ? 'ew-resize' : 'crosshair';
      return;
    }
    const { kind, from, to } = this.drag;
    if (kind === 'new' && Math.abs(this.x(at) - this.x(this.drag.at)) > 3) this.store.setRange(Math.min(at, this.drag.at), Math.max(at, this.drag.at));
    else if (kind === 'from') this.store.setRange(Math.min(at, to), to);
    else if (kind === 'to') this.store.setRange(from, Math.max(at, from));
    else if (kind === 'move') {
      const by = Math.min(Math.max(at - this.drag.at, -from), this.store.full - to);
      this.store.setRange(from + by, to + by);
    }
  }

  protected override draw(context: CanvasRenderingContext2D, colours: ThemeColours): void {
    const { space } = this.store;
    const { left, right, height } = this;
    if (space && space.timeline.length > 0) {
      const columns = largestInColumns(this.model, this.store, space, Math.floor(right - left), (value) => this.x(value) - left);
      const top = columns.reduce((most, value) => Math.max(most, value), 1);
      context.fillStyle = colours.muted;
      context.globalAlpha = 0.55;
      context.beginPath();
      columns.forEach((value, column) => {
        const size = (value / top) * (height - 6);
        if (size > 0) context.rect(left + column, height - 2 - size, 1, size);
      });
      context.fill();
      context.globalAlpha = 1;
      context.textAlign = 'right';
      context.fillStyle = colours.muted;
      context.fillText(bytes(top), left - 6, 9);
      context.fillText(time(this.model.durationNs), left - 6, height - 9);
      context.textAlign = 'left';
    }
    const { from, to, at } = this.store.state;
    const [x0, x1] = [this.x(from), this.x(to)];
    context.fillStyle = colours.surface;
    context.globalAlpha = 0.72;
    context.fillRect(left, 0, x0 - left, height);
    context.fillRect(x1, 0, right - x1, height);
    context.globalAlpha = 1;
    context.strokeStyle = colours.accent;
    context.strokeRect(Math.round(x0) + 0.5, 0.5, Math.max(2, Math.round(x1 - x0) - 1), height - 1);
    const x = Math.round(this.x(this.store.valueOf(at))) + 0.5;
    context.beginPath();
    context.moveTo(x, 0);
    context.lineTo(x, height);
    context.stroke();
  }
}
