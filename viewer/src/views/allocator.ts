import type { CorePeaks, Stream } from '../data/contract';
import type { Model } from '../data/model';
import { h } from '../dom';
import { bytes, count, exactBytes, exactTime, number, outside, percent, shown, time } from '../format';
import type { Store } from '../store';
import { DataTable } from '../table';

type CoreRow = { range: string; peaks: CorePeaks };
type Failure = { requested: number; device_free: number; live_bytes: number; reserved_bytes: number; operation: string | null; time_ns: number };

const anomalyNames: Record<string, string> = {
  unmatched_frees: 'Frees of untracked blocks',
  replaced_allocations: 'Allocations at the address of a live block',
  mismatched_sizes: 'Frees with a mismatched size',
  cross_thread_frees: 'Frees by another thread',
  unknown_annotations: 'Annotations of blocks that were not live',
  untracked_allocations: 'Allocations not tracked for lack of memory',
  null_allocations: 'Allocations that returned null',
  overlapping_blocks: 'Blocks that overlap another',
};

const anomalyName = (key: string): string => anomalyNames[key] ?? key.replaceAll('_', ' ');

/** Requests, and what the allocator and the device made of them. */
export function allocatorView(model: Model, store: Store): HTMLElement {
  const element = h('div');
  const draw = (): void => {
    const space = store.space;
    if (!space) return;
    element.replaceChildren(numbers(model, store), ...streams(space.profile.streams), ...failures(store, space.profile.out_of_memory, space.profile.further_out_of_memory.count, space.profile.reserved.peak > 0), ...cores(space.profile.cores.ranges));
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
  add('Allocated', bytes(profile.allocations), exactBytes(profile.allocations));
  add('Freed', bytes(profile.deallocations), exactBytes(profile.deallocations));
  add('Allocations', count(profile.allocation_count));
  add('Deallocations', count(profile.deallocation_count));
  if (profile.allocation_count > 0) add('Mean allocation', bytes(profile.allocations / profile.allocation_count));
  add('Peak live', bytes(profile.cumulative_peak), exactBytes(profile.cumulative_peak));
  if (profile.capacity > 0) add(profile.capacity_is_per_core ? 'Capacity per core' : 'Capacity', bytes(profile.capacity), exactBytes(profile.capacity));
  const found = model.locate(space, store.state.at);
  if (profile.reserved.peak > 0) {
    const idle = profile.reserved.peak - profile.cumulative_peak;
    add('Peak reserved', bytes(profile.reserved.peak), exactBytes(profile.reserved.peak), 'What the allocator held of the device');
    add('Reserved at end', bytes(profile.reserved.current), exactBytes(profile.reserved.current));
    add('Reserved above peak live', `${bytes(idle)}, ${percent(idle, profile.reserved.peak)}`, exactBytes(idle), 'Overhead of the allocator: rounding, fragmentation and cached blocks');
    const held = found?.timeline.reserved?.[found.row];
    if (found && held) add('Reserved but idle at the selected moment', `${bytes(held - found.timeline.total[found.row])}, ${percent(held - found.timeline.total[found.row], held)}`, exactBytes(held - found.timeline.total[found.row]), 'Reserved, but not allocated: cached or fragmented');
  } else {
    list.append(h('div', { class: 'wide' }, h('dt', {}, 'Reserved'), h('dd', {}, 'Not reported: no caching allocator was recorded for this space')));
  }
  if (profile.active && profile.active.peak > 0) {
    add('Peak active', bytes(profile.active.peak), exactBytes(profile.active.peak), 'Live blocks, and freed blocks that a stream still uses');
    add('Active at end', bytes(profile.active.current), exactBytes(profile.active.current));
    const active = found?.timeline.active?.[found.row];
    if (found && active !== undefined) add('Freed but still in use at the selected moment', bytes(active - found.timeline.total[found.row]), exactBytes(active - found.timeline.total[found.row]), 'Active, but no longer live');
  }
  const { anomalies } = profile;
  for (const [key, tally] of Object.entries(anomalies)) {
    if (tally.count > 0) add(anomalyName(key), `${count(tally.count)}${tally.bytes > 0 ? `, ${bytes(tally.bytes)}` : ''}`, tally.bytes > 0 ? exactBytes(tally.bytes) : '');
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
      { title: 'Pool', value: (row) => shown(row.pool) || 'default' },
      { title: 'Peak reserved', value: (row) => row.reserved_peak, text: (row) => bytes(row.reserved_peak), exact: (row) => exactBytes(row.reserved_peak) },
      { title: 'Reserved at end', value: (row) => row.reserved_current, text: (row) => bytes(row.reserved_current), exact: (row) => exactBytes(row.reserved_current) },
      { title: 'Peak live', value: (row) => row.cumulative_peak, text: (row) => bytes(row.cumulative_peak), exact: (row) => exactBytes(row.cumulative_peak) },
      { title: 'Live at end', value: (row) => row.cumulative_current, text: (row) => bytes(row.cumulative_current), exact: (row) => exactBytes(row.cumulative_current) },
      { title: 'Allocations', value: (row) => row.allocation_count, text: (row) => count(row.allocation_count), exact: () => '' },
    ],
  });
  table.setRows(rows);
  return [h('h3', {}, 'Streams and pools'), h('p', { class: 'about' }, 'A freed block can be reused only by its own stream and pool. Where much is reserved and little is live, no other stream can use the difference.'), table.element];
}

