/** Numbers and names formatted for people. */

const byteUnits = ['KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB'];
const grouped = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 });
const minus = '\u2212';

/** Like `toFixed`, but rounds halfway cases to even as printf does: memprof's text has the same digits. */
function fixed(value: number, decimals: number): string {
  const scaled = value * 10 ** decimals;
  const below = Math.floor(scaled);
  // Halfway is exact in binary only if the numerator is divisible by five; otherwise the product was rounded.
  const isHalfway = scaled - below === 0.5 && (2 * below + 1) % 5 ** decimals === 0;
  return isHalfway && below % 2 === 0 ? (below / 10 ** decimals).toFixed(decimals) : value.toFixed(decimals);
}

/** Three significant digits of a number from 0 to 999.5: "17.9", "4.88", "0.977". The bounds are where rounding adds a digit. */
function threeDigits(value: number): string {
  return fixed(value, value === 0 ? 0 : value < 0.9995 ? 3 : value < 9.995 ? 2 : value < 99.95 ? 1 : 0);
}

/** Bytes in a suitable unit: "512 B", "4.88 KiB", "17.9 MiB", "0.977 GiB". */
export function bytes(value: number): string {
  if (value < 0) {
    const text = bytes(-value);
    return text === '0 B' ? text : minus + text;
  }
  if (value < 1023.5) return `${fixed(value, 0)} B`;
  let size = value / 1024;
  let unit = 0;
  while (size >= 999.5 && unit + 1 < byteUnits.length) {
    size /= 1024;
    unit += 1;
  }
  return `${threeDigits(size)} ${byteUnits[unit]}`;
}

/** All digits: "18,769,712 B". */
export const exactBytes = (value: number): string => `${count(value)} B`;

export function count(value: number): string {
  return (value < 0 ? minus : '') + grouped.format(Math.abs(value));
}

/** A number that need not be whole, with three decimals as in memprof's text: "0.119". */
export function decimal(value: number): string {
  return Math.abs(value) < 1000 ? (value < 0 ? minus : '') + fixed(Math.abs(value), 3) : count(value);
}

export function number(value: number, one: string, many = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : many}`;
}

/** A change, with its sign. */
export const change = (value: number): string => (value > 0 ? '+' : '') + bytes(value);

/** A time since the start, or a duration: "850 ns", "17.9 ms", "4.21 s", "2 min 05 s", "3 h 12 min", "2 d 04 h". */
export function time(ns: number): string {
  if (ns < 0) return minus + time(-ns);
  if (ns < 999.5) return `${Math.round(ns)} ns`;
  if (ns < 59.95e9) {
    const units = ['\u00b5s', 'ms', 's'];
    let size = ns / 1000;
    let unit = 0;
    while (size >= 999.5 && unit + 1 < units.length) {
      size /= 1000;
      unit += 1;
    }
    return `${threeDigits(size)} ${units[unit]}`;
  }
  const parts = (total: number, base: number, large: string, small: string): string =>
    `${Math.floor(total / base)} ${large} ${String(total % base).padStart(2, '0')} ${small}`;
  const seconds = Math.round(ns / 1e9);
  if (seconds < 3600) return parts(seconds, 60, 'min', 's');
  if (seconds < 24 * 3600) return parts(Math.floor(seconds / 60), 60, 'h', 'min');
  return parts(Math.floor(seconds / 3600), 24, 'd', 'h');
}

export const exactTime = (ns: number): string => `${count(ns)} ns`;

/** A part of a whole: "81.1 %", "100 %". */
export function percent(part: number, whole: number): string {
  if (whole <= 0) return '';
  const value = (100 * part) / whole;
  return value > 0 && value < 0.05 ? '< 0.1 %' : `${fixed(value, value < 99.95 ? 1 : 0)} %`;
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

/** Whether any block has a category. */
export const hasCategories = (rows: { owner: string | null; bytes: number }[]): boolean => rows.some((row) => row.bytes > 0 && row.owner !== null && row.owner !== 'other');

/** An address in hexadecimal, from a JSON number or the decimal string kept in its place. */
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

/** The label of a tick, with as many digits as it takes to tell neighbours apart. */
export function timeTick(ns: number, step: number): string {
  const [unit, name] =
    Math.max(ns, step) >= 1e9 ? [1e9, 's'] : Math.max(ns, step) >= 1e6 ? [1e6, 'ms'] : Math.max(ns, step) >= 1e3 ? [1e3, '\u00b5s'] : [1, 'ns'];
  const digits = Math.max(0, Math.ceil(-Math.log10(step / unit) - 1e-9));
  return `${(ns / unit).toLocaleString('en-US', { minimumFractionDigits: digits, maximumFractionDigits: digits })} ${name}`;
}
