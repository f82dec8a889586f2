import { categoryColour } from '../colours';
import type { Live, LiveRow, ShownBlock } from '../data/live';
import type { Model } from '../data/model';
import type { SpaceModel } from '../data/space';
import { h, setText } from '../dom';
import { bytes, categoryName, count, exactBytes, number, others, outside, percent, shown, time } from '../format';
import { foldedPath, type OperationColours } from '../groups';
import { speak } from '../status';
import type { Store } from '../store';
import { DataTable } from '../table';
import { choice } from './choice';
import { holds, Icicle, type Node, treeOf } from './icicle';

type Row = { kind: 'owner'; of: LiveRow; times: number } | { kind: 'block'; of: ShownBlock } | { kind: 'rest'; bytes: number; blocks: number };

export const holderName = (of: { path: string | null; rest: boolean }): string => (of.rest ? others : of.path === null ? outside : shown(of.path));

/** What was live at the selected moment: as a sentence, an icicle and a table. */
export class LiveView {
  readonly element: HTMLElement;
  private readonly sentence = h('p', { class: 'lead' });
  private readonly icicle: Icicle;
  private readonly operations: DataTable<Row>;
  private readonly blocks: DataTable<Row>;
  private readonly place = h('div', {});
  private readonly crumbs = h('div', { class: 'crumbs' });
  private live: Live | null = null;
  /** What the icicle is zoomed to, which is all that the tables show. */
  private focus: Node | null = null;
  private mode: 'folded' | 'operations' | 'blocks' = 'folded';

  constructor(
    private readonly model: Model,
    private readonly store: Store,
    private readonly colours: OperationColours,
  ) {
    this.icicle = new Icicle(
      (path) => (path === null ? categoryColour('other') : colours.colour(path)),
      () => store.state.by !== 'operation',
      (node) => this.focusOn(node),
    );
    this.operations = this.operationsTable();
    this.blocks = this.blocksTable();
    const mode = choice('Rows', [['folded', 'Folded by name'], ['operations', 'Every operation'], ['blocks', 'Blocks']], () => this.mode, (value) => {
      this.mode = value;
      this.showTable();
    });
    this.element = h('div', {}, this.sentence, this.icicle.element, this.crumbs, h('div', { class: 'toolbar' }, mode.element), this.place);
    store.on(['at', 'space'], () => this.update());
    store.on(['by'], () => {
      this.icicle.invalidate();
      this.operations.refresh();
    });
    store.on(['find'], () => {
      if (store.state.view === 'live') this.find(store.state.find);
    });
    this.update();
    this.showTable();
    if (store.state.view === 'live' && store.state.find) this.find(store.state.find);
  }

  find(text: string): void {
    this.operations.find(text);
    this.blocks.find(text);
  }

  /** Shows only what belongs to the node, and the ways back. */
  private focusOn(node: Node | null): void {
    this.focus = node;
    this.fillOperations();
    this.fillBlocks();
    this.icicle.fillTrail(this.crumbs, node);
  }

  private total(): number {
    return this.live?.total ?? 0;
  }

  private operationsTable(): DataTable<Row> {
    const of = (row: Row): { bytes: number; blocks: number } => (row.kind === 'rest' ? row : row.kind === 'block' ? { bytes: row.of.bytes, blocks: 1 } : row.of);
    return new DataTable<Row>({
      label: 'What was live at the selected moment, by operation and category',
      noun: 'row',
      empty: 'Who held it is unknown at this moment.',
      sort: { column: 2, descending: true },
      columns: [
        { title: 'Operation', value: (row) => (row.kind === 'rest' ? 'others' : holderName(row.of) + (row.kind === 'owner' && row.times > 1 ? ` \u00d7${row.times}` : '')), colour: (row) => (this.store.state.by !== 'operation' ? '' : row.kind === 'rest' || row.of.path === null ? categoryColour('other') : this.colours.colour(row.of.path)) },
        { title: 'Category', value: (row) => (row.kind === 'owner' && row.of.category !== null ? categoryName(row.of.category) : ''), colour: (row) => (this.store.state.by !== 'operation' && row.kind === 'owner' && row.of.category !== null ? categoryColour(row.of.category) : '') },
        { title: 'Live', value: (row) => of(row).bytes, text: (row) => bytes(of(row).bytes), exact: (row) => exactBytes(of(row).bytes), part: (row) => of(row).bytes / Math.max(1, this.total()) },
        { title: 'Of all', value: (row) => of(row).bytes / Math.max(1, this.total()), text: (row) => percent(of(row).bytes, this.total()), exact: () => '', minor: true },
        { title: 'Blocks', value: (row) => of(row).blocks, text: (row) => (Number.isNaN(of(row).blocks) ? '' : count(of(row).blocks)), exact: () => '' },
      ],
    });
  }

