import type { Profile, Space } from './contract';
import type { Model } from './model';
import { liveAtEnd } from './live';
import { isProcessIncomplete, processLine } from './process';
import { endOfStep, type SegmentsOfName, segmentsByName } from './segments';
import type { SpaceModel } from './space';
import { bytes, categoryName, change, count, hasCategories, number, outside, shortened, shown, time } from '../format';
import { foldedPath } from '../groups';
import { shortenedApart } from '../names';

/** The answers at the top of the page: sentences, with a link to where each can be seen. */
export interface Answer {
  id: string;
  question: string;
  /** The answer in a few words. */
  value: string;
  /** `bad` marks what somebody should act on. */
  mood: 'plain' | 'good' | 'bad';
  lines: string[];
  /** The view that shows it, with what to select there. */
  view: string;
  at?: 'peak' | 'end' | { event: number; ns: number };
  link: string;
}

export interface Owner {
  label: string;
  paths: number;
  bytes: number;
  blocks: number;
}

/** Who held the peak, largest first; paths that differ only in numbers are one row. */
export function ownersAtPeak(space: Space): Owner[] {
  const folded = new Map<string, Owner>();
  for (const held of space.live_at_peak.by_operation) {
    const key = held.owner === null ? '\u0000' : foldedPath(held.owner);
    const one = folded.get(key);
    if (one) {
      one.bytes += held.bytes;
      one.blocks += held.blocks;
      one.paths += 1;
      one.label = key;
    } else folded.set(key, { label: held.owner ?? outside, paths: 1, bytes: held.bytes, blocks: held.blocks });
  }
  return [...folded.values()].sort((a, b) => b.bytes - a.bytes);
}

/** Where in the run: the segment, the step if there is one, and the operation. */
export function whereIsPeak(model: Model, space: SpaceModel): string[] {
  const { profile } = space;
  const at = model.peak(space);
  const lines: string[] = [];
  const segment = model.profile.segments[profile.peak_segment];
  const step = model.stepAt(at);
  const when = `at ${time(profile.peak_time_ns)}`;
  lines.push([when, segment ? `in ${shown(segment.name)}` : '', step ? `step ${count(step.number)} of ${count(model.steps.count)}` : ''].filter((s) => s).join(', '));
  if (profile.peak_operation !== null) lines.push(`reached by ${shown(profile.peak_operation)}`);
  return lines;
}

export function answersFor(model: Model, space: SpaceModel): Answer[] {
  return [fit(model, space.profile), growth(model, space), atEnd(model, space), exactness(model)];
}

function fit(model: Model, space: Space): Answer {
  const device = shown(model.profile.device);
  const answer: Answer = { id: 'fit', question: device ? `Does it fit ${device}?` : 'Does it fit?', value: '', mood: 'plain', lines: [], view: 'allocator', link: 'Allocator' };
  const failures = space.out_of_memory.length + space.further_out_of_memory.count;
  if (failures > 0) {
    answer.value = `Out of memory, ${failures === 1 ? 'once' : `${count(failures)} times`}`;
    answer.mood = 'bad';
    const first = space.out_of_memory[0];
    if (first) answer.lines.push(`requested ${bytes(first.requested)}${first.device_free < 0 ? '' : ` with ${bytes(first.device_free)} free`}, at ${time(first.time_ns)}`);
    return answer;
  }
  if (space.capacity === 0) {
    answer.value = device ? 'No limit is known' : 'No device was named';
    answer.lines.push(`the capacity of ${shown(space.name)} is unknown`);
    return answer;
  }
  const { first_shortfall: shortfall } = space;
  if (shortfall.requested > 0) {
    const over = (space.capacity_is_per_core ? space.cores.peaks.total : space.cumulative_peak) - space.capacity;
    answer.value = `No: ${bytes(Math.max(over, shortfall.shortfall))} short`;
    answer.mood = 'bad';
    answer.lines.push(`the peak exceeds ${bytes(space.capacity)}${space.capacity_is_per_core ? ' on one core' : ''}`);
    answer.lines.push(`first at ${time(shortfall.time_ns)}: ${shortfall.operation === null ? 'the program' : shown(shortfall.operation)} requested ${bytes(shortfall.requested)}, ${bytes(shortfall.shortfall)} too much`);
    const [remedy] = shortfall.remedy;
    if (remedy && shortfall.remedy.length === 1) answer.lines.push(`freeing ${remedy.owner === null ? 'what was allocated outside every operation' : shown(remedy.owner)} (${bytes(remedy.bytes)}) would have made room for it`);
    return answer;
  }
  const countsReserved = !space.capacity_is_per_core && space.reserved.peak > space.cumulative_peak;
  if (countsReserved && space.reserved.peak > space.capacity) {
    // An allocator gives back what it caches before it fails, so this is no proof that the program would.
    answer.value = `It may not: ${bytes(space.reserved.peak - space.capacity)} too much`;
    answer.mood = 'bad';
    answer.lines.push(`${bytes(space.reserved.peak)} reserved of ${bytes(space.capacity)}`);
    answer.lines.push(`live bytes alone would leave ${bytes(space.capacity - space.cumulative_peak)}`);
    return answer;
  }
  const used = space.capacity_is_per_core ? space.cores.peaks.total : Math.max(space.cumulative_peak, space.reserved.peak);
  answer.value = `Yes, ${bytes(space.capacity - used)} to spare`;
  answer.mood = 'good';
  answer.lines.push(`${bytes(used)} ${countsReserved ? 'reserved ' : ''}of ${bytes(space.capacity)}${space.capacity_is_per_core ? ' on the busiest core' : ''}`);
  return answer;
}

