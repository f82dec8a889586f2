import type { Checkpoint, LiveBlock, SegmentUsage } from '../data/contract';
import type { Model } from '../data/model';
import { segmentsByName, type SegmentsOfName } from '../data/segments';
import { h } from '../dom';
import { bytes, change, count, exactBytes, exactTime, number, others, outside, shown, time } from '../format';
import type { Store } from '../store';
import { type ColumnOf, DataTable } from '../table';
import { choice } from './choice';

interface Row {
  name: string;
  index: number;
  beginNs: number;
  endNs: number;
  durationNs: number;
  usage: SegmentUsage;
}

interface StepRow {
  row: number;
  number: number;
  count: number;
  beginNs: number;
  durationNs: number;
  peak: number;
  current: number;
  change: number;
  pattern: number;
}

type Mode = 'folded' | 'all' | 'steps' | 'checkpoints';

/** Segments and steps with the tracker's numbers, folded by name or one by one. */
export class SegmentsView {
  readonly element: HTMLElement;
  private mode: Mode = 'folded';
  private readonly place = h('div');
  private readonly folded: DataTable<SegmentsOfName>;
  private readonly all: DataTable<Row>;
  private readonly steps: DataTable<StepRow>;
  private readonly checkpoints: DataTable<Checkpoint>;

  constructor(
    private readonly model: Model,
    private readonly store: Store,
  ) {
    this.folded = this.foldedTable();
    this.all = this.allTable();
    this.steps = this.stepsTable();
    this.checkpoints = this.checkpointTable();
    const options: [Mode, string][] = [['folded', 'Folded by name'], ['all', 'Every segment']];
    if (model.steps.length > 0) options.push(['steps', 'Steps']);
    const kept = model.profile.checkpoints ?? [];
    if (kept.length > 0) {
      options.push(['checkpoints', 'Checkpoints']);
      const left = (model.profile.checkpoint_count ?? 0) - kept.length;
      this.checkpoints.setRows(kept, left > 0 ? `${number(left, 'other')} of ${count(kept.length + left)} not kept` : '');
    }
    const mode = choice('Rows', options, () => this.mode, (value) => {
      this.mode = value;
      this.show();
    });
    this.element = h('div', {}, h('div', { class: 'toolbar' }, mode.element), this.place);
    store.on(['space'], () => this.update());
    this.update();
    this.show();
  }

  private show(): void {
    if (this.mode === 'steps') this.fillSteps();
    this.place.replaceChildren({ folded: this.folded, all: this.all, steps: this.steps, checkpoints: this.checkpoints }[this.mode].element);
  }

  private rows(): Row[] {
    const { space } = this.store;
    if (!space) return [];
    return this.model.segments.map((segment, i) => {
      const usage = space.profile.segments[i];
      return { name: segment.name, index: segment.index, beginNs: segment.beginNs, endNs: segment.endNs, durationNs: segment.endNs - segment.beginNs, usage };
    });
  }

  private update(): void {
    const rows = this.rows();
    const { run } = this.model;
    const left = run.segment_count - rows.length;
    const note = left > 0 ? `${number(left, 'other')} of the run's ${count(run.segment_count)} have no row` : '';
    this.folded.setRows(this.store.space ? segmentsByName(this.model.profile, this.store.space.profile) : []);
    this.all.setRows(rows, note);
    if (this.mode === 'steps') this.fillSteps();
  }

  private fillSteps(): void {
    const usage = this.model.data.table('step_usage', 0, this.store.state.space);
    if (!usage) return;
    const rows: StepRow[] = [];
    for (let i = 0; i < this.model.steps.length; i += 1) {
      const step = this.model.steps.at(i);
      rows.push({
        row: i,
        number: step.number,
        count: step.count,
        beginNs: step.beginNs,
        durationNs: step.endNs - step.beginNs,
        peak: usage.peak[i],
        current: usage.current[i],
        change: usage.current[i] - (i > 0 ? usage.current[i - 1] : 0),
        pattern: step.pattern,
      });
    }
    this.steps.setRows(rows);
  }

  private showRange(beginNs: number, endNs: number, peakNs: number, peakEvent?: number): void {
    const { store, model } = this;
    const event = store.state.unit === 'event';
    const [begin, end] = event ? [model.eventOfNs(beginNs), model.eventOfNs(endNs)] : [beginNs, endNs];
    const margin = (end - begin) * 0.02;
    store.setRange(Math.max(0, begin - margin), Math.min(store.full, end + margin));
    store.select({ event: peakEvent ?? model.eventOfNs(peakNs), ns: peakNs });
    store.set({ view: 'timeline' });
    document.getElementById('timeline')?.scrollIntoView();
  }