  private blocksTable(): DataTable<Row> {
    const block = (row: Row): ShownBlock | null => (row.kind === 'block' ? row.of : null);
    const size = (row: Row): number => (row.kind === 'block' ? row.of.bytes : row.kind === 'rest' ? row.bytes : 0);
    const event = this.model.hasEvents;
    return new DataTable<Row>({
      label: 'Blocks live at the selected moment',
      noun: 'row',
      empty: 'Which blocks were live is unknown at this moment.',
      sort: { column: 0, descending: true },
      columns: [
        { title: 'Bytes', value: size, text: (row) => bytes(size(row)), exact: (row) => exactBytes(size(row)) },
        { title: 'Name', value: (row) => (row.kind === 'rest' ? number(row.blocks, 'smaller block') : shown(block(row)?.name ?? '')) },
        { title: 'Operation', value: (row) => (block(row) ? holderName(block(row)!) : '') },
        { title: 'Category', value: (row) => (block(row) ? categoryName(block(row)!.category) : ''), colour: (row) => categoryColour(block(row)?.category ?? 'other') },
        { title: 'Shape', value: (row) => shown(block(row)?.shape ?? ''), minor: true },
        { title: 'Type', value: (row) => shown(block(row)?.dtype ?? ''), minor: true },
        ...(event
          ? [{ title: 'Since', value: (row: Row) => block(row)?.beginNs ?? 0, text: (row: Row) => (block(row) ? time(block(row)!.beginNs) : ''), exact: (row: Row) => (block(row) ? `event ${count(block(row)!.beginEvent)}` : ''), minor: true }]
          : []),
        { title: 'Address', value: (row) => block(row)?.address ?? '', minor: true },
      ],
    });
  }

  private showTable(): void {
    if (this.mode !== 'blocks') this.fillOperations();
    this.place.replaceChildren((this.mode === 'blocks' ? this.blocks : this.operations).element);
  }

  /** Whether the moment stands for several: if each event of the space has a row, events in between changed nothing. */
  private isSampled(space: SpaceModel, live: Live): boolean {
    const { profile, timeline } = space;
    return live.bucketEvents > 1 && profile.allocation_count + profile.deallocation_count >= timeline.length;
  }

  /** Layers that differ only in their numbers are one row, unless every operation was requested. */
  private fillOperations(): void {
    const { focus } = this;
    const rows = (this.live?.rows ?? []).filter((row) => !focus || holds(focus, row));
    if (this.mode === 'operations') {
      this.operations.setRows(rows.map((of) => ({ kind: 'owner', of, times: 1 })));
      return;
    }
    const folded = new Map<string, { kind: 'owner'; of: LiveRow; times: number }>();
    for (const row of rows) {
      const path = row.path === null ? null : foldedPath(row.path);
      const key = `${row.rest}\u0001${path ?? '\u0000'}\u0001${row.category ?? ''}`;
      const one = folded.get(key);
      if (!one) {
        folded.set(key, { kind: 'owner', of: { ...row }, times: 1 });
        continue;
      }
      one.of.path = path;
      one.of.bytes += row.bytes;
      one.of.blocks += row.blocks;
      one.times += 1;
    }
    this.operations.setRows([...folded.values()]);
  }

  private update(): void {
    const { model, store } = this;
    const { space } = store;
    if (!space) return;
    const live = (this.live = model.liveAt(space, store.state.at));
    if (!live) {
      setText(this.sentence, 'Nothing was allocated.');
      this.icicle.show(null);
      return;
    }
    const segment = model.segmentAt(live.moment);
    const step = model.stepAt(live.moment);
    const parts = [
      `${bytes(live.total)} (${exactBytes(live.total)})`,
      live.blocks > 0 ? ` in ${number(live.blocks, 'block')}` : '',
      ` at ${time(live.moment.ns)}`,
      model.hasEvents ? `, event ${count(live.moment.event)}` : '',
      segment ? `, in ${shown(segment.name)}` : '',
      step ? (step.count > 1 ? `, steps ${count(step.number)} to ${count(step.number + step.count - 1)}` : `, step ${count(step.number)}`) : '',
      '.',
      live.total === space.profile.cumulative_peak && live.total > 0 ? ' This is the peak.' : '',
      this.isSampled(space, live) ? ` The largest moment of ${number(live.bucketEvents, 'event')}.` : '',
      live.rows === null ? (model.hasEvents ? '' : ' A profile has owners only at the peak, at the peaks of segments and at the end: the dots on the curve. A trace has them at every moment.') : '',
    ];
    const sentence = parts.join('');
    setText(this.sentence, sentence);
    speak(sentence);
    this.icicle.show(live.rows ? treeOf(live) : null);
  }

  private fillBlocks(): void {
    const { live, focus } = this;
    if (!live) {
      this.blocks.setRows([]);
      return;
    }
    const whole = focus ?? live;
    const listed = live.blockRows.filter((block) => !focus || (focus.block ? focus.block === block : holds(focus, block)));
    const rows: Row[] = listed.map((of) => ({ kind: 'block', of }));
    const left = whole.blocks - listed.length;
    const bytes = 'total' in whole ? whole.total : whole.bytes;
    const hasRest = left > 0 && live.blockRows.length > 0;
    if (hasRest) rows.push({ kind: 'rest', bytes: Math.max(0, bytes - listed.reduce((sum, b) => sum + b.bytes, 0)), blocks: left });
    this.blocks.setRows(rows, hasRest ? `${number(left, 'smaller block')} as one row` : '');
  }
}
