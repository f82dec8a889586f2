import { TimeChart } from '../chart';
import { categoryColour, operationColour, type ThemeColours } from '../colours';
import { blockRow } from '../data/live';
import type { Model } from '../data/model';
import type { BlockTable } from '../data/space';
import { rowAt } from '../data/steps';
import { bytes, categoryName, count, exactBytes, number, others, outside, percent, shown, ticks, time } from '../format';
import type { OperationColours } from '../groups';
import type { Store } from '../store';
import type { Tip } from '../tip';
import { fitted } from './band';
import { standIns } from './gantt';
import { tickBytes } from './timeline';

const restHeight = 34;

interface VisibleBlock {
  table: BlockTable;
  row: number;
  begin: number;
  end: number;
  standIn: number;
}

/** Blocks over time by address offset, one rectangle each, and the bytes of all others as one band above. */
export class BlocksChart extends TimeChart {
  /** The visible range of offsets. */
  private low = 0;
  private high = 1;
  private space = -1;
  private owners: string[] = [];
  private readonly orders = new WeakMap<BlockTable, Uint32Array>();

  constructor(
    store: Store,
    private readonly model: Model,
    private readonly colours: OperationColours,
  ) {
    super(store, 'Blocks over time by address offset. The table below lists those in the range.', 'blocks', 340);
    store.on(['space'], () => this.showAll());
    this.showAll();
    this.canvas.addEventListener('keydown', (event) => this.key(event));
    this.canvas.addEventListener(
      'wheel',
      (event) => {
        if (!event.altKey) return;
        event.preventDefault();
        event.stopImmediatePropagation();
        this.zoomOffsets(Math.exp(event.deltaY * 0.0025), this.offset(event.offsetY));
      },
      { passive: false, capture: true },
    );
  }

  /** The end of the offsets: that of the last range of addresses. */
  private get full(): number {
    const regions = this.model.detail?.regions[this.store.state.space] ?? [];
    const last = regions[regions.length - 1];
    return last ? last.offset + last.bytes : 1;
  }

  showAll(): void {
    this.space = this.store.state.space;
    this.low = 0;
    this.high = this.full;
    this.invalidate();
  }

  zoomOffsets(factor: number, around = (this.low + this.high) / 2): void {
    const low = Math.max(0, around - (around - this.low) * factor);
    const high = Math.min(this.full, around + (this.high - around) * factor);
    if (high - low < 64) return;
    [this.low, this.high] = [low, high];
    this.invalidate();
  }

  panOffsets(part: number): void {
    const by = Math.min(Math.max(part * (this.high - this.low), -this.low), this.full - this.high);
    [this.low, this.high] = [this.low + by, this.high + by];
    this.invalidate();
  }

