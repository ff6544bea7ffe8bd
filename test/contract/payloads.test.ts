import type { Firestore } from '@google-cloud/firestore';
import { describe, expect, test } from 'vitest';
import { manualTime } from '../../src/emulator/time.ts';
import { firestorePayloadStore } from '../../src/shared/adapters/firestore-payloads.ts';
import { memoryPayloadStore } from '../../src/shared/adapters/memory-payloads.ts';
import { system } from '../../src/shared/adapters/system.ts';
import { errorCodeOf } from '../../src/shared/errors.ts';
import { hash } from '../../src/shared/names.ts';
import { payloadRef } from '../../src/shared/payload.ts';
import { firestoreDatabases } from '../support/databases.ts';
import { secondFirestore } from '../support/second-firestore.ts';
import { payloadOf, payloadStoreContract } from './payload-store.ts';

const databases = await firestoreDatabases();
const second = secondFirestore(databases, databases.open().projectId);
let opened = 0;

payloadStoreContract('memory', memoryPayloadStore);
payloadStoreContract('Firestore', () => firestorePayloadStore(databases.open().client(), system.clock));
payloadStoreContract('Firestore, by a second copy of its client', () =>
  firestorePayloadStore(second.db, system.clock, `second-${++opened}-`),
);

const bytes = payloadOf(2_000_001);
const ref = payloadRef('ab', bytes);
const part = payloadOf(10);
const small = payloadRef('ab', part);

function setUp() {
  const { client, projectId } = databases.open();
  const db = client();
  const time = manualTime(Date.UTC(2026, 0, 1));
  const store = firestorePayloadStore(db, time);
  const failCommits = (kind: 'answer-lost' | 'fail-before', times: number) =>
    databases.emulator.faults.add({ kind, rpc: 'Firestore.Commit', resource: projectId, times });
  return { db, time, store, failCommits, keptUntil: () => keptUntil(db) };
}

/** When each chunk may go, in order. */
async function keptUntil(db: Firestore): Promise<string[]> {
  const { docs } = await db.collection('ptk-payloads').get();
  return docs.map((document) => document.get('expireAt').toDate().toISOString());
}

describe('ptk-payloads in Firestore', () => {
  test('is as the wire contract says', async () => {
    const { db, time } = setUp();
    await firestorePayloadStore(db, time, 'x-').put(ref, bytes, 60_000);
    const { docs } = await db.collection('x-ptk-payloads').get();
    expect(docs.map(({ id }) => id)).toEqual(['ab~0', 'ab~1', 'ab~2']);
    expect(docs.map((document) => document.get('bytes').length)).toEqual([1_000_000, 1_000_000, 1]);
    for (const document of docs) {
      const { bytes: _, expireAt, ...fields } = document.data();
      expect(fields).toEqual({ of: 3, sha256: ref.sha256 });
      expect(expireAt.toDate().toISOString()).toBe('2026-01-01T00:01:00.000Z');
    }
  });

  test('an empty payload is one empty chunk', async () => {
    const { db, store } = setUp();
    await store.put(payloadRef('ab', new Uint8Array()), new Uint8Array(), 60_000);
    const [document, ...more] = (await db.collection('ptk-payloads').get()).docs;
    expect([document?.id, document?.get('bytes').length, document?.get('of'), more]).toEqual(['ab~0', 0, 1, []]);
    expect(document?.get('sha256')).toBe(hash(''));
  });

  test('a remove takes every chunk', async () => {
    const { db, store } = setUp();
    const large = payloadOf(5_000_001);
    await store.put(payloadRef('ab', large), large, 60_000);
    expect((await db.collection('ptk-payloads').listDocuments()).length).toBe(6);
    await store.remove(payloadRef('ab', large));
    expect((await db.collection('ptk-payloads').listDocuments()).length).toBe(0);
  });

  test('a put again keeps the bytes as long as the longer of the two says', async () => {
    const { time, store, keptUntil } = setUp();
    const each = (instant: string) => [instant, instant, instant];
    await store.put(ref, bytes, 60_000);
    await store.put(ref, bytes, 59_999);
    expect(await keptUntil()).toEqual(each('2026-01-01T00:01:00.000Z'));
    await time.advance(10_000);
    await store.put(ref, bytes, 50_001);
    expect(await keptUntil()).toEqual(each('2026-01-01T00:01:00.001Z'));
    await store.put(ref, bytes, 1_000);
    expect(await keptUntil()).toEqual(each('2026-01-01T00:01:00.001Z'));
    const others = payloadOf(2_000_001, 2);
    await store.put(payloadRef('ab', others), others, 1_000);
    expect(await keptUntil()).toEqual(each('2026-01-01T00:01:00.001Z'));
  });

  test('what is over is there until it is collected', async () => {
    const { time, store } = setUp();
    await store.put(ref, bytes, 60_000);
    await time.advance(120_000);
    expect((await store.get(ref))?.length).toBe(2_000_001);
  });

  test('a longer put that comes between is not shortened', async () => {
    const { db, time, store, keptUntil } = setUp();
    await store.put(small, part, 60_000);
    const slow = slowReader(db, () => store.put(small, part, 90_000));
    await firestorePayloadStore(slow, time).put(small, part, 60_001);
    expect(await keptUntil()).toEqual(['2026-01-01T00:01:30.000Z']);
  });

  test('a chunk that goes in between is made again', async () => {
    const { db, time, store } = setUp();
    await store.put(small, part, 60_000);
    const slow = slowReader(db, () => store.remove(small));
    await firestorePayloadStore(slow, time).put(small, part, 60_001);
    expect([...((await store.get(small)) ?? [])]).toEqual([...part]);
  });
});

