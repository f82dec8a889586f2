import type { GrowthLine, NamedSegments, NamedSegmentsUsage, Profile, Space, Summary } from './contract';

/** All segments of one name in one memory space, whether or not the page has them. */
export interface SegmentsOfName {
  name: string;
  /** The row of all names that came after there were too many. */
  standsForOthers: boolean;
  count: number;
  /** Number of the first and the last one, from 0. */
  firstNumber: number;
  lastNumber: number;
  durationNs: Summary;
  usage: NamedSegmentsUsage;
}

/** Rows in order of first occurrence: those of the profile or, for profiles of earlier versions, made from their segments. */
export function segmentsByName(profile: Profile, space: Space): SegmentsOfName[] {
  const names = profile.segments_by_name ?? [];
  const usages = space.segments_by_name ?? [];
  if (names.length === 0 || names.length !== usages.length) return fromSegments(profile, space);
  return names.map((name, row) => rowOf(name, usages[row]));
}

const rowOf = (name: NamedSegments, usage: NamedSegmentsUsage): SegmentsOfName => ({
  name: name.name,
  standsForOthers: name.stands_for_others,
  count: name.count,
  firstNumber: name.first_number,
  lastNumber: name.last_number,
  durationNs: name.duration_ns,
  usage,
});

function fromSegments(profile: Profile, space: Space): SegmentsOfName[] {
  const places = new Map<string, number[]>();
  profile.segments.forEach(({ name }, index) => {
    if (index < space.segments.length) places.set(name, [...(places.get(name) ?? []), index]);
  });
  const steps = stepsFromNames(profile);
  return [...places].map(([name, indices]) => {
    const of = (value: (index: number) => number): Summary => summary(indices, value);
    const own = (index: number): Space['segments'][number] => space.segments[index];
    return {
      name,
      standsForOthers: false,
      count: indices.length,
      firstNumber: indices[0],
      lastNumber: indices[indices.length - 1],
      durationNs: of((index) => profile.segments[index].end_ns - profile.segments[index].begin_ns),
      usage: {
        segment: name,
        segment_peak: of((index) => own(index).segment_peak),
        live_at_peak: of((index) => own(index).cumulative_current - own(index).segment_change + own(index).segment_peak),
        allocations: of((index) => own(index).allocations),
        deallocations: of((index) => own(index).deallocations),
        segment_change: of((index) => own(index).segment_change),
        cumulative_current: of((index) => own(index).cumulative_current),
        growth: lineThrough(indices.map((index) => [steps[index], own(index).cumulative_current])),
      },
    };
  });
}

function summary(indices: number[], value: (index: number) => number): Summary {
  const values = indices.map(value);
  const greatest = values.reduce((a, b) => Math.max(a, b));
  const least = values.reduce((a, b) => Math.min(a, b));
  return {
    first: values[0],
    last: values[values.length - 1],
    least,
    greatest,
    sum: values.reduce((a, b) => a + b),
    least_segment: indices[values.indexOf(least)],
    greatest_segment: indices[values.indexOf(greatest)],
  };
}

/** A step is a round of repeating names: it ends before a name that it already contains. */
function stepsFromNames(profile: Profile): number[] {
  const names = new Set<string>();
  let step = 0;
  return profile.segments.map(({ name }) => {
    if (names.has(name)) {
      step += 1;
      names.clear();
    }
    names.add(name);
    return step;
  });
}

/** Least squares, of values relative to the first: large values that hardly change keep their precision. */
function lineThrough(points: [number, number][]): GrowthLine {
  let [x, y, xx, xy, yy] = [0, 0, 0, 0, 0];
  for (const [step, value] of points) {
    const rise = value - points[0][1];
    x += step;
    y += rise;
    xx += step * step;
    xy += step * rise;
    yy += rise * rise;
  }
  const n = points.length;
  const [across, up, both] = [n * xx - x * x, n * yy - y * y, n * xy - x * y];
  if (up <= 0) return { per_step: 0, r_squared: 1 };
  return across <= 0 ? { per_step: 0, r_squared: 0 } : { per_step: both / across, r_squared: Math.min(1, (both * both) / (across * up)) };
}

/** The name that ends a step: the last of those that occur in most steps. A trend needs at least three. The row of all names beyond the limit ends none. */
export function endOfStep(names: SegmentsOfName[]): SegmentsOfName | null {
  const own = names.filter((name) => !name.standsForOthers);
  const most = own.reduce((found, name) => Math.max(found, name.count), 0);
  let last: SegmentsOfName | null = null;
  for (const name of own) {
    if (name.count < 3 || name.count < Math.floor(most / 2)) continue;
    if (last === null || name.lastNumber > last.lastNumber) last = name;
  }
  return last;
}