  /** Zooms to the segments of a name in the page, from the first to the last, and selects the greatest. */
  private showName(name: SegmentsOfName): void {
    const { segments } = this.model;
    const own = segments.filter((segment) => segment.name === name.name);
    if (own.length === 0) return;
    const highest = segments.findIndex((segment) => segment.index === name.usage.segment_peak.greatest_segment);
    const peak = this.store.space?.profile.segments[highest]?.peak_time_ns ?? own[0].beginNs;
    this.showRange(own[0].beginNs, own[own.length - 1].endNs, peak);
  }

  private foldedTable(): DataTable<SegmentsOfName> {
    const column = (title: string, about: string, value: (of: SegmentsOfName) => number, signed = false, minor = false): ColumnOf<SegmentsOfName> => ({
      title,
      about,
      value,
      text: (row) => (signed ? change(value(row)) : bytes(value(row))),
      exact: (row) => exactBytes(value(row)),
      minor,
    });
    return new DataTable<SegmentsOfName>({
      label: 'Segments, folded by name',
      noun: 'name',
      empty: 'The run took no snapshots.',
      activate: { does: 'Show the range from its first to its last', run: (row) => this.showName(row) },
      columns: [
        { title: 'Segment', value: (row) => (row.standsForOthers ? others : shown(row.name)) },
        { title: 'Times', value: (row) => row.count, text: (row) => count(row.count), exact: () => '' },
        { title: 'Time', about: 'Total of all of them', value: (row) => row.durationNs.sum, text: (row) => time(row.durationNs.sum), exact: (row) => exactTime(row.durationNs.sum) },
        column('Min peak', 'Smallest segment peak: live bytes above those at its begin', ({ usage }) => usage.segment_peak.least, false, true),
        column('Max peak', 'Greatest segment peak: live bytes above those at its begin', ({ usage }) => usage.segment_peak.greatest),
        column('Max live', 'Greatest live bytes within one, including blocks of earlier segments', ({ usage }) => usage.live_at_peak.greatest),
        column('Allocations', 'Bytes allocated in all of them', ({ usage }) => usage.allocations.sum, false, true),
        column('Deallocations', 'Bytes freed in all of them', ({ usage }) => usage.deallocations.sum, false, true),
        column('Change', 'Allocations minus deallocations, total of all of them', ({ usage }) => usage.segment_change.sum, true),
        column('Live after the last', 'Live bytes at the end of the last one', ({ usage }) => usage.cumulative_current.last),
        column('Slope per step', 'Of a straight line through the live bytes at their ends, which what was set up in the first steps tilts as well; the answer above says what still grows, and by how much', ({ usage }) => usage.growth.per_step, true, true),
        // Through fewer than three points a line says nothing.
        {
          title: 'r\u00b2',
          about: 'How well that line fits: 1 if all are on it; from 0.9 on, the growth counts as a trend',
          value: (row) => (row.count < 3 ? -1 : row.usage.growth.r_squared),
          text: (row) => (row.count < 3 ? '' : row.usage.growth.r_squared.toFixed(2)),
          exact: () => '',
          minor: true,
        },
      ],
    });
  }

  private bytesColumns(): ColumnOf<Row>[] {
    const column = (title: string, about: string, key: 'segment_peak' | 'allocations' | 'deallocations' | 'segment_change' | 'cumulative_peak' | 'cumulative_current', signed = false, minor = false): ColumnOf<Row> => ({
      title,
      about,
      value: (row) => row.usage[key],
      text: (row) => (signed ? change(row.usage[key]) : bytes(row.usage[key])),
      exact: (row) => exactBytes(row.usage[key]),
      minor,
    });
    return [
      column('Segment peak', 'Greatest live bytes above those at its begin', 'segment_peak'),
      column('Allocations', 'Bytes allocated', 'allocations', false, true),
      column('Deallocations', 'Bytes freed', 'deallocations', false, true),
      column('Segment change', 'Allocations minus deallocations', 'segment_change', true),
      column('Cumulative peak', 'Greatest live bytes from the start of the run to its end', 'cumulative_peak'),
      column('Cumulative current', 'Live bytes at its end', 'cumulative_current'),
    ];
  }

