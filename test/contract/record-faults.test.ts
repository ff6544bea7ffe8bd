import { createClient } from 'redis';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { firestoreInbox, firestoreRecordStore } from '../../src/shared/adapters/firestore.ts';
import { type RedisClient, redisRecordStore } from '../../src/shared/adapters/redis.ts';
import { system } from '../../src/shared/adapters/system.ts';
import type { DedupRecord } from '../../src/shared/dedup/decide.ts';
import { createDedup } from '../../src/shared/dedup/dedup.ts';
import { createIdempotent } from '../../src/shared/dedup/idempotent.ts';
import { createInbox } from '../../src/shared/dedup/inbox.ts';
import { hash } from '../../src/shared/names.ts';
import type { Log, RecordStore } from '../../src/shared/ports.ts';
import { silentLog, testMessage } from '../../src/testing/doubles.ts';
import { firestoreDatabases } from '../support/databases.ts';
import { dedupRecord } from '../support/dedup-records.ts';

const db = (await firestoreDatabases()).open().client();
const secret = 'payload-1234';
const context = () => ({ signal: new AbortController().signal });
const keyed = (key: string) => testMessage({ attributes: { 'ptk-key': key } });
const ended = (changes: object = {}) => ({ ...dedupRecord({ state: 'done', rev: 1, runId: 'r', result: secret }), ...changes });

/** Neither acked nor run, at once and not after retries, and the error names what stands there without showing it. */
async function expectUnreadable(store: RecordStore<DedupRecord>, key: string, named: string): Promise<void> {
  const reasons: unknown[] = [];
  const log: Log = { ...silentLog, warn: (fields) => void reasons.push((fields as { reason?: unknown }).reason) };
  let runs = 0;
  const work = async () => {
    runs += 1;
  };
  const parts = { consumer: 'c', store, system, log, options: { storeTimeoutMs: 60_000 } };
  expect(await createDedup(parts)(work)(keyed(key), context())).toMatchObject({ kind: 'nack', reason: 'storeUnavailable' });
  expect(runs).toBe(0);
  expect(String(reasons)).toContain(named);
  expect(String(reasons)).not.toContain(secret);
  await expect(createIdempotent(parts)(key, work)).rejects.toMatchObject({ code: 'RECORD_UNREADABLE' });
  expect(runs).toBe(0);
}

describe('a Redis key that is no record', () => {
  let client: Awaited<ReturnType<typeof connect>>;
  const connect = () => createClient({ url: inject('redisUrl') }).connect();
  const prefix = `ptk:faults-${process.pid}:`;
  const nameOf = (key: string) => `${prefix}c:${hash(key)}`;
  beforeAll(async () => {
    client = await connect();
  });
  afterAll(() => client.close());

  const value = (record: unknown, version = '1.r') => `${version}\n1769853000123\n${JSON.stringify(record)}`;
  test.each([
    ['a text', secret],
    ['an empty text', ''],
    ['the word for nothing', 'absent'],
    ['a number', '1769853000123'],
    ['lines', `1.r\n${secret}\n`],
    ['JSON without a version', JSON.stringify(ended())],
    ['an instant that is none', `1.r\nnow\n${JSON.stringify(ended())}`],
    ['a record that is an array', value([ended()])],
    ['a record that is a number', value(1)],
    ['a record of other fields', value({ [secret]: 1 })],
    ['a record of another version than its line', value(ended(), '2.r')],
    ['a rev that is no number', value(ended({ rev: '1' }))],
    ['an older format', value(ended({ v: 0 }))],
    ['a newer format', value(ended({ v: 2 }))],
    ['a state that nobody knows', value(ended({ state: 'paused' }))],
  ])('%s is neither acked nor run, and stays', async (name, text) => {
    await client.set(nameOf(name), text);
    await expectUnreadable(redisRecordStore(client, prefix), name, hash(name));
    expect(await client.get(nameOf(name))).toBe(text);
    await client.del(nameOf(name));
  });

  test('a list is told by its type', async () => {
    await client.lPush(nameOf('list'), secret);
    await expectUnreadable(redisRecordStore(client, prefix), 'list', `${nameOf('list')} holds a list`);
    await expect(redisRecordStore(client, prefix).get(`c~${hash('list')}`)).rejects.toMatchObject({ code: 'RECORD_UNREADABLE' });
    await client.del(nameOf('list'));
  });
});

test.each([
  "OOM command not allowed when used memory > 'maxmemory'.",
  'LOADING Redis is loading the dataset in memory',
  "READONLY You can't write against a read only replica.",
  'CLUSTERDOWN Hash slot not served',
  'NOAUTH Authentication required.',
  'BUSY Redis is busy running a script.',
  'connect ECONNREFUSED 127.0.0.1:6379',
])('Redis: %s: may pass', async (text) => {
  const refuse = async () => {
    throw new Error(text);
  };
  const client: RedisClient = { isOpen: true, eval: refuse, evalSha: refuse };
  const claim = redisRecordStore(client, 'ptk:dedup:').put('k', ended(), 'absent', 1_000);
  await expect(claim).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE', message: `Redis: ${text}` });
});

describe('a document that is no record', () => {
  const documents: [string, object][] = [
    ['no fields', {}],
    ['other fields', { name: secret }],
    ['a rev that is text', ended({ rev: '1' })],
    ['a run id that is a number', ended({ runId: 5 })],
    ['an older format', ended({ v: 0 })],
    ['a newer format', ended({ v: 2 })],
    ['a lease that is text', ended({ leaseMs: '500' })],
    ['a state that nobody knows', ended({ state: 'paused' })],
  ];

  test.each(documents)('%s: neither acked nor run, and stays', async (name, fields) => {
    const document = db.collection('ptk-dedup').doc(`c~${hash(name)}`);
    await document.set(fields);
    await expectUnreadable(firestoreRecordStore(db, system.clock, 'ptk-dedup'), name, hash(name));
    expect((await document.get()).data()).toEqual(fields);
  });

  test.each(documents.slice(0, 4))('%s: a read says which document it is', async (name, fields) => {
    await db.collection('ptk-other').doc(name).set(fields);
    const read = firestoreRecordStore(db, system.clock, 'ptk-other').get(name);
    await expect(read).rejects.toMatchObject({ code: 'RECORD_UNREADABLE', message: expect.stringContaining(`ptk-other/${name}`) });
    await expect(read).rejects.not.toThrow(secret);
  });

  test.each(documents)('%s: the inbox runs nothing and acks nothing', async (name, fields) => {
    const document = db.collection('ptk-dedup').doc(`inbox~${hash(name)}`);
    await document.set(fields);
    let runs = 0;
    const store = firestoreInbox(db, system.clock, 'ptk-dedup');
    const deliver = createInbox({ consumer: 'inbox', store, system, log: silentLog })(async () => {
      runs += 1;
    });
    expect(await deliver(keyed(name), context())).toMatchObject({ kind: 'nack', reason: 'storeUnavailable' });
    expect(runs).toBe(0);
    expect((await document.get()).data()).toEqual(fields);
  });
});
