import type { StackKind } from './contract';
import type { Columns, Data } from './decode';
import type { Moment } from './live';
import { rowAt } from './steps';

/** Who asked for the memory, by the stacks of the recording: what each call had at a moment, and over time. */

/** A moment by its row, or everything that was allocated. */
export type StackMoment = number | 'all';

/** What calls asked for. Of a sample, what its small blocks are divided into is an estimate. */
export interface Asked {
  bytes: number;
  /** Blocks that are known to be theirs. */
  blocks: number;
  /** Blocks of a sample that speak for those that are not: none, if the bytes are exact. */
  sampled: number;
  /** Of the bytes. */
  error: number;
}

const kinds: StackKind[] = ['operation', 'call', 'folded', 'without', 'small'];
/** Fewer sampled blocks say too little to divide those of their operation among them: as in `memprof show`. */
const leastSample = 10;

/** What nodes have at a moment, without what is within them. */
interface Owned {
  bytes: Float64Array;
  blocks: Float64Array;
  weight: Float64Array;
  sampled: Float64Array;
  variance: Float64Array;
}

/** The sampled blocks of one operation, and all small blocks among which they were chosen. */
interface Pool {
  small: number;
  weight: number;
  sampled: number;
  variance: number;
}

export class Stacks {
  readonly length: number;
  /** By node; -1: outermost. Parents come before their children. */
  readonly parent: Int32Array;
  readonly kind: StackKind[];
  readonly name: string[];
  /** The moments at which it is known what each node had: the largest of each stretch, and the end. */
  readonly moments: Columns;
  readonly peak: number;
  readonly end: number;
  readonly fromBytes: number;
  readonly isSample: boolean;
  readonly missingBlocks: number;
  readonly leftOut: number;
  /** Of whose sample a node is: the place of its operation in `pools`, 0: outside every operation. */
  private readonly pool: Int32Array;
  private readonly pools: number;
  /** The node behind the last one within each. */
  private readonly children: number[][];
  private readonly allocated: Owned;
  private readonly parts: Columns;
  private readonly unit: number;

  /** null: the recording has no stacks in that space. */
  static of(data: Data, space: number): Stacks | null {
    const about = data.run.detail?.stacks;
    const nodes = data.table('stack_nodes', 0, space);
    const moments = data.table('stack_moments', 0, space);
    const parts = data.table('stack_parts', 0, space);
    return about && about.space === space && nodes && moments && parts && moments.total.length > 0 ? new Stacks(data, nodes, moments, parts) : null;
  }

  private constructor(data: Data, nodes: Columns, moments: Columns, parts: Columns) {
    const { strings, stacks } = data.run.detail!;
    this.length = nodes.kind.length;
    this.parent = Int32Array.from(nodes.parent, (parent) => parent - 1);
    this.kind = Array.from(nodes.kind, (kind) => kinds[kind]);
    this.name = Array.from(nodes.name, (name) => strings[name] ?? '');
    this.moments = moments;
    this.parts = parts;
    this.end = moments.total.length - 1;
    this.peak = moments.total.indexOf(moments.total.reduce((most, total) => Math.max(most, total)));
    this.fromBytes = stacks!.from_bytes;
    this.isSample = stacks!.sample_bytes > 0;
    this.missingBlocks = stacks!.missing_blocks;
    this.leftOut = stacks!.left_out;
    this.unit = stacks!.variance_unit;
    const none = new Float64Array(this.length);
    this.allocated = { bytes: nodes.bytes, blocks: nodes.blocks, weight: nodes.weight ?? none, sampled: nodes.sampled ?? none, variance: nodes.variance ?? none };
    this.children = Array.from({ length: this.length }, () => []);
    this.pool = new Int32Array(this.length);
    let pools = 1;
    const own = new Int32Array(this.length);
    for (let node = 0; node < this.length; node += 1) {
      const parent = this.parent[node];
      if (parent >= 0) this.children[parent].push(node);
      this.pool[node] = parent < 0 ? 0 : own[parent];
      own[node] = this.kind[node] === 'operation' ? pools++ : this.pool[node];
    }
    this.pools = pools;
  }