/** Below this, the line explains too little of how the ends of steps differ. */
const clearTrend = 0.9;

/** What is live after each step in one space; null if there are too few steps. */
interface Growth {
  name: SegmentsOfName;
  /** Whether a line through it rises, and explains it. */
  grows: boolean;
  /** Bytes per step that a space grows by: what its growing owners do together, else the slope of the line. */
  perStep: number;
}

function growthOf(model: Model, space: Space): Growth | null {
  const name = endOfStep(segmentsByName(model.profile, space));
  if (!name) return null;
  const { cumulative_current: ends, growth: line } = name.usage;
  const growing = space.growing ?? [];
  if (growing.length > 0) return { name, grows: true, perStep: growing.reduce((sum, owner) => sum + owner.per_step, 0) };
  return { name, grows: ends.least !== ends.greatest && line.r_squared >= clearTrend && line.per_step > 0, perStep: line.per_step };
}

/** Bytes per step; a rare leak has less than one. */
const rate = (perStep: number): string => (Math.abs(perStep) < 1 && perStep !== 0 ? `${perStep > 0 ? '+' : '\u2212'}${Math.abs(perStep).toPrecision(3)} B` : change(perStep));
const slopeOf = ({ perStep }: Growth): string => `${rate(perStep)} per step`;

/** "+256 B per step by log_metrics, since step 1", for the owners that grow fastest. */
function growersOf(space: Space): string[] {
  const growing = space.growing ?? [];
  const shownOwners = growing.slice(0, growing.length > 3 ? 2 : 3);
  const names = shortenedApart(shownOwners.map(({ owner }) => (owner === null ? outside.slice(1, -1) : owner.startsWith('(') ? shown(owner).slice(1, -1) : `by ${shown(owner)}`)), 70);
  const lines = shownOwners.map(({ per_step: perStep, since_step: since, within_steps: within }, index) => {
    const begin = since < 0 ? '' : `, since ${since > 0 && within > 1 ? 'about ' : ''}step ${count(since + 1)}`;
    return `${rate(perStep)} per step ${names[index]}${begin}`;
  });
  if (growing.length > shownOwners.length) lines.push(`${number(growing.length - shownOwners.length, 'other operation')} ${growing.length - shownOwners.length === 1 ? 'grows' : 'grow'}`);
  return lines;
}

/** " in cpu", where the page has several spaces. */
const placeOf = (model: Model, space: Space): string => (model.spaces.length > 1 ? ` in ${shortened(shown(space.name), 30)}` : '');

