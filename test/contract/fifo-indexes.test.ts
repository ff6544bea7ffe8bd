import { readFileSync } from 'node:fs';
import type { Firestore } from '@google-cloud/firestore';
import { afterAll, describe, expect, test } from 'vitest';
import { checkIndexes, type IndexDefinitions } from '../../src/emulator/firestore/index-definitions.ts';
import { startEmulator } from '../../src/emulator/server.ts';
import { firestoreFifoStore } from '../../src/shared/adapters/firestore-fifo.ts';
import { system } from '../../src/shared/adapters/system.ts';
import type { FifoStore } from '../../src/shared/fifo/store.ts';
import { firestoreClient } from '../support/targets.ts';

const file = new URL('../../terraform/firestore.indexes.json', import.meta.url);
const shipped = checkIndexes(JSON.parse(readFileSync(file, 'utf8')));
const { indexes = [], fieldOverrides = [] } = shipped;

/** Every query of the fifo layer. */
const queries: Record<string, (store: FifoStore) => Promise<unknown>> = {
  'what follows a place': (store) => store.ahead({ consumer: 'c', stream: 's', epoch: 1, seq: 2 }, 10),
  'the lowest of a stream': (store) => store.lowest('c', 's'),
  'what is due': (store) => store.due('c', 5),
  'how many wait': (store) => store.waiting('c', 's'),
  'the streams that stand still': (store) => store.blockedStreams('c'),
};

const isOurs = ({ collectionGroup }: { readonly collectionGroup: string }) => /^ptk-(parked|cursors)$/.test(collectionGroup);
/** Each index of the layer by its fields, with the file as it would be without it. */
const without: readonly (readonly [string, IndexDefinitions])[] = [
  ...indexes.filter(isOurs).map((left) => {
    const name = left.fields.map(({ fieldPath }) => fieldPath).join(', ');
    return [name, { ...shipped, indexes: indexes.filter((index) => index !== left) }] as const;
  }),
  ...fieldOverrides
    .filter((override) => isOurs(override) && override.indexes?.length)
    .map((left) => [left.fieldPath, { ...shipped, fieldOverrides: fieldOverrides.filter((override) => override !== left) }] as const),
];

describe('terraform/firestore.indexes.json', () => {
  const closing: (() => Promise<void>)[] = [];
  afterAll(() => Promise.all(closing.map((close) => close())));
  const databaseWith = async (definitions: IndexDefinitions): Promise<Firestore> => {
    const emulator = await startEmulator({ firestore: { indexes: definitions } });
    const db = firestoreClient(emulator.firestore.address, 'ptk-fifo-indexes');
    closing.push(async () => {
      await db.terminate();
      await emulator.close();
    });
    return db;
  };
  const refusedBy = async (db: Firestore): Promise<string[]> => {
    const store = firestoreFifoStore(db, system.clock);
    const asked = Object.entries(queries).map(async ([name, query]) => {
      const error = await query(store).then(
        () => undefined,
        (reason: Error) => reason,
      );
      if (error) expect(error.message).toContain('The query requires an index');
      return error ? [name] : [];
    });
    return (await Promise.all(asked)).flat();
  };

  test('has what every query of the fifo layer needs', async () => {
    expect(await refusedBy(await databaseWith(shipped))).toEqual([]);
  });

  test('holds nothing for show: without one of its indexes exactly the queries that it is for are refused', async () => {
    const refused = await Promise.all(without.map(async ([name, left]) => [name, await refusedBy(await databaseWith(left))]));
    expect(Object.fromEntries(refused)).toEqual({
      'consumer, dueAt': ['what is due'],
      'consumer, stream, epoch, seq': ['what follows a place', 'the lowest of a stream', 'how many wait'],
      'blocked.seq': ['the streams that stand still'],
    });
  });

  test.each([
    ['ptk-parked', ['consumer', 'stream', 'epoch', 'seq', 'dueAt', 'parkedAt', 'shard', 'reason', 'message']],
    ['ptk-cursors', ['last', 'rev', 'runId', 'attempts', 'blocked', 'blocked.since', 'skipped', 'recent']],
    ['ptk-dedup', ['key', 'state', 'rev', 'firstSeenAt', 'expireAt', 'result']],
  ])('indexes no field of %s by itself that no query asks for: one that only grows would cap its writes', async (collection, fields) => {
    const db = await databaseWith(shipped);
    for (const field of fields) await expect(db.collection(collection).orderBy(field).get()).rejects.toThrow(/requires an index/);
  });
});