describe('a payload of which not all is there', () => {
  test.each([[[0]], [[1]], [[2]], [[0, 1]], [[1, 2]]])(
    'without the chunks %j it is not there, and a put makes it whole',
    async (missing) => {
      const { db, store } = setUp();
      await store.put(ref, bytes, 60_000);
      for (const chunk of missing) await db.doc(`ptk-payloads/ab~${chunk}`).delete();
      expect(await store.get(ref)).toBeUndefined();
      await store.put(ref, bytes, 60_000);
      expect(bytes.equals((await store.get(ref)) ?? Buffer.alloc(0))).toBe(true);
    },
  );

  test.each<[string, string, object]>([
    ['a flipped bit in the first chunk', 'ab~0', { bytes: flipped(bytes.subarray(0, 1_000_000), 499_999) }],
    ['a flipped bit in the last byte', 'ab~2', { bytes: flipped(bytes.subarray(2_000_000), 0) }],
    ['a chunk without its last byte', 'ab~1', { bytes: bytes.subarray(1_000_000, 1_999_999) }],
    ['a chunk of another payload', 'ab~1', { sha256: hash('other') }],
    ['a chunk of fewer', 'ab~1', { of: 2 }],
    ['bytes that are text', 'ab~1', { bytes: 'text' }],
    ['no bytes', 'ab~2', { bytes: null }],
    ['an end that is no instant', 'ab~1', { bytes: 'text', expireAt: 'never' }],
  ])('with %s it is not there, and a put makes it whole', async (_, id, changes) => {
    const { db, store, keptUntil } = setUp();
    await store.put(ref, bytes, 60_000);
    await db.doc(`ptk-payloads/${id}`).update(changes);
    expect(await store.get(ref)).toBeUndefined();
    await store.put(ref, bytes, 60_000);
    expect(bytes.equals((await store.get(ref)) ?? Buffer.alloc(0))).toBe(true);
    expect(new Set(await keptUntil())).toEqual(new Set(['2026-01-01T00:01:00.000Z']));
  });

  test('chunks that were moved about are not the payload', async () => {
    const { db, store } = setUp();
    await store.put(ref, bytes, 60_000);
    await db.doc('ptk-payloads/ab~0').update({ bytes: bytes.subarray(1_000_000, 2_000_000) });
    await db.doc('ptk-payloads/ab~1').update({ bytes: bytes.subarray(0, 1_000_000) });
    expect(await store.get(ref)).toBeUndefined();
  });
});

