import { themeColours, type ThemeColours } from './colours';
import type { Moment } from './data/live';
import { h } from './dom';
import { count, ticks, timeTick } from './format';
import { say } from './status';
import type { Store } from './store';
import { hideTip, showTip, type Tip } from './tip';

/** A canvas that is drawn only when needed, and only while it is visible. */
export abstract class Chart {
  readonly element: HTMLElement;
  readonly canvas: HTMLCanvasElement;
  protected readonly context: CanvasRenderingContext2D;
  protected width = 0;
  protected height = 0;
  private visible = false;
  private dirty = true;
  private scheduled = false;

  /** `label` tells those who cannot see the canvas what it shows, and which table has the same numbers. */
  constructor(
    label: string,
    className: string,
    protected wantedHeight: number,
  ) {
    this.canvas = h('canvas', { role: 'img', 'aria-label': label, tabindex: 0 });
    this.element = h('div', { class: `chart ${className}` }, this.canvas);
    const context = this.canvas.getContext('2d');
    if (!context) throw new Error('This browser has no canvas.');
    this.context = context;
    new ResizeObserver(() => this.resize()).observe(this.element);
    new IntersectionObserver(
      (entries) => {
        this.visible = entries[entries.length - 1].isIntersecting;
        if (this.visible && this.dirty) this.invalidate();
      },
      { rootMargin: '200px' },
    ).observe(this.element);
    addEventListener('themechange', () => this.invalidate());
    addEventListener('beforeprint', () => this.drawNow());
  }

  setHeight(height: number): void {
    if (height === this.wantedHeight) return;
    this.wantedHeight = height;
    this.resize();
  }

  /** Resizing a canvas clears it, so it is redrawn at once unless it is not visible. */
  private resize(): void {
    const width = Math.floor(this.element.clientWidth);
    if (width === 0) return;
    const scale = devicePixelRatio || 1;
    const [pixels, lines] = [Math.round(width * scale), Math.round(this.wantedHeight * scale)];
    if (this.width === width && this.canvas.width === pixels && this.canvas.height === lines) return;
    this.width = width;
    this.height = this.wantedHeight;
    this.canvas.width = pixels;
    this.canvas.height = lines;
    this.canvas.style.height = `${this.height}px`;
    if (this.visible) this.drawNow();
    else this.dirty = true;
  }

  invalidate(): void {
    this.dirty = true;
    if (this.scheduled || !this.visible) return;
    this.scheduled = true;
    requestAnimationFrame(() => {
      this.scheduled = false;
      if (this.dirty && this.visible) this.drawNow();
    });
  }

  private drawNow(): void {
    // Before layout there is no room for an axis.
    if (this.width < 120) return;
    this.dirty = false;
    const scale = devicePixelRatio || 1;
    const colours = themeColours();
    this.context.setTransform(scale, 0, 0, scale, 0, 0);
    this.context.fillStyle = colours.surface;
    this.context.fillRect(0, 0, this.width, this.height);
    this.context.font = '11px system-ui, -apple-system, "Segoe UI", sans-serif';
    this.context.textBaseline = 'middle';
    this.draw(this.context, colours);
  }

  protected abstract draw(context: CanvasRenderingContext2D, colours: ThemeColours): void;
}

/** Until when a wheel gesture that began outside the charts keeps scrolling the page. */
let scrollingUntil = 0;
addEventListener('wheel', (event) => {
  if (!(event.target instanceof HTMLCanvasElement)) scrollingUntil = event.timeStamp + 400;
}, { passive: true });

/** A chart over the shared time axis; zooming, panning and selecting apply to all charts. */
export abstract class TimeChart extends Chart {
  private readonly hoverLine = h('div', { class: 'line hover-line' });
  private readonly selectionLine = h('div', { class: 'line selection-line' });
  private readonly rubber = h('div', { class: 'rubber' });
  private readonly pointers = new Map<number, { x: number; y: number }>();
  private drag: { x: number; y: number; from: number; to: number; pan: boolean; moved: boolean } | null = null;

