import { Chart } from '../chart';
import { categoryColour, inkOn, operationColour, type ThemeColours } from '../colours';
import type { Live, ShownBlock } from '../data/live';
import { splitPath } from '../data/path';
import { h } from '../dom';
import { bytes, categoryName, exactBytes, number, others, outside, percent, shown } from '../format';
import { speak } from '../status';
import { hideTip, showTip } from '../tip';
import { fitted } from './band';

const rowHeight = 24;

/** A node of the icicle: an operation, a category within it, or a block; or a call. */
export interface Node {
  label: string;
  kind: 'all' | 'operation' | 'call' | 'category' | 'block' | 'rest';
  bytes: number;
  blocks: number;
  category: string | null;
  /** The operation's path, for colours and the table; null outside every operation and for operations without rows of their own. */
  path: string | null;
  /** Operations without rows of their own. */
  rest: boolean;
  /** The block itself. */
  block: ShownBlock | null;
  children: Node[];
  parent: Node | null;
  /** Among calls: which it is in `Stacks`, and the names of those that it stands for, the outermost first. */
  call?: { node: number; names: string[] };
  /** What its bytes are an estimate from. */
  estimate?: { sampled: number; error: number };
}

/** The bytes of a node, marked if they are an estimate: "~1.25 MiB". */
export const markedBytes = (of: Pick<Node, 'bytes' | 'estimate'>): string => `${of.estimate ? '~' : ''}${bytes(of.bytes)}`;

/** The tree of what is live: operations as they nest, then categories, then blocks. */
export function treeOf(live: Live): Node {
  const root: Node = { label: 'everything live', kind: 'all', bytes: live.total, blocks: live.blocks, category: null, path: null, rest: false, block: null, children: [], parent: null };
  const byPath = new Map<string, Node>();
  const child = (parent: Node, label: string, kind: Node['kind'], path: string | null, rest: boolean, category: string | null): Node => {
    const node: Node = { label, kind, bytes: 0, blocks: 0, category, path, rest, block: null, children: [], parent };
    parent.children.push(node);
    return node;
  };
  const operation = (path: string | null, rest: boolean): Node => {
    const key = rest ? '\u0000rest' : (path ?? '\u0000outside');
    let node = byPath.get(key);
    if (node) return node;
    let parent = root;
    let label = rest ? others : outside;
    if (!rest && path !== null) {
      const split = splitPath(path);
      if (split.parent !== null) parent = operation(split.parent, false);
      label = split.name;
    }
    node = child(parent, label, 'operation', rest ? null : path, rest, null);
    byPath.set(key, node);
    return node;
  };
  const leaves = new Map<string, Node>();
  for (const row of live.rows ?? []) {
    const owner = operation(row.path, row.rest);
    const node = row.category === null ? owner : child(owner, categoryName(row.category), 'category', row.path, row.rest, row.category);
    leaves.set(keyOf(row.path, row.rest, row.category), node);
    for (let up: Node | null = node; up && up !== root; up = up.parent) {
      up.bytes += row.bytes;
      up.blocks += row.blocks;
    }
  }
  for (const block of live.blockRows) {
    const leaf = leaves.get(keyOf(block.path, block.rest, block.category)) ?? leaves.get(keyOf(block.path, block.rest, null));
    if (!leaf) continue;
    const label = [block.name || block.shape, block.name && block.shape].filter((s) => s).join(' ') || 'block';
    const node = child(leaf, label, 'block', block.path, block.rest, block.category);
    node.block = block;
    node.bytes = block.bytes;
    node.blocks = 1;
  }
  addRests(root);
  sortChildren(root);
  joinChains(root);
  return root;
}

