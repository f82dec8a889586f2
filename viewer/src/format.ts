/** Numbers and names as people read them. */

const byteUnits = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
const grouped = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 });
const minus = '\u2212';

/** Three significant digits, or all of an integer part that has more: "4.88", "17.9", "1,023". */
function threeDigits(value: number): string {
  if (value >= 1000) return grouped.format(value);
  if (value >= 99.95) return value.toFixed(0);
  if (value >= 9.995) return value.toFixed(1);
  return value.toFixed(2);
}

/** Bytes in the unit that fits: "512 B", "4.88 KiB", "17.9 MiB". */
export function bytes(value: number): string {
  const sign = value < 0 ? minus : '';
  let size = Math.abs(value);
  let unit = 0;
  while (size >= 1024 || (unit > 0 && Math.round(size) >= 1024)) {
    size /= 1024;
    unit += 1;
    if (unit === byteUnits.length - 1) break;
  }
  return `${sign}${unit === 0 ? size.toFixed(0) : threeDigits(size)} ${byteUnits[unit]}`;
}

/** All digits: "18,769,712 B". */
export const exactBytes = (value: number): string => `${count(value)} B`;

export function count(value: number): string {
  return (value < 0 ? minus : '') + grouped.format(Math.abs(value));
}

export function number(value: number, one: string, many = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : many}`;
}

/** A change: with its sign. */
export const change = (value: number): string => (value > 0 ? '+' : '') + bytes(value);

/** A time since the begin, or a duration. */
export function time(ns: number): string {
  const sign = ns < 0 ? minus : '';
  const size = Math.abs(ns);
  if (size < 1000) return `${sign}${Math.round(size)} ns`;
  if (size < 999.5e3) return `${sign}${threeDigits(size / 1e3)} \u00b5s`;
  if (size < 999.5e6) return `${sign}${threeDigits(size / 1e6)} ms`;
  if (size < 120e9) return `${sign}${threeDigits(size / 1e9)} s`;
  const seconds = Math.round(size / 1e9);
  if (seconds < 7200) return `${sign}${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  return `${sign}${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
}

export const exactTime = (ns: number): string => `${count(ns)} ns`;

/** A part of a whole: "81.1 %". */
export function percent(part: number, whole: number): string {
  if (whole <= 0) return '';
  const value = (100 * part) / whole;
  return value > 0 && value < 0.05 ? '< 0.1 %' : `${value.toFixed(1)} %`;
}

/**
 * A name for the screen. What would be invisible, or would turn the text around it (bidirectional controls), is shown as a
 * symbol instead.
 */
export function shown(name: string): string {
  return name
    .replace(/[\u0000-\u001f]/g, (c) => String.fromCharCode(0x2400 + c.charCodeAt(0)))
    .replace(/[\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g, '\ufffd');
}

/** Shortened in the middle, where paths differ least. */
export function shortened(text: string, length: number): string {
  if (text.length <= length) return text;
  const tail = Math.ceil((length - 1) * 0.62);
  return `${text.slice(0, length - 1 - tail)}\u2026${text.slice(text.length - tail)}`;
}

export const outside = '(outside every operation)';
export const others = '(other operations)';

/** A category's name in words. */
export const categoryName = (category: string): string => category.replaceAll('_', ' ');

/** Address as hexadecimal digits, from JSON's number or the decimal string kept in its place. */
export const address = (value: number | string | bigint): string => `0x${BigInt(value).toString(16)}`;

/** Ticks for an axis: round values in [from, to], about `wanted` of them. */
export function ticks(from: number, to: number, wanted: number, binary: boolean): number[] {
  const span = to - from;
  if (!(span > 0) || wanted < 1) return [];
  let step: number;
  if (binary) {
    step = 2 ** Math.floor(Math.log2(span / wanted));
    if (step < 1) step = 1;
    while (span / step > wanted) step *= 2;
  } else {
    step = 10 ** Math.floor(Math.log10(span / wanted));
    for (const factor of [2, 2.5, 2]) if (span / step > wanted) step *= factor;
    step = Math.max(step, 1);
  }
  const result: number[] = [];
  for (let i = Math.ceil(from / step); i * step <= to; i += 1) result.push(i * step);
  return result;
}

/** A tick's label: as many digits as tell neighbours apart. */
export function timeTick(ns: number, step: number): string {
  const [unit, name] =
    Math.max(ns, step) >= 1e9 ? [1e9, 's'] : Math.max(ns, step) >= 1e6 ? [1e6, 'ms'] : Math.max(ns, step) >= 1e3 ? [1e3, '\u00b5s'] : [1, 'ns'];
  const digits = Math.max(0, Math.ceil(-Math.log10(step / unit) - 1e-9));
  return `${(ns / unit).toLocaleString('en-US', { minimumFractionDigits: digits, maximumFractionDigits: digits })} ${name}`;
}
