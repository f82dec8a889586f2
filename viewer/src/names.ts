import { shortened } from './format';

/** Names shortened so that rows can still be told apart and the last component of a path stays, as in shortened_names.hpp. */

const leastEnd = 6;
const mostRounds = 16;

/** The last component of a path: the innermost operation, or the frame that asked for memory. */
function lastComponent(name: string): string {
  let slash = name.lastIndexOf('/');
  while (slash > 0 && name[slash - 1] === '\\') slash = name.lastIndexOf('/', slash - 1);
  return name.slice(slash + 1);
}

const end = (text: string, length: number): string => (length > 0 ? text.slice(-length) : '');

const libraryFrame = /^(std::|__gnu_cxx::|operator new|at::|c10::|torch::|_?Py[^_ :(]*_[^ :(]*$)/;

/** A path without the frames of libraries at its end; empty if it has no others. */
function withoutLibraryFrames(name: string): string {
  let own = name;
  for (let last = lastComponent(own); libraryFrame.test(last); last = lastComponent(own)) own = own.slice(0, Math.max(0, own.length - last.length - 1));
  return own;
}

/** A name without its middle, but of a path the last component stays, or else its end. Of a stack, it is the innermost frame of the program that stays. */
export function shortenedName(name: string, length: number): string {
  if (name.length <= length) return name;
  const own = withoutLibraryFrames(name);
  if (own && own !== name && length > 1) {
    const text = `${shortenedName(own, length - 1)}\u2026`;
    const room = length - text.length;
    return room < leastEnd ? text : text + end(name.slice(own.length), room);
  }
  const last = lastComponent(name);
  if (last.length === name.length || last.length * 2 < length) return shortened(name, length);
  const room = length - 1 - last.length;
  return room < leastEnd ? `\u2026${end(name, length - 1)}` : `${name.slice(0, room)}\u2026${last}`;
}

interface Range {
  begin: number;
  end: number;
}

/** Where a name differs from others: from its first component that they do not all share to the last such component. */
function differenceOf(name: string, others: string[], longestCommonPart: number): Range {
  let prefix = name.length;
  let suffix = name.length;
  for (const other of others) {
    const most = Math.min(name.length, other.length);
    let same = 0;
    while (same < most && name[same] === other[same]) same += 1;
    prefix = Math.min(prefix, same);
    same = 0;
    while (same < most && name[name.length - 1 - same] === other[other.length - 1 - same]) same += 1;
    suffix = Math.min(suffix, same);
  }
  let begin = prefix === 0 ? 0 : name.lastIndexOf('/', prefix - 1) + 1;
  if (prefix - begin > longestCommonPart) begin = prefix - longestCommonPart;
  const end = name.indexOf('/', Math.max(begin, name.length - suffix));
  return { begin, end: end < 0 ? name.length : end };
}

/** The part that distinguishes a name from others, but its last characters, as many as are kept, stay. */
function shortenedAround(name: string, difference: Range, length: number, kept: number): string {
  const { begin } = difference;
  const before = begin === 0 ? '' : '\u2026';
  const room = length - before.length;
  const rest = name.slice(begin);
  if (rest.length <= room) return before + rest;
  const middle = rest.slice(0, Math.min(difference.end - begin, Math.max(1, room - 1 - kept)));
  const left = room - middle.length - 1;
  return left < leastEnd ? `${before}${middle}\u2026` : `${before}${middle}\u2026${end(rest.slice(middle.length), left)}`;
}

/** The names in at most that many characters. Names that would look alike show where they differ. */
export function shortenedApart(names: string[], length: number): string[] {
  const shown = names.map((name) => shortenedName(name, length));
  const lasts = names.map((name) => (lastComponent(name) === name ? 0 : lastComponent(name).length));
  let kept = Math.min(Math.max(0, ...lasts), Math.floor(length / 2));
  for (let round = 0; round < mostRounds; round += 1) {
    const alike = new Map<string, number[]>();
    shown.forEach((text, index) => {
      const same = alike.get(text);
      if (same) same.push(index);
      else alike.set(text, [index]);
    });
    let changed = false;
    for (const [text, indices] of alike) {
      const same = indices.map((index) => names[index]);
      if (same.every((name) => name === same[0])) continue;
      for (const index of indices) {
        const difference = differenceOf(names[index], same, Math.floor((length - kept) / 2));
        shown[index] = shortenedAround(names[index], difference, length, kept);
        changed ||= shown[index] !== text;
      }
    }
    if (changed) continue;
    if (kept === 0) break;
    kept = kept / 2 < leastEnd ? 0 : Math.floor(kept / 2);
  }
  return shown;
}
