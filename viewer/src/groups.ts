import { categories, categoryColour, distinctOperations, operationColour } from './colours';
import type { Model } from './data/model';
import type { SpaceModel, Timeline } from './data/space';
import { categoryName, others, outside, shown } from './format';
import { shortenedApart } from './names';
import type { Grouping } from './store';

/** One band of the stack. */
export interface Group {
  key: string;
  label: string;
  colour: () => string;
}

export const longestLabel = 32;

/** Bytes of every group at every row of a timeline. */
export interface Stack {
  groups: Group[];
  /** Their labels for the screen: short, but distinct. */
  labels: string[];
  values: Float64Array[];
}

const restKey = '\u0000rest';
const outsideKey = '\u0000outside';

/** Paths that differ only in numbers are merged: the layers of a model, the steps of a loop. */
export const foldedPath = (path: string): string => path.replace(/\d+/g, '*');

/** The colour of each operation, in all views: the more bytes, the earlier the colour. */
export class OperationColours {
  private readonly ranks = new Map<string, number>();
  /** How many paths a folded one stands for, and the path itself if it is just one. */
  private readonly single = new Map<string, string | null>();

  constructor(model: Model) {
    const largest = new Map<string, number>();
    const see = (path: string | null, rest: boolean, bytes: number): void => {
      if (path === null || rest) return;
      const key = foldedPath(path);
      largest.set(key, (largest.get(key) ?? 0) + bytes);
      const known = this.single.get(key);
      if (known === undefined) this.single.set(key, path);
      else if (known !== path) this.single.set(key, null);
    };
    for (const space of model.spaces) {
      const { composition } = space.timeline;
      if (composition) {
        composition.owners.forEach((owner, place) => {
          const { path, rest } = model.ownerPath(owner);
          let most = 0;
          for (const value of composition.bytes[place]) if (value > most) most = value;
          see(path, rest, most);
        });
      } else for (const held of space.profile.live_at_peak.by_operation) see(held.owner, false, held.bytes);
    }
    [...largest].sort((a, b) => b[1] - a[1]).forEach(([key], rank) => this.ranks.set(key, rank));
  }

  rank(path: string | null): number {
    return path === null ? -1 : (this.ranks.get(foldedPath(path)) ?? -1);
  }

  colour(path: string | null): string {
    return operationColour(this.rank(path));
  }

  /** For operations that own nothing themselves, so that neighbours differ where many are side by side. */
  anyColour(path: string): string {
    const rank = this.rank(path);
    if (rank >= 0 && rank < distinctOperations) return operationColour(rank);
    let hash = 0;
    for (let i = 0; i < path.length; i += 1) hash = (hash * 31 + path.charCodeAt(i)) | 0;
    return operationColour(Math.abs(hash) % distinctOperations);
  }

  label(folded: string): string {
    return this.single.get(folded) ?? folded;
  }
}

const stacks = new WeakMap<Timeline, Map<Grouping, Stack>>();

/** The bands of a timeline, by category or operation, the largest at the bottom and the rest on top. */
export function stackOf(model: Model, space: SpaceModel, timeline: Timeline, by: Grouping, colours: OperationColours): Stack {
  let known = stacks.get(timeline);
  if (!known) stacks.set(timeline, (known = new Map()));
  let stack = known.get(by);
  if (!stack) known.set(by, (stack = makeStack(model, space, timeline, by, colours)));
  return stack;
}

function makeStack(model: Model, space: SpaceModel, timeline: Timeline, by: Grouping, colours: OperationColours): Stack {
  const { composition } = timeline;
  if (!composition || by === 'space' || !model.detail) {
    return { groups: [{ key: 'live', label: 'live', colour: () => categoryColour('activation') }], labels: ['live'], values: [timeline.total] };
  }
  const groups = by === 'category' ? categoryGroups(model, space) : operationGroups(model, space, colours);
  const places = new Map(groups.map((g, i) => [g.key, i]));
  const values = groups.map(() => new Float64Array(timeline.length));
  composition.owners.forEach((owner, place) => {
    const into = values[places.get(groupKey(model, owner, by)) ?? groups.length - 1];
    const from = composition.bytes[place];
    for (let row = 0; row < into.length; row += 1) into[row] += from[row];
  });
  return { groups, labels: shortenedApart(groups.map((group) => shown(group.label)), longestLabel), values };
}

function groupKey(model: Model, owner: number, by: Grouping): string {
  if (by === 'category') return model.detail!.owners[owner].category;
  const { path, rest } = model.ownerPath(owner);
  return rest ? restKey : path === null ? outsideKey : foldedPath(path);
}

/** The groups are those of the whole run, so that zooming in does not change colours. */
function categoryGroups(model: Model, space: SpaceModel): Group[] {
  const present = new Set<string>((space.timeline.composition?.owners ?? []).map((owner) => model.detail!.owners[owner].category));
  return [...categories, ...[...present].filter((c) => !(categories as readonly string[]).includes(c))]
    .filter((c) => present.has(c))
    .map((c) => ({ key: c, label: categoryName(c), colour: () => categoryColour(c) }));
}

function operationGroups(model: Model, space: SpaceModel, colours: OperationColours): Group[] {
  const present = new Set((space.timeline.composition?.owners ?? []).map((owner) => groupKey(model, owner, 'operation')));
  const ranked = [...present].filter((key) => !key.startsWith('\u0000')).sort((a, b) => colours.rank(a) - colours.rank(b));
  const groups: Group[] = ranked
    .slice(0, distinctOperations)
    .map((key) => ({ key, label: colours.label(key), colour: () => colours.colour(key) }));
  const left = ranked.length - groups.length;
  if (present.has(outsideKey)) groups.push({ key: outsideKey, label: outside, colour: () => categoryColour('other') });
  if (left > 0 || present.has(restKey)) groups.push({ key: restKey, label: others, colour: () => operationColour(-1) });
  return groups;
}
