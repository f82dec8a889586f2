/**
 * Colours that can be told apart with any kind of colour vision: those of Okabe and Ito for categories, with some of Tol's
 * for operations. Neighbours in a stack have a line between them, and no view relies on colour alone.
 */

export const categories = ['parameter', 'optimizer_state', 'gradient', 'activation', 'temporary', 'input', 'kv_cache', 'other'] as const;

const categoryColours: Record<string, [light: string, dark: string]> = {
  parameter: ['#0072b2', '#3d97d3'],
  optimizer_state: ['#009e73', '#1fae85'],
  gradient: ['#e69f00', '#e6a117'],
  activation: ['#56b4e9', '#7cc5ee'],
  temporary: ['#d55e00', '#dd6b1f'],
  input: ['#cc79a7', '#cf86b0'],
  kv_cache: ['#cfc100', '#e5dc4d'],
  other: ['#8b929b', '#7b838d'],
};

const operationColours: [light: string, dark: string][] = [
  ['#0072b2', '#3d97d3'],
  ['#e69f00', '#e6a117'],
  ['#009e73', '#1fae85'],
  ['#cc79a7', '#cf86b0'],
  ['#56b4e9', '#7cc5ee'],
  ['#d55e00', '#dd6b1f'],
  ['#999933', '#b3b34a'],
  ['#882255', '#b8528a'],
  ['#44aa99', '#63c0b0'],
  ['#ddcc77', '#d9ca82'],
  ['#6a5acd', '#9488e8'],
];
const restColours: [light: string, dark: string] = ['#b4bac2', '#5d6570'];

export const distinctOperations = operationColours.length;

const systemIsDark = matchMedia('(prefers-color-scheme: dark)');

export function isDark(): boolean {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === 'dark' : systemIsDark.matches;
}

const pick = (pair: [string, string]): string => pair[isDark() ? 1 : 0];

export const categoryColour = (category: string): string => pick(categoryColours[category] ?? categoryColours.other);
/** The colour of the n-th largest operation; -1 and those beyond the palette share the colour for the rest. */
export const operationColour = (rank: number): string => pick(operationColours[rank] ?? restColours);

/** Black or white, whichever is more legible on the colour. */
export function inkOn(colour: string): string {
  const channel = (from: number): number => {
    const value = parseInt(colour.slice(from, from + 2), 16) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  };
  return 0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5) > 0.22 ? '#111' : '#fff';
}

/** The page's own colours, for canvases. */
export interface ThemeColours {
  text: string;
  muted: string;
  line: string;
  surface: string;
  accent: string;
  band: string;
  bandAlt: string;
}

let known: ThemeColours | null = null;
addEventListener('themechange', () => (known = null));

export function themeColours(): ThemeColours {
  return (known ??= readThemeColours());
}

function readThemeColours(): ThemeColours {
  const style = getComputedStyle(document.documentElement);
  const of = (name: string): string => style.getPropertyValue(name).trim();
  return {
    text: of('--text'),
    muted: of('--muted'),
    line: of('--line'),
    surface: of('--surface'),
    accent: of('--accent'),
    band: of('--band'),
    bandAlt: of('--band-alt'),
  };
}
