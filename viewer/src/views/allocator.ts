import type { CorePeaks, Stream } from '../data/contract';
import type { Model } from '../data/model';
import { h } from '../dom';
import { bytes, count, exactBytes, number, outside, percent, shown, time } from '../format';
import type { Store } from '../store';
import { DataTable } from '../table';

type CoreRow = { range: string; peaks: CorePeaks };
type Failure = { requested: number; device_free: number; live_bytes: number; reserved_bytes: number; operation: string | null; time_ns: number };

/** What the allocator and the device did with what was asked for. */
export function allocatorView(model: Model, store: Store): HTMLElement {
  const element = h('div');
  const draw = (): void => {
    const space = store.space;
    if (!space) return;
    element.replaceChildren(numbers(model, store), ...streams(space.profile.streams), ...failures(store, space.profile.out_of_memory, space.profile.further_out_of_memory.count), ...cores(space.profile.cores.ranges));
  };
  store.on(['space', 'at'], draw);
  draw();
  return element;
}

function numbers(model: Model, store: Store): HTMLElement {
  const space = store.space!;
  const { profile } = space;
  const list = h('dl', { class: 'numbers' });
  const add = (name: string, value: string, exact = '', about = ''): void => {
    list.append(h('div', { title: [exact, about].filter((s) => s).join('\n') }, h('dt', {}, name), h('dd', {}, value)));
  };
  add('allocated in all', bytes(profile.allocations), exactBytes(profile.allocations));
  add('freed in all', bytes(profile.deallocations), exactBytes(profile.deallocations));
  add('allocations', count(profile.allocation_count));
  add('deallocations', count(profile.deallocation_count));
  if (profile.allocation_count > 0) add('mean allocation', bytes(profile.allocations / profile.allocation_count));
  add('peak', bytes(profile.cumulative_peak), exactBytes(profile.cumulative_peak));
  if (profile.capacity > 0) add(profile.capacity_is_per_core ? 'capacity of each core' : 'capacity', bytes(profile.capacity), exactBytes(profile.capacity));
  const found = model.locate(space, store.state.at);
  if (profile.reserved.peak > 0) {
    const idle = profile.reserved.peak - profile.cumulative_peak;
    add('reserved at most', bytes(profile.reserved.peak), exactBytes(profile.reserved.peak), 'What the allocator held of the device');
    add('reserved at the end', bytes(profile.reserved.current), exactBytes(profile.reserved.current));
    add('reserved beyond the peak', `${bytes(idle)}, ${percent(idle, profile.reserved.peak)}`, exactBytes(idle), 'Rounding, fragmentation and caching: never in use at once');
    const held = found?.timeline.reserved?.[found.row];
    if (found && held) add('idle at the selected moment', `${bytes(held - found.timeline.total[found.row])}, ${percent(held - found.timeline.total[found.row], held)}`, exactBytes(held - found.timeline.total[found.row]), 'Reserved and not allocated');
  } else {
    list.append(h('div', { class: 'wide' }, h('dt', {}, 'reserved'), h('dd', {}, 'unknown: its allocator keeps nothing back, or does not say')));
  }
  if (profile.active && profile.active.peak > 0) {
    add('active at most', bytes(profile.active.peak), exactBytes(profile.active.peak), 'Live blocks, and freed ones that streams still use');
    add('active at the end', bytes(profile.active.current), exactBytes(profile.active.current));
    const active = found?.timeline.active?.[found.row];
    if (found && active !== undefined) add('freed but in use at the selected moment', bytes(active - found.timeline.total[found.row]), exactBytes(active - found.timeline.total[found.row]), 'Active and not live');
  }
  const { anomalies } = profile;
  for (const [key, tally] of Object.entries(anomalies)) {
    if (tally.count > 0) add(key.replaceAll('_', ' '), `${count(tally.count)}${tally.bytes > 0 ? `, ${bytes(tally.bytes)}` : ''}`, tally.bytes > 0 ? exactBytes(tally.bytes) : '');
  }
  return list;
}

