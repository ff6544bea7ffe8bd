import type { Case } from './case.ts';

const widths = [20, 24, 32, 12, 12, 24] as const;
const titles = ['message id', 'consumer', 'key', 'its content', 'stored', 'first seen'];

const row = (cells: readonly string[], last: string): string =>
  [...widths.map((width, index) => shown(cells[index] ?? '', width).padEnd(width)), last].join('  ');

export const header = row(titles, 'outcome');

/** One letter as a line; of its content the fingerprint alone. */
export function rowOf({ letter, evidence, key }: Case, fate: string): string {
  return row([letter.messageId, evidence.consumer, key, evidence.fingerprint, evidence.stored, evidence.firstSeenAt], printable(fate));
}

/** What was published could drive the terminal. */
function printable(text: string): string {
  return text.replace(/[\p{C}\p{Z}]/gu, (char) => (char === ' ' ? char : '\uFFFD'));
}

function shown(text: string, width: number): string {
  const chars = [...printable(text)];
  return chars.length <= width ? chars.join('') : `${chars.slice(0, width - 1).join('')}…`;
}