  private key(event: KeyboardEvent): void {
    if (!event.altKey) return;
    if (event.key === 'ArrowUp') this.zoomOffsets(0.7);
    else if (event.key === 'ArrowDown') this.zoomOffsets(1 / 0.7);
    else if (event.key === 'PageUp') this.panOffsets(0.4);
    else if (event.key === 'PageDown') this.panOffsets(-0.4);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  private get top(): number {
    return restHeight + 12;
  }
  private get bottom(): number {
    return this.height - 22;
  }
  private y(offset: number): number {
    return this.bottom - ((offset - this.low) / (this.high - this.low)) * (this.bottom - this.top);
  }
  private offset(y: number): number {
    return this.low + ((this.bottom - y) / (this.bottom - this.top)) * (this.high - this.low);
  }

  forEachVisible(visit: (block: VisibleBlock) => void): void {
    const space = this.store.space;
    if (!space) return;
    const frames = this.model.detail?.frames ?? [];
    const event = this.store.state.unit === 'event';
    const { from, to } = this.store.state;
    const wide = (begin: number, end: number): boolean => this.x(end) - this.x(begin) >= 64 && end > from && begin < to;
    const covered: [number, number][] = [];
    const one = (frame: number, begin: number, end: number, standIn: number): void => {
      const table = space.blocksOf(frame);
      if (!table) return;
      const info = frames[frame];
      const [begin0, end0] = event ? [info.begin_event, info.end_event] : [info.begin_ns, info.end_ns];
      const scale = end0 > begin0 ? (end - begin) / (end0 - begin0) : 1;
      this.visitTable(table, (value) => begin + (value - begin0) * scale, standIn, [], visit);
      covered.push([begin, end]);
    };
    for (let frame = 1; frame < frames.length; frame += 1) {
      const [begin, end] = event ? [frames[frame].begin_event, frames[frame].end_event] : [frames[frame].begin_ns, frames[frame].end_ns];
      if (wide(begin, end)) one(frame, begin, end, 0);
    }
    for (const [step, frame] of standIns(this.model, this.store, wide)) {
      one(frame, ...(event ? ([step.beginEvent, step.endEvent] as const) : ([step.beginNs, step.endNs] as const)), step.number);
    }
    const whole = space.blocksOf(0);
    if (whole) this.visitTable(whole, (value) => value, 0, covered, visit);
  }

  private visitTable(table: BlockTable, place: (value: number) => number, standIn: number, covered: [number, number][], visit: (block: VisibleBlock) => void): void {
    const event = this.store.state.unit === 'event';
    const begins = event ? table.columns.begin_event : table.columns.begin_ns;
    const ends = event ? table.columns.end_event : table.columns.end_ns;
    const { from, to } = this.store.state;
    for (const row of this.byOwner(table)) {
      const begin = place(begins[row]);
      const end = place(ends[row]);
      if (end < from || begin > to) continue;
      if (covered.some(([a, b]) => begin >= a && end <= b)) continue;
      visit({ table, row, begin, end, standIn });
    }
  }

  /** Rows grouped by owner: changing the colour of a canvas costs more than a small rectangle. */
  private byOwner(table: BlockTable): Uint32Array {
    let order = this.orders.get(table);
    if (!order) {
      const { owner } = table.columns;
      order = Uint32Array.from({ length: table.length }, (_, row) => row).sort((a, b) => owner[a] - owner[b] || a - b);
      this.orders.set(table, order);
    }
    return order;
  }

  /** Colours of owners, recomputed for each drawing because the theme may have changed. */
  private ownerColours(): string[] {
    const byCategory = this.store.state.by !== 'operation';
    return (this.model.detail?.owners ?? []).map((owner, index) => {
      if (byCategory) return categoryColour(owner.category);
      const { path, rest } = this.model.ownerPath(index);
      return rest ? operationColour(-1) : path === null ? categoryColour('other') : this.colours.colour(path);
    });
  }

  protected override draw(context: CanvasRenderingContext2D, colours: ThemeColours): void {
    super.draw(context, colours);
    const space = this.store.space;
    if (this.space !== this.store.state.space) this.showAll();
    const table = space?.blocksOf(0);
    if (!space || !table || table.length === 0) {
      context.fillStyle = colours.muted;
      context.fillText('No blocks were recorded in this memory space.', this.left, this.height / 2);
      return;
    }
    this.owners = this.ownerColours();
    this.drawTimeAxis(context, colours, this.top, this.bottom);
    this.drawOffsets(context, colours);
    context.save();
    context.beginPath();
    context.rect(this.left, this.top, this.right - this.left, this.bottom - this.top);
    context.clip();
    this.drawBlocks(context, colours);
    context.restore();
    this.drawRest(context, colours, table);
  }

  private drawOffsets(context: CanvasRenderingContext2D, colours: ThemeColours): void {
    const marks = ticks(this.low, this.high, 6, true);
    context.textAlign = 'right';
    for (const mark of marks) {
      const y = Math.round(this.y(mark)) + 0.5;
      context.fillStyle = colours.muted;
      context.fillText(mark === 0 ? '0' : tickBytes(mark), this.left - 6, y);
      context.strokeStyle = colours.line;
      context.beginPath();
      context.moveTo(this.left, y);
      context.lineTo(this.right, y);
      context.stroke();
    }
    context.textAlign = 'left';
    // Addresses between ranges were left out.
    const regions = this.model.detail?.regions[this.store.state.space] ?? [];
    context.strokeStyle = colours.muted;
    context.setLineDash([1, 3]);
    for (const region of regions.slice(1, 200)) {
      const y = Math.round(this.y(region.offset)) + 0.5;
      if (y < this.top || y > this.bottom) continue;
      context.beginPath();
      context.moveTo(this.left, y);
      context.lineTo(this.right, y);
      context.stroke();
    }
    context.setLineDash([]);
  }

  private drawBlocks(context: CanvasRenderingContext2D, colours: ThemeColours): void {
    let last = '';
    const { right, bottom: floor, top: ceiling, left } = this;
    this.forEachVisible(({ table, row, begin, end, standIn }) => {
      const { offset, bytes: size, owner } = table.columns;
      const bottom = this.y(offset[row]);
      const top = this.y(offset[row] + size[row]);
      if (top > floor || bottom < ceiling) return;
      const x0 = Math.max(this.x(begin), left);
      const width = Math.max(1, Math.min(this.x(end), right) - x0);
      const height = Math.max(1, bottom - top);
      const colour = this.owners[owner[row]] ?? colours.muted;
      if (colour !== last) context.fillStyle = last = colour;
      if (standIn > 0) context.globalAlpha = 0.55;
      // A hairline in the surface colour separates neighbours of the same colour if there is room.
      const gapX = width > 3 ? 0.75 : 0;
      const gapY = height > 3 ? 0.75 : 0;
      context.fillRect(x0, top, width - gapX, height - gapY);
      if (standIn > 0) context.globalAlpha = 1;
    });
  }

  /** Live bytes that no rectangle stands for, at the drawn moments of the whole run. */
  private rest: { table: BlockTable; values: Float64Array; most: number } | null = null;

  private restOf(table: BlockTable): { values: Float64Array; most: number } {
    if (this.rest?.table === table) return this.rest;
    const timeline = this.store.space!.timeline;
    const events = timeline.event ?? new Float64Array(timeline.length);
    const changes = new Float64Array(timeline.length + 1);
    for (let row = 0; row < table.length; row += 1) {
      changes[firstAtOrAfter(events, table.columns.begin_event[row])] += table.columns.bytes[row];
      if (table.columns.stays[row] !== 1) changes[firstAtOrAfter(events, table.columns.end_event[row])] -= table.columns.bytes[row];
    }
    const values = new Float64Array(timeline.length);
    let listed = 0;
    let most = 0;
    for (let row = 0; row < values.length; row += 1) {
      listed += changes[row];
      values[row] = Math.max(0, timeline.total[row] - listed);
      most = Math.max(most, values[row]);
    }
    this.rest = { table, values, most };
    return this.rest;
  }

  private drawRest(context: CanvasRenderingContext2D, colours: ThemeColours, table: BlockTable): void {
    const { values, most } = this.restOf(table);
    context.fillStyle = colours.muted;
    const label =
      table.left === 0 ? `all ${number(table.length, 'block')} drawn` : `${number(table.left, 'smaller block')} as one band of at most ${bytes(most)}`;
    context.fillText(fitted(context, label, this.right - this.left - 5), this.left + 5, 9);
    if (most === 0) return;
    const timeline = this.store.space!.timeline;
    const begins = this.store.begins(timeline);
    context.fillStyle = operationColour(-1);
    context.beginPath();
    for (let row = 0; row < values.length; row += 1) {
      const end = row + 1 < values.length ? begins[row + 1] : this.store.full;
      if (end < this.store.state.from || begins[row] > this.store.state.to || values[row] === 0) continue;
      const x0 = Math.max(this.x(begins[row]), this.left);
      const height = Math.max(0.5, (values[row] / most) * (restHeight - 16));
      context.rect(x0, restHeight + 4 - height, Math.max(0.7, Math.min(this.x(end), this.right) - x0), height);
    }
    context.fill();
  }

  private at(x: number, y: number): VisibleBlock | null {
    let found: VisibleBlock | null = null;
    let size = Infinity;
    this.forEachVisible((block) => {
      const { offset, bytes: bytesOf } = block.table.columns;
      const bottom = this.y(offset[block.row]);
      const top = Math.min(this.y(offset[block.row] + bytesOf[block.row]), bottom - 1);
      if (y < top - 1 || y > bottom + 1) return;
      const x0 = this.x(block.begin);
      if (x < x0 - 1 || x > Math.max(this.x(block.end), x0 + 1) + 1) return;
      if (bytesOf[block.row] > size) return;
      size = bytesOf[block.row];
      found = block;
    });
    return found;
  }

  protected override tip(x: number, y: number): Tip | null {
    if (y < this.top) return this.restTip(x);
    const found = this.at(x, y);
    if (!found) return null;
    const block = blockRow(this.model, this.store.state.space, found.table.columns, found.row);
    const described = [block.name, block.dtype, block.shape].filter((s) => s).map(shown).join(' ');
    return {
      title: described || `block of ${bytes(block.bytes)}`,
      lines: [
        ['size', `${bytes(block.bytes)} (${exactBytes(block.bytes)})`],
        ['operation', block.rest ? others : block.path === null ? outside : shown(block.path)],
        ['category', categoryName(block.category)],
        ['allocated', `${time(block.beginNs)} \u00b7 event ${count(block.beginEvent)}`],
        ['freed', block.stays ? 'not within the recorded range' : `${time(block.endNs)} \u00b7 event ${count(block.endEvent)}`],
        ...(block.stays ? [] : ([['lived', `${time(block.endNs - block.beginNs)}, ${number(block.endEvent - block.beginEvent, 'event')}`]] as Tip['lines'])),
        ['address', block.address],
      ],
      note: found.standIn > 0 ? `From another step with the same segments and bytes, instead of step ${count(found.standIn)}: addresses may differ.` : undefined,
    };
  }

  private restTip(x: number): Tip | null {
    const space = this.store.space;
    const table = space?.blocksOf(0);
    if (!space || !table || table.left === 0) return null;
    const { values } = this.restOf(table);
    const row = rowAt(this.store.begins(space.timeline), this.value(x));
    return { title: 'Blocks too small to draw', lines: [['live then', `${bytes(values[row])}  ${percent(values[row], space.timeline.total[row])}`]] };
  }
}

/** The first row whose event is at or after the value; the number of rows if there is none. */
function firstAtOrAfter(events: Float64Array, value: number): number {
  let low = 0;
  let high = events.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (events[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low;
}
