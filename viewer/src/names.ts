import { shortened } from './format';

/** Names shortened so that rows can still be told apart, as in shortened_names.hpp. */

const leastEnd = 6;
const mostRounds = 8;

interface Range {
  begin: number;
  end: number;
}

/** Where a name differs from others: from its first component that they do not all share to the last such component. */
function differenceOf(name: string, others: string[], length: number): Range {
  const longestCommonPart = Math.floor(length / 2);
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

function shortenedAround(name: string, { begin, end }: Range, length: number): string {
  const before = begin === 0 ? '' : '\u2026';
  const room = length - before.length;
  const rest = name.slice(begin);
  if (rest.length <= room) return before + rest;
  const middle = rest.slice(0, end - begin);
  if (middle.length + 1 >= room) return `${before}${middle.slice(0, Math.max(1, room - 1))}\u2026`;
  const left = room - middle.length - 1;
  return left < leastEnd ? `${before}${middle}\u2026` : `${before}${middle}\u2026${rest.slice(rest.length - left)}`;
}

/** The names in at most that many characters. Names that would look alike show where they differ. */
export function shortenedApart(names: string[], length: number): string[] {
  const shown = names.map((name) => shortened(name, length));
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
        shown[index] = shortenedAround(names[index], differenceOf(names[index], same, length), length);
        changed ||= shown[index] !== text;
      }
    }
    if (!changed) break;
  }
  return shown;
}
