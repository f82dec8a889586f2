import palette from './palette.json';

/**
 * Colours that can be told apart with any kind of colour vision: those of Okabe and Ito for categories, with some of Tol's
 * for operations. Neighbours in a stack have a line between them, and no view relies on colour alone. The pictures of
 * `memprof plot` have the same ones: palette.json is the only place.
 */

export const categories = ['parameter', 'optimizer_state', 'gradient', 'activation', 'temporary', 'input', 'kv_cache', 'other'] as const;

type Pair = [light: string, dark: string];
const { operations, rest, plain } = palette as unknown as { operations: Pair[]; rest: Pair; plain: Pair };
const categoryColours = palette.categories as unknown as Record<string, Pair>;

export const distinctOperations = operations.length;

const systemIsDark = matchMedia('(prefers-color-scheme: dark)');

export function isDark(): boolean {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === 'dark' : systemIsDark.matches;
}

const pick = (pair: Pair): string => pair[isDark() ? 1 : 0];

export const categoryColour = (category: string): string => pick(categoryColours[category] ?? categoryColours.other);
/** The colour of the n-th largest operation; -1 and those beyond the palette share the colour for the rest. */
export const operationColour = (rank: number): string => pick(operations[rank] ?? rest);
/** For bars whose names say what they are: beside colours of categories, those of operations would be taken for them. */
export const plainColour = (): string => pick(plain);

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
