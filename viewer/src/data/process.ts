import { bytes } from '../format';
import type { Profile } from './contract';

/** A row of the facts `process_memory` (docs/profile.md); -1 is unknown. */
interface Reading {
  moment: string;
  resident_bytes: number;
  recorded_bytes: number;
  unrecorded_heap_bytes: number;
}

const mebibyte = 2 ** 20;
const isNotable = (of: Reading): boolean => of.unrecorded_heap_bytes >= mebibyte && of.unrecorded_heap_bytes > of.resident_bytes / 20;

/** What the process held when it held most; where heap that no source recorded is more than 5 % of it only at another moment, then. Nothing where the blocks are not in the process. */
function reading(profile: Profile): Reading | null {
  if (profile.mode === 'no_dispatch' || (profile.spaces.length > 0 && profile.spaces.every(({ name }) => /^.+:\d+$/s.test(name)))) return null;
  const rows = (profile.facts.process_memory ?? []) as unknown as Reading[];
  const [resident, unrecorded] = ['most_resident', 'most_unrecorded'].map((moment) => rows.find((row) => row.moment === moment));
  const found = [resident, unrecorded].find((row) => row !== undefined && isNotable(row)) ?? resident;
  return found && found.resident_bytes >= 0 ? found : null;
}

/** What the process held beside what was recorded, if the capture looked. */
export function processLine(profile: Profile): string {
  const found = reading(profile);
  if (found === null) return '';
  const heap = found.unrecorded_heap_bytes < 0 ? '' : `, ${bytes(found.unrecorded_heap_bytes)} heap not recorded (malloc)`;
  return `process ${bytes(found.resident_bytes)} resident: ${bytes(found.recorded_bytes)} recorded${heap}`;
}

/** Whether more than 5 % of it is heap that no source recorded: peaks are then too small. */
export function hasUnrecordedHeap(profile: Profile): boolean {
  const found = reading(profile);
  return found !== null && isNotable(found);
}
