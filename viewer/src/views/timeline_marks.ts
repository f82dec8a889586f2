import { categoryColour, type ThemeColours } from '../colours';
import { knownMoments } from '../data/live';
import type { Model } from '../data/model';
import type { SpaceModel } from '../data/space';
import { bytes } from '../format';
import type { Store } from '../store';

/** Where the lines and marks over the curve are drawn. */
export interface Plot {
  context: CanvasRenderingContext2D;
  colours: ThemeColours;
  model: Model;
  store: Store;
  space: SpaceModel;
  left: number;
  right: number;
  top: number;
  /** Pixels for a value of the time axis, and for bytes. */
  x: (value: number) => number;
  y: (value: number) => number;
}

/** What the allocator held of the device. */
export function drawReserved(plot: Plot): void {
  const { context, colours, store, x, y } = plot;
  const { timeline } = plot.space;
  if (!timeline.reserved) return;
  const begins = store.begins(timeline);
  context.strokeStyle = colours.text;
  context.lineWidth = 1.5;
  context.setLineDash([6, 3]);
  context.beginPath();
  let last = 0;
  let labelled = -1;
  for (let row = 0; row < timeline.length; row += 1) {
    const end = row + 1 < timeline.length ? begins[row + 1] : store.full;
    if (end < store.state.from || begins[row] > store.state.to) continue;
    const x0 = Math.min(Math.max(x(begins[row]), plot.left), plot.right);
    const x1 = Math.min(Math.max(x(end), plot.left), plot.right);
    const at = y(timeline.reserved[row]);
    if (labelled < 0) context.moveTo(x0, at);
    else if (timeline.reserved[row] !== last) context.lineTo(x0, at);
    context.lineTo(x1, at);
    last = timeline.reserved[row];
    labelled = at;
  }
  context.stroke();
  context.setLineDash([]);
  context.lineWidth = 1;
  if (labelled >= 0) label(plot, `reserved ${bytes(last)}`, plot.right - 4, labelled - 8, 'right');
}

/** The device's capacity, as a line at `at`; if it is far above everything, only a label. */
export function drawCapacity(plot: Plot, capacity: number, at: number, above: boolean): void {
  const { context } = plot;
  if (!above) {
    context.strokeStyle = categoryColour('temporary');
    context.lineWidth = 1.5;
    context.setLineDash([2, 3]);
    context.beginPath();
    context.moveTo(plot.left, at);
    context.lineTo(plot.right, at);
    context.stroke();
    context.setLineDash([]);
    context.lineWidth = 1;
  }
  // On the side away from the peak.
  const peak = plot.x(plot.store.valueOf(plot.model.peak(plot.space)));
  const onRight = peak < (plot.left + plot.right) / 2;
  const text = above ? `capacity ${bytes(capacity)}, far above \u2191` : `capacity ${bytes(capacity)}`;
  label(plot, text, onRight ? plot.right - 4 : plot.left + 6, above ? plot.top - 1 : at + 9, onRight ? 'right' : 'left');
}

export function drawPeak(plot: Plot): void {
  const { context, space, y } = plot;
  if (space.profile.cumulative_peak <= 0) return;
  const x = plot.x(plot.store.valueOf(plot.model.peak(space)));
  if (x < plot.left - 1 || x > plot.right + 1) return;
  const at = y(space.profile.cumulative_peak);
  context.fillStyle = plot.colours.text;
  context.beginPath();
  context.moveTo(x, at + 1);
  context.lineTo(x - 4.5, at - 7);
  context.lineTo(x + 4.5, at - 7);
  context.fill();
  const onLeft = x > (plot.left + plot.right) / 2;
  // Above the curve, or below its top if a line runs there.
  const above = Math.max(at - 4, plot.top + 2);
  const { capacity, capacity_is_per_core: perCore, reserved } = space.profile;
  const isNear = (value: number): boolean => value > 0 && Math.abs(y(value) - above) < 11;
  const low = isNear(reserved.peak) || (!perCore && isNear(capacity));
  label(plot, `peak ${bytes(space.profile.cumulative_peak)}`, onLeft ? x - 9 : x + 9, low ? at + 10 : above, onLeft ? 'right' : 'left');
}

/** The moments of a profile whose composition is known. */
export function drawKnown(plot: Plot): void {
  const { context, y } = plot;
  context.fillStyle = plot.colours.text;
  for (const known of knownMoments(plot.model, plot.space)) {
    const x = plot.x(known.ns);
    if (x < plot.left || x > plot.right) continue;
    context.beginPath();
    context.arc(x, y(known.set.bytes), 2.5, 0, 2 * Math.PI);
    context.fill();
  }
}

function label({ context, colours }: Plot, text: string, x: number, y: number, align: CanvasTextAlign): void {
  context.textAlign = align;
  context.lineWidth = 3;
  context.strokeStyle = colours.surface;
  context.strokeText(text, x, y);
  context.lineWidth = 1;
  context.fillStyle = colours.text;
  context.fillText(text, x, y);
  context.textAlign = 'left';
}
