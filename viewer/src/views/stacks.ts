import type { Asked, StackMoment, Stacks } from '../data/stacks';
import { h, setText } from '../dom';
import { bytes, count, exactBytes, number, percent, shown, time } from '../format';
import type { OperationColours } from '../groups';
import { speak } from '../status';
import type { Store } from '../store';
import { DataTable } from '../table';
import { choice } from './choice';
import { Icicle, markedBytes, type Node } from './icicle';
import { StackHistory } from './stack_history';

type Mode = 'peak' | 'end' | 'all' | 'at';

interface CallRow {
  node: Node;
  depth: number;
  own: number;
}

interface HistoryRow {
  row: number;
  bytes: number;
}

/** Who asked for the memory: a flame graph of the calls, and what the chosen one had over time. */
export class StacksView {
  readonly element: HTMLElement;
  private mode: Mode = 'peak';
  private readonly sentence = h('p', { class: 'lead' });
  private readonly icicle: Icicle;
  private readonly history: StackHistory;
  private readonly historyText = h('p', { class: 'about' });
  private readonly crumbs = h('div', { class: 'crumbs' });
  private readonly search: HTMLInputElement;
  private readonly matches = h('span', { class: 'about matches', role: 'status' });
  private readonly calls: DataTable<CallRow>;
  private readonly moments: DataTable<HistoryRow>;
  private readonly place = h('div', {});
  private table: 'calls' | 'moments' = 'calls';
  private root: Node | null = null;
  private focus: Node | null = null;

  constructor(
    private readonly stacks: Stacks,
    private readonly store: Store,
    colours: OperationColours,
  ) {
    this.icicle = new Icicle(
      (name) => (name === null ? '' : colours.anyColour(functionOf(name))),
      () => true,
      (node) => this.focusOn(node),
      'The calls that asked for memory, the outermost on top. The table below has the same numbers.',
      () => this.ofWhole(),
    );
    this.history = new StackHistory(store, stacks);
    const mode = choice<Mode>('Of what', [['peak', 'At the peak'], ['end', 'At the end'], ['all', 'All allocated'], ['at', 'Selected moment']], () => this.mode, (value) => {
      this.mode = value;
      this.update();
    });
    this.search = h('input', { type: 'search', placeholder: 'Search calls', 'aria-label': 'Search calls', spellcheck: 'false', input: () => this.find() });
    this.calls = this.callsTable();
    this.moments = this.momentsTable();
    const table = choice('Rows', [['calls', 'Calls'], ['moments', 'Over time']], () => this.table, (value) => {
      this.table = value;
      this.showTable();
    });
    this.element = h(
      'div',
      { class: 'stacks' },
      h('div', { class: 'toolbar' }, mode.element, this.search, this.matches),
      this.sentence,
      h('div', { class: 'flame' }, h('div', { class: 'flame-calls' }, this.icicle.element, this.crumbs), h('div', { class: 'flame-history' }, this.historyText, this.history.element)),
      h('div', { class: 'toolbar' }, table.element),
      this.place,
    );
    store.on(['at'], () => {
      if (this.mode === 'at') this.update();
    });
    this.update();
    this.showTable();
  }

  private get moment(): StackMoment {
    const { stacks } = this;
    return this.mode === 'all' ? 'all' : this.mode === 'peak' ? stacks.peak : this.mode === 'end' ? stacks.end : stacks.momentAt(this.store.state.at);
  }

  private ofWhole(): string {
    return this.mode === 'all' ? 'of all allocated' : this.mode === 'peak' ? 'of the peak' : 'of all live';
  }

  private update(): void {
    const { stacks, moment } = this;
    const asked = stacks.askedAt(moment);
    const total = stacks.totalAt(moment);
    this.root = treeOfCalls(stacks, asked, total, this.mode === 'all' ? 'everything allocated' : 'everything live');
    const { moments } = stacks;
    const when = moment === 'all' ? 'were allocated' : `were live at ${time(moments.time_ns[moment])}, event ${count(moments.event[moment])}`;
    const which = this.mode === 'peak' ? ', the peak' : this.mode === 'end' ? ', the end' : '';
    const sample = stacks.isSample ? ` Blocks from ${bytes(stacks.fromBytes)} on are exact; with ~, smaller ones were estimated from a sample.` : '';
    const missing = stacks.missingBlocks > 0 ? ` ${number(stacks.missingBlocks, 'block')} should have a stack and ${stacks.missingBlocks === 1 ? 'has' : 'have'} none.` : '';
    const folded = stacks.leftOut > 0 ? ` ${number(stacks.leftOut, 'call')} with the fewest bytes ${stacks.leftOut === 1 ? 'is' : 'are'} only counted with ${stacks.leftOut === 1 ? 'its' : 'their'} callers, as (smaller).` : '';
    const sentence = `${bytes(total)} (${exactBytes(total)}) ${when}${which}.${sample}${missing}${folded}`;
    setText(this.sentence, sentence);
    if (this.element) speak(sentence);
    this.icicle.show(this.root);
    this.find();
  }

