import { TimeChart } from '../chart';
import type { ThemeColours } from '../colours';
import type { Model, Segment } from '../data/model';
import { rowAt, type Step } from '../data/steps';
import { bytes, count, number, shown, time } from '../format';
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
  /** Name of a segment known only from the step's pattern. */
  name: string;
}

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

  /** The visible steps. There may be 100,000: those too narrow to tell apart are drawn as one. */
  private stepPieces(): Piece[] {
    const { from, to, unit } = this.store.state;
    const { steps } = this.model;
    const begins = steps.begins[unit === 'event' ? 'event' : 'ns'];
    const least = ((to - from) / Math.max(1, this.right - this.left)) * 1.5;
    const pieces: Piece[] = [];
    for (let i = rowAt(begins, from); i < steps.length && begins[i] <= to; ) {
      const step = steps.at(i);
      const [begin, end] = this.ends(step);
      const next = end - begin < least ? Math.max(i + 1, rowAt(begins, begin + least)) : i + 1;
      const final = steps.at(next - 1);
      const last = final.number + final.count - 1;
      const text = last > step.number ? `${count(step.number)}\u2013${count(last)}` : `step ${count(step.number)}`;
      if (end >= from) pieces.push({ begin, end: this.ends(final)[1], text, segment: null, step, name: '' });
      i = next;
    }
    return pieces;
  }

  private segmentPieces(): Piece[] {
    const { model } = this;
    const pieces: Piece[] = model.segments.map((segment) => {
      const [begin, end] = this.ends(segment);
      return { begin, end, text: shown(segment.name), segment, step: null, name: segment.name };
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
        pieces.push({ begin: begin + part.begin * (end - begin), end: begin + part.end * (end - begin), text: shown(part.name), segment: null, step, name: part.name });
      }
    }
    pieces.sort((a, b) => a.begin - b.begin);
  }

  private merged(pieces: Piece[]): Piece[] {
    const { from, to } = this.store.state;
    const least = (to - from) / Math.max(1, this.right - this.left);
    const result: Piece[] = [];
    for (const piece of pieces) {
      if (piece.end < from || piece.begin > to) continue;
      const last = result[result.length - 1];
      if (last && piece.end - last.begin < least * 1.5 && piece.end - piece.begin < least) last.end = piece.end;
      else result.push({ ...piece });
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
      const even = (piece.step ? piece.step.number : (piece.segment?.index ?? i)) % 2 === 0;
      context.fillStyle = even ? colours.band : colours.bandAlt;
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
    const { step } = piece;
    if (!step) return null;
    const usage = model.data.table('step_usage', 0, store.state.space);
    return {
      title: piece.name ? shown(piece.name) : step.count > 1 ? `${number(step.count, 'step')} from step ${count(step.number)}` : `Step ${count(step.number)}`,
      lines: [
        ...(piece.name ? ([['step', count(step.number)]] as Tip['lines']) : []),
        ['begins', time(step.beginNs)],
        ['takes', time(step.endNs - step.beginNs)],
        ...(usage
          ? ([
              ['peak within', bytes(usage.peak[step.row])],
              ['live at its end', bytes(usage.current[step.row])],
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