  childrenOf(node: number): number[] {
    return this.children[node];
  }

  get outermost(): number[] {
    return Array.from(this.parent.keys()).filter((node) => this.parent[node] < 0);
  }

  /** Whether all that a node ever had was that of the one within it. */
  isOnlyWay(node: number): boolean {
    return this.children[node].length === 1 && this.allocated.blocks[node] === 0 && this.allocated.sampled[node] === 0;
  }

  /** The row of the moment that stands for one of the run. */
  momentAt(at: Moment): number {
    return rowAt(this.moments.begin_event, at.event);
  }

  totalAt(moment: StackMoment): number {
    return moment === 'all' ? this.allocated.bytes.reduce((sum, bytes) => sum + bytes, 0) : this.moments.total[moment];
  }

  /** Marks nodes and all that is within them. */
  private within(nodes: number[]): Uint8Array {
    const marked = new Uint8Array(this.length);
    for (const node of nodes) marked[node] = 1;
    for (let node = 0; node < this.length; node += 1) if (this.parent[node] >= 0 && marked[this.parent[node]] === 1) marked[node] = 1;
    return marked;
  }

  private ownedAt(moment: StackMoment): Owned {
    if (moment === 'all') return this.allocated;
    const owned = this.nothing();
    const { bucket } = this.parts;
    for (let row = 0; row < bucket.length && bucket[row] <= moment; row += 1) this.apply(owned, row);
    return owned;
  }

  private nothing(): Owned {
    const zeros = (): Float64Array => new Float64Array(this.length);
    return { bytes: zeros(), blocks: zeros(), weight: zeros(), sampled: zeros(), variance: zeros() };
  }

  private apply(owned: Owned, row: number): void {
    const { node, column, bytes, blocks } = this.parts;
    const of = node[row];
    const which = column ? column[row] : 0;
    if (which === 0) [owned.bytes[of], owned.blocks[of]] = [bytes[row], blocks[row]];
    else if (which === 1) [owned.weight[of], owned.sampled[of]] = [bytes[row], blocks[row]];
    else owned.variance[of] = bytes[row];
  }

  private poolsOf(owned: Owned): Pool[] {
    const pools: Pool[] = Array.from({ length: this.pools }, () => ({ small: 0, weight: 0, sampled: 0, variance: 0 }));
    for (let node = 0; node < this.length; node += 1) {
      const pool = pools[this.pool[node]];
      if (this.kind[node] === 'small') pool.small += owned.bytes[node];
      pool.weight += owned.weight[node];
      pool.sampled += owned.sampled[node];
      pool.variance += owned.variance[node];
    }
    return pools;
  }

  /**
   * What each node had with all that is within it. The small blocks of an operation are divided in proportion to what the sampled
   * ones stand for (a ratio estimate: docs/stacks.md), so that the parts still add up to the operation, which is exact.
   */
  askedAt(moment: StackMoment): Asked[] {
    const owned = this.ownedAt(moment);
    const pools = this.poolsOf(owned);
    const sums = this.nothing();
    for (let node = this.length - 1; node >= 0; node -= 1) {
      for (const key of Object.keys(sums) as (keyof Owned)[]) {
        sums[key][node] += owned[key][node];
        // What was sampled within an operation is among the small blocks that it has.
        const parent = this.parent[node];
        if (parent >= 0 && (key === 'bytes' || key === 'blocks' || this.kind[node] !== 'operation')) sums[key][parent] += sums[key][node];
      }
    }
    return Array.from({ length: this.length }, (_, node) => {
      const pool = pools[this.pool[node]];
      const of = { bytes: sums.bytes[node], blocks: sums.blocks[node], weight: sums.weight[node], sampled: sums.sampled[node], variance: sums.variance[node] };
      if (this.kind[node] === 'operation') return { bytes: of.bytes, blocks: of.blocks, sampled: 0, error: 0 };
      if (this.kind[node] === 'small') return { bytes: isDivided(pool) ? 0 : of.bytes, blocks: isDivided(pool) ? 0 : of.blocks, sampled: 0, error: 0 };
      return this.estimate(of, pool);
    });
  }