  /** Sets off the calls with the text in their names, and says what they have together. */
  private find(): void {
    const wanted = this.search.value.trim().toLowerCase();
    if (!wanted || !this.root) {
      this.icicle.highlight(null);
      setText(this.matches, '');
      return;
    }
    const found = new Set<Node>();
    const look = (node: Node): void => {
      const isFound = (node.call?.names ?? [node.label]).some((name) => shown(name).toLowerCase().includes(wanted)) && node.kind !== 'all';
      if (isFound) found.add(node);
      node.children.forEach(look);
    };
    look(this.root);
    this.icicle.highlight(found);
    const sum = this.stacks.sumAt(this.moment, Array.from(found, (node) => node.call!.node));
    const part = percent(sum.bytes, this.root.bytes);
    setText(this.matches, found.size === 0 ? 'Nothing found.' : `${number(found.size, 'cell')}: ${markedSum(sum)}, ${part} ${this.ofWhole()}`);
  }

  private focusOn(node: Node | null): void {
    this.focus = node;
    this.icicle.fillTrail(this.crumbs, node);
    this.showHistory();
    this.fillCalls();
  }

  private showHistory(): void {
    const { stacks, focus } = this;
    if (!focus) return;
    const values = focus.call ? stacks.history([focus.call.node]) : stacks.moments.total;
    const isEstimate = focus.estimate !== undefined;
    const marked = (row: number): string => (isEstimate && values[row] > 0 ? '~' : '') + bytes(values[row]);
    const most = values.reduce((best, value, row) => (value > values[best] ? row : best), 0);
    const { moments } = stacks;
    const name = focus.call ? focus.call.names[focus.call.names.length - 1] : 'Everything';
    const greatest = focus.call ? `, ${marked(most)} at most, at ${time(moments.time_ns[most])}` : '';
    const kept = ` ${number(values.length, 'moment')}: of each stretch the one with the most live in all.`;
    setText(this.historyText, `${shown(name)}: ${marked(stacks.peak)} live at the peak${greatest}, ${marked(stacks.end)} at the end.${kept}`);
    this.history.show(values, isEstimate);
    this.moments.setRows(Array.from(values, (value, row) => ({ row, bytes: value })));
  }

  private fillCalls(): void {
    const rows: CallRow[] = [];
    const add = (node: Node, depth: number): void => {
      rows.push({ node, depth, own: Math.max(0, node.bytes - node.children.reduce((sum, inner) => sum + inner.bytes, 0)) });
      for (const inner of node.children) add(inner, depth + 1);
    };
    if (this.focus) add(this.focus, 0);
    this.calls.setRows(rows);
  }

  private showTable(): void {
    this.place.replaceChildren((this.table === 'calls' ? this.calls : this.moments).element);
  }

  private callsTable(): DataTable<CallRow> {
    const total = (): number => Math.max(1, this.root?.bytes ?? 0);
    const exact = ({ node }: CallRow): string => (node.estimate ? `an estimate from ${number(node.estimate.sampled, 'sampled block')}` : exactBytes(node.bytes));
    return new DataTable<CallRow>({
      label: 'Calls that asked for memory',
      noun: 'row',
      empty: 'Nothing was allocated.',
      indent: (row) => (this.calls.isFlat ? 0 : row.depth),
      activate: { does: 'Shows only this, and its history.', run: (row) => this.icicle.zoomTo(row.node) },
      columns: [
        { title: 'Call', value: (row) => shown(row.node.label) },
        { title: 'Bytes', value: (row) => row.node.bytes, text: (row) => markedBytes(row.node), exact, part: (row) => row.node.bytes / total() },
        ...(this.stacks.isSample ? [{ title: 'Standard error', about: 'Of an estimate from a sample', value: (row: CallRow) => row.node.estimate?.error ?? 0, text: (row: CallRow) => (row.node.estimate ? `\u00b1 ${bytes(row.node.estimate.error)}` : ''), exact: () => '' }] : []),
        { title: 'Of all', value: (row) => row.node.bytes / total(), text: (row) => percent(row.node.bytes, total()), exact: () => '', minor: true },
        { title: 'By itself', about: 'Without the calls within it', value: (row) => row.own, text: (row) => (row.own < 0.5 ? '' : `${row.node.estimate ? '~' : ''}${bytes(row.own)}`), exact: (row) => (row.node.estimate ? '' : exactBytes(row.own)), minor: true },
        { title: 'Blocks', value: (row) => row.node.blocks, text: (row) => (row.node.estimate || Number.isNaN(row.node.blocks) ? '' : count(row.node.blocks)), exact: () => '', minor: true },
      ],
    });
  }

