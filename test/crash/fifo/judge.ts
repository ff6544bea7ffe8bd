import type { Finding } from '../book.ts';
import type { Cell } from './cells.ts';
import { keyOf } from './plan.ts';
import type { Begin } from './sink.ts';

/** Compares what the handler saw of a stream with what it must have seen: 1, 2, 3 and so on, each once, one at a time. */
export function judge(cell: Cell, begins: readonly Begin[], overlaps: readonly number[]): Finding[] {
  const findings: Finding[] = [];
  const lost = (text: string) => void findings.push({ kind: 'lost', text });
  const repeated = (text: string) => void findings.push({ kind: 'repeated', text });
  const wanted = Array.from({ length: cell.last }, (_, index) => index + 1).filter((seq) => !cell.dead.includes(seq));
  const counts = new Map<number, number>();
  let highest = 0;
  for (const { seq, key } of begins) {
    const count = (counts.get(seq) ?? 0) + 1;
    counts.set(seq, count);
    const expected = cell.keys.get(seq) ?? keyOf(cell.cell, seq);
    if (key !== expected) lost(`number ${seq} was ${key}, expected ${expected}`);
    if (!wanted.includes(seq)) lost(`number ${seq} was handled, which is none of 1 to ${cell.last}`);
    const next = wanted.find((each) => each > highest);
    if (seq > highest && seq !== next) lost(`number ${seq} was handled before ${next}`);
    if (count > 1 && seq <= highest - cell.span) repeated(`number ${seq} came again after ${highest}`);
    if (seq < highest && count === 1) lost(`number ${seq} was handled after ${highest}`);
    highest = Math.max(highest, seq);
  }
  for (const seq of wanted) {
    const count = counts.get(seq) ?? 0;
    const most = 1 + (cell.mayRepeat.get(seq) ?? 0);
    if (count === 0) lost(`number ${seq} was never handled`);
    if (count > most) repeated(`number ${seq} was handled ${count} times, expected ${most} at most`);
  }
  for (const seq of overlaps) lost(`number ${seq} began while another one of its stream was in flight`);
  return findings;
}

/** More effects than numbers. */
export const repeatsIn = (begins: readonly Begin[]): number => begins.length - new Set(begins.map(({ seq }) => seq)).size;
