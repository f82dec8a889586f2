/**
 * What a page contains: the contract between `<memprof/toolkit/page/...>`, which writes it, and the viewer, which reads it.
 * DATA.md says how it is embedded and has the rules that types cannot express.
 *
 * All numbers are non-negative integers below 2^53 unless said otherwise. Bytes are bytes, times nanoseconds since the
 * capture began. An *event* is an ordinal: the number of events before it in the trace. Moments are compared by event, never
 * by time, because up to 64 events share one time.
 */

/** The block `memprof-run`. */
export interface Run {
  format: 'memprof-page';
  /** Changes when an older viewer would misread the data; template and data of one page are always of one build. */
  version: 1;
  /** Shown as the page's heading: the program of the command line, or the name of the file. */
  title: string;
  /** The file that the page was made from, without its folder; empty if the program wrote the page itself. */
  source: string;
  /** The profile as memprof writes it (docs/profile.md), except for `kept_segments`. */
  profile: Profile;
  /**
   * null: `profile` has all segments of the run. Else the numbers in the run of those that it has, ascending: every array that is
   * parallel to `profile.segments` was cut alike, and `peak_segment` and other indices are into these.
   */
  kept_segments: number[] | null;
  /** How many segments the run had. */
  segment_count: number;
  /** What readers who trust the numbers must know, in sentences, besides what `profile` itself says. Often empty. */
  notes: string[];
  /** What only a trace has; null if the page was made from a profile. */
  detail: Detail | null;
}

export interface Detail {
  /** Events of the trace. */
  events: number;
  /** The owners of bytes in compositions and blocks. A table's `owner` is an index into this. */
  owners: Owner[];
  /** A table's `thread` is an index into this. */
  threads: Thread[];
  /** A table's `name`, `shape` and `dtype` are indices into this. [0] is "". */
  strings: string[];
  /** For each of `profile.spaces`, the ranges of addresses of its blocks, by ascending offset. */
  regions: Region[][];
  /** Kinds of steps: two steps are of the same kind if they have the same segments with the same bytes in every space. */
  patterns: Pattern[];
  /** [0] is the whole run. The others show one step each in more detail; see DATA.md. */
  frames: Frame[];
  /** Who asked for the memory; null if the recording has no stacks. */
  stacks: StackRecording | null;
  /** Where in the block `memprof-columns` each column of each table is. */
  tables: Table[];
}

/** Which blocks of a space have a stack. */
export interface StackRecording {
  /** Index into `profile.spaces`. */
  space: number;
  /** All blocks of at least this size have one; of the smaller ones a sample, unless `sample_bytes` is 0. */
  from_bytes: number;
  sample_bytes: number;
  /** Blocks that should have one and have none. */
  missing_blocks: number;
  /** What `variance` is counted in. Not an integer. */
  variance_unit: number;
  /** Operations and calls without a node of their own. */
  left_out: number;
}

/** The values of `kind`: their places here. */
export type StackKind = 'operation' | 'call' | 'folded' | 'without' | 'small';

export interface Owner {
  /** Index into `profile.operations`; -1: outside every operation; -2: all operations that are in no other row. */
  operation: number;
  /** A category's name. With the operation it is unique among the owners. */
  category: string;
}

export interface Thread {
  /** As the program named it, or empty. */
  name: string;
  /** Its id in the system, 0 if unknown. */
  id: number;
}

/**
 * A range of addresses. Offsets leave out the stretches between ranges in which no block ever was, so that a heap and a
 * mapping half an address space away can be drawn together, and stay below 2^53.
 */
export interface Region {
  offset: number;
  bytes: number;
  /** Its actual start address: "0x" and hexadecimal digits. */
  address: string;
}

export interface Pattern {
  /** Steps of this kind. */
  steps: number;
  segments: PatternSegment[];
}

export interface PatternSegment {
  name: string;
  /** Its begin and end as fractions of the step's duration; means over the steps. Not integers. */
  begin: number;
  end: number;
  /** For each of `profile.spaces`. `segment_change` may be negative. */
  usage: { segment_peak: number; allocations: number; deallocations: number; segment_change: number }[];
}

/** A stretch of the run with separate tables. */
export interface Frame {
  begin_event: number;
  end_event: number;
  begin_ns: number;
  end_ns: number;
  /** Row of the table `steps` that this frame is; -1 for the whole run. */
  step: number;
  /** Operation invocations in the stretch, and blocks by space, including those without a row of their own. */
  invocations: number;
  blocks: number[];
}