/** An operation that holds nothing but one other is merged with it: stacks are deep, and most of their frames say nothing. */
function joinChains(node: Node): void {
  node.children.forEach((inner, index) => {
    let last = inner;
    let count = 1;
    while (last.kind === 'operation' && last.children.length === 1 && last.children[0].kind === 'operation' && last.children[0].bytes === last.bytes) {
      [last] = last.children;
      count += 1;
    }
    if (count > 1) {
      last.label = `${inner.label} \u203a ${count > 2 ? '\u2026 \u203a ' : ''}${last.label}`;
      last.parent = node;
      node.children[index] = last;
    }
    joinChains(last);
  });
}

/** Whether a holder of bytes belongs to a node. */
export function holds(node: Node, of: { path: string | null; rest: boolean; category: string | null }): boolean {
  if (node.kind === 'all') return true;
  const isItsOwn = node.rest === of.rest && node.path === of.path;
  const isWithin = node.kind === 'operation' && node.path !== null && !!of.path?.startsWith(`${node.path}/`);
  return (isItsOwn || isWithin) && (node.category === null || of.category === null || node.category === of.category);
}

const keyOf = (path: string | null, rest: boolean, category: string | null): string => `${rest ? '\u0000rest' : (path ?? '\u0000outside')}\u0001${category ?? ''}`;

/** The part of a leaf that no block stands for. */
function addRests(node: Node): void {
  for (const inner of node.children) addRests(inner);
  const blocks = node.children.filter((c) => c.kind === 'block');
  if (blocks.length === 0) return;
  const rest = node.bytes - node.children.reduce((sum, c) => sum + c.bytes, 0);
  const left = node.blocks - node.children.reduce((sum, c) => sum + c.blocks, 0);
  if (rest > 0) node.children.push({ label: `${number(left, 'smaller block')}`, kind: 'rest', bytes: rest, blocks: left, category: node.category, path: node.path, rest: node.rest, block: null, children: [], parent: node });
}

function sortChildren(node: Node): void {
  node.children.sort((a, b) => b.bytes - a.bytes);
  node.children.forEach(sortChildren);
}

interface Cell {
  node: Node;
  x: number;
  width: number;
  depth: number;
}

/** What was live, as an icicle: width is bytes. Clicking a node zooms in; clicking one above the current zooms out. */
export class Icicle extends Chart {
  private root: Node | null = null;
  private focus: Node | null = null;
  private cells: Cell[] = [];
  private cursor: Node | null = null;
  private found: Set<Node> | null = null;

  constructor(
    private readonly colourOf: (path: string | null) => string,
    private readonly byCategory: () => boolean,
    /** Called with the node that is zoomed to whenever that may be another. */
    private readonly focused: (node: Node | null) => void,
    label = 'What was live at the selected moment, by operation, category and block. The table beside it has the same numbers.',
    /** What the whole is called: "of all live". */
    private readonly whole = (): string => 'of all live',
  ) {
    super(label, 'icicle', rowHeight * 4);
    const { canvas } = this;
    canvas.addEventListener('click', (event) => this.clicked(event.offsetX, event.offsetY));
    canvas.addEventListener('pointermove', (event) => this.hover(event));
    canvas.addEventListener('pointerleave', hideTip);
    canvas.addEventListener('keydown', (event) => this.key(event));
    canvas.addEventListener('blur', () => {
      this.cursor = null;
      hideTip();
      this.invalidate();
    });
  }

  show(root: Node | null): void {
    const path: string[] = [];
    for (let node = this.focus; node?.parent; node = node.parent) path.unshift(`${node.kind} ${node.label}`);
    this.root = this.focus = root;
    // Another moment keeps the zoom as far as its nodes exist there.
    for (const name of path) {
      const next: Node | undefined = this.focus?.children.find((c) => `${c.kind} ${c.label}` === name);
      if (!next) break;
      this.focus = next;
    }
    this.cursor = null;
    this.layout();
    this.invalidate();
    this.focused(this.focus);
  }

  /** Sets off these nodes from the others; null: none. */
  highlight(found: Set<Node> | null): void {
    this.found = found;
    this.invalidate();
  }

