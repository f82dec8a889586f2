// Pages for the tests: runs recorded event by event and folded in the most obvious way, so that what the viewer shows can be
// compared with numbers that were not made by the code that makes real pages.
import { gzipSync } from 'node:zlib';

export const categories = ['other', 'parameter', 'gradient', 'optimizer_state', 'activation', 'temporary', 'input', 'kv_cache'];

const tally = () => ({ count: 0, bytes: 0 });
const noLive = () => ({ bytes: 0, blocks: 0, by_operation: [], remaining_bytes: 0, remaining_operations: 0, by_category: [], largest_blocks: [] });
const larger = (a, b) => b.bytes - a.bytes;

/** A row of the facts `process_memory` in which nothing is known. */
export const processReading = {
  moment: 'last', time_ns: 0, resident_bytes: -1, peak_resident_bytes: -1, anonymous_bytes: -1, swapped_bytes: -1, heap_bytes: -1, free_heap_bytes: -1,
  heap_before_bytes: -1, recorded_bytes: 0, unrecorded_heap_bytes: -1, profiler_bytes: 0, records_operator_new: 0,
};

/** Records a run: one thread, a clock that ticks at every event. */
export class Recorder {
  events = [];
  segments = [];
  spaces = [];
  operations = [];
  #stack = [];
  #ns = 0;
  #segmentBegin = { event: 0, ns: 0 };

  constructor({ spaces = ['cpu'], tick = 1000 } = {}) {
    this.spaceNames = spaces;
    this.tick = tick;
  }