/** Tables by name. Columns not named here are ignored; those marked (optional) may be missing. */
export interface Tables {
  /**
   * One for each frame and space: live bytes at one real moment of each bucket, the one with the largest total (the first,
   * of equals). Buckets follow each other without a hole and cover the frame; each has at least one event.
   */
  timeline: {
    /** The bucket's first event and its time. */
    begin_event: number[];
    begin_ns: number[];
    /** The moment: the event *after* which `total` bytes were live. */
    event: number[];
    time_ns: number[];
    /** Live bytes at the moment: the maximum of the bucket. */
    total: number[];
    /** Blocks live at the moment. */
    blocks: number[];
    /** The bucket's minimum of live bytes, including its begin. */
    low: number[];
    /** (optional) The bucket's maximum of reserved bytes. */
    reserved: number[];
    /** (optional) The bucket's maximum of active bytes, which include freed blocks that streams still use. Missing if all were live. */
    active: number[];
  };
  /**
   * One for each `timeline`: its compositions. A row says that from bucket `bucket` on, `owner` has `bytes` in `blocks`
   * blocks. Rows are sorted by bucket; an owner has none before its first. At every bucket the last values of all owners
   * sum to `total` and `blocks`.
   */
  parts: { bucket: number[]; owner: number[]; bytes: number[]; blocks: number[] };
  /**
   * One for each frame: invocations of operations, sorted by begin. Largest (by duration, then events) kept; of the others,
   * those that follow each other on one thread at one depth, with nothing kept between, are one row with `count` > 1.
   */
  invocations: {
    thread: number[];
    /** 0: outermost. */
    depth: number[];
    /** Index into `profile.operations` plus 1; 0 for several different ones. */
    operation: number[];
    /** Its first and its last event, and their times. Open at the end: the frame's end. */
    begin_event: number[];
    end_event: number[];
    begin_ns: number[];
    end_ns: number[];
    count: number[];
  };
  /** One for each `invocations` and space, parallel to it: inclusive bytes allocated - freed. May be negative. */
  deltas: { delta: number[] };
  /**
   * One for each frame and space: blocks, sorted by begin_event. All that were live at the space's peak, up to 20,000, then
   * the largest by bytes * events.
   */
  blocks: {
    /** The allocation; for blocks from before the frame, the frame's begin. */
    begin_event: number[];
    begin_ns: number[];
    /** The deallocation; if not freed within the frame, the frame's end. */
    end_event: number[];
    end_ns: number[];
    /** 1: it was not freed within the frame. */
    stays: number[];
    /** Offset as defined in `regions`. */
    offset: number[];
    bytes: number[];
    owner: number[];
    name: number[];
    shape: number[];
    dtype: number[];
  };
  /** One, parallel to `profile.segments`: their first event, and the one after their last. */
  segments: { begin_event: number[]; end_event: number[] };
  /** One: steps in order of time. Empty if the run does not repeat. Beyond 131,072, each row stands for `count` consecutive steps. */
  steps: {
    begin_event: number[];
    begin_ns: number[];
    end_event: number[];
    end_ns: number[];
    /** Index into `patterns` plus 1; 0: one of the kinds that `patterns` leaves out, or several. */
    pattern: number[];
    count: number[];
    /** Index of its first segment in the whole run. */
    segment: number[];
  };
  /**
   * One, for the space with stacks: the tree of operations and the calls within them, parents before children. What a node has does
   * not include what nodes within it have. `folded` are those without a node of their own within their parent, `without` blocks of
   * an operation that should have a stack and have none, `small` all blocks of an operation from which a sample was taken.
   */
  stack_nodes: {
    /** Index plus 1; 0: outermost. */
    parent: number[];
    kind: number[];
    /** Index into `strings`. */
    name: number[];
    /** Of everything that was allocated. Blocks of a sample are among those of `small` only. */
    bytes: number[];
    blocks: number[];
    /** (optional) The bytes for which blocks of a sample stand, how many these are, and the variance of the former. */
    weight: number[];
    sampled: number[];
    variance: number[];
  };
  /** One, with the `stack_nodes`: moments as those of `timeline`, 512 at most. */
  stack_moments: { begin_event: number[]; begin_ns: number[]; event: number[]; time_ns: number[]; total: number[] };
  /**
   * One, with the `stack_nodes`: what a node has from a moment on. `column` (optional) says of what: 0 `bytes` and `blocks`, 1 the
   * weight and how many were sampled, 2 the variance.
   */
  stack_parts: { bucket: number[]; node: number[]; column: number[]; bytes: number[]; blocks: number[] };
  /** One for each space, parallel to `steps`: greatest live bytes within the step, and live bytes at its end. */
  step_usage: { peak: number[]; current: number[] };
}

