import { createHash } from 'node:crypto';
import { type DocumentData, Timestamp } from '@google-cloud/firestore';
import { describe, expect, onTestFinished, test } from 'vitest';
import { firestoreRecordStore } from '../../src/shared/adapters/firestore.ts';
import { firestoreFifoStore } from '../../src/shared/adapters/firestore-fifo.ts';
import type { DedupRecord } from '../../src/shared/dedup/decide.ts';
import { createDedup } from '../../src/shared/dedup/dedup.ts';
import { createFifo } from '../../src/shared/fifo/fifo.ts';
import { keptDeadLetters, silentLog, testMessage } from '../../src/testing/doubles.ts';
import { firestoreDatabases } from '../support/databases.ts';
import { manualSystem } from '../support/manual-system.ts';
import { draft, sequencing } from '../support/sequencing.ts';
import { firestoreClient } from '../support/targets.ts';

const manual = manualSystem();
const databases = await firestoreDatabases(manual.time);
const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');
const stream = "a.b_c~d/é ü!*'()-W";
const encoded = "a%2Eb%5Fc%7Ed%2F%C3%A9%20%C3%BC!*'()-W";
const signal = new AbortController().signal;

/** Of the value as it is on the wire: the client that reads it tells integers from doubles. */
function typeOf(value: unknown): unknown {
  if (value === null) return 'null';
  if (value instanceof Timestamp) return 'time';
  if (Buffer.isBuffer(value)) return 'bytes';
  if (Array.isArray(value)) return value.map(typeOf);
  if (typeof value === 'object') return typesOf(value as DocumentData);
  return { bigint: 'int', number: 'double', string: 'text', boolean: 'bool' }[typeof value as string];
}
const typesOf = (fields: DocumentData): unknown => Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, typeOf(value)]));

function setUp() {
  const opened = databases.open();
  const parts = sequencing({ ...databases, open: () => opened }, manual);
  const { db } = parts;
  const exact = firestoreClient(databases.emulator.firestore.address, opened.projectId, { useBigInt: true });
  onTestFinished(() => exact.terminate());
  return {
    ...parts,
    /** Ids and types of the documents of a collection. */
    async stored(collection: string): Promise<Record<string, unknown>> {
      const { docs } = await exact.collection(collection).get();
      return Object.fromEntries(docs.map((document) => [document.id, typesOf(document.data())]));
    },
    fifo: createFifo({
      consumer: 'my.app',
      store: firestoreFifoStore(db, manual.clock),
      system: manual,
      log: silentLog,
      deadLetters: keptDeadLetters(),
      options: { maxAttempts: 1 },
    }),
    dedup: createDedup({
      consumer: 'my.app',
      store: firestoreRecordStore<DedupRecord>(db, manual.clock, 'ptk-dedup'),
      system: manual,
      log: silentLog,
    }),
  };
}

const place = { stream: 'text', epoch: 'int', seq: 'int' };
const entry = { ...place, state: 'text', key: 'text', topic: 'text', attempts: 'int', shard: 'int' };
const wire = { 'ptk-key': 'text', 'ptk-stream': 'text', 'ptk-seq': 'text', 'ptk-epoch': 'text', 'ptk-origin-time': 'text' };