/** `hasReserved` is false if no allocator reported what it held. */
function failures(store: Store, rows: Failure[], further: number, hasReserved: boolean): HTMLElement[] {
  if (rows.length === 0) return [];
  const table = new DataTable<Failure>({
    label: 'Allocations that ran out of memory',
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
      { title: 'Requested', value: (row) => row.requested, text: (row) => bytes(row.requested), exact: (row) => exactBytes(row.requested) },
      { title: 'Free on the device', value: (row) => row.device_free, text: (row) => (row.device_free < 0 ? 'unknown' : bytes(row.device_free)), exact: (row) => (row.device_free < 0 ? 'unknown' : exactBytes(row.device_free)) },
      { title: 'Live', value: (row) => row.live_bytes, text: (row) => bytes(row.live_bytes), exact: (row) => exactBytes(row.live_bytes) },
      ...(hasReserved
        ? [{ title: 'Reserved', value: (row: Failure) => row.reserved_bytes, text: (row: Failure) => bytes(row.reserved_bytes), exact: (row: Failure) => exactBytes(row.reserved_bytes) }]
        : []),
      { title: 'Time', value: (row) => row.time_ns, text: (row) => time(row.time_ns), exact: (row) => exactTime(row.time_ns) },
    ],
  });
  table.setRows(rows, further > 0 ? `${number(further, 'later failure')} not kept` : '');
  return [h('h3', {}, 'Out of memory'), table.element];
}

function cores(rows: CoreRow[]): HTMLElement[] {
  if (rows.length === 0) return [];
  const table = new DataTable<CoreRow>({
    label: 'Peaks per core',
    noun: 'range',
    empty: '',
    columns: [
      { title: 'Cores', value: (row) => shown(row.range) },
      { title: 'Peak on one core', value: (row) => row.peaks.total, text: (row) => bytes(row.peaks.total), exact: (row) => exactBytes(row.peaks.total) },
      { title: 'Circular buffers', value: (row) => row.peaks.circular_buffers, text: (row) => bytes(row.peaks.circular_buffers), exact: (row) => exactBytes(row.peaks.circular_buffers) },
      { title: 'Buffers', value: (row) => row.peaks.buffers, text: (row) => bytes(row.peaks.buffers), exact: (row) => exactBytes(row.peaks.buffers) },
      { title: 'Busiest core', value: (row) => shown(row.peaks.busiest_core) },
    ],
  });
  table.setRows(rows);
  return [h('h3', {}, 'Peaks on single cores'), table.element];
}