describe('when Firestore does not say', () => {
  test.each([
    ['answer-lost', 1],
    ['answer-lost', 3],
    ['fail-before', 1],
    ['fail-before', 3],
  ] as const)('a payload is whole though its puts suffer %s, %i times', async (kind, times) => {
    const { store, failCommits, keptUntil } = setUp();
    failCommits(kind, times);
    await store.put(ref, bytes, 60_000);
    expect(bytes.equals((await store.get(ref)) ?? Buffer.alloc(0))).toBe(true);
    failCommits(kind, times);
    await store.put(ref, bytes, 60_001);
    expect(new Set(await keptUntil())).toEqual(new Set(['2026-01-01T00:01:00.001Z']));
    failCommits(kind, times);
    await store.remove(ref);
    expect(await keptUntil()).toEqual([]);
  });

  /** A client whose calls are all refused with a code, but for a read of a document with these fields. */
  function refusing(code: number, fields: Record<string, unknown> = {}): Firestore {
    const refuse = async () => {
      throw Object.assign(new Error('refused'), { code });
    };
    const there = { get: (field: string) => fields[field], updateTime: {} };
    const document = { path: 'ptk-payloads/ab~0', create: refuse, update: refuse, delete: refuse, get: async () => there };
    return { collection: () => ({ doc: () => document }), getAll: refuse } as unknown as Firestore;
  }

  test.each([4, 7, 8, 13, 14])('each call is STORE_UNAVAILABLE when it is refused with the code %i', async (code) => {
    const store = firestorePayloadStore(refusing(code), system.clock);
    const unavailable = { code: 'STORE_UNAVAILABLE', message: 'Firestore: refused' };
    await expect(store.put(small, part, 60_000)).rejects.toMatchObject(unavailable);
    await expect(store.get(small)).rejects.toMatchObject(unavailable);
    await expect(store.remove(small)).rejects.toMatchObject(unavailable);
  });

  test.each([
    [60_000, 'stored'],
    [60_001, 'STORE_UNAVAILABLE'],
  ])('a chunk that is there for 60000 ms is not written again for %i ms, or it is: %s', async (keepMs, ended) => {
    const time = manualTime();
    const untilMs = time.nowMs() + 60_000;
    const db = refusing(6, { bytes: part, sha256: small.sha256, of: 1, expireAt: { toMillis: () => untilMs } });
    const put = firestorePayloadStore(db, time).put(small, part, keepMs);
    expect(await put.then(() => 'stored', errorCodeOf)).toBe(ended);
  });

  test('a chunk that others change all the time is given up', async () => {
    const store = firestorePayloadStore(refusing(10), system.clock);
    await expect(store.put(small, part, 60_000)).rejects.toMatchObject({
      code: 'STORE_UNAVAILABLE',
      message: 'Firestore: ptk-payloads/ab~0 was changed by others in each of 5 tries',
    });
  });
});

/** A client whose first read of a document is followed by what others do. */
function slowReader(db: Firestore, others: () => Promise<void>): Firestore {
  let reads = 0;
  const documentOf = (path: string) => {
    const document = db.doc(path);
    const get = async () => {
      const snapshot = await document.get();
      if (++reads === 1) await others();
      return snapshot;
    };
    return { path, get, create: document.create.bind(document), update: document.update.bind(document) };
  };
  return { collection: (name: string) => ({ doc: (id: string) => documentOf(`${name}/${id}`) }) } as unknown as Firestore;
}

function flipped(part: Buffer, at: number): Buffer {
  const changed = Buffer.from(part);
  changed[at] = (changed[at] ?? 0) ^ 1;
  return changed;
}
