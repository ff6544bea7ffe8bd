import { readFileSync } from 'node:fs';
import { afterAll, describe, expect, test } from 'vitest';
import { checkIndexes } from '../../src/emulator/firestore/index-definitions.ts';
import { startEmulator } from '../../src/emulator/server.ts';
import { manualTime } from '../../src/emulator/time.ts';
import { firestorePayloadStore } from '../../src/shared/adapters/firestore-payloads.ts';
import { payloadRef } from '../../src/shared/payload.ts';
import { firestoreClient } from '../support/targets.ts';
import { payloadOf } from './payload-store.ts';

const file = new URL('../../terraform/firestore.indexes.json', import.meta.url);
const time = manualTime();
const emulator = await startEmulator({ time, firestore: { indexes: checkIndexes(JSON.parse(readFileSync(file, 'utf8'))) } });
const db = firestoreClient(emulator.firestore.address, 'ptk-payload-indexes');
afterAll(async () => {
  await db.terminate();
  await emulator.close();
});

const store = firestorePayloadStore(db, time);
const bytes = payloadOf(1_000_001);
const ref = payloadRef('ab', bytes);

describe('terraform/firestore.indexes.json', () => {
  test.each(['bytes', 'sha256', 'of', 'expireAt'])(
    'indexes no %s of ptk-payloads: no query asks for it, and one that only grows would cap its writes',
    async (field) => {
      await expect(db.collection('ptk-payloads').orderBy(field).get()).rejects.toThrow(/requires an index/);
    },
  );

  test('lets a payload go when its time is over, and not before', async () => {
    await store.put(ref, bytes, 60_000);
    await time.advance(59_999);
    expect([await emulator.firestore.sweep(), (await store.get(ref))?.length]).toEqual([0, 1_000_001]);
    await time.advance(1);
    expect([await emulator.firestore.sweep(), await store.get(ref)]).toEqual([2, undefined]);
  });

  test('a payload that was put again stays as long as the later put says', async () => {
    await store.put(ref, bytes, 60_000);
    await time.advance(30_000);
    await store.put(ref, bytes, 60_000);
    await time.advance(59_999);
    expect([await emulator.firestore.sweep(), (await store.get(ref))?.length]).toEqual([0, 1_000_001]);
    await time.advance(1);
    expect(await emulator.firestore.sweep()).toBe(2);
  });
});
