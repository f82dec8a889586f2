import { reservations, whyInexact } from '../data/answers';
import type { Model } from '../data/model';
import { processLine } from '../data/process';
import { h } from '../dom';
import { address, bytes, count, decimal, exactBytes, exactTime, shown, time } from '../format';
import { type ColumnOf, DataTable } from '../table';

type Row = Record<string, unknown>;

const titles: Record<string, string> = {
  pytorch_operations: "PyTorch's operators",
  approximations: 'Operations with estimated memory',
  unknown_reads: 'Values that the program read but the simulation did not know',
  assumed_sizes: 'Sizes that depend on data that the simulation did not have',
  not_captured: 'Sources that could not be captured',
  torch_segments: "PyTorch's segments of device memory",
  torch_allocator_settings: "Settings of PyTorch's allocator",
  unrecorded_modules: 'Libraries whose events are missing',
  cuda_devices: 'Memory of CUDA devices',
  cuda_pools: "Pools of CUDA's stream-ordered allocator, by segment",
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
  if (lines.length === 0) return h('p', { class: 'lead' }, model.profile.exact ? 'The numbers are exact and consistent; no events were lost.' : `The numbers are not exact: ${whyInexact(model.profile)}.`);
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

type Meaning = 'text' | 'address' | 'time' | 'bytes' | 'ratio' | 'flag' | 'count';

/** Columns of memprof's own tables whose names do not say that they are bytes. */
const inBytes: Record<string, RegExp> = {
  source_limits: /^rounding$/,
  tt_out_of_memory: /^requested$|^bytes_per_bank$|_in_bank$/,
  xla_programs: /^(?!runs$)/,
};

/** What the numbers of a column are, by its name and, since JSON does not tell 0.0 from 0, by all of them. */
function meaningOf(table: string, key: string, values: unknown[]): Meaning {
  if (key === 'address' && values.every((value) => typeof value === 'number' || /^\d+$/.test(String(value)))) return 'address';
  if (!values.every((value) => typeof value === 'number' || value === null || value === undefined) || !values.some((value) => typeof value === 'number')) return 'text';
  if (key.endsWith('_ns')) return 'time';
  if (/(^|_)(fragmentation|ratio|share|fraction)$/.test(key) || values.some((value) => typeof value === 'number' && !Number.isInteger(value))) return 'ratio';
  if (/(^|_)bytes$|_(memory|size)$/.test(key) || inBytes[table]?.test(key)) return 'bytes';
  if (/^is_|^planned$|^steers$/.test(key) || (table === 'source_limits' && key === 'assumed')) return 'flag';
  return 'count';
}

const written: Record<Exclude<Meaning, 'text' | 'address'>, { text: (value: number) => string; exact: (value: number) => string }> = {
  time: { text: time, exact: exactTime },
  bytes: { text: bytes, exact: exactBytes },
  ratio: { text: decimal, exact: String },
  flag: { text: (value) => (value === 0 ? 'no' : 'yes'), exact: () => '' },
  count: { text: count, exact: () => '' },
};

/** The columns are the keys of the rows. */
function factTable(name: string, rows: Row[]): DataTable<Row> {
  const keys = [...new Set(rows.slice(0, 100).flatMap((row) => Object.keys(row)))];
  const columns: ColumnOf<Row>[] = keys.map((key) => {
    const title = key.replace(/_ns$/, '').replaceAll('_', ' ');
    const shownTitle = shown(title.charAt(0).toUpperCase() + title.slice(1));
    const meaning = meaningOf(name, key, rows.map((row) => row[key]));
    if (meaning === 'text') return { title: shownTitle, value: (row) => (row[key] === null || row[key] === undefined ? '' : shown(typeof row[key] === 'object' ? JSON.stringify(row[key]) : String(row[key]))) };
    if (meaning === 'address') return { title: shownTitle, value: (row) => address(row[key] as number | string) };
    const { text, exact } = written[meaning];
    // A message about a lack of memory, or a reading of the process, does not always have all sizes.
    const isKnown = (value: unknown): value is number => typeof value === 'number' && !(/^(tt_out_of_memory|process_memory)$/.test(name) && value < 0);
    const of = (row: Row, write: (value: number) => string, otherwise: string): string => {
      const value = row[key];
      return isKnown(value) ? write(value) : otherwise;
    };
    return { title: shownTitle, value: (row) => (typeof row[key] === 'number' ? row[key] : ''), text: (row) => of(row, text, 'unknown'), exact: (row) => of(row, exact, '') };
  });
  const table = new DataTable<Row>({ label: titles[name] ?? shown(name), noun: 'row', empty: '', columns });
  table.setRows(rows);
  return table;
}
