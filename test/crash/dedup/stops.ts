import type { Transaction } from '@google-cloud/firestore';
import type { DedupRecord } from '../../../src/shared/dedup/decide.ts';
import type { InboxStore } from '../../../src/shared/dedup/inbox.ts';
import type { RecordStore } from '../../../src/shared/ports.ts';
import type { LateWrite, Stop } from './plan.ts';

/** Where this is the point at which the cell stops, it never resolves. */
export type StopAt = (point: Stop, write?: LateWrite) => Promise<void>;

/** A store that stops before it sends a write, or when it has been applied. */
export const stoppingStore = (store: RecordStore<DedupRecord>, stopAt: StopAt): RecordStore<DedupRecord> => ({
  ...store,
  async put(key, record, expected, keepMs) {
    const write = record.state === 'running' ? (expected === 'absent' ? 'claim' : 'renewal') : 'end';
    await stopAt(`${write} sent`, { key, record, expected, keepMs });
    const result = await store.put(key, record, expected, keepMs);
    if ('version' in result) await stopAt(`${write} applied`);
    return result;
  },
});

/** The store behind two tiers, which stops before the tier in front hears of the end. */
export const stoppingTruth = (truth: RecordStore<DedupRecord>, stopAt: StopAt): RecordStore<DedupRecord> => ({
  ...truth,
  async put(key, record, expected, keepMs) {
    const result = await truth.put(key, record, expected, keepMs);
    if ('version' in result && record.state === 'done') await stopAt('end in Firestore alone');
    return result;
  },
});

export const stoppingInbox = (store: InboxStore<Transaction>, stopAt: StopAt): InboxStore<Transaction> => ({
  ...store,
  async transact(key, work, keepMs) {
    await stopAt('before the transaction');
    const worked: typeof work = async (marker, transaction) => {
      const write = await work(marker, transaction);
      await stopAt('before the commit');
      return write;
    };
    const result = await store.transact(key, worked, keepMs);
    await stopAt('commit applied');
    return result;
  },
});