  private layout(): void {
    this.cells = [];
    const { focus, width } = this;
    if (!focus) return;
    const above: Node[] = [];
    for (let node: Node | null = focus.parent; node; node = node.parent) above.unshift(node);
    above.forEach((node, depth) => this.cells.push({ node, x: 0, width, depth }));
    const place = (node: Node, x: number, size: number, depth: number): void => {
      this.cells.push({ node, x, width: size, depth });
      let at = x;
      for (const inner of node.children) {
        const part = node.bytes > 0 ? (inner.bytes / node.bytes) * size : 0;
        if (part >= 0.4) place(inner, at, part, depth + 1);
        at += part;
      }
    };
    place(focus, 0, width, above.length);
    let deepest = 0;
    for (const cell of this.cells) deepest = Math.max(deepest, cell.depth);
    this.setHeight(Math.max(3, deepest + 1) * rowHeight + 2);
  }

  protected override draw(context: CanvasRenderingContext2D, colours: ThemeColours): void {
    if (this.cells.length > 0 && this.cells[0].width !== this.width) this.layout();
    if (!this.root || this.root.bytes === 0) {
      context.fillStyle = colours.muted;
      context.fillText(this.root ? 'Nothing was live.' : 'Who held it is unknown at this moment.', 8, this.height / 2);
      return;
    }
    for (const cell of this.cells) {
      const y = 1 + cell.depth * rowHeight;
      const { node } = cell;
      const isDimmed = this.found !== null && !this.found.has(node);
      const colour = isDimmed ? colours.band : this.colourOfNode(node, colours);
      context.fillStyle = colour;
      if (node.kind === 'rest') context.globalAlpha = 0.5;
      context.fillRect(cell.x, y, Math.max(0.5, cell.width - 1), rowHeight - 1.5);
      context.globalAlpha = 1;
      if (this.found?.has(node)) {
        context.fillStyle = colours.text;
        context.fillRect(cell.x, y + rowHeight - 3.5, Math.max(0.5, cell.width - 1), 2);
      }
      if (node === this.cursor) {
        context.strokeStyle = colours.text;
        context.lineWidth = 2;
        context.strokeRect(cell.x + 1, y + 1, Math.max(2, cell.width - 3), rowHeight - 3.5);
        context.lineWidth = 1;
      }
      if (cell.width < 28) continue;
      context.fillStyle = isDimmed ? colours.muted : colour.startsWith('#') && node.kind !== 'all' && node.kind !== 'rest' ? inkOn(colour) : colours.text;
      const label = fitted(context, `${shown(node.label)}  ${markedBytes(node)}`, cell.width - 10);
      context.fillText(label, cell.x + 5, y + rowHeight / 2);
    }
  }

  private colourOfNode(node: Node, colours: ThemeColours): string {
    if (node.kind === 'all') return colours.band;
    if (node.kind === 'call') return this.colourOf(node.call!.names[node.call!.names.length - 1]);
    if (this.byCategory() && node.category !== null) return categoryColour(node.category);
    return node.kind === 'operation' || !this.byCategory() ? this.operationShade(node, colours.bandAlt) : operationColour(-1);
  }

  /** With colours by category, operations are neutral; otherwise each has its own colour. */
  private operationShade(node: Node, neutral: string): string {
    return this.byCategory() ? neutral : this.colourOf(node.path);
  }

  private cellAt(x: number, y: number): Cell | undefined {
    const depth = Math.floor((y - 1) / rowHeight);
    return this.cells.find((cell) => cell.depth === depth && x >= cell.x && x < cell.x + cell.width);
  }

  private clicked(x: number, y: number): void {
    const cell = this.cellAt(x, y);
    if (cell) this.zoomTo(cell.node);
  }