  #event(fields) {
    this.#ns += this.tick;
    this.events.push({ ...fields, ns: this.#ns, operation: this.#stack.at(-1)?.index ?? -1 });
    return this.events.length - 1;
  }

  begin(name) {
    const parent = this.#stack.at(-1)?.index ?? -1;
    const path = parent < 0 ? name : `${this.operations[parent].path}/${name}`;
    let index = this.operations.findIndex((o) => o.path === path);
    if (index < 0) index = this.operations.push({ path, name, parent, invocations: 0, usage: [] }) - 1;
    this.operations[index].invocations += 1;
    this.#stack.push({ index });
    this.#stack.at(-1).event = this.#event({ kind: 'begin', index, depth: this.#stack.length - 1 });
  }

  end() {
    const { index, event } = this.#stack.at(-1);
    this.#event({ kind: 'end', index, begin: event, depth: this.#stack.length - 1 });
    this.#stack.pop();
  }

  /** `stack`: the calls that asked for it, the outermost first. */
  allocate(address, bytes, category = 'other', { space = 0, name = '', shape = '', dtype = '', stack = null } = {}) {
    this.#event({ kind: 'allocate', space, address, bytes, category, name, shape, dtype, stack });
  }

  free(address, space = 0) {
    this.#event({ kind: 'free', space, address });
  }

  segment(name) {
    this.#event({ kind: 'segment' });
    this.segments.push({ name, begin: this.#segmentBegin, end: { event: this.events.length, ns: this.#ns } });
    this.#segmentBegin = this.segments.at(-1).end;
  }

  get durationNs() {
    return this.#ns;
  }
}

/** Every moment of a space: what was live after each of its events. */
function replay(recorder, space) {
  const live = new Map();
  const moments = [];
  const blocks = [];
  let total = 0;
  recorder.events.forEach((event, index) => {
    if (event.space !== space || (event.kind !== 'allocate' && event.kind !== 'free')) return;
    if (event.kind === 'allocate') {
      const block = { ...event, begin: index, end: null };
      live.set(event.address, block);
      blocks.push(block);
      total += event.bytes;
    } else {
      const block = live.get(event.address);
      block.end = index;
      live.delete(event.address);
      total -= block.bytes;
    }
    moments.push({ event: index, ns: event.ns, total, blocks: live.size, operation: event.operation });
  });
  return { moments, blocks };
}

const liveBlocks = (blocks, event) => blocks.filter((b) => b.begin <= event && (b.end === null || b.end > event));

function sums(blocks, keyOf) {
  const by = new Map();
  for (const block of blocks) {
    const one = by.get(keyOf(block)) ?? { owner: keyOf(block), bytes: 0, blocks: 0 };
    one.bytes += block.bytes;
    one.blocks += 1;
    by.set(one.owner, one);
  }
  return [...by.values()].sort(larger);
}

function liveSet(recorder, blocks, event) {
  const live = liveBlocks(blocks, event);
  return {
    ...noLive(),
    bytes: live.reduce((sum, b) => sum + b.bytes, 0),
    blocks: live.length,
    by_operation: sums(live, (b) => (b.operation < 0 ? null : recorder.operations[b.operation].path)),
    by_category: sums(live, (b) => b.category),
    largest_blocks: [...live].sort(larger).slice(0, 32).map((b) => ({
      address: b.address,
      bytes: b.bytes,
      operation: b.operation < 0 ? null : recorder.operations[b.operation].path,
      category: b.category,
      name: b.name,
      shape: b.shape,
      dtype: b.dtype,
      requires_grad: 'unknown',
    })),
  };
}

const namesOf = (recorder) => [...new Set(recorder.segments.map((s) => s.name))];

function summaryOf(values) {
  const sorted = [...values].sort((a, b) => a.value - b.value || a.index - b.index);
  const greatest = sorted.at(-1).value;
  return { first: values[0].value, last: values.at(-1).value, least: sorted[0].value, greatest, sum: values.reduce((s, v) => s + v.value, 0), least_segment: sorted[0].index, greatest_segment: values.find((v) => v.value === greatest).index };
}

/** Slope = Sxy / Sxx, R^2 = Sxy^2 / (Sxx Syy), from the deviations from the means. */
function growthOf(recorder, own) {
  const steps = [];
  let seen = new Set();
  for (const { name } of recorder.segments) {
    const again = seen.has(name);
    if (again) seen = new Set();
    seen.add(name);
    steps.push((steps.at(-1) ?? 0) + (again ? 1 : 0));
  }
  const points = own.map((usage) => [steps[usage.index], usage.cumulative_current]);
  const mean = (place) => points.reduce((s, p) => s + p[place], 0) / points.length;
  const [x, y] = [mean(0), mean(1)];
  const sum = (f) => points.reduce((s, p) => s + f(p[0] - x, p[1] - y), 0);
  const [xx, xy, yy] = [sum((a) => a * a), sum((a, b) => a * b), sum((_, b) => b * b)];
  return { per_step: xx > 0 ? xy / xx : 0, r_squared: yy === 0 ? 1 : xx > 0 ? (xy * xy) / (xx * yy) : 0 };
}

function spaceProfile(recorder, space, capacity, reserved, waiting) {
  const { moments, blocks } = replay(recorder, space);
  const top = moments.reduce((best, m) => (best === null || m.total > best.total ? m : best), null);
  const path = (operation) => (operation < 0 ? null : recorder.operations[operation].path);
  let current = 0;
  let cumulativePeak = 0;
  const segments = recorder.segments.map((segment) => {
    const inside = moments.filter((m) => m.event >= segment.begin.event && m.event < segment.end.event);
    const events = recorder.events.slice(segment.begin.event, segment.end.event).filter((e) => e.space === space);
    const allocated = events.filter((e) => e.kind === 'allocate');
    const freed = blocks.filter((b) => b.end !== null && b.end >= segment.begin.event && b.end < segment.end.event);
    const begin = current;
    const best = inside.reduce((found, m) => (m.total > (found?.total ?? begin) ? m : found), null);
    const sum = (list) => list.reduce((s, b) => s + b.bytes, 0);
    current = inside.at(-1)?.total ?? begin;
    cumulativePeak = Math.max(cumulativePeak, best?.total ?? begin);
    return {
      segment: segment.name,
      segment_peak: (best?.total ?? begin) - begin,
      allocations: sum(allocated),
      deallocations: sum(freed),
      segment_change: current - begin,
      cumulative_peak: cumulativePeak,
      cumulative_current: current,
      allocation_count: allocated.length,
      deallocation_count: freed.length,
      peak_time_ns: best?.ns ?? segment.begin.ns,
      peak_operation: best ? path(best.operation) : null,
      live_at_peak: best ? liveSet(recorder, blocks, best.event) : noLive(),
    };
  });
  return {
    moments,
    blocks,
    profile: {
      name: recorder.spaceNames[space],
      cumulative_peak: top?.total ?? 0,
      cumulative_current: moments.at(-1)?.total ?? 0,
      allocations: blocks.reduce((s, b) => s + b.bytes, 0),
      deallocations: blocks.filter((b) => b.end !== null).reduce((s, b) => s + b.bytes, 0),
      allocation_count: blocks.length,
      deallocation_count: blocks.filter((b) => b.end !== null).length,
      peak_segment: top ? recorder.segments.findIndex((s) => top.event >= s.begin.event && top.event < s.end.event) : -1,
      peak_time_ns: top?.ns ?? 0,
      peak_operation: top ? path(top.operation) : null,
      live_at_peak: top ? liveSet(recorder, blocks, top.event) : noLive(),
      current_by_category: sums(liveBlocks(blocks, recorder.events.length), (b) => b.category),
      capacity,
      capacity_is_per_core: false,
      first_shortfall: { requested: 0, core: '', operation: null, category: 'other', segment: -1, time_ns: 0, free: 0, shortfall: 0, holders_known: true, held: noLive(), remedy: [] },
      segments,
      segments_by_name: namesOf(recorder).map((name) => {
        const own = segments.map((usage, index) => ({ ...usage, index })).filter((usage) => usage.segment === name);
        const of = (value) => summaryOf(own.map((usage) => ({ index: usage.index, value: value(usage) })));
        const row = { segment: name, live_at_peak: of((u) => u.cumulative_current - u.segment_change + u.segment_peak), growth: growthOf(recorder, own) };
        for (const key of ['segment_peak', 'allocations', 'deallocations', 'segment_change', 'cumulative_current', 'allocation_count', 'deallocation_count']) row[key] = of((u) => u[key]);
        return row;
      }),
      timeline: { events_per_point: 1, points: moments.map((m) => ({ time_ns: m.ns, peak: m.total, current: m.total })) },
      anomalies: { unmatched_frees: tally(), cross_thread_frees: tally() },
      cores: { peaks: { circular_buffers: 0, buffers: 0, total: 0, busiest_core: '' }, segments: [], ranges: [] },
      reserved: { peak: reserved, current: reserved, segments: [], unmatched_releases: tally(), replaced_reservations: tally() },
      active: { peak: waiting ? (top?.total ?? 0) + waiting : 0, current: waiting, segments: [], unmatched_completions: tally(), missing_completions: tally() },
      streams: reserved ? [{ stream: 'default', pool: '', cumulative_peak: top?.total ?? 0, cumulative_current: 0, allocation_count: blocks.length, reserved_peak: reserved, reserved_current: reserved }] : [],
      out_of_memory: [],
      further_out_of_memory: tally(),
    },
  };
}

function operationUsage(recorder, spaces) {
  recorder.operations.forEach((operation, index) => {
    operation.usage = spaces.flatMap((space, s) => {
      const own = space.blocks.filter((b) => b.operation === index);
      const within = space.blocks.filter((b) => b.operation >= 0 && `${recorder.operations[b.operation].path}/`.startsWith(`${operation.path}/`));
      const sum = (list) => list.reduce((total, b) => total + b.bytes, 0);
      if (within.length === 0) return [];
      return [
        {
          space: recorder.spaceNames[s],
          total_delta: sum(within),
          self_delta: sum(own),
          max_delta: sum(within),
          allocated: sum(within),
          freed: 0,
          self_allocated: sum(own),
          self_freed: 0,
          allocation_count: own.length,
          deallocation_count: 0,
          peak: sum(within),
          self_peak: sum(own),
          live: sum(own.filter((b) => b.end === null)),
        },
      ];
    });
  });
}

export function profileOf(recorder, { capacities = [], device = '', reserved = [], waiting = [], facts = {}, exact = true, anomalies = {} } = {}) {
  const spaces = recorder.spaceNames.map((_, s) => spaceProfile(recorder, s, capacities[s] ?? 0, reserved[s] ?? 0, waiting[s] ?? 0));
  operationUsage(recorder, spaces);
  return {
    spaces,
    profile: {
      format: 'memprof-profile',
      version: 2,
      library_version: '0.0.0',
      mode: 'normal',
      device,
      exact,
      complete: true,
      begin_unix_ns: 1_700_000_000_000_000_000,
      process: { id: 42, host: 'host', command_line: './train --steps 4', rank: -1, world_size: -1, local_rank: -1 },
      duration_ns: recorder.durationNs,
      segments: recorder.segments.map((s) => ({ name: s.name, begin_ns: s.begin.ns, end_ns: s.end.ns })),
      segments_by_name: namesOf(recorder).map((name) => {
        const own = recorder.segments.map((s, index) => ({ ...s, index })).filter((s) => s.name === name);
        const duration_ns = summaryOf(own.map((s) => ({ index: s.index, value: s.end.ns - s.begin.ns })));
        return { name, stands_for_others: false, count: own.length, kept: own.length, first_number: own[0].index, last_number: own.at(-1).index, duration_ns };
      }),
      spaces: spaces.map((s) => s.profile),
      operations: recorder.operations,
      facts,
      anomalies: { dropped_events: 0, reentrant_events: 0, rejected_events: 0, unbalanced_scopes: 0, missing_events: 0, too_deep_scopes: 0, ...anomalies },
      cost: { events: recorder.events.length, drains: 0, memory_bytes: 4096, memory_bytes_at_million_events: 0, record_ns_per_event: 10, drain_ns_per_event: 0 },
    },
  };
}

/** Tables, encoded as DATA.md says. */
export class Columns {
  #bytes = [];
  tables = [];

  add(name, frame, space, columns, plain = []) {
    const names = Object.keys(columns);
    const table = { name, frame, space, rows: columns[names[0]].length, columns: [] };
    for (const column of names) {
      const begin = this.#bytes.length;
      const encoding = plain.includes(column) ? 'plain' : 'delta';
      let previous = 0n;
      for (const value of columns[column]) {
        const v = BigInt(value);
        const difference = v - previous;
        this.#varint(encoding === 'plain' ? v : difference < 0n ? -difference * 2n - 1n : difference * 2n);
        previous = v;
      }
      table.columns.push({ name: column, encoding, begin, bytes: this.#bytes.length - begin });
    }
    this.tables.push(table);
  }

  #varint(value) {
    while (value >= 128n) {
      this.#bytes.push(Number(value & 127n) | 128);
      value >>= 7n;
    }
    this.#bytes.push(Number(value));
  }

  get buffer() {
    return Buffer.from(this.#bytes);
  }
}

/** The page's data of a run, with at most `buckets` rows a timeline. */
export function runOf(recorder, options = {}) {
  const { spaces, profile } = profileOf(recorder, options);
  const run = { format: 'memprof-page', version: 1, title: options.title ?? 'sample', source: options.source ?? 'sample.memtrace', profile, kept_segments: null, segment_count: profile.segments.length, notes: options.notes ?? [], detail: null };
  if (options.bare) return { run, columns: null };

  const columns = new Columns();
  const owners = [];
  const ownerOf = (block) => {
    let at = owners.findIndex((o) => o.operation === block.operation && o.category === block.category);
    if (at < 0) at = owners.push({ operation: block.operation, category: block.category }) - 1;
    return at;
  };
  const strings = [''];
  const stringOf = (text) => {
    let at = strings.indexOf(text);
    if (at < 0) at = strings.push(text) - 1;
    return at;
  };
  const regions = spaces.map((space) => {
    if (space.blocks.length === 0) return [];
    const low = space.blocks.reduce((least, b) => (BigInt(b.address) < least ? BigInt(b.address) : least), 1n << 64n);
    const high = space.blocks.reduce((most, b) => (BigInt(b.address) + BigInt(b.bytes) > most ? BigInt(b.address) + BigInt(b.bytes) : most), 0n);
    return [{ offset: 0, bytes: Number(high - low), address: `0x${low.toString(16)}` }];
  });
  spaces.forEach((space, s) => {
    timelineTables(columns, space, s, ownerOf, options.buckets ?? 4096, { reserved: options.reserved?.[s], waiting: options.waiting?.[s] });
    const low = BigInt(regions[s][0]?.address ?? 0);
    columns.add('blocks', 0, s, {
      begin_event: space.blocks.map((b) => b.begin),
      begin_ns: space.blocks.map((b) => b.ns),
      end_event: space.blocks.map((b) => b.end ?? recorder.events.length),
      end_ns: space.blocks.map((b) => (b.end === null ? recorder.durationNs : recorder.events[b.end].ns)),
      stays: space.blocks.map((b) => (b.end === null ? 1 : 0)),
      offset: space.blocks.map((b) => BigInt(b.address) - low),
      bytes: space.blocks.map((b) => b.bytes),
      owner: space.blocks.map(ownerOf),
      name: space.blocks.map((b) => stringOf(b.name)),
      shape: space.blocks.map((b) => stringOf(b.shape)),
      dtype: space.blocks.map((b) => stringOf(b.dtype)),
    });
  });
  const ends = recorder.events.map((e, at) => ({ ...e, at })).filter((e) => e.kind === 'end').sort((a, b) => a.begin - b.begin);
  columns.add('invocations', 0, -1, {
    thread: ends.map(() => 0),
    depth: ends.map((e) => e.depth),
    operation: ends.map((e) => e.index + 1),
    begin_event: ends.map((e) => e.begin),
    end_event: ends.map((e) => e.at),
    begin_ns: ends.map((e) => recorder.events[e.begin].ns),
    end_ns: ends.map((e) => e.ns),
    count: ends.map(() => 1),
  });
  spaces.forEach((space, s) => {
    columns.add('deltas', 0, s, {
      delta: ends.map((e) => space.blocks.reduce((sum, b) => sum + (b.begin > e.begin && b.begin < e.at ? b.bytes : 0) - (b.end !== null && b.end > e.begin && b.end < e.at ? b.bytes : 0), 0)),
    });
  });
  columns.add('segments', 0, -1, { begin_event: recorder.segments.map((s) => s.begin.event), end_event: recorder.segments.map((s) => s.end.event) });
  const stacks = options.stacks ? stackTables(columns, recorder, spaces[0], stringOf, options.stacks) : null;
  const steps = stepTables(columns, recorder, spaces, options.stepEnd);
  const frames = (options.frameSteps ?? []).map((row, i) => {
    const { begin, end } = steps[row];
    spaces.forEach((space, s) => timelineTables(columns, space, s, ownerOf, 4096, {}, i + 1, begin, end));
    return { begin_event: begin.event, end_event: end.event, begin_ns: begin.ns, end_ns: end.ns, step: row, invocations: 0, blocks: spaces.map(() => 0) };
  });
  run.detail = {
    events: recorder.events.length,
    owners,
    threads: [{ name: options.thread ?? 'main', id: 42 }],
    strings,
    regions,
    patterns: [{ steps: steps.length - 1, segments: [] }],
    frames: [{ begin_event: 0, end_event: recorder.events.length, begin_ns: 0, end_ns: recorder.durationNs, step: -1, invocations: ends.length, blocks: spaces.map((s) => s.blocks.length) }, ...frames],
    stacks,
    tables: columns.tables,
  };
  return { run, columns: columns.buffer };
}

/** The stacks of the first space: all blocks below `from_bytes` are small ones, of which those with a stack were sampled. */
function stackTables(columns, recorder, space, stringOf, { from_bytes = 0, sample_bytes = 0, missing_blocks = 0 }) {
  const kinds = ['operation', 'call', 'folded', 'without', 'small'];
  const unit = Math.max(1, sample_bytes ** 2 / 1024);
  const nodes = [];
  const child = (parent, kind, name) => {
    let at = nodes.findIndex((n) => n.parent === parent && n.kind === kind && n.name === name);
    if (at < 0) at = nodes.push({ parent, kind, name, own: [0, 0, 0, 0, 0] }) - 1;
    return at;
  };
  const operation = (index) => (index < 0 ? -1 : child(operation(recorder.operations[index].parent), 'operation', recorder.operations[index].name));
  // What a block adds to nodes: bytes, blocks, weight, sampled, variance.
  const shares = (block) => {
    const within = operation(block.operation);
    const own = block.stack ? block.stack.reduce((at, name) => child(at, 'call', name), within) : child(within, 'without', '');
    if (sample_bytes === 0 || block.bytes >= from_bytes) return [[own, [block.bytes, 1, 0, 0, 0]]];
    const small = [child(within, 'small', ''), [block.bytes, 1, 0, 0, 0]];
    const chance = 1 - Math.exp(-block.bytes / sample_bytes);
    return block.stack ? [small, [own, [0, 0, Math.round(block.bytes / chance), 1, Math.round((block.bytes ** 2 * (1 - chance)) / chance ** 2 / unit)]]] : [small];
  };
  const sumOf = (blocks) => {
    const sums = new Map();
    for (const block of blocks) for (const [node, values] of shares(block)) sums.set(node, values.map((value, i) => value + (sums.get(node)?.[i] ?? 0)));
    return sums;
  };
  for (const [node, values] of sumOf(space.blocks)) nodes[node].own = values;
  const moments = space.moments[0]?.event === 0 ? space.moments : [{ event: 0, ns: 0, total: 0 }, ...space.moments];
  const parts = { bucket: [], node: [], column: [], bytes: [], blocks: [] };
  let before = new Map();
  moments.forEach((moment, bucket) => {
    const now = sumOf(moment.total > 0 ? liveBlocks(space.blocks, moment.event) : []);
    for (const node of new Set([...before.keys(), ...now.keys()])) {
      const [a, b] = [before.get(node) ?? [0, 0, 0, 0, 0], now.get(node) ?? [0, 0, 0, 0, 0]];
      [[0, 0, 1], [1, 2, 3], [2, 4, -1]].forEach(([column, bytes, blocks]) => {
        if (a[bytes] === b[bytes] && (blocks < 0 || a[blocks] === b[blocks])) return;
        for (const [key, value] of Object.entries({ bucket, node, column, bytes: b[bytes], blocks: blocks < 0 ? 0 : b[blocks] })) parts[key].push(value);
      });
    }
    before = now;
  });
  const own = (place) => nodes.map((n) => n.own[place]);
  columns.add('stack_nodes', 0, 0, { parent: nodes.map((n) => n.parent + 1), kind: nodes.map((n) => kinds.indexOf(n.kind)), name: nodes.map((n) => stringOf(n.name)), bytes: own(0), blocks: own(1), weight: own(2), sampled: own(3), variance: own(4) });
  columns.add('stack_moments', 0, 0, { begin_event: moments.map((m) => m.event), begin_ns: moments.map((m) => m.ns), event: moments.map((m) => m.event), time_ns: moments.map((m) => m.ns), total: moments.map((m) => m.total) });
  columns.add('stack_parts', 0, 0, parts);
  return { space: 0, from_bytes, sample_bytes, missing_blocks, variance_unit: unit, left_out: 0 };
}

function timelineTables(columns, space, s, ownerOf, buckets, held, frame = 0, begin = { event: 0, ns: 0 }, end = { event: Infinity }) {
  const inside = space.moments.filter((m) => m.event >= begin.event && m.event < end.event);
  const state = space.moments.filter((m) => m.event < begin.event).at(-1) ?? { total: 0, blocks: 0 };
  const start = { ...begin, total: state.total, blocks: state.blocks };
  const moments = inside[0]?.event === begin.event ? inside : [start, ...inside];
  const each = Math.max(1, Math.ceil(moments.length / buckets));
  const rows = [];
  const parts = { bucket: [], owner: [], bytes: [], blocks: [] };
  let before = new Map();
  for (let from = 0; from < moments.length; from += each) {
    const bucket = moments.slice(from, from + each);
    const top = bucket.reduce((best, m) => (m.total > best.total ? m : best));
    const low = Math.min(...bucket.map((m) => m.total), moments[from - 1]?.total ?? start.total);
    const now = new Map();
    for (const block of top.total > 0 ? liveBlocks(space.blocks, top.event) : []) {
      const one = now.get(ownerOf(block)) ?? { bytes: 0, blocks: 0 };
      now.set(ownerOf(block), { bytes: one.bytes + block.bytes, blocks: one.blocks + 1 });
    }
    for (const owner of new Set([...before.keys(), ...now.keys()])) {
      const [a, b] = [before.get(owner) ?? { bytes: 0, blocks: 0 }, now.get(owner) ?? { bytes: 0, blocks: 0 }];
      if (a.bytes === b.bytes && a.blocks === b.blocks) continue;
      parts.bucket.push(rows.length);
      parts.owner.push(owner);
      parts.bytes.push(b.bytes);
      parts.blocks.push(b.blocks);
    }
    before = now;
    rows.push({ begin: from === 0 ? start : bucket[0], top, low });
  }
  columns.add('timeline', frame, s, {
    begin_event: rows.map((r) => r.begin.event),
    begin_ns: rows.map((r) => r.begin.ns),
    event: rows.map((r) => r.top.event),
    time_ns: rows.map((r) => r.top.ns),
    total: rows.map((r) => r.top.total),
    blocks: rows.map((r) => r.top.blocks),
    low: rows.map((r) => r.low),
    ...(held.reserved ? { reserved: rows.map(() => held.reserved) } : {}),
    ...(held.waiting ? { active: rows.map((r) => r.top.total + held.waiting) } : {}),
  });
  columns.add('parts', frame, s, parts);
}

function stepTables(columns, recorder, spaces, stepEnd) {
  const ends = recorder.segments.map((s, i) => ({ ...s, i })).filter((s) => s.name === stepEnd);
  const steps = ends.map((end, k) => ({ begin: k === 0 ? { event: 0, ns: 0 } : ends[k - 1].end, end: end.end, segment: k === 0 ? 0 : ends[k - 1].i + 1 }));
  columns.add('steps', 0, -1, {
    begin_event: steps.map((s) => s.begin.event),
    begin_ns: steps.map((s) => s.begin.ns),
    end_event: steps.map((s) => s.end.event),
    end_ns: steps.map((s) => s.end.ns),
    pattern: steps.map((_, i) => (i > 0 ? 1 : 0)),
    count: steps.map(() => 1),
    segment: steps.map((s) => s.segment),
  });
  spaces.forEach((space, s) => {
    const inside = (step) => space.moments.filter((m) => m.event >= step.begin.event && m.event < step.end.event);
    const at = (event) => space.moments.filter((m) => m.event < event).at(-1)?.total ?? 0;
    columns.add('step_usage', 0, s, { peak: steps.map((step) => Math.max(at(step.begin.event), ...inside(step).map((m) => m.total))), current: steps.map((step) => at(step.end.event)) });
  });
  return steps;
}

/** The whole file, from the template's two parts. */
export function pageOf({ head, tail }, { run, columns }) {
  const block = (id, data) => `<script type="application/octet-stream" id="${id}">${gzipSync(data).toString('base64')}</script>\n`;
  // JSON has no integers above 2^53 in JavaScript: addresses are put in as digits.
  const text = JSON.stringify(run, (_, value) => (typeof value === 'bigint' ? `\u0001${value}\u0001` : value)).replace(/"\\u0001(\d+)\\u0001"/g, '$1');
  return head + block('memprof-run', text) + (columns ? block('memprof-columns', columns) : '') + tail;
}

/* --- Runs ------------------------------------------------------------------------------------------------------------- */

/** A training of a few layers: parameters, then steps of a forward pass, a backward pass and an optimizer. */
export function training({ steps = 4, layers = 6, spaces = ['cpu', 'cuda:0'], names = (n) => n } = {}) {
  const recorder = new Recorder({ spaces });
  const main = spaces.length - 1;
  const base = 0x7f0000000000;
  const at = (slot) => base + slot * 0x400000;
  recorder.begin(names('model'));
  for (let l = 0; l < layers; l += 1) recorder.allocate(at(l), 2_000_000 + l, 'parameter', { space: main, name: names(`layers.${l}.weight`), shape: '[512, 976]', dtype: 'float32' });
  recorder.end();
  recorder.segment(names('MODEL_CREATION'));
  for (let step = 0; step < steps; step += 1) {
    recorder.allocate(0x1000, 4096, 'input', { name: names('batch') });
    recorder.begin(names('forward'));
    for (let l = 0; l < layers; l += 1) {
      recorder.begin(names(`layer${l}`));
      recorder.allocate(at(20 + 2 * l), 1_500_000 + 1000 * l + step, 'activation', { space: main, shape: '[8, 64, 730]', dtype: 'float32' });
      recorder.allocate(at(21 + 2 * l), 300_000, 'temporary', { space: main });
      recorder.free(at(21 + 2 * l), main);
      recorder.end();
    }
    recorder.end();
    recorder.segment(names('FORWARD_PASS'));
    recorder.begin(names('backward'));
    for (let l = layers - 1; l >= 0; l -= 1) {
      recorder.allocate(at(60 + l), 2_000_000 + l, 'gradient', { space: main });
      recorder.free(at(20 + 2 * l), main);
    }
    recorder.end();
    recorder.segment(names('BACKWARD_PASS'));
    recorder.begin(names('optimizer'));
    if (step === 0) for (let l = 0; l < layers; l += 1) recorder.allocate(at(40 + l), 2_000_000 + l, 'optimizer_state', { space: main });
    for (let l = 0; l < layers; l += 1) recorder.free(at(60 + l), main);
    recorder.end();
    recorder.free(0x1000);
    recorder.segment(names('OPTIMIZER_STEP'));
  }
  recorder.segment('END_TRACE');
  return recorder;
}

/** As much as a page may hold, of a run of ten million events and 100,000 steps. */
export function huge() {
  const recorder = new Recorder({ spaces: ['cuda:0'] });
  const { run } = runOf(recorder, {});
  const columns = new Columns();
  const [events, duration] = [10_000_000, 600_000_000_000];
  const [buckets, ownerCount, blockCount, invocationCount, stepCount] = [4096, 64, 20_000, 20_000, 100_000];
  let seed = 1;
  const random = () => (seed = (seed * 1103515245 + 12345) % 2147483648) / 2147483648;
  const rows = (n, of) => Array.from({ length: n }, (_, i) => of(i));
  run.profile.operations = rows(ownerCount, (i) => ({ path: `forward/layer${i}/attention`, name: 'attention', parent: -1, invocations: 100_000, usage: [] }));
  const owners = rows(ownerCount, (i) => ({ operation: i, category: categories[i % categories.length] }));
  const state = rows(ownerCount, () => 10_000_000 + Math.floor(random() * 90_000_000));
  const parts = { bucket: [], owner: [], bytes: [], blocks: [] };
  const totals = [];
  for (let b = 0; b < buckets; b += 1) {
    for (const owner of b === 0 ? state.keys() : rows(20, () => Math.floor(random() * ownerCount))) {
      if (parts.bucket.at(-1) === b && parts.owner.slice(-20).includes(owner)) continue;
      state[owner] = 10_000_000 + Math.floor(random() * 90_000_000);
      parts.bucket.push(b);
      parts.owner.push(owner);
      parts.bytes.push(state[owner]);
      parts.blocks.push(100);
    }
    totals.push(state.reduce((sum, v) => sum + v, 0));
  }
  const eventOf = (part) => Math.floor(part * events);
  const nsOf = (part) => Math.floor(part * duration);
  columns.add('timeline', 0, 0, {
    begin_event: rows(buckets, (i) => eventOf(i / buckets)),
    begin_ns: rows(buckets, (i) => nsOf(i / buckets)),
    event: rows(buckets, (i) => eventOf((i + 0.5) / buckets)),
    time_ns: rows(buckets, (i) => nsOf((i + 0.5) / buckets)),
    total: totals,
    blocks: rows(buckets, () => 6400),
    low: totals.map((t) => Math.floor(t * 0.6)),
  });
  columns.add('parts', 0, 0, parts);
  const begins = rows(blockCount, () => random()).sort((a, b) => a - b);
  const ends = begins.map((b) => Math.min(1, b + random() ** 6));
  columns.add('blocks', 0, 0, {
    begin_event: begins.map(eventOf),
    begin_ns: begins.map(nsOf),
    end_event: ends.map(eventOf),
    end_ns: ends.map(nsOf),
    stays: ends.map((e) => (e === 1 ? 1 : 0)),
    offset: begins.map(() => Math.floor(random() * 2 ** 33)),
    bytes: begins.map(() => Math.floor(random() ** 4 * 2 ** 26) + 512),
    owner: begins.map(() => Math.floor(random() * ownerCount)),
    name: begins.map(() => 0),
    shape: begins.map(() => 0),
    dtype: begins.map(() => 0),
  });
  const calls = rows(invocationCount, (i) => i / invocationCount);
  columns.add('invocations', 0, -1, {
    thread: calls.map((_, i) => i % 4),
    depth: calls.map((_, i) => (i >> 2) % 5),
    operation: calls.map((_, i) => 1 + (i % ownerCount)),
    begin_event: calls.map(eventOf),
    end_event: calls.map((c) => eventOf(c + 0.9 / invocationCount)),
    begin_ns: calls.map(nsOf),
    end_ns: calls.map((c) => nsOf(c + 0.9 / invocationCount)),
    count: calls.map(() => 1),
  });
  columns.add('deltas', 0, 0, { delta: calls.map(() => Math.floor((random() - 0.5) * 2 ** 30)) });
  columns.add('steps', 0, -1, {
    begin_event: rows(stepCount, (i) => eventOf(i / stepCount)),
    begin_ns: rows(stepCount, (i) => nsOf(i / stepCount)),
    end_event: rows(stepCount, (i) => eventOf((i + 1) / stepCount)),
    end_ns: rows(stepCount, (i) => nsOf((i + 1) / stepCount)),
    pattern: rows(stepCount, () => 1),
    count: rows(stepCount, () => 1),
    segment: rows(stepCount, (i) => i),
  });
  columns.add('step_usage', 0, 0, { peak: rows(stepCount, (i) => totals[Math.floor((i / stepCount) * buckets)]), current: rows(stepCount, () => 5_000_000_000) });
  const peak = Math.max(...totals);
  Object.assign(run.profile.spaces[0], { cumulative_peak: peak, cumulative_current: totals.at(-1), peak_time_ns: nsOf((totals.indexOf(peak) + 0.5) / buckets), allocation_count: 5_000_000, deallocation_count: 4_990_000 });
  run.profile.duration_ns = duration;
  run.detail = {
    events,
    owners,
    threads: rows(4, (i) => ({ name: `worker ${i}`, id: i })),
    strings: [''],
    regions: [[{ offset: 0, bytes: 2 ** 33 + 2 ** 26, address: '0x7f0000000000' }]],
    patterns: [{ steps: stepCount, segments: [] }],
    frames: [{ begin_event: 0, end_event: events, begin_ns: 0, end_ns: duration, step: -1, invocations: 3_000_000, blocks: [5_000_000] }],
    tables: columns.tables,
  };
  return { run, columns: columns.buffer };
}