function streams(rows: Stream[]): HTMLElement[] {
  if (rows.length === 0) return [];
  const table = new DataTable<Stream>({
    label: 'Streams and pools',
    noun: 'row',
    empty: '',
    columns: [
      { title: 'Stream', value: (row) => shown(row.stream) },
      { title: 'Pool', value: (row) => shown(row.pool) || 'its own' },
      { title: 'Reserved at most', value: (row) => row.reserved_peak, text: (row) => bytes(row.reserved_peak), exact: (row) => exactBytes(row.reserved_peak) },
      { title: 'Reserved at the end', value: (row) => row.reserved_current, text: (row) => bytes(row.reserved_current), exact: (row) => exactBytes(row.reserved_current) },
      { title: 'Live at most', value: (row) => row.cumulative_peak, text: (row) => bytes(row.cumulative_peak), exact: (row) => exactBytes(row.cumulative_peak) },
      { title: 'Live at the end', value: (row) => row.cumulative_current, text: (row) => bytes(row.cumulative_current), exact: (row) => exactBytes(row.cumulative_current) },
      { title: 'Allocations', value: (row) => row.allocation_count, text: (row) => count(row.allocation_count), exact: () => '' },
    ],
  });
  table.setRows(rows);
  return [h('h3', {}, 'Streams and pools'), h('p', { class: 'about' }, 'A block freed on a stream serves only that stream and pool again: many bytes reserved and few live is memory that nobody else can use.'), table.element];
}

function failures(store: Store, rows: Failure[], further: number): HTMLElement[] {
  if (rows.length === 0) return [];
  const table = new DataTable<Failure>({
    label: 'Allocations for which the device had no memory',
    noun: 'failure',
    empty: '',
    activate: {
      does: 'Shows the moment on the time axis',
      run: (row) => {
        store.select({ event: store.model.eventOfNs(row.time_ns), ns: row.time_ns });
        document.getElementById('timeline')?.scrollIntoView();
      },
    },
    columns: [
      { title: 'Operation', value: (row) => (row.operation === null ? outside : shown(row.operation)) },
      { title: 'Asked for', value: (row) => row.requested, text: (row) => bytes(row.requested), exact: (row) => exactBytes(row.requested) },
      { title: 'Free on the device', value: (row) => row.device_free, text: (row) => bytes(row.device_free), exact: (row) => exactBytes(row.device_free) },
      { title: 'Live', value: (row) => row.live_bytes, text: (row) => bytes(row.live_bytes), exact: (row) => exactBytes(row.live_bytes) },
      { title: 'Reserved', value: (row) => row.reserved_bytes, text: (row) => bytes(row.reserved_bytes), exact: (row) => exactBytes(row.reserved_bytes) },
      { title: 'Time', value: (row) => row.time_ns, text: (row) => time(row.time_ns), exact: (row) => `${row.time_ns} ns` },
    ],
  });
  table.setRows(rows, further > 0 ? `${number(further, 'later one')} not kept` : '');
  return [h('h3', {}, 'Out of memory'), table.element];
}

function cores(rows: CoreRow[]): HTMLElement[] {
  if (rows.length === 0) return [];
  const table = new DataTable<CoreRow>({
    label: 'Peaks on single cores',
    noun: 'range',
    empty: '',
    columns: [
      { title: 'Cores', value: (row) => shown(row.range) },
      { title: 'Peak on a core', value: (row) => row.peaks.total, text: (row) => bytes(row.peaks.total), exact: (row) => exactBytes(row.peaks.total) },
      { title: 'Circular buffers', value: (row) => row.peaks.circular_buffers, text: (row) => bytes(row.peaks.circular_buffers), exact: (row) => exactBytes(row.peaks.circular_buffers) },
      { title: 'Buffers', value: (row) => row.peaks.buffers, text: (row) => bytes(row.peaks.buffers), exact: (row) => exactBytes(row.peaks.buffers) },
      { title: 'Busiest core', value: (row) => shown(row.peaks.busiest_core) },
    ],
  });
  table.setRows(rows);
  return [h('h3', {}, 'Peaks on single cores'), table.element];
}