  private allTable(): DataTable<Row> {
    return new DataTable<Row>({
      label: 'Every segment',
      noun: 'segment',
      empty: 'The run took no snapshots.',
      activate: { does: 'Show it on the time axis', run: (row) => this.showRange(row.beginNs, row.endNs, row.usage.peak_time_ns) },
      columns: [
        { title: 'Segment', value: (row) => shown(row.name) },
        { title: 'No.', about: 'Its number in the run, from 1', value: (row) => row.index + 1, text: (row) => count(row.index + 1), exact: () => '' },
        { title: 'Begin', value: (row) => row.beginNs, text: (row) => time(row.beginNs), exact: (row) => exactTime(row.beginNs), minor: true },
        { title: 'Time', value: (row) => row.durationNs, text: (row) => time(row.durationNs), exact: (row) => exactTime(row.durationNs) },
        ...this.bytesColumns(),
      ],
    });
  }

  private stepsTable(): DataTable<StepRow> {
    return new DataTable<StepRow>({
      label: 'Steps',
      noun: 'row',
      empty: 'No steps repeat in this run.',
      activate: {
        does: 'Show it on the time axis',
        run: (row) => {
          const step = this.model.steps.at(row.row);
          this.showRange(step.beginNs, step.endNs, step.beginNs, step.beginEvent);
        },
      },
      columns: [
        { title: 'Step', value: (row) => row.number, text: (row) => (row.count > 1 ? `${count(row.number)}\u2013${count(row.number + row.count - 1)}` : count(row.number)), exact: () => '' },
        { title: 'Begin', value: (row) => row.beginNs, text: (row) => time(row.beginNs), exact: (row) => exactTime(row.beginNs) },
        { title: 'Time', value: (row) => row.durationNs, text: (row) => time(row.durationNs), exact: (row) => exactTime(row.durationNs) },
        { title: 'Peak within', about: 'Greatest live bytes within the step', value: (row) => row.peak, text: (row) => bytes(row.peak), exact: (row) => exactBytes(row.peak) },
        { title: 'Live at its end', value: (row) => row.current, text: (row) => bytes(row.current), exact: (row) => exactBytes(row.current) },
        { title: 'Change', about: 'Since the end of the previous row; in the first row, since the capture began', value: (row) => row.change, text: (row) => change(row.change), exact: (row) => exactBytes(row.change) },
        { title: 'Kind', about: 'Steps of one kind have the same segments with the same bytes', value: (row) => row.pattern + 1, text: (row) => (row.pattern < 0 ? 'other' : String.fromCharCode(65 + (row.pattern % 26)) + (row.pattern >= 26 ? Math.floor(row.pattern / 26) : '')), exact: () => '', minor: true },
      ],
    });
  }

  private checkpointTable(): DataTable<Checkpoint> {
    const { store, model } = this;
    return new DataTable<Checkpoint>({
      label: 'Checkpoints',
      noun: 'checkpoint',
      empty: 'The run has no checkpoints.',
      activate: {
        does: 'Show the moment on the time axis',
        run: (row) => {
          store.select({ event: model.eventOfNs(row.time_ns), ns: row.time_ns });
          document.getElementById('timeline')?.scrollIntoView();
        },
      },
      columns: [
        { title: 'Checkpoint', value: (row) => (row.name ? shown(row.name) : '(periodic)') },
        { title: 'No.', about: 'Its number among all, from 1', value: (row) => row.number + 1, text: (row) => count(row.number + 1), exact: () => '', minor: true },
        { title: 'Time', value: (row) => row.time_ns, text: (row) => time(row.time_ns), exact: (row) => exactTime(row.time_ns) },
        { title: 'Live', about: 'Total across all memory spaces', value: (row) => row.live_bytes, text: (row) => bytes(row.live_bytes), exact: (row) => exactBytes(row.live_bytes) },
        { title: 'Blocks', value: (row) => row.live_blocks, text: (row) => count(row.live_blocks), exact: () => '' },
        { title: 'Largest', value: (row) => largest(row)[0]?.bytes ?? 0, text: (row) => bytes(largest(row)[0]?.bytes ?? 0), exact: (row) => exactBytes(largest(row)[0]?.bytes ?? 0) },
        { title: 'Largest blocks', about: 'Name, shape and type, or the operation', value: (row) => largest(row).slice(0, 3).map(described).join(', ') },
      ],
    });
  }
}

/** The largest blocks across all spaces, largest first. */
const largest = (row: Checkpoint): LiveBlock[] => row.spaces.flatMap((space) => space.largest_blocks).sort((a, b) => b.bytes - a.bytes);

const described = (block: LiveBlock): string => {
  const what = [block.name, block.shape, block.dtype].filter((part) => part).join(' ');
  return `${shown(what || (block.operation ?? outside))} (${bytes(block.bytes)})`;
};