/** The same as in memprof's text: who grows, else a line through what is live after each step, in this space and in the others that grow. */
function growth(model: Model, { profile: space }: SpaceModel): Answer {
  const answer: Answer = { id: 'growth', question: 'Does it grow?', value: '', mood: 'plain', lines: [], view: 'segments', link: model.steps.length > 0 ? 'Segments and steps' : 'Segments' };
  const own = growthOf(model, space);
  if (!own) {
    answer.value = 'Too few steps to tell';
    answer.lines.push('a trend needs at least three repeated steps');
    return answer;
  }
  const { name } = own;
  const place = placeOf(model, space);
  const { cumulative_current: ends, growth: line } = name.usage;
  const growers = growersOf(space);
  if (ends.least === ends.greatest && growers.length === 0) {
    answer.value = 'No: 0 B a step';
    answer.mood = 'good';
    answer.lines.push(`${bytes(ends.last)} live${place} after each ${shown(name.name)} (${count(name.count)})`);
  } else {
    if (line.r_squared < clearTrend && growers.length === 0) {
      answer.value = 'No clear trend';
      answer.lines.push(`${change(line.per_step)} a step${place}, r\u00b2 ${line.r_squared.toFixed(2)}`);
    } else {
      answer.value = own.grows ? `Yes${place && `,${place}`}: ${slopeOf(own)}` : `It shrinks: ${slopeOf(own)}`;
      answer.mood = own.grows ? 'bad' : 'plain';
    }
    answer.lines.push(...growers);
    const most = ends.greatest === ends.first || ends.greatest === ends.last ? '' : `, max ${bytes(ends.greatest)}`;
    answer.lines.push(`live${place} after ${shown(name.name)}: first ${bytes(ends.first)}, last ${bytes(ends.last)}${most}`);
  }
  addOthers(answer, model, space, own);
  return answer;
}

/** The other spaces that grow, the fastest first: however steady this one is, the answer is then yes. */
function addOthers(answer: Answer, model: Model, space: Space, own: Growth): void {
  const others = model.profile.spaces
    .filter((other) => other !== space)
    .map((other) => ({ other, found: growthOf(model, other) }))
    .filter((each): each is { other: Space; found: Growth } => each.found?.grows ?? false)
    .sort((a, b) => b.found.perStep - a.found.perStep);
  if (others.length === 0) return;
  answer.mood = 'bad';
  if (!own.grows) answer.value = `Yes,${placeOf(model, others[0].other)}: ${slopeOf(others[0].found)}`;
  for (const { other, found } of others) {
    const { cumulative_current: ends } = found.name.usage;
    const [grower] = growersOf(other);
    const by = grower && other.growing?.length === 1 ? grower.slice(slopeOf(found).length) : '';
    answer.lines.push(`${slopeOf(found)}${placeOf(model, other)}${by}: first ${bytes(ends.first)}, last ${bytes(ends.last)}`);
  }
}

function atEnd(model: Model, of: SpaceModel): Answer {
  const space = of.profile;
  const answer: Answer = { id: 'end', question: 'What is live at the end?', value: bytes(space.cumulative_current), mood: 'plain', lines: [], view: 'live', at: 'end', link: 'What it is' };
  const operations = liveAtEnd(model, space);
  const unowned = space.cumulative_current - operations.reduce((sum, o) => sum + o.live, 0);
  const owners = unowned > 0 ? [...operations, { path: outside, live: unowned }].sort((a, b) => b.live - a.live) : operations;
  const categories = space.current_by_category ?? [];
  if (hasCategories(categories)) answer.lines.push(categories.slice(0, 3).map((c) => `${categoryName(c.owner ?? 'other')} ${bytes(c.bytes)}`).join(', '));
  const named = (path: string): string => (path === outside ? outside.slice(1, -1) : path.startsWith('(') ? shown(path) : `by ${shown(path)}`);
  const short = shortenedApart(owners.slice(0, 2).map((owner) => named(owner.path)), 70);
  owners.slice(0, 2).forEach((owner, index) => answer.lines.push(`${bytes(owner.live)} ${short[index]}`));
  if (owners.length > 2) answer.lines.push(`${bytes(space.cumulative_current - owners[0].live - owners[1].live)} by ${number(owners.length - 2, 'other owner')}`);
  return answer;
}

const words: Record<string, string> = {
  dropped_events: 'events dropped because a ring was full',
  reentrant_events: 'events lost in signal handlers',
  rejected_events: 'events rejected: impossible values, or out of memory',
  unbalanced_scopes: 'operations whose begin or end is missing',
  missing_events: 'events missing from the trace',
  missing_fact_rows: 'rows of the tables of facts missing',
  too_deep_scopes: 'operations nested too deeply',
  unmatched_frees: 'frees of untracked blocks',
  replaced_allocations: 'allocations at the address of a live block',
  mismatched_sizes: 'frees with a mismatched size',
  untracked_allocations: 'allocations not tracked for lack of memory',
  overlapping_blocks: 'blocks that lie within others',
};

