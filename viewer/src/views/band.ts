import { TimeChart } from '../chart';
import type { ThemeColours } from '../colours';
import type { Model, Segment } from '../data/model';
import { rowAt, type Step } from '../data/steps';
import { bytes, count, number, shown, ticks, time } from '../format';
import type { Store } from '../store';
import type { Tip } from '../tip';

const rowHeight = 20;

/** A stretch of the band. */
interface Piece {
  begin: number;
  end: number;
  text: string;
  segment: Segment | null;
  step: Step | null;
  /** The last one of several steps that are drawn as one. */
  final: Step | null;
  /** Name of a segment known only from the step's pattern. */
  name: string;
  /** Segments too narrow to be drawn one by one, as one. */
  several: number;
}

/** Narrower steps and segments are drawn several at a time: as stripes they would say nothing. */
const narrow = { step: 10, segment: 4 };
const labelWidth = 64;

/** Steps and segments below the timeline. */
export class Band extends TimeChart {
  constructor(
    store: Store,
    private readonly model: Model,
  ) {
    const rows = (model.steps.length > 0 ? 1 : 0) + (model.segments.length > 0 ? 1 : 0);
    super(store, 'Segments and steps along the time axis. The section Segments has them as a table.', 'band', Math.max(1, rows) * rowHeight + 4);
  }

  private get hasSteps(): boolean {
    return this.model.steps.length > 0;
  }

  private ends(thing: { beginEvent: number; endEvent: number; beginNs: number; endNs: number }): [number, number] {
    return this.store.state.unit === 'event' ? [thing.beginEvent, thing.endEvent] : [thing.beginNs, thing.endNs];
  }

  /** The visible steps; narrow ones in groups of 10, 20, 50 and so on. There may be 100,000. */
  private stepPieces(): Piece[] {
    const { from, to, unit } = this.store.state;
    const { steps } = this.model;
    const begins = steps.begins[unit === 'event' ? 'event' : 'ns'];
    const [first, last] = [rowAt(begins, from), rowAt(begins, to)];
    const many = steps.at(last).number + steps.at(last).count - steps.at(first).number;
    const width = (this.x(this.ends(steps.at(last))[1]) - this.x(begins[first])) / many;
    const size = width < narrow.step ? ticks(0, many, Math.max(1, (width * many) / labelWidth), false)[1] ?? many : 1;
    const pieces: Piece[] = [];
    const groupEnd = (step: Step): number => Math.ceil(step.number / size) * size;
    for (let row = steps.rowOf(groupEnd(steps.at(first)) - size + 1); row <= last; ) {
      const step = steps.at(row);
      let next = steps.rowOf(groupEnd(step) + 1);
      if (steps.at(next).number <= groupEnd(step)) next = steps.length;
      next = Math.max(next, row + 1);
      const final = steps.at(next - 1);
      const end = final.number + final.count - 1;
      const text = end > step.number ? `${count(step.number)}\u2013${count(end)}` : `step ${count(step.number)}`;
      const [begin] = this.ends(step);
      if (this.ends(final)[1] >= from) pieces.push({ begin, end: this.ends(final)[1], text, segment: null, step, final, name: '', several: 0 });
      row = next;
    }
    return pieces;
  }

  private segmentPieces(): Piece[] {
    const { model } = this;
    const pieces: Piece[] = model.segments.map((segment) => {
      const [begin, end] = this.ends(segment);
      return { begin, end, text: shown(segment.name), segment, step: null, final: null, name: segment.name, several: 0 };
    });
    if (model.run.kept_segments) this.addPatterns(pieces);
    return this.merged(pieces);
  }

  /** For steps whose segments are not in the page one by one: those of their pattern. */
  private addPatterns(pieces: Piece[]): void {
    const { from, to } = this.store.state;
    const kept = new Set(this.model.segments.map((s) => s.index));
    const begins = this.model.steps.begins[this.store.state.unit === 'event' ? 'event' : 'ns'];
    const first = rowAt(begins, from);
    const last = rowAt(begins, to);
    if (this.model.steps.length === 0 || last - first > 400) return;
    for (let row = first; row <= last; row += 1) {
      const step = this.model.steps.at(row);
      if (step.pattern < 0 || step.count > 1 || kept.has(step.segment)) continue;
      const [begin, end] = this.ends(step);
      for (const part of this.model.detail!.patterns[step.pattern]?.segments ?? []) {
        pieces.push({ begin: begin + part.begin * (end - begin), end: begin + part.end * (end - begin), text: shown(part.name), segment: null, step, final: null, name: part.name, several: 0 });
      }
    }
    pieces.sort((a, b) => a.begin - b.begin);
  }

  /** Neighbours narrower than a pixel are one piece, and all neighbours where most are narrow. */
  private merged(pieces: Piece[]): Piece[] {
    const { from, to } = this.store.state;
    const pixel = (to - from) / Math.max(1, this.right - this.left);
    const visible = pieces.filter((piece) => piece.end >= from && piece.begin <= to);
    const mean = visible.reduce((sum, piece) => sum + piece.end - piece.begin, 0) / visible.length;
    const isNarrow = (piece: Piece): boolean => mean < narrow.segment * pixel || piece.end - piece.begin < pixel;
    const result: Piece[] = [];
    for (const piece of visible) {
      const last = result[result.length - 1];
      if (last && isNarrow(piece) && (last.several > 0 || isNarrow(last)) && piece.begin - last.end < pixel) {
        last.end = piece.end;
        last.several = Math.max(last.several, 1) + 1;
        last.text = number(last.several, 'segment');
        last.segment = last.step = null;
      } else result.push({ ...piece });
    }
    return result;
  }

