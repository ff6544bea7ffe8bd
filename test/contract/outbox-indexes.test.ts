import { readFileSync } from 'node:fs';
import type { Firestore } from '@google-cloud/firestore';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { checkIndexes } from '../../src/emulator/firestore/index-definitions.ts';
import { type Emulator, startEmulator } from '../../src/emulator/server.ts';
import { firestoreStreamStore } from '../../src/shared/adapters/firestore-streams.ts';
import { system } from '../../src/shared/adapters/system.ts';
import type { StreamStore } from '../../src/shared/outbox/store.ts';
import { firestoreClient } from '../support/targets.ts';

const file = new URL('../../terraform/firestore.indexes.json', import.meta.url);
const indexes = checkIndexes(JSON.parse(readFileSync(file, 'utf8')));

type Query = (streams: StreamStore) => Promise<unknown>;
/** Every query of the sequencer and of the relay. */
const queries: [string, Query][] = [
  ['streams with due entries', (streams) => streams.dueStreams(5)[Symbol.asyncIterator]().next()],
  ['pending entries of a stream', (streams) => streams.pending('s', 10)],
  ['due entries without a stream', (streams) => streams.dueUnordered(5, 10)],
  ['the entry of a number', (streams) => streams.find('s', 1, 2)],
  ['the entry that is due next', (streams) => watched(streams)],
];

const watched = (streams: StreamStore) =>
  new Promise((resolve, reject) => {
    const stop = streams.watch(
      0,
      (dueAtMs) => {
        stop();
        resolve(dueAtMs);
      },
      reject,
    );
  });

describe('terraform/firestore.indexes.json', () => {
  const emulators: Emulator[] = [];
  const clients: Firestore[] = [];
  const storeOf = async (definitions: typeof indexes) => {
    const emulator = await startEmulator({ firestore: { indexes: definitions } });
    emulators.push(emulator);
    const db = firestoreClient(emulator.firestore.address, 'ptk-indexes');
    clients.push(db);
    return firestoreStreamStore(db, system.clock);
  };
  let served: StreamStore;
  let bare: StreamStore;
  beforeAll(async () => {
    [served, bare] = [
      await storeOf(indexes),
      await storeOf({ ...indexes, indexes: [], fieldOverrides: [{ collectionGroup: 'ptk-outbox', fieldPath: '*', indexes: [] }] }),
    ];
  });
  afterAll(async () => {
    await Promise.all(clients.map((db) => db.terminate()));
    await Promise.all(emulators.map((emulator) => emulator.close()));
  });

  test.each(queries)('has what the query for %s needs', async (_, query) => {
    await expect(query(served)).resolves.not.toThrow();
  });

  test.each(queries)('holds nothing for show: without it the query for %s is refused', async (_, query) => {
    await expect(query(bare)).rejects.toThrow(/index/);
  });
});