export type TableName = keyof Tables;

export interface Table {
  name: TableName;
  /** Index into `frames`; 0 for `segments`, `steps` and `step_usage`. */
  frame: number;
  /** Index into `profile.spaces`; -1 if the table is not about a space. */
  space: number;
  rows: number;
  columns: Column[];
}

export interface Column {
  name: string;
  /**
   * Both are LEB128 (7 bits a byte, least significant first, the upper bit says that more follow).
   * `plain`: the values. `delta`: zigzag ((d << 1) ^ (d >> 63)) of the difference from the row before, the first from 0.
   */
  encoding: 'plain' | 'delta';
  /** First byte in `memprof-columns`, and the number of bytes. */
  begin: number;
  bytes: number;
}

/* --- The profile, as docs/profile.schema.json has it: what the viewer reads of it. ------------------------------------ */

export interface Profile {
  version: number;
  library_version: string;
  mode: 'normal' | 'no_dispatch';
  device: string;
  exact: boolean;
  complete: boolean;
  begin_unix_ns: number;
  process: {
    id: number;
    host: string;
    command_line: string;
    rank: number;
    world_size: number;
    local_rank: number;
  };
  duration_ns: number;
  segments: { name: string; begin_ns: number; end_ns: number }[];
  /** Of all segments, kept or not; missing in profiles of earlier versions. */
  segments_by_name?: NamedSegments[];
  spaces: Space[];
  /** Not in profiles of older versions. */
  memories?: Memory[];
  operations: Operation[];
  /** Not in profiles of older versions, like the next. */
  checkpoints?: Checkpoint[];
  /** Of all, kept or not. */
  checkpoint_count?: number;
  facts: Record<string, Record<string, unknown>[]>;
  anomalies: Record<string, number>;
  cost: Record<string, number>;
  /** Not in profiles of older versions, like `planned` and `assumed` in it. */
  provenance?: { rounding: number; planned?: boolean; assumed?: boolean; remarks: string[] };
}

export interface Space {
  name: string;
  /** Whether it stands for all spaces beyond the limit. */
  stands_for_others?: boolean;
  cumulative_peak: number;
  cumulative_current: number;
  allocations: number;
  deallocations: number;
  allocation_count: number;
  deallocation_count: number;
  peak_segment: number;
  peak_time_ns: number;
  peak_operation: string | null;
  live_at_peak: LiveSet;
  /** What is live at the end; not in profiles of earlier versions. */
  current_by_category?: Owned[];
  /** Who grows from step to step, the fastest first; not in profiles of earlier versions. */
  growing?: OwnerGrowth[];
  capacity: number;
  capacity_is_per_core: boolean;
  first_shortfall: Shortfall;
  segments: SegmentUsage[];
  /** Parallel to the profile's. */
  segments_by_name?: NamedSegmentsUsage[];
  timeline: { events_per_point: number; points: { time_ns: number; peak: number; current: number }[] };
  anomalies: Record<string, Tally>;
  cores: {
    peaks: CorePeaks;
    segments: CorePeaks[];
    ranges: { range: string; peaks: CorePeaks }[];
  };
  reserved: {
    peak: number;
    current: number;
    segments: { peak: number; current: number }[];
    unmatched_releases: Tally;
    replaced_reservations: Tally;
  };
  /** Missing in profiles of earlier versions. */
  active?: {
    peak: number;
    current: number;
    segments: { peak: number; current: number }[];
    unmatched_completions: Tally;
    missing_completions: Tally;
  };
  streams: Stream[];
  out_of_memory: OutOfMemory[];
  further_out_of_memory: Tally;
}

/** A memory shared by several spaces. */
export interface Memory {
  name: string;
  cumulative_peak: number;
  cumulative_current: number;
  peak_segment: number;
  peak_time_ns: number;
  peak_space: string | null;
  peak_operation: string | null;
  /** What each space had at the joint peak, greatest first. */
  spaces: Owned[];
  live_at_peak: LiveSet;
}

