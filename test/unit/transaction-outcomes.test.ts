import { expect, test } from 'vitest';
import { createTransactions, type Outcome } from '../../src/emulator/firestore/transactions.ts';
import { manualTime } from '../../src/emulator/time.ts';

const committed: Outcome = { kind: 'committed', response: { writeResults: [], commitTime: { seconds: '1', nanos: 0 } } };

/** The ids of so many transactions that committed one after the other, and what the journal was told. */
function committedOnes(count: number) {
  const time = manualTime(0);
  const kept = new Set<string>();
  const journal = {
    commit: () => {},
    remember: ({ id }: { id: string }) => void kept.add(id),
    forget: (id: string) => void kept.delete(id),
    erase: () => {},
  };
  const transactions = createTransactions({ time, journal, kept: [], whenEnded: () => {} });
  const commit = () => {
    const transaction = transactions.begin();
    transactions.end(transaction, committed);
    return transaction.id;
  };
  return { time, transactions, kept, commit, ids: Array.from({ length: count }, commit) };
}

test('the outcome of a transaction is remembered for ten minutes', async () => {
  const { time, transactions, kept, commit, ids } = committedOnes(1);
  const [id = ''] = ids;
  await time.advance(599_999);
  commit();
  expect(transactions.outcomeOf(id)).toBe(committed);
  await time.advance(1);
  commit();
  expect(transactions.outcomeOf(id)).toBeUndefined();
  expect(kept.has(id)).toBe(false);
});

test('of 20,001 commits the first is forgotten, in the journal too', () => {
  expect(committedOnes(20_000).kept.size).toBe(20_000);
  const { transactions, kept, ids } = committedOnes(20_001);
  expect(transactions.outcomeOf(ids[0] ?? '')).toBeUndefined();
  expect(transactions.outcomeOf(ids[1] ?? '')).toBe(committed);
  expect(kept.size).toBe(20_000);
});