  /** Fills `trail` with the ways back from a node. */
  fillTrail(trail: HTMLElement, node: Node | null): void {
    const above: Node[] = [];
    for (let at = node?.parent ?? null; at; at = at.parent) above.unshift(at);
    trail.hidden = above.length === 0;
    const step = (to: Node, text: string, name = ''): HTMLElement => h('button', { type: 'button', class: name, title: text, click: () => this.zoomTo(to) }, text);
    trail.replaceChildren(
      h('span', { class: 'muted' }, 'Shown:'),
      ...above.flatMap((at) => [step(at, shown(at.label)), h('span', { class: 'muted', 'aria-hidden': 'true' }, '\u203a')]),
      h('span', { class: 'current' }, node ? shown(node.label) : ''),
      ...(above.length > 0 ? [step(above[0], 'Show everything', 'all')] : []),
    );
  }

  /** Zooms to a node, or out of it if it is already zoomed to. */
  zoomTo(node: Node): void {
    this.focus = node === this.focus && node.parent ? node.parent : node;
    this.layout();
    this.invalidate();
    hideTip();
    this.focused(this.focus);
  }

  private hover(event: PointerEvent): void {
    const cell = this.cellAt(event.offsetX, event.offsetY);
    if (!cell) {
      hideTip();
      return;
    }
    this.tip(cell.node, event.clientX, event.clientY);
  }

  private tip(node: Node, x: number, y: number): void {
    const whole = this.root?.bytes ?? 0;
    const { estimate } = node;
    const own = node.bytes - node.children.reduce((sum, inner) => sum + inner.bytes, 0);
    const names = node.call?.names ?? [];
    showTip(
      {
        title: shown(names.length > 1 ? names[names.length - 1] : node.label),
        note: estimate ? `An estimate, with its standard error, from ${number(estimate.sampled, 'sampled block')}.` : undefined,
        lines: [
          ['bytes', estimate ? `~${bytes(node.bytes)} \u00b1 ${bytes(estimate.error)}` : `${bytes(node.bytes)} (${exactBytes(node.bytes)})`],
          ...(node.kind === 'call' && node.children.length > 0 && own >= 0.5 ? ([['by itself', `${estimate ? '~' : ''}${bytes(own)}`]] as [string, string][]) : []),
          [this.whole(), percent(node.bytes, whole)],
          ...(Number.isNaN(node.blocks) ? [] : ([[estimate ? 'blocks known' : 'blocks', String(node.blocks)]] as [string, string][])),
          ...names.slice(0, -1).slice(-6).reverse().map((name): [string, string] => ['called by', shown(name)]),
          ...(node.path !== null && node.kind !== 'all' ? ([['operation', shown(node.path)]] as [string, string][]) : []),
          ...(node.category !== null ? ([['category', categoryName(node.category)]] as [string, string][]) : []),
        ],
      },
      x,
      y,
    );
  }

  /** Arrows move to neighbours, Enter zooms in, Escape zooms out. */
  private key(event: KeyboardEvent): void {
    const from = this.cursor ?? this.focus;
    if (!from) return;
    let to: Node | null | undefined;
    const siblings = from.parent?.children ?? [];
    if (event.key === 'ArrowDown') to = from.children[0];
    else if (event.key === 'ArrowUp') to = from.parent;
    else if (event.key === 'ArrowRight') to = siblings[siblings.indexOf(from) + 1];
    else if (event.key === 'ArrowLeft') to = siblings[siblings.indexOf(from) - 1];
    else if (event.key === 'Enter' || event.key === ' ') {
      event.preventDefault();
      event.stopPropagation();
      this.zoomTo(from);
      return;
    } else if (event.key === 'Escape' && this.focus?.parent) {
      event.stopPropagation();
      this.zoomTo(this.focus);
      return;
    } else return;
    event.preventDefault();
    event.stopPropagation();
    if (!to) return;
    this.cursor = to;
    this.invalidate();
    const cell = this.cells.find((c) => c.node === to);
    const box = this.canvas.getBoundingClientRect();
    speak(`${shown(to.label)}, ${markedBytes(to)}`);
    this.tip(to, box.left + (cell ? cell.x + Math.min(cell.width / 2, 200) : 0), box.top + (cell ? cell.depth * rowHeight : 0));
  }
}
