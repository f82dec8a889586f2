import { address } from '../format';
import type { Detail, Operation, OperationUsage, Profile, Run, Space } from './contract';
import type { Data } from './decode';
import { type KeptInvocations, keptInvocations } from './kept_invocations';
import { type Live, liveInProfile, liveInTrace, type Moment } from './live';
import { type InvocationTable, SpaceModel, type Timeline } from './space';
import { Stacks } from './stacks';
import { type Begins, beginsOf, rowAt, type Step, Steps } from './steps';

/**
 * The queries of the views: the same whether the page was made from a trace, where everything is known at every drawn moment, or
 * from a profile, where compositions are known at the peaks of segments.
 */

const mostClockSteps = 4096;

export interface Segment {
  index: number;
  name: string;
  beginNs: number;
  endNs: number;
  beginEvent: number;
  endEvent: number;
}

export class Model {
  readonly run: Run;
  readonly profile: Profile;
  readonly detail: Detail | null;
  readonly spaces: SpaceModel[];
  readonly segments: Segment[];
  readonly steps: Steps;
  readonly segmentBegins: Begins;
  /** The run's length on both axes. */
  readonly durationNs: number;
  readonly events: number;
  /** Who asked for the memory of one space; null: not recorded. */
  readonly stacks: Stacks | null;
  private readonly invocationTables = new Map<number, InvocationTable | null>();
  private readonly kept: KeptInvocations | null;
  private readonly clockEvents: Float64Array;
  private readonly clockNs: Float64Array;

  constructor(readonly data: Data) {
    this.run = data.run;
    this.profile = data.run.profile;
    this.detail = data.run.detail;
    this.kept = this.detail ? null : keptInvocations(this.profile);
    this.spaces = this.profile.spaces.map((space, index) => new SpaceModel(data, index, space));
    this.stacks = this.detail?.stacks ? Stacks.of(data, this.detail.stacks.space) : null;
    this.events = this.detail?.events ?? 0;
    let longest = this.profile.duration_ns;
    for (const segment of this.profile.segments) longest = Math.max(longest, segment.end_ns);
    this.durationNs = Math.max(longest, 1);
    [this.clockEvents, this.clockNs] = this.clock();
    this.steps = new Steps(this.data.table('steps'));
    this.segments = this.readSegments();
    this.segmentBegins = beginsOf(this.segments);
  }

  get hasEvents(): boolean {
    return this.events > 0;
  }

  /** The space to show first: one with a capacity, else the one with the largest peak. */
  get mainSpace(): number {
    let best = 0;
    const rank = (s: Space): number => (s.capacity > 0 && s.cumulative_peak > 0 && !s.capacity_is_per_core ? 2 ** 60 : 0) + s.cumulative_peak;
    this.profile.spaces.forEach((space, index) => {
      if (rank(space) > rank(this.profile.spaces[best])) best = index;
    });
    return best;
  }

  /** The last moment of the run. */
  get end(): Moment {
    return { event: Math.max(0, this.events - 1), ns: this.durationNs };
  }

  /** The time of an event: that of the nearest earlier event whose time is known. */
  nsOfEvent(event: number): number {
    if (this.clockEvents.length === 0) return 0;
    if (event >= this.events) return this.durationNs;
    return this.clockNs[rowAt(this.clockEvents, event)];
  }

  eventOfNs(ns: number): number {
    if (this.clockEvents.length === 0) return 0;
    if (ns >= this.durationNs) return this.events;
    return this.clockEvents[rowAt(this.clockNs, ns)];
  }

  invocationsOf(frame: number): InvocationTable | null {
    if (!this.invocationTables.has(frame)) {
      const columns = this.data.table('invocations', frame);
      const info = this.detail?.frames[frame];
      let table: InvocationTable | null = null;
      if (columns && info) {
        let shown = 0;
        for (const count of columns.count) shown += count;
        table = { length: columns.thread.length, columns, invocations: info.invocations, left: Math.max(0, info.invocations - shown) };
      } else if (!this.detail && frame === 0) table = this.kept?.table ?? null;
      this.invocationTables.set(frame, table);
    }
    return this.invocationTables.get(frame) ?? null;
  }

  /** What an invocation changed in a space; null if unknown. */
  deltaOf(frame: number, row: number, space: number): number | null {
    const deltas = this.detail ? this.data.table('deltas', frame, space)?.delta : this.kept?.deltas.get(this.spaces[space]?.name ?? '');
    const delta = deltas?.[row] ?? NaN;
    return Number.isNaN(delta) ? null : delta;
  }

