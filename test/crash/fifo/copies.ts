import { attribute } from '../../../src/shared/message.ts';
import type { Book } from './book.ts';
import type { Cell } from './cells.ts';
import type { Recorded } from './stage.ts';

/**
 * What a topic got of a stream that relays published: the first copies in order of number, and no more copies of a number than requests
 * that may have been sent again.
 */
export function judgeCopies(book: Book, cell: Cell, recorded: readonly Recorded[], most: number): void {
  const published = recorded.filter(({ attributes }) => attributes[attribute.stream] === cell.cell);
  const inOrder = published.sort((a, b) => Number(a.messageId) - Number(b.messageId));
  const counts = new Map<number, number>();
  let highest = 0;
  for (const { attributes } of inOrder) {
    const seq = Number(attributes[attribute.sequence]);
    const count = (counts.get(seq) ?? 0) + 1;
    counts.set(seq, count);
    if (count === 1 && seq < highest) book.lost(cell, `number ${seq} was published after ${highest}`);
    if (count > most) book.repeated(cell, `number ${seq} was published ${count} times, expected ${most} at most`);
    highest = Math.max(highest, seq);
  }
  for (let seq = 1; seq <= cell.last; seq++) if (!counts.has(seq)) book.lost(cell, `number ${seq} was never published`);
}
