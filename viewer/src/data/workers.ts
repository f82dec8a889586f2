import { percent } from '../format';
import type { Profile, Space } from './contract';

/** Whose work it was, as report/text/worker_section.hpp says it: how much no operation asked for, and how much is only assumed to be an operation's. */
export function workerLines(profile: Profile, space: Space): string[] {
  let allocated = 0;
  let inferred = 0;
  for (const operation of profile.operations) {
    if (operation.parent >= 0) continue;
    for (const usage of operation.usage) {
      if (usage.space !== space.name) continue;
      allocated += usage.allocated;
      inferred += usage.inferred ?? 0;
    }
  }
  const lines: string[] = [];
  const without = space.allocations - allocated;
  if (allocated > 0 && without > Math.floor(space.allocations / 10)) {
    const remedy = '; if other threads allocate them: adopt_operation, or infer_operations (MEMPROF_INFER_OPERATIONS, memprof run --infer-operations)';
    lines.push(`${percent(without, space.allocations)} of the bytes allocated had no operation${inferred === 0 ? remedy : ''}`);
  }
  if (inferred > 0) lines.push(`${percent(inferred, space.allocations)} of the bytes allocated are in an operation that was inferred (infer_operations)`);
  return lines;
}
