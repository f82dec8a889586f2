import type { KeptInvocation, Profile } from './contract';
import type { Columns } from './decode';
import type { InvocationTable } from './space';

/** What a profile has of invocations: of each operation the first, the last and the largest one in each space. */
export interface KeptInvocations {
  table: InvocationTable;
  /** By the name of the space, parallel to the table; NaN where the invocation was kept for another space. */
  deltas: Map<string, Float64Array>;
}

interface Found {
  operation: number;
  depth: number;
  kept: KeptInvocation;
  deltas: Map<string, number>;
}

/** null if the profile has none, as those of earlier versions and those of logs. */
export function keptInvocations(profile: Profile): KeptInvocations | null {
  const found = new Map<string, Found>();
  const depths: number[] = [];
  profile.operations.forEach((operation, index) => {
    depths[index] = operation.parent < 0 ? 0 : depths[operation.parent] + 1;
    for (const usage of operation.usage) {
      for (const kept of [usage.first_invocation, usage.last_invocation, usage.largest_invocation]) {
        if (!kept || kept.thread < 0) continue;
        const key = `${index} ${kept.thread} ${kept.begin_ns} ${kept.end_ns}`;
        const one = found.get(key) ?? { operation: index, depth: depths[index], kept, deltas: new Map<string, number>() };
        one.deltas.set(usage.space, kept.delta);
        found.set(key, one);
      }
    }
  });
  if (found.size === 0) return null;
  const rows = [...found.values()].sort((a, b) => a.kept.begin_ns - b.kept.begin_ns || a.depth - b.depth);
  const column = (of: (row: Found) => number): Float64Array => Float64Array.from(rows, of);
  const columns: Columns = {
    thread: column((row) => row.kept.thread),
    depth: column((row) => row.depth),
    operation: column((row) => row.operation + 1),
    begin_event: new Float64Array(rows.length),
    end_event: new Float64Array(rows.length),
    begin_ns: column((row) => row.kept.begin_ns),
    end_ns: column((row) => row.kept.end_ns),
    count: new Float64Array(rows.length).fill(1),
  };
  const invocations = profile.operations.reduce((sum, operation) => sum + operation.invocations, 0);
  return {
    table: { length: rows.length, columns, invocations, left: Math.max(0, invocations - rows.length) },
    deltas: new Map(profile.spaces.map((space) => [space.name, column((row) => row.deltas.get(space.name) ?? NaN)])),
  };
}