  private estimate(of: { bytes: number; blocks: number; weight: number; sampled: number; variance: number }, pool: Pool): Asked {
    if (of.weight === 0 || !isDivided(pool)) return { bytes: of.bytes, blocks: of.blocks, sampled: 0, error: 0 };
    const share = of.weight / pool.weight;
    const variance = (1 - share) ** 2 * of.variance + share ** 2 * (pool.variance - of.variance);
    return { bytes: of.bytes + share * pool.small, blocks: of.blocks, sampled: of.sampled, error: (pool.small / pool.weight) * Math.sqrt(Math.max(0, variance) * this.unit) };
  }

  /** What several nodes had together; what is within two of them counts once. */
  sumAt(moment: StackMoment, nodes: number[]): Asked {
    const owned = this.ownedAt(moment);
    const pools = this.poolsOf(owned);
    const marked = this.within(nodes);
    const parts = pools.map(() => ({ bytes: 0, blocks: 0, weight: 0, sampled: 0, variance: 0 }));
    const whole = this.wholePools(marked);
    for (let node = 0; node < this.length; node += 1) {
      if (marked[node] === 0) continue;
      const part = parts[this.pool[node]];
      const isKnown = whole[this.pool[node]] === 1 || this.kind[node] !== 'small' || !isDivided(pools[this.pool[node]]);
      if (isKnown) {
        part.bytes += owned.bytes[node];
        part.blocks += owned.blocks[node];
      }
      if (whole[this.pool[node]] === 1) continue;
      part.weight += owned.weight[node];
      part.sampled += owned.sampled[node];
      part.variance += owned.variance[node];
    }
    const sum = { bytes: 0, blocks: 0, sampled: 0, error: 0 };
    parts.forEach((part, pool) => {
      const asked = this.estimate(part, pools[pool]);
      sum.bytes += asked.bytes;
      sum.blocks += asked.blocks;
      sum.sampled += asked.sampled;
      sum.error = Math.hypot(sum.error, asked.error);
    });
    return sum;
  }

  /** Of which operations everything is marked: what they have is exact. */
  private wholePools(marked: Uint8Array): Uint8Array {
    const whole = new Uint8Array(this.pools).fill(1);
    for (let node = 0; node < this.length; node += 1) if (marked[node] === 0 && this.kind[node] !== 'operation') whole[this.pool[node]] = 0;
    return whole;
  }

  /** What nodes had at each moment, together. */
  history(nodes: number[]): Float64Array {
    const marked = this.within(nodes);
    const whole = this.wholePools(marked);
    const owned = this.nothing();
    const pools: Pool[] = this.poolsOf(owned);
    const known = new Float64Array(this.pools);
    const small = new Float64Array(this.pools);
    const weight = new Float64Array(this.pools);
    const { bucket, node, column } = this.parts;
    const result = new Float64Array(this.moments.total.length);
    let row = 0;
    for (let moment = 0; moment < result.length; moment += 1) {
      for (; row < bucket.length && bucket[row] === moment; row += 1) {
        const of = node[row];
        const pool = this.pool[of];
        const which = column ? column[row] : 0;
        const key = which === 0 ? 'bytes' : 'weight';
        const before = owned[key][of];
        const sampled = owned.sampled[of];
        this.apply(owned, row);
        if (which === 2) continue;
        const gain = owned[key][of] - before;
        if (which === 0 && this.kind[of] === 'small') {
          pools[pool].small += gain;
          if (marked[of] === 1) small[pool] += gain;
        } else if (which === 0 && marked[of] === 1) known[pool] += gain;
        if (which !== 1) continue;
        pools[pool].weight += gain;
        pools[pool].sampled += owned.sampled[of] - sampled;
        if (marked[of] === 1) weight[pool] += gain;
      }
      for (let pool = 0; pool < pools.length; pool += 1) {
        result[moment] += known[pool];
        if (whole[pool] === 1 || !isDivided(pools[pool])) result[moment] += small[pool];
        else result[moment] += (weight[pool] / pools[pool].weight) * pools[pool].small;
      }
    }
    return result;
  }
}

const isDivided = (pool: Pool): boolean => pool.sampled >= leastSample && pool.weight > 0;
