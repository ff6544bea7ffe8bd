import { readFileSync } from 'node:fs';
import type { Firestore } from '@google-cloud/firestore';
import { afterAll, describe, expect, test } from 'vitest';
import { checkIndexes, type IndexDefinitions } from '../../src/emulator/firestore/index-definitions.ts';
import { startEmulator } from '../../src/emulator/server.ts';
import { manualTime } from '../../src/emulator/time.ts';
import { firestoreDelayLedger } from '../../src/shared/adapters/firestore-delays.ts';
import { system } from '../../src/shared/adapters/system.ts';
import { type DelayRecord, endedKeepMs, fired, ledgerKeyOf, neverScheduled, recurring } from '../../src/shared/delay/ledger.ts';
import type { DelayLedger } from '../../src/shared/delay/store.ts';
import { firestoreClient } from '../support/targets.ts';

const file = new URL('../../terraform/firestore.indexes.json', import.meta.url);
const shipped = checkIndexes(JSON.parse(readFileSync(file, 'utf8')));
const { indexes = [] } = shipped;

/** Every query of the ledger. */
const queries: Record<string, (ledger: DelayLedger) => Promise<unknown>> = {
  'the first page of a state': (ledger) => ledger.inState('pending', 10),
  'a further page of a state': (ledger) => ledger.inState('pending', 10, { dueAtMs: 5, key: 'k' }),
  'how many are in a state': (ledger) => ledger.count('pending'),
  'how many are overdue': (ledger) => ledger.count('pending', 5),
};

const isOurs = ({ collectionGroup }: { readonly collectionGroup: string }) => collectionGroup === 'ptk-delays';

describe('terraform/firestore.indexes.json', () => {
  const closing: (() => Promise<void>)[] = [];
  afterAll(() => Promise.all(closing.map((close) => close())));
  const databaseWith = async (definitions: IndexDefinitions): Promise<Firestore> => {
    const emulator = await startEmulator({ firestore: { indexes: definitions } });
    const db = firestoreClient(emulator.firestore.address, 'ptk-delay-indexes');
    closing.push(async () => {
      await db.terminate();
      await emulator.close();
    });
    return db;
  };
  const refusedBy = async (db: Firestore): Promise<string[]> => {
    const ledger = firestoreDelayLedger(db, system.clock);
    const asked = Object.entries(queries).map(async ([name, query]) => {
      const error = await query(ledger).then(
        () => undefined,
        (reason: Error) => reason,
      );
      if (error) expect(error.message).toContain('The query requires an index');
      return error ? [name] : [];
    });
    return (await Promise.all(asked)).flat();
  };

  test('has what every query of the delay ledger needs', async () => {
    expect(await refusedBy(await databaseWith(shipped))).toEqual([]);
  });

  test('holds nothing for show: its one index of the ledger serves every query, and without it each is refused', async () => {
    expect(indexes.filter(isOurs).map(({ fields }) => fields.map(({ fieldPath, order }) => `${fieldPath} ${order}`))).toEqual([
      ['state ASCENDING', 'shard ASCENDING', 'dueAt ASCENDING'],
    ]);
    const left = { ...shipped, indexes: indexes.filter((index) => !isOurs(index)) };
    expect(await refusedBy(await databaseWith(left))).toEqual(Object.keys(queries));
  });

  test('indexes no field of ptk-delays by itself: one that only grows would cap its writes', async () => {
    const db = await databaseWith(shipped);
    const fields = [
      'state',
      'shard',
      'dueAt',
      'armedAt',
      'id',
      'key',
      'target',
      'rev',
      'generation',
      'instr.publishTime',
      'expireAt',
      'owed',
    ];
    for (const field of fields) await expect(db.collection('ptk-delays').orderBy(field).get()).rejects.toThrow(/requires an index/);
  });

  test('lets what has ended go after 40 days and not before, and keeps what is pending again after it had fired', async () => {
    const time = manualTime();
    const emulator = await startEmulator({ time, firestore: { indexes: shipped } });
    const db = firestoreClient(emulator.firestore.address, 'ptk-delay-ttl');
    closing.push(async () => {
      await db.terminate();
      await emulator.close();
    });
    const ledger = firestoreDelayLedger(db, time);
    const pending = (id: string): DelayRecord => ({ ...neverScheduled(id, time.nowMs(), 'o', 'i'), state: 'pending' });
    const written = async (record: DelayRecord, expected: string, keepMs: number | 'forever') => {
      const put = await ledger.put(ledgerKeyOf(record.id), record, expected, keepMs);
      return 'version' in put ? put.version : expect.fail(`${record.id} has another version`);
    };
    for (const id of ['once', 'again']) {
      const version = await written(fired(pending(id), '5'), await written(pending(id), 'absent', 'forever'), endedKeepMs);
      if (id === 'again') await written(recurring(fired(pending(id), '5'), '5', time.nowMs() + 1), version, 'forever');
    }
    const there = async () => (await db.collection('ptk-delays').get()).docs.map((document) => document.get('id')).sort();
    await time.advance(40 * 86_400_000 - 1);
    expect([await emulator.firestore.sweep(), await there()]).toEqual([0, ['again', 'once']]);
    await time.advance(1);
    expect([await emulator.firestore.sweep(), await there()]).toEqual([1, ['again']]);
    await time.advance(400 * 86_400_000);
    expect([await emulator.firestore.sweep(), await there()]).toEqual([0, ['again']]);
  });
});
