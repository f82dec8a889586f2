import type { SegmentUsage } from '../data/contract';
import type { Model } from '../data/model';
import { h } from '../dom';
import { bytes, change, count, exactBytes, exactTime, number, shown, time } from '../format';
import type { Store } from '../store';
import { type ColumnOf, DataTable } from '../table';
import { choice } from './choice';

/** One segment, or all of a name. */
interface Row {
  name: string;
  times: number;
  index: number;
  beginNs: number;
  endNs: number;
  durationNs: number;
  usage: Pick<SegmentUsage, 'segment_peak' | 'allocations' | 'deallocations' | 'segment_change' | 'cumulative_peak' | 'cumulative_current' | 'peak_time_ns'>;
  least: number;
  most: number;
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

type Mode = 'folded' | 'all' | 'steps';

/** Segments and steps with the tracker's numbers, folded by name or one by one. */
export class SegmentsView {
  readonly element: HTMLElement;
  private mode: Mode = 'folded';
  private readonly place = h('div');
  private readonly folded: DataTable<Row>;
  private readonly all: DataTable<Row>;
  private readonly steps: DataTable<StepRow>;

  constructor(
    private readonly model: Model,
    private readonly store: Store,
  ) {
    this.folded = this.foldedTable();
    this.all = this.allTable();
    this.steps = this.stepsTable();
    const options: [Mode, string][] = [['folded', 'Folded by name'], ['all', 'Every segment']];
    if (model.steps.length > 0) options.push(['steps', 'Steps']);
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
    this.place.replaceChildren({ folded: this.folded, all: this.all, steps: this.steps }[this.mode].element);
  }

  private rows(): Row[] {
    const { space } = this.store;
    if (!space) return [];
    return this.model.segments.map((segment, i) => {
      const usage = space.profile.segments[i];
      const durationNs = segment.endNs - segment.beginNs;
      return { name: segment.name, times: 1, index: segment.index, beginNs: segment.beginNs, endNs: segment.endNs, durationNs, usage, least: usage.segment_peak, most: usage.segment_peak };
    });
  }

  private foldedRows(rows: Row[]): Row[] {
    const byName = new Map<string, Row>();
    for (const row of rows) {
      const one = byName.get(row.name);
      if (!one) {
        byName.set(row.name, { ...row, usage: { ...row.usage } });
        continue;
      }
      one.times += 1;
      one.durationNs += row.durationNs;
      one.endNs = row.endNs;
      one.least = Math.min(one.least, row.least);
      if (row.most > one.most) {
        one.most = row.most;
        one.usage.peak_time_ns = row.usage.peak_time_ns;
      }
      one.usage.segment_peak = one.most;
      one.usage.allocations += row.usage.allocations;
      one.usage.deallocations += row.usage.deallocations;
      one.usage.segment_change += row.usage.segment_change;
      one.usage.cumulative_peak = Math.max(one.usage.cumulative_peak, row.usage.cumulative_peak);
      one.usage.cumulative_current = row.usage.cumulative_current;
    }
    return [...byName.values()];
  }

  private update(): void {
    const rows = this.rows();
    const { run } = this.model;
    const left = run.segment_count - rows.length;
    const note = left > 0 ? `${number(left, 'other')} of the run's ${count(run.segment_count)} are in Steps` : '';
    this.folded.setRows(this.foldedRows(rows), note);
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
        change: i > 0 ? usage.current[i] - usage.current[i - 1] : 0,
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

  private bytesColumns(): ColumnOf<Row>[] {
    const column = (title: string, about: string, key: keyof Row['usage'], signed = false, minor = false): ColumnOf<Row> => ({
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
      column('Segment change', 'Allocations less deallocations', 'segment_change', true),
      column('Cumulative peak', 'Greatest live bytes from the begin of the run to its end', 'cumulative_peak'),
      column('Cumulative current', 'Live bytes at its end', 'cumulative_current'),
    ];
  }

  private foldedTable(): DataTable<Row> {
    return new DataTable<Row>({
      label: 'Segments, folded by name',
      noun: 'name',
      empty: 'The run took no snapshot.',
      activate: { does: 'Shows the stretch from its first to its last', run: (row) => this.showRange(row.beginNs, row.endNs, row.usage.peak_time_ns) },
      columns: [
        { title: 'Segment', value: (row) => shown(row.name) },
        { title: 'Times', value: (row) => row.times, text: (row) => count(row.times), exact: () => '' },
        { title: 'Time', about: 'Of all together', value: (row) => row.durationNs, text: (row) => time(row.durationNs), exact: (row) => exactTime(row.durationNs) },
        { title: 'Least peak', about: 'The least segment peak of the name', value: (row) => row.least, text: (row) => bytes(row.least), exact: (row) => exactBytes(row.least), minor: true },
        ...this.bytesColumns(),
      ],
    });
  }

  private allTable(): DataTable<Row> {
    return new DataTable<Row>({
      label: 'Every segment',
      noun: 'segment',
      empty: 'The run took no snapshot.',
      activate: { does: 'Shows it on the time axis', run: (row) => this.showRange(row.beginNs, row.endNs, row.usage.peak_time_ns) },
      columns: [
        { title: 'Segment', value: (row) => shown(row.name) },
        { title: 'No.', about: 'Its place in the run, from 1', value: (row) => row.index + 1, text: (row) => count(row.index + 1), exact: () => '' },
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
        does: 'Shows it on the time axis',
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
        { title: 'Change', about: 'Against the end of the row before', value: (row) => row.change, text: (row) => change(row.change), exact: (row) => exactBytes(row.change) },
        { title: 'Kind', about: 'Steps of one kind have the same segments with the same bytes', value: (row) => row.pattern + 1, text: (row) => (row.pattern < 0 ? 'other' : String.fromCharCode(65 + (row.pattern % 26)) + (row.pattern >= 26 ? Math.floor(row.pattern / 26) : '')), exact: () => '', minor: true },
      ],
    });
  }
}