/** Why totals and peaks are not the program's, in a few words: the first that the summary names. */
export function whyInexact(profile: Profile): string {
  const { not_captured: notCaptured, unrecorded_modules: modules } = profile.facts;
  const { dropped_events: dropped, reentrant_events: reentrant, missing_events: missing, rejected_events: rejected, missing_fact_rows: rows } = profile.anomalies;
  if (notCaptured?.length) return `${shown(String(notCaptured[0].source))} was not captured`;
  if (dropped > 0 || reentrant > 0 || missing > 0) return 'events were lost';
  if (rejected > 0) return 'events were rejected';
  if (rows > 0) return 'tables of facts are incomplete';
  if (profile.spaces.some(({ anomalies }) => anomalies.untracked_allocations?.count > 0)) return 'the profiler ran out of memory';
  if (profile.spaces.some((space) => space.stands_for_others)) return 'memory spaces share one';
  if (modules?.length) return 'libraries were not recorded';
  if (profile.provenance?.assumed) return 'the simulation had to assume values or sizes';
  return 'the profile does not say why';
}

/** Reasons to doubt the numbers. */
export function reservations(model: Model): string[] {
  const lines: string[] = [];
  for (const [key, value] of Object.entries(model.profile.anomalies)) if (value > 0) lines.push(`${count(value)} ${words[key] ?? key.replaceAll('_', ' ')}`);
  for (const space of model.profile.spaces) {
    for (const [key, tally] of Object.entries(space.anomalies)) {
      if (tally.count === 0 || !(key in words)) continue;
      lines.push(`${shown(space.name)}: ${count(tally.count)} ${words[key]}${tally.bytes > 0 ? ` (${bytes(tally.bytes)})` : ''}`);
    }
  }
  if (model.profile.spaces.some((space) => space.stands_for_others)) lines.push('memory spaces beyond the 254th share one, where blocks at equal addresses count as one');
  const { approximations, not_captured: notCaptured, unknown_reads: unknownReads, assumed_sizes: sizes, unrecorded_modules: modules } = model.profile.facts;
  if (approximations?.length) lines.push(`${number(approximations.length, 'operation')} only estimated`);
  if (unknownReads?.length) lines.push(`${number(unknownReads.length, 'value')} unknown to the simulation but read by the program`);
  if (sizes?.length) lines.push(`${number(sizes.length, 'size')} assumed, as the data is unknown to the simulation`);
  for (const { source, reason } of notCaptured ?? []) lines.push(`${shown(String(source))} not captured: ${shown(String(reason))}`);
  if (modules?.length) lines.push(`${number(modules.length, 'library', 'libraries')} not recorded`);
  if (isProcessIncomplete(model.profile)) lines.push(processLine(model.profile));
  return [...lines, ...(model.profile.provenance?.remarks ?? []).map(shown), ...model.run.notes.map(shown)];
}

function exactness(model: Model): Answer {
  const { profile } = model;
  const lines = reservations(model);
  const answer: Answer = { id: 'exact', question: 'Are the numbers exact?', value: 'Yes', mood: 'good', lines, view: 'facts', link: 'Facts' };
  if (!profile.exact) {
    answer.value = `No: ${whyInexact(profile)}`;
    answer.mood = 'bad';
  } else if (profile.provenance?.planned) {
    answer.value = 'No: planned, not measured';
    answer.mood = 'plain';
    lines.unshift('the bytes are what the compiler planned');
  } else if ((profile.provenance?.rounding ?? 1) > 1) {
    answer.value = `Rounded to about ${bytes(profile.provenance!.rounding)}`;
    answer.mood = 'plain';
  } else if (isProcessIncomplete(profile) || profile.facts.not_captured?.length) {
    answer.value = 'Only for what was recorded';
    answer.mood = 'bad';
  } else if (profile.facts.approximations?.length) {
    answer.value = 'In part: some are estimates';
    answer.mood = 'bad';
  } else if (lines.length > 0) {
    answer.value = 'Yes, with remarks';
    answer.mood = 'plain';
  }
  if (!profile.complete) lines.unshift('the capture is still open');
  const events = model.events || (profile.cost.events ?? 0);
  if (lines.length === 0) lines.push(events > 0 ? `${number(events, 'event')}, none lost` : 'no events were lost');
  if (profile.mode === 'no_dispatch') lines.push('simulated: nothing was actually allocated');
  return answer;
}