  protected override draw(context: CanvasRenderingContext2D, colours: ThemeColours): void {
    super.draw(context, colours);
    let top = 2;
    if (this.hasSteps) {
      this.drawRow(context, colours, this.stepPieces(), top, 'steps');
      top += rowHeight;
    }
    if (this.model.segments.length > 0) this.drawRow(context, colours, this.segmentPieces(), top, 'segments');
  }

  private drawRow(context: CanvasRenderingContext2D, colours: ThemeColours, pieces: Piece[], top: number, name: string): void {
    context.fillStyle = colours.muted;
    context.textAlign = 'right';
    context.fillText(name, this.left - 6, top + rowHeight / 2);
    context.textAlign = 'left';
    pieces.forEach((piece, i) => {
      const x0 = Math.max(this.x(piece.begin), this.left);
      const x1 = Math.min(this.x(piece.end), this.right);
      const isGroup = piece.final !== null && piece.final.row !== piece.step?.row;
      const even = (piece.step && !isGroup && !piece.name ? piece.step.number : (piece.segment?.index ?? i)) % 2 === 0;
      context.fillStyle = even || piece.several > 0 ? colours.band : colours.bandAlt;
      context.fillRect(x0, top, Math.max(x1 - x0, 0.5), rowHeight - 2);
      if (x1 - x0 < 24) return;
      context.fillStyle = colours.text;
      context.fillText(fitted(context, piece.text, x1 - x0 - 8), x0 + 4, top + rowHeight / 2 - 1);
    });
  }

  private pieceAt(x: number, y: number): Piece | null {
    const row = Math.floor((y - 2) / rowHeight);
    const value = this.value(x);
    const pieces = this.hasSteps && row <= 0 ? this.stepPieces() : this.segmentPieces();
    return pieces.find((p) => value >= p.begin && value <= p.end) ?? null;
  }

  protected override tip(x: number, y: number): Tip | null {
    const piece = this.pieceAt(x, y);
    const { store, model } = this;
    if (!piece || !store.space) return null;
    if (piece.segment) {
      const usage = store.space.profile.segments[model.segments.indexOf(piece.segment)];
      return {
        title: shown(piece.segment.name),
        lines: [
          ['begins', time(piece.segment.beginNs)],
          ['takes', time(piece.segment.endNs - piece.segment.beginNs)],
          ...(usage
            ? ([
                ['segment peak', bytes(usage.segment_peak)],
                ['segment change', bytes(usage.segment_change)],
                ['live at its end', bytes(usage.cumulative_current)],
              ] as Tip['lines'])
            : []),
        ],
      };
    }
    if (piece.several > 0) return { title: piece.text, lines: [], note: 'Zoom in to see them one by one.' };
    const { step } = piece;
    if (!step) return null;
    const final = piece.final ?? step;
    const usage = model.data.table('step_usage', 0, store.state.space);
    const last = final.number + final.count - 1;
    return {
      title: piece.name ? shown(piece.name) : last > step.number ? `Steps ${count(step.number)} to ${count(last)}` : `Step ${count(step.number)}`,
      lines: [
        ...(piece.name ? ([['step', count(step.number)]] as Tip['lines']) : []),
        ['begins', time(step.beginNs)],
        [last > step.number ? 'take' : 'takes', time(final.endNs - step.beginNs)],
        ...(usage
          ? ([
              ['peak within', bytes(usage.peak.slice(step.row, final.row + 1).reduce((most, peak) => Math.max(most, peak)))],
              ['live at its end', bytes(usage.current[final.row])],
            ] as Tip['lines'])
          : []),
      ],
      note: piece.name ? 'The position of the segment within the step is the mean of all steps like it.' : undefined,
    };
  }

  /** Zooms in on the step or segment; a second click shows the whole run again. */
  protected override click(x: number, y: number): void {
    const piece = this.pieceAt(x, y);
    if (!piece) return;
    const { from, to } = this.store.state;
    const margin = (piece.end - piece.begin) * 0.02;
    if (Math.abs(from - (piece.begin - margin)) < margin && Math.abs(to - (piece.end + margin)) < margin) this.store.setRange(0, this.store.full);
    else this.store.setRange(Math.max(0, piece.begin - margin), Math.min(this.store.full, piece.end + margin));
  }
}

/** As much of a text as fits, cut at its end. */
export function fitted(context: CanvasRenderingContext2D, text: string, width: number): string {
  if (text.length * 14 > width && context.measureText(text).width > width) {
    let low = 0;
    let high = Math.min(text.length, Math.ceil(width / 3));
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (context.measureText(`${text.slice(0, middle)}\u2026`).width <= width) low = middle;
      else high = middle - 1;
    }
    return low < 2 ? '' : `${text.slice(0, low)}\u2026`;
  }
  return text;
}