  constructor(
    protected readonly store: Store,
    label: string,
    className: string,
    height: number,
  ) {
    super(label, className, height);
    this.element.append(this.hoverLine, this.selectionLine, this.rubber);
    store.on(['from', 'to', 'unit', 'space', 'by'], () => this.invalidate());
    store.on(['hover', 'from', 'to', 'at', 'unit', 'view'], () => this.placeLines());
    const { canvas } = this;
    canvas.addEventListener('wheel', (event) => this.wheel(event), { passive: false });
    canvas.addEventListener('pointerdown', (event) => this.down(event));
    canvas.addEventListener('pointermove', (event) => this.move(event));
    canvas.addEventListener('pointerup', (event) => this.up(event));
    canvas.addEventListener('pointercancel', (event) => this.leave(event));
    canvas.addEventListener('pointerleave', (event) => this.leave(event));
    canvas.addEventListener('dblclick', () => store.setRange(0, store.full));
    canvas.addEventListener('blur', hideTip);
  }

  /** The part of the width used by the axis. */
  protected get left(): number {
    return this.width < 600 ? 64 : 72;
  }
  protected get right(): number {
    return this.width - 12;
  }

  protected x(value: number): number {
    const { from, to } = this.store.state;
    return this.left + ((value - from) / (to - from)) * (this.right - this.left);
  }

  protected value(x: number): number {
    const { from, to } = this.store.state;
    return from + ((x - this.left) / (this.right - this.left)) * (to - from);
  }

  /** Whether tooltips should leave the chart uncovered. */
  protected get keptClear(): boolean {
    return false;
  }

  /** The moment that a point shows; null: that of its place on the axis. */
  protected shownAt(_x: number): Moment | null {
    return null;
  }

  /** The tooltip for a point; null for none. */
  protected abstract tip(x: number, y: number): Tip | null;

  /** What a click on a point selects. */
  protected click(x: number, _y: number): void {
    const { store } = this;
    const at = store.momentOf(Math.min(Math.max(this.value(x), 0), store.full));
    const live = store.space && store.model.liveAt(store.space, at);
    store.select(live ? live.moment : at);
  }

  protected override draw(_context: CanvasRenderingContext2D, _colours: ThemeColours): void {
    this.placeLines();
  }

  private placeLines(): void {
    if (this.width < 120) return;
    const place = (line: HTMLElement, value: number | null): void => {
      const x = value === null ? NaN : this.x(value);
      const inside = x >= this.left - 0.5 && x <= this.right + 0.5;
      line.hidden = !inside;
      if (inside) line.style.transform = `translateX(${Math.round(x)}px)`;
    };
    place(this.hoverLine, this.store.hover);
    place(this.selectionLine, this.store.valueOf(this.store.state.at));
  }

  private wheel(event: WheelEvent): void {
    if (event.timeStamp < scrollingUntil && !event.ctrlKey) return;
    event.preventDefault();
    const unit = event.deltaMode === 1 ? 20 : 1;
    const [dx, dy] = event.shiftKey ? [event.deltaY, 0] : [event.deltaX, event.deltaY];
    if (Math.abs(dx) > Math.abs(dy)) this.store.pan((dx * unit) / (this.right - this.left));
    else this.store.zoom(Math.exp(Math.max(-240, Math.min(240, dy * unit)) * 0.0025), this.value(this.clampX(event.offsetX)));
    this.hoverAt(event.offsetX, event.offsetY, event);
  }

  private clampX(x: number): number {
    return Math.min(Math.max(x, this.left), this.right);
  }

  private down(event: PointerEvent): void {
    if (event.button > 0) return;
    this.canvas.focus({ preventScroll: true });
    this.canvas.setPointerCapture(event.pointerId);
    this.pointers.set(event.pointerId, { x: event.offsetX, y: event.offsetY });
    const { from, to } = this.store.state;
    const pan = !event.shiftKey || event.pointerType === 'touch';
    this.drag = { x: event.offsetX, y: event.offsetY, from, to, pan, moved: false };
  }

