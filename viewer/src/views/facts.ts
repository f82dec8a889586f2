import { reservations } from '../data/answers';
import type { Model } from '../data/model';
import { processLine } from '../data/process';
import { h } from '../dom';
import { address, bytes, count, exactBytes, exactTime, shown, time } from '../format';
import { type ColumnOf, DataTable } from '../table';

type Row = Record<string, unknown>;

const titles: Record<string, string> = {
  pytorch_operations: "PyTorch's operators",
  approximations: 'Operations with estimated memory',
  unknown_reads: 'Values that the program read but the simulation did not know',
  not_captured: 'Sources that could not be captured',
  torch_segments: "PyTorch's segments of device memory",
  torch_allocator_settings: "Settings of PyTorch's allocator",
  unrecorded_modules: 'Libraries whose events are missing',
  process_memory: 'Memory of the whole process, -1 where unknown',
};

/** What the run has besides memory over time, and reasons to doubt its numbers. */
export function factsView(model: Model): HTMLElement {
  const element = h('div', {}, remarks(model), run(model));
  for (const [name, rows] of Object.entries(model.profile.facts)) {
    if (rows.length === 0) continue;
    element.append(h('h3', {}, titles[name] ?? shown(name).replaceAll('_', ' ')), factTable(name, rows).element);
  }
  return element;
}

function remarks(model: Model): HTMLElement {
  const lines = reservations(model);
  const { provenance } = model.profile;
  if (provenance?.planned) lines.unshift('The bytes are what the compiler planned: nothing was measured.');
  if ((provenance?.rounding ?? 1) > 1) lines.unshift(`The bytes are rounded to about ${bytes(provenance!.rounding)}.`);
  if (lines.length === 0) return h('p', { class: 'lead' }, model.profile.exact ? 'The numbers are exact and consistent; no events were lost.' : 'Events were lost.');
  return h('ul', { class: 'remarks' }, ...lines.map((line) => h('li', {}, line)));
}

function run(model: Model): HTMLElement {
  const { profile, run: of } = model;
  const list = h('dl', { class: 'numbers' });
  const add = (name: string, value: string, wide = false): void => {
    if (value) list.append(h('div', { class: wide ? 'wide' : undefined }, h('dt', {}, name), h('dd', {}, value)));
  };
  add('Command line', shown(profile.process.command_line), true);
  add('File', shown(of.source), shown(of.source).length > 24);
  add('Host', shown(profile.process.host));
  add('Process', profile.process.id >= 0 ? String(profile.process.id) : '');
  add('Rank', profile.process.rank >= 0 ? `${profile.process.rank} of ${profile.process.world_size}` : '');
  add('Started', profile.begin_unix_ns > 0 ? new Date(profile.begin_unix_ns / 1e6).toISOString().replace('T', ' ').replace(/\..*/, ' UTC') : '');
  add('Duration', time(profile.duration_ns));
  add('Mode', profile.mode.replaceAll('_', ' '));
  add('Device', shown(profile.device) || 'none named');
  add('memprof', shown(profile.library_version));
  const events = model.events || (profile.cost.events ?? 0);
  add('Events', events > 0 ? count(events) : '');
  const process = processLine(profile);
  add('Memory', process.charAt(0).toUpperCase() + process.slice(1), true);
  if ((profile.cost.memory_bytes ?? 0) > 0) add('Profiler memory', bytes(profile.cost.memory_bytes));
  if ((profile.cost.record_ns_per_event ?? 0) > 0) add('Recording time per event', `${profile.cost.record_ns_per_event.toFixed(1)} ns`);
  return list;
}

/** The columns are the keys of the rows: names ending in `_ns` are times; bytes, memory and size are bytes. */
function factTable(name: string, rows: Row[]): DataTable<Row> {
  const keys = [...new Set(rows.slice(0, 100).flatMap((row) => Object.keys(row)))];
  const columns: ColumnOf<Row>[] = keys.map((key) => {
    const title = key.replace(/_ns$/, '').replaceAll('_', ' ');
    const shownTitle = shown(title.charAt(0).toUpperCase() + title.slice(1));
    if (!rows.every((row) => typeof row[key] === 'number')) return { title: shownTitle, value: (row) => (row[key] === null || row[key] === undefined ? '' : shown(typeof row[key] === 'object' ? JSON.stringify(row[key]) : String(row[key]))) };
    const of = (row: Row): number => row[key] as number;
    if (key.endsWith('_ns')) return { title: shownTitle, value: of, text: (row) => time(of(row)), exact: (row) => exactTime(of(row)) };
    if (key === 'address') return { title: shownTitle, value: of, text: (row) => address(of(row)), exact: () => '' };
    if (/bytes|memory|_size$/.test(key)) return { title: shownTitle, value: of, text: (row) => (of(row) === -1 && name === 'process_memory' ? '-1' : bytes(of(row))), exact: (row) => exactBytes(of(row)) };
    return { title: shownTitle, value: of, text: (row) => count(of(row)), exact: () => '' };
  });
  const table = new DataTable<Row>({ label: titles[name] ?? shown(name), noun: 'row', empty: '', columns });
  table.setRows(rows);
  return table;
}