describe('documents have the ids, fields and types of the protocol', () => {
  test('counters, entries and leases of relays', async () => {
    const { sequencer, outbox, relay, stored, db } = setUp();
    const { publish } = sequencer({ topicOrder: 'strict' });
    await publish(draft('k/1', { stream, topic: 'orders' }));
    expect(await stored('ptk-streams')).toEqual({ [encoded]: { next: 'int', epoch: 'int', rev: 'int', topic: 'text' } });
    const id = `${sha256(stream)}~${sha256('k/1')}`;
    const pending = { ...entry, message: { data: 'bytes', attributes: wire }, nextAttemptAt: 'time', messageId: 'null' };
    expect(await stored('ptk-outbox')).toEqual({ [id]: pending });
    expect((await db.doc(`ptk-outbox/${id}`).get()).data()).toMatchObject({
      ...{ state: 'pending', stream, seq: 1, key: 'k/1', topic: 'orders', attempts: 0, messageId: null },
      shard: 14,
    });
    await db.runTransaction((transaction) => outbox().add(transaction, { topic: 'mails', key: 'k2', data: Buffer.from('') }));
    await relay()();
    const published = { ...entry, message: 'null', messageId: 'text', expireAt: 'time' };
    expect(await stored('ptk-outbox')).toEqual({ [id]: published, [`~${sha256('mails ')}~${sha256('k2')}`]: published });
    const lease = { rev: 'int', runId: 'text', leaseMs: 'int', restMs: 'int', expireAt: 'time' };
    expect(await stored('ptk-relays')).toEqual({ [sha256(encoded)]: lease });
  });

  test('cursors and parked messages', async () => {
    const { fifo, stored } = setUp();
    const attributes = { 'ptk-stream': stream, 'ptk-epoch': '100', 'ptk-origin-time': '2026-01-01T00:00:00.000Z' };
    const numbered = (n: number) => testMessage({ attributes: { ...attributes, 'ptk-key': `k${n}`, 'ptk-seq': `${n}` } });
    const handle = fifo(async ({ attributes }) => {
      if (attributes['ptk-seq'] === '2') throw new Error('cannot');
    });
    for (const n of [1, 2]) await handle(numbered(n), { signal });
    const cursorId = `my%2Eapp~${encoded}`;
    const numbers = { rev: 'int', last: 'int', start: 'int', epoch: 'int', prevEpoch: 'int', prevLast: 'int', round: 'int' };
    expect(await stored('ptk-cursors')).toEqual({
      [cursorId]: {
        ...numbers,
        ...{ runId: 'text', opId: 'text', by: 'int', started: 'int', leaseMs: 'int', attempts: 'int', skipped: [] },
        blocked: { seq: 'int', reason: 'text', since: 'time' },
        recent: [{ seq: 'int', key: 'text', originMs: 'int' }],
      },
    });
    const message = { messageId: 'text', data: 'bytes', attributes: wire, orderingKey: 'text', publishTimeMs: 'int', subscription: 'text' };
    expect(await stored('ptk-parked')).toEqual({
      [`${sha256(cursorId)}~100~0000000000000002`]: {
        ...{ ...place, consumer: 'text', reason: 'text', parkedAt: 'time', dueAt: 'time', shard: 'int', message },
      },
    });
  });

  test('dedup records', async () => {
    const { dedup, stored, db } = setUp();
    const attributes = { 'ptk-key': 'order-17', 'ptk-stream': stream, 'ptk-seq': '3', 'ptk-epoch': '100', size: 'XL', colour: 'red' };
    const data = Buffer.from([0x7b, 0xff, 0x00]);
    await dedup(async () => {})(testMessage({ messageId: 'm1', attributes, data }), { signal });
    const id = `my%2Eapp~${sha256('order-17')}`;
    const texts = { state: 'text', runId: 'text', key: 'text', fingerprint: 'text', messageId: 'text', originId: 'text' };
    expect(await stored('ptk-dedup')).toEqual({
      [id]: {
        ...texts,
        ...{ v: 'int', rev: 'int', attempts: 'int', leaseMs: 'int', ttlMs: 'int', firstSeenAt: 'time', expireAt: 'time' },
        ...{ supersedes: 'null', result: 'null', seqRef: { stream: 'text', epoch: 'int', sequence: 'int' } },
      },
    });
    const fingerprint = sha256('[["colour","red"],["size","XL"]]={\u00ff\u0000');
    expect((await db.doc(`ptk-dedup/${id}`).get()).data()).toMatchObject({ v: 1, state: 'done', key: 'order-17', fingerprint });
  });
});

describe('a dedup record by hand', () => {
  const written = { v: 1, rev: 1, state: 'done', runId: 'hand', attempts: 1, leaseMs: 60_000, ttlMs: 691_200_000, key: 'k', result: null };
  const record = { ...written, supersedes: null, seqRef: null, messageId: 'm0', originId: 'm0', firstSeenAt: Timestamp.fromMillis(1_000) };

  test.each([
    ['done, of this content', {}, 'ack duplicate', 0],
    ['done, of other content', { fingerprint: sha256('another') }, 'deadLetter conflict', 0],
    ['running, its lease alive', { state: 'running' }, 'nack inProgress', 0],
    ['failed', { state: 'failed' }, 'ack processed', 1],
  ])('that is %s is answered by the toolkit', async (_, changes, answer, runs) => {
    const { dedup, db } = setUp();
    const data = Buffer.alloc(1_025, 'a');
    const fingerprint = sha256(`[]#${createHash('sha256').update(data).digest('hex')}`);
    await db.doc(`ptk-dedup/my%2Eapp~${sha256('k')}`).set({ ...record, fingerprint, ...changes });
    const ran: string[] = [];
    const handle = dedup(async ({ messageId }) => void ran.push(messageId));
    const { kind, reason } = await handle(testMessage({ attributes: { 'ptk-key': 'k' }, data }), { signal });
    expect([`${kind} ${reason}`, ran.length]).toEqual([answer, runs]);
  });
});
