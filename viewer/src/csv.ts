/** What spreadsheets take for the start of a formula: the list in OWASP's "CSV Injection". */
const formula = /^[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]/;

/** A CSV record (RFC 4180). A text that a spreadsheet would run is prefixed with an apostrophe, which marks it as text. */
export function csvRecord(cells: (number | string)[]): string {
  return `${cells.map(cell).join(',')}\r\n`;
}

function cell(value: number | string): string {
  if (typeof value === 'number') return String(value);
  const text = formula.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