  private momentsTable(): DataTable<HistoryRow> {
    const { moments } = this.stacks;
    const mark = (row: HistoryRow): string => (this.focus?.estimate && row.bytes > 0 ? '~' : '');
    return new DataTable<HistoryRow>({
      label: 'The chosen call over time',
      noun: 'moment',
      empty: 'Nothing was allocated.',
      activate: { does: 'Selects this moment.', run: (row) => this.store.select({ event: moments.event[row.row], ns: moments.time_ns[row.row] }) },
      columns: [
        { title: 'Time', value: (row) => moments.time_ns[row.row], text: (row) => time(moments.time_ns[row.row]), exact: (row) => `event ${count(moments.event[row.row])}` },
        { title: 'Event', value: (row) => moments.event[row.row], text: (row) => count(moments.event[row.row]), exact: () => '' },
        { title: 'Bytes', value: (row) => row.bytes, text: (row) => mark(row) + bytes(row.bytes), exact: (row) => (mark(row) ? '' : exactBytes(row.bytes)), part: (row) => row.bytes / Math.max(1, moments.total[row.row]) },
        { title: 'Of all live', value: (row) => row.bytes / Math.max(1, moments.total[row.row]), text: (row) => percent(row.bytes, moments.total[row.row]), exact: () => '', minor: true },
        { title: 'All live', value: (row) => moments.total[row.row], text: (row) => bytes(moments.total[row.row]), exact: (row) => exactBytes(moments.total[row.row]) },
      ],
    });
  }
}

const markedSum = (sum: Asked): string => (sum.sampled > 0 ? `~${bytes(sum.bytes)} \u00b1 ${bytes(sum.error)}` : bytes(sum.bytes));

/** "train" of "train (model.cpp:42)": lines of a function have one colour. */
const functionOf = (name: string): string => name.replace(/ \([^()]*\)$/, '').replace(/\+0x[0-9a-f]+$/, '');

/** The cells of the flame graph. Calls that never had anything but one call within them share its cell. */
function treeOfCalls(stacks: Stacks, asked: Asked[], total: number, label: string): Node {
  const nothing = { category: null, path: null, rest: false, block: null };
  const root: Node = { ...nothing, label, kind: 'all', bytes: total, blocks: NaN, children: [], parent: null };
  const labels = { folded: '(smaller)', without: '(without a stack)', small: `(below ${bytes(stacks.fromBytes)}, too few sampled)`, operation: '', call: '' };
  const add = (parent: Node, first: number): void => {
    const names: string[] = [];
    let node = first;
    for (;;) {
      names.push(labels[stacks.kind[node]] || stacks.name[node]);
      const [inner] = stacks.childrenOf(node);
      if (stacks.kind[node] !== 'call' || !stacks.isOnlyWay(node) || stacks.kind[inner] !== 'call') break;
      node = inner;
    }
    const { bytes: size, blocks, sampled, error } = asked[node];
    if (size <= 0) return;
    const kind = stacks.kind[node];
    const made: Node = {
      ...nothing,
      label: names.length > 1 ? `${names[0]} \u203a ${names.length > 2 ? '\u2026 \u203a ' : ''}${names[names.length - 1]}` : names[0],
      kind: kind === 'operation' || kind === 'call' ? kind : 'rest',
      bytes: size,
      blocks,
      children: [],
      parent,
      call: { node, names },
      estimate: sampled > 0 ? { sampled, error } : undefined,
    };
    parent.children.push(made);
    for (const inner of stacks.childrenOf(node)) add(made, inner);
    made.children.sort((a, b) => b.bytes - a.bytes);
  };
  for (const node of stacks.outermost) add(root, node);
  root.children.sort((a, b) => b.bytes - a.bytes);
  return root;
}