  /** Path of a row's operation, as in `Owner.operation`. */
  ownerPath(owner: number): { path: string | null; rest: boolean } {
    const operation = this.detail?.owners[owner]?.operation ?? -1;
    return { path: operation >= 0 ? (this.profile.operations[operation]?.path ?? null) : null, rest: operation === -2 };
  }

  /** Its address, from an offset of `regions`. */
  addressOf(space: number, offset: number): string {
    const regions = this.detail?.regions[space] ?? [];
    if (regions.length === 0) return '';
    const region = regions[rowAt(regions.map((r) => r.offset), offset)];
    return address(BigInt(region.address) + BigInt(offset - region.offset));
  }

  usage(operation: Operation, space: string): OperationUsage | undefined {
    return operation.usage.find((u) => u.space === space);
  }

  segmentAt(moment: Moment): Segment | null {
    const segments = this.segments;
    if (segments.length === 0) return null;
    const byEvent = this.hasEvents;
    const found = segments[rowAt(byEvent ? this.segmentBegins.event : this.segmentBegins.ns, byEvent ? moment.event : moment.ns)];
    const ends = byEvent ? found.endEvent : found.endNs;
    return (byEvent ? moment.event < ends : moment.ns <= ends) ? found : null;
  }

  stepAt(moment: Moment): Step | null {
    return this.hasEvents ? this.steps.on('event', moment.event) : this.steps.on('ns', moment.ns);
  }

  /** The moment of a space's overall peak. */
  peak(space: SpaceModel): Moment {
    const timeline = space.timeline;
    let best = -1;
    for (let i = 0; i < timeline.length; i += 1) if (best < 0 || timeline.total[i] > timeline.total[best]) best = i;
    if (best < 0) return { event: 0, ns: 0 };
    if (!timeline.event) return { event: 0, ns: space.profile.peak_time_ns };
    return { event: timeline.event[best], ns: timeline.ns[best] };
  }

  /** The finest timeline that includes the moment, and its row. */
  locate(space: SpaceModel, moment: Moment): { timeline: Timeline; row: number } | null {
    let found: { timeline: Timeline; row: number } | null = null;
    for (const timeline of space.allTimelines) {
      if (timeline.length === 0) continue;
      const frame = timeline.frame;
      if (frame && this.hasEvents && frame.step >= 0 && (moment.event < frame.begin_event || moment.event >= frame.end_event)) continue;
      const row =
        timeline.beginEvent && this.hasEvents ? rowAt(timeline.beginEvent, moment.event) : rowAt(timeline.beginNs, moment.ns);
      if (!found || (frame && frame.step >= 0)) found = { timeline, row };
    }
    return found;
  }

  /** What was live at the moment shown by that row of the finest timeline. */
  liveAt(space: SpaceModel, moment: Moment): Live | null {
    return this.hasEvents ? liveInTrace(this, space, moment) : liveInProfile(this, space, moment);
  }

  private clock(): [Float64Array, Float64Array] {
    if (!this.detail) return [new Float64Array(), new Float64Array()];
    const points: [number, number][] = [];
    for (const space of this.spaces) {
      for (const timeline of space.allTimelines) {
        if (!timeline.beginEvent) continue;
        for (let i = 0; i < timeline.length; i += 1) points.push([timeline.beginEvent[i], timeline.beginNs[i]]);
      }
    }
    // Where steps begin, often nothing is allocated.
    const steps = this.data.table('steps');
    if (steps && steps.begin_ns.length <= mostClockSteps) steps.begin_ns.forEach((ns, row) => points.push([steps.begin_event[row], ns]));
    points.push([0, 0]);
    points.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
    return [Float64Array.from(points, (p) => p[0]), Float64Array.from(points, (p) => p[1])];
  }

  private readSegments(): Segment[] {
    const events = this.data.table('segments');
    return this.profile.segments.map((segment, i) => ({
      index: this.run.kept_segments?.[i] ?? i,
      name: segment.name,
      beginNs: segment.begin_ns,
      endNs: segment.end_ns,
      beginEvent: events?.begin_event[i] ?? this.eventOfNs(segment.begin_ns),
      endEvent: events?.end_event[i] ?? this.eventOfNs(segment.end_ns),
    }));
  }
}