export interface Tally {
  count: number;
  bytes: number;
}

export interface LiveSet {
  bytes: number;
  blocks: number;
  by_operation: Owned[];
  remaining_bytes: number;
  remaining_operations: number;
  by_category: Owned[];
  largest_blocks: LiveBlock[];
}

export interface Owned {
  owner: string | null;
  bytes: number;
  blocks: number;
}

export interface LiveBlock {
  /** A decimal string if it is 2^53 or more: the viewer reads `address` before JSON.parse would round it. */
  address: number | string;
  bytes: number;
  operation: string | null;
  category: string;
  name: string;
  shape: string;
  dtype: string;
  requires_grad: string;
}

/** What was live at one moment, in total and in each space. */
export interface Checkpoint {
  /** null: a periodic one. */
  name: string | null;
  number: number;
  time_ns: number;
  live_bytes: number;
  live_blocks: number;
  spaces: { space: string; live_bytes: number; live_blocks: number; largest_blocks: LiveBlock[] }[];
}

export interface Shortfall {
  requested: number;
  core: string;
  operation: string | null;
  category: string;
  segment: number;
  time_ns: number;
  free: number;
  shortfall: number;
  holders_known: boolean;
  held: LiveSet;
  remedy: Owned[];
}

export interface SegmentUsage {
  segment: string;
  segment_peak: number;
  allocations: number;
  deallocations: number;
  segment_change: number;
  cumulative_peak: number;
  cumulative_current: number;
  allocation_count: number;
  deallocation_count: number;
  peak_time_ns: number;
  peak_operation: string | null;
  /** null in a page whose run has many segments, for segments that nobody will look up. */
  live_at_peak: LiveSet | null;
}

/** A number over all segments of a name. */
export interface Summary {
  first: number;
  last: number;
  least: number;
  greatest: number;
  sum: number;
  /** Numbers of the segments that had them. */
  least_segment: number;
  greatest_segment: number;
}

export interface NamedSegments {
  name: string;
  stands_for_others: boolean;
  count: number;
  first_number: number;
  last_number: number;
  duration_ns: Summary;
}

export interface NamedSegmentsUsage {
  segment: string;
  segment_peak: Summary;
  /** What was live then, including blocks of earlier segments. */
  live_at_peak: Summary;
  allocations: Summary;
  deallocations: Summary;
  segment_change: Summary;
  cumulative_current: Summary;
  growth: GrowthLine;
}

/** What is live at the ends of a name's segments, as a line through its steps; not integers. */
export interface GrowthLine {
  per_step: number;
  r_squared: number;
}

/** An owner whose bytes at the ends of the steps still grow. */
export interface OwnerGrowth {
  /** Path of an operation; null: outside every operation; or `(reserved, but in no block)`. */
  owner: string | null;
  /** Bytes; not an integer. */
  per_step: number;
  /** From 0; -1: before the first step that was watched. */
  since_step: number;
  /** How many steps later it may have begun. */
  within_steps: number;
  steps: number;
}

export interface CorePeaks {
  circular_buffers: number;
  buffers: number;
  total: number;
  busiest_core: string;
}

export interface Stream {
  stream: string;
  pool: string;
  cumulative_peak: number;
  cumulative_current: number;
  allocation_count: number;
  reserved_peak: number;
  reserved_current: number;
}

export interface OutOfMemory {
  requested: number;
  /** -1: unknown. */
  device_free: number;
  live_bytes: number;
  reserved_bytes: number;
  operation: string | null;
  segment: number;
  time_ns: number;
}

export interface Operation {
  path: string;
  name: string;
  parent: number;
  invocations: number;
  usage: OperationUsage[];
}

export interface OperationUsage {
  space: string;
  total_delta: number;
  self_delta: number;
  max_delta: number;
  allocated: number;
  freed: number;
  self_allocated: number;
  self_freed: number;
  allocation_count: number;
  deallocation_count: number;
  peak: number;
  self_peak: number;
  live: number;
  /** Not in profiles of older versions; of thread -1 if there was none. */
  first_invocation?: KeptInvocation;
  last_invocation?: KeptInvocation;
  largest_invocation?: KeptInvocation;
  /** The part of `allocated` for which the operation was only inferred. Not in profiles of older versions. */
  inferred?: number;
}

export interface KeptInvocation {
  thread: number;
  begin_ns: number;
  end_ns: number;
  delta: number;
}