  private move(event: PointerEvent): void {
    const { drag } = this;
    if (!drag) {
      this.hoverAt(event.offsetX, event.offsetY, event);
      return;
    }
    const before = this.pointers.get(event.pointerId);
    if (before && this.pointers.size === 2) {
      this.pinch(event);
      return;
    }
    if (Math.abs(event.offsetX - drag.x) > 4 && !drag.moved) {
      drag.moved = true;
      this.canvas.classList.toggle('panned', drag.pan);
      if (drag.pan && this.store.showsAll) say('This is the whole run: zoom with the wheel, or by dragging with Shift.');
    }
    if (!drag.moved) return;
    hideTip();
    if (drag.pan) {
      const by = ((drag.x - event.offsetX) / (this.right - this.left)) * (drag.to - drag.from);
      const bounded = Math.min(Math.max(by, -drag.from), this.store.full - drag.to);
      this.store.setRange(drag.from + bounded, drag.to + bounded);
    } else {
      const [a, b] = [this.clampX(Math.min(drag.x, event.offsetX)), this.clampX(Math.max(drag.x, event.offsetX))];
      this.rubber.style.transform = `translateX(${a}px)`;
      this.rubber.style.width = `${b - a}px`;
      this.rubber.classList.add('shown');
    }
  }

  /** Two fingers: what is under each finger stays under it. */
  private pinch(event: PointerEvent): void {
    const distance = (): number => {
      const [a, b] = [...this.pointers.values()];
      return Math.max(8, Math.abs(a.x - b.x));
    };
    const before = distance();
    this.pointers.set(event.pointerId, { x: event.offsetX, y: event.offsetY });
    const [a, b] = [...this.pointers.values()];
    this.store.zoom(before / distance(), this.value(this.clampX((a.x + b.x) / 2)));
    if (this.drag) this.drag.moved = true;
  }

  private up(event: PointerEvent): void {
    const { drag } = this;
    this.pointers.delete(event.pointerId);
    if (!drag || this.pointers.size > 0) return;
    this.endDrag();
    if (!drag.moved) this.click(this.clampX(event.offsetX), event.offsetY);
    else if (!drag.pan) {
      const [a, b] = [this.clampX(Math.min(drag.x, event.offsetX)), this.clampX(Math.max(drag.x, event.offsetX))];
      if (b - a > 4) this.store.setRange(this.value(a), this.value(b));
    }
  }

  private endDrag(): void {
    this.drag = null;
    this.rubber.classList.remove('shown');
    this.canvas.classList.remove('panned');
  }

  private leave(event: PointerEvent): void {
    this.pointers.delete(event.pointerId);
    if (event.type === 'pointercancel') this.endDrag();
    if (this.drag) return;
    this.store.setHover(null);
    hideTip();
  }

  private hoverAt(x: number, y: number, event: MouseEvent): void {
    if (x < this.left - 4 || x > this.right + 4) {
      this.store.setHover(null);
      hideTip();
      return;
    }
    this.store.setHover(this.value(this.clampX(x)), this.shownAt(this.clampX(x)));
    const tip = this.tip(this.clampX(x), y);
    if (tip) showTip(tip, event.clientX, event.clientY, this.keptClear ? this.canvas.getBoundingClientRect() : null);
    else hideTip();
  }

  /** The axis' ticks along the bottom, and their grid lines up to `top`. */
  protected drawTimeAxis(context: CanvasRenderingContext2D, colours: ThemeColours, top: number, bottom: number): void {
    const { from, to, unit } = this.store.state;
    const marks = ticks(from, to, Math.max(2, Math.floor((this.right - this.left) / 110)), false);
    const step = marks.length > 1 ? marks[1] - marks[0] : to - from;
    context.textAlign = 'center';
    for (const mark of marks) {
      const x = Math.round(this.x(mark)) + 0.5;
      context.strokeStyle = colours.line;
      context.beginPath();
      context.moveTo(x, top);
      context.lineTo(x, bottom + 4);
      context.stroke();
      const label = unit === 'event' ? count(mark) : timeTick(mark, step);
      const half = context.measureText(label).width / 2;
      context.fillStyle = colours.muted;
      context.fillText(label, Math.min(Math.max(x, half), this.width - half), bottom + 12);
    }
    context.textAlign = 'left';
  }
}
