import { bytes } from '../format';
import type { Profile } from './contract';

/** A row of the facts `process_memory` (docs/profile.md); -1 is unknown. */
interface Reading {
  moment: string;
  time_ns: number;
  resident_bytes: number;
  anonymous_bytes: number;
  heap_bytes: number;
  free_heap_bytes: number;
  heap_before_bytes: number;
  recorded_bytes: number;
  unrecorded_heap_bytes: number;
  profiler_bytes: number;
}

/** What was resident, divided among its causes, as profile/process_account.hpp does. */
interface Account {
  reading: Reading;
  recorded: string;
  unrecordedHeap: string;
  /** Mappings and stacks; the whole heap that was not recorded if `malloc` said nothing of it. */
  otherAnonymous: number;
  /** `malloc` said nothing, and the process grew by more than twice what was recorded. */
  isIncomplete: boolean;
  /** The reading is from the capture's begin, and no later one says what was resident. */
  isOnlyFirst: boolean;
}

const mebibyte = 2 ** 20;
const isNotable = (part: number, resident: number): boolean => part >= mebibyte && part > resident / 20;
const isHeapKnown = (of: Reading): boolean => of.unrecorded_heap_bytes >= 0;
/** More than 5 % of the process, or of its heap where it is unknown what was resident. */
const isHeapNotable = (of: Reading): boolean => isNotable(of.unrecorded_heap_bytes, of.resident_bytes < 0 ? of.heap_bytes : of.resident_bytes);

/** The reading with the most resident bytes; where heap that no source recorded is notable only at another moment, then. */
function mostTelling(rows: Reading[]): Reading | undefined {
  const candidates = ['most_resident', 'most_unrecorded'].map((moment) => rows.find((row) => row.moment === moment));
  return candidates.find((row) => row !== undefined && isHeapNotable(row)) ?? candidates.find((row) => row !== undefined && row.resident_bytes >= 0);
}

/** Whether `malloc` said nothing in the end either, though the process grew by more than twice what was recorded. */
function hasUnexplainedGrowth(of: Reading, profiler: number, otherAnonymous: number, rows: Reading[]): boolean {
  if (isHeapKnown(of) || rows.some((row) => row.moment === 'last' && isHeapKnown(row))) return false;
  const before = Math.max(0, rows.find((row) => row.moment === 'first')?.anonymous_bytes ?? 0);
  const recorded = Math.max(0, ...rows.map((row) => row.recorded_bytes));
  const growth = of.anonymous_bytes - before - profiler;
  return isNotable(otherAnonymous, of.resident_bytes) && isNotable(growth - recorded, of.resident_bytes) && growth / 2 > recorded;
}

/** What the process consisted of when that says most. Nothing where the capture did not look, or the blocks are not in the process. */
function account(profile: Profile): Account | null {
  if (profile.mode === 'no_dispatch' || (profile.spaces.length > 0 && profile.spaces.every(({ name }) => /^.+:\d+$/s.test(name)))) return null;
  const rows = (profile.facts.process_memory ?? []) as unknown as Reading[];
  const reading = mostTelling(rows);
  if (reading === undefined) return null;
  const resident = Math.max(0, reading.resident_bytes);
  const isAnonymousKnown = reading.anonymous_bytes >= 0;
  const anonymous = isAnonymousKnown ? Math.min(resident, reading.anonymous_bytes) : resident;
  let left = anonymous;
  const take = (part: number): number => {
    const taken = Math.min(Math.max(0, part), left);
    left -= taken;
    return taken;
  };
  const recorded = take(reading.recorded_bytes);
  const heap = take(reading.unrecorded_heap_bytes);
  const profiler = take(reading.profiler_bytes);
  const wanted = [reading.recorded_bytes, reading.unrecorded_heap_bytes, reading.heap_before_bytes].map((part) => Math.max(0, part));
  const missing = wanted.reduce((sum, part) => sum + part, 0) - recorded - heap - take(reading.heap_before_bytes);
  take(reading.free_heap_bytes);
  const part = (taken: number, known: number): string => (!isNotable(missing, resident) || known <= 0 ? bytes(taken) : `up to ${bytes(Math.min(known, anonymous))}`);
  const otherAnonymous = isAnonymousKnown ? left : 0;
  return {
    reading,
    recorded: part(recorded, reading.recorded_bytes),
    unrecordedHeap: part(heap, reading.unrecorded_heap_bytes),
    otherAnonymous,
    isIncomplete: isHeapNotable(reading) || hasUnexplainedGrowth(reading, profiler, otherAnonymous, rows),
    isOnlyFirst: isOnlyFirst(reading, rows),
  };
}

/** Whether what was resident was read when the capture began and never again. */
function isOnlyFirst(of: Reading, rows: Reading[]): boolean {
  if (rows.some((row) => row.time_ns > of.time_ns && row.resident_bytes >= 0)) return false;
  return rows.some((row) => row.moment === 'first' && row.time_ns === of.time_ns);
}

/** What the process held beside what was recorded, if the capture looked. */
export function processLine(profile: Profile): string {
  const found = account(profile);
  if (found === null) return '';
  const { reading } = found;
  if (reading.resident_bytes < 0) {
    return `process resident unknown: ${bytes(reading.recorded_bytes)} recorded, ${bytes(reading.unrecorded_heap_bytes)} heap not recorded (malloc)`;
  }
  if (found.isOnlyFirst) return `process ${bytes(reading.resident_bytes)} resident when the capture began, not read later`;
  const start = `process ${bytes(reading.resident_bytes)} resident: ${found.recorded} recorded`;
  if (isHeapKnown(reading)) return `${start}, ${found.unrecordedHeap} heap not recorded (malloc)`;
  return isNotable(found.otherAnonymous, reading.resident_bytes) ? `${start}, ${bytes(found.otherAnonymous)} not recorded (another malloc, or mmap)` : start;
}

/** Whether peaks are too small: a good part of the process is memory that no source recorded. */
export function isProcessIncomplete(profile: Profile): boolean {
  return account(profile)?.isIncomplete ?? false;
}
