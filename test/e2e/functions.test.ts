import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { Firestore } from '@google-cloud/firestore';
import { cloudEvent } from '@google-cloud/functions-framework';
import { getTestServer } from '@google-cloud/functions-framework/testing';
import { PubSub } from '@google-cloud/pubsub';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Backend, startBackend } from '../support/backend.ts';
import { type Deployed, post, pushBody, startFunction } from '../support/deployables.ts';
import { firestoreClient } from '../support/targets.ts';

const projectId = 'ptk-functions';
type Call = {
  readonly headers: IncomingHttpHeaders;
  readonly body: { message: Record<string, unknown>; subscription: string };
  readonly atMs: number;
};

let env: Record<string, string>;
let emulator: Backend;
let pubsub: PubSub;
let db: Firestore;
let dedup: Deployed;
let fifo: Deployed;
let sink: Server;
let calls: Call[] = [];
let answers: number[] = [];
let onCall = () => {};
const calledTimes = (times: number) =>
  new Promise<void>((resolve) => {
    onCall = () => calls.length >= times && resolve();
    onCall();
  });

beforeAll(async () => {
  sink = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    calls.push({ headers: request.headers, body: JSON.parse(Buffer.concat(chunks).toString()), atMs: performance.now() });
    response.writeHead(answers.shift() ?? 200).end();
    onCall();
  });
  await new Promise<void>((resolve) => sink.listen(0, '127.0.0.1', resolve));
  const address = sink.address();
  const sinkUrl = `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}/`;
  emulator = await startBackend();
  env = { ...emulator.env, GOOGLE_CLOUD_PROJECT: projectId, CONSUMER: 'c', SINK: sinkUrl };
  [dedup, fifo] = await Promise.all([startFunction('dedup', env), startFunction('fifo', { ...env, CONSUMER: 'f' })]);
  pubsub = new PubSub({ projectId, apiEndpoint: emulator.pubsub.address });
  db = firestoreClient(emulator.firestore.address, projectId);
});

afterAll(async () => {
  await Promise.all([dedup.kill(), fifo.kill(), pubsub.close(), db.terminate()]);
  sink.close();
  await emulator.close();
});

/** A message of attributes only. */
const binary = {
  headers: {
    'ce-id': 'ce-1',
    'ce-source': '//pubsub.googleapis.com/projects/p/topics/t',
    'ce-type': 'google.cloud.pubsub.topic.v1.messagePublished',
    'ce-specversion': '1.0',
  },
  data: {
    message: { messageId: 'ce-1', publishTime: '2026-01-01T00:00:00Z', attributes: { only: 'attributes' }, orderingKey: 'o' },
    subscription: 'projects/p/subscriptions/s',
  },
};

const reset = () => {
  calls = [];
  answers = [];
};

describe('functions/dedup', () => {
  test('the same message twice reaches the sink once, as the push envelope and under its key', async () => {
    reset();
    const body = pushBody({ 'ptk-key': 'order 17/ü', own: 'a' }, 'hello', 'm1');
    expect(await post(dedup.url, body)).toBe(204);
    expect(await post(dedup.url, { ...body, message: { ...body.message, messageId: 'm2', message_id: 'm2' } })).toBe(204);
    expect(calls).toHaveLength(1);
    expect(calls[0]?.body).toMatchObject({
      message: { data: 'aGVsbG8=', attributes: { 'ptk-key': 'order 17/ü', own: 'a' }, messageId: 'm1', message_id: 'm1' },
      subscription: 'projects/p/subscriptions/s',
    });
    expect(calls[0]?.headers['idempotency-key']).toBe(encodeURIComponent('order 17/ü'));
  });

  test('the record stands under its wire name, with its wire fields', async () => {
    const { docs } = await db.collection('ptk-dedup').where('key', '==', 'order 17/ü').get();
    expect(docs[0]?.id).toMatch(/^c~[0-9a-f]{64}$/);
    expect(docs[0]?.data()).toMatchObject({ v: 1, state: 'done', attempts: 1, leaseMs: 60_000, result: null, seqRef: null });
    expect(docs[0]?.get('expireAt').toMillis()).toBeGreaterThan(docs[0]?.get('firstSeenAt').toMillis() ?? 0);
  });

  test('G92: a binary CloudEvent reaches the sink with id, subscription and ordering key, attributes only as well', async () => {
    reset();
    expect(await post(dedup.url, binary.data, binary)).toBe(204);
    expect(calls[0]?.body).toMatchObject({
      message: { messageId: 'ce-1', attributes: { only: 'attributes' }, orderingKey: 'o', data: '' },
      subscription: 'projects/p/subscriptions/s',
    });
  });

  test('G92: a handler of the framework’s own signature gets id, source and data of the same event', async () => {
    const events: unknown[] = [];
    cloudEvent('seen', (event: unknown) => void events.push(event));
    const server = getTestServer('seen').listen(0, '127.0.0.1');
    await new Promise<unknown>((resolve) => server.once('listening', resolve));
    const address = server.address();
    expect(await post(`http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}/`, binary.data, binary)).toBe(204);
    expect(events).toMatchObject([{ id: 'ce-1', source: '//pubsub.googleapis.com/projects/p/topics/t', data: binary.data }]);
    server.close();
  });

  test('a structured CloudEvent reaches the sink', async () => {
    reset();
    const event = {
      specversion: '1.0',
      id: 'ce-2',
      source: '//x',
      type: 't',
      data: { message: { messageId: 'ce-2', data: 'YQ==' }, subscription: 'projects/p/subscriptions/s' },
    };
    expect(await post(dedup.url, event, { headers: { 'content-type': 'application/cloudevents+json' } })).toBe(204);
    expect(calls[0]?.body).toMatchObject({ message: { messageId: 'ce-2', data: 'YQ==' } });
  });

  test('G93: a sink that fails is 500, and with retry on the message comes again with back-off until it is done', async () => {
    emulator.checkInspected();
    reset();
    answers = [500];
    expect(await post(dedup.url, pushBody({ 'ptk-key': 'failed' }, 'x', 'm7'))).toBe(500);
    reset();
    answers = [500, 500];
    await pubsub.createTopic('again');
    const retryPolicy = { minimumBackoff: { nanos: 200_000_000 }, maximumBackoff: { seconds: 1 } };
    await pubsub.topic('again').createSubscription('again', { pushConfig: { pushEndpoint: dedup.url }, retryPolicy });
    await pubsub.topic('again').publishMessage({ data: Buffer.from('x') });
    await calledTimes(3);
    await emulator.untilEmpty();
    expect(calls.map(({ body }) => body.message.messageId)).toEqual(Array(3).fill(calls[0]?.body.message.messageId));
    const waits = calls.slice(1).map(({ atMs }, index) => atMs - (calls[index]?.atMs ?? 0));
    expect(waits.filter((waitMs) => waitMs < 199)).toEqual([]);
  });

  test('G93: with retry off the trigger acks whatever the function answers, and the message is dropped', async () => {
    emulator.checkInspected();
    reset();
    answers = [500];
    const statuses: number[] = [];
    // Eventarc's part: it calls the function and answers its subscription.
    const trigger = createServer(async (request, response) => {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk);
      statuses.push(await post(dedup.url, undefined, { raw: Buffer.concat(chunks).toString() }));
      response.writeHead(204).end();
    });
    await new Promise<void>((resolve) => trigger.listen(0, '127.0.0.1', resolve));
    const address = trigger.address();
    const pushEndpoint = `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}/`;
    await pubsub.createTopic('dropped');
    await pubsub.topic('dropped').createSubscription('dropped', { pushConfig: { pushEndpoint }, ackDeadlineSeconds: 10 });
    for (const data of ['lost', 'next']) {
      await pubsub.topic('dropped').publishMessage({ data: Buffer.from(data) });
      await emulator.untilEmpty();
    }
    trigger.close();
    expect(statuses).toEqual([500, 204]);
    expect(calls.map(({ body }) => Buffer.from(String(body.message.data), 'base64').toString())).toEqual(['lost', 'next']);
  });

  test('a sink that refuses ends the message with an error in the log', async () => {
    reset();
    answers = [422];
    expect(await post(dedup.url, pushBody({ 'ptk-key': 'refused' }, 'x', 'm9'))).toBe(204);
    await expect.poll(() => dedup.log).toContainEqual(expect.objectContaining({ severity: 'ERROR', messageId: 'm9', reason: 'refused' }));
  });
});

describe('functions/fifo', () => {
  const numbered = (sequence: number, epoch = 5) =>
    pushBody(
      { 'ptk-key': `n${sequence}`, 'ptk-stream': 'orders/1', 'ptk-seq': String(sequence), 'ptk-epoch': String(epoch) },
      'x',
      `n${sequence}`,
    );

  const cursor = async () => (await db.collection('ptk-cursors').doc('f~orders%2F1').get()).data();
  const handled = () => calls.map(({ body }) => body.message.messageId);

  test('delta decides: early is parked and acked, the head runs and what is parked after it, old does not run', async () => {
    reset();
    expect(await post(fifo.url, numbered(2))).toBe(204);
    expect([calls, (await db.collection('ptk-parked').get()).size]).toEqual([[], 1]);
    expect(await post(fifo.url, numbered(1))).toBe(204);
    expect([handled(), (await db.collection('ptk-parked').get()).size]).toEqual([['n1', 'n2'], 0]);
    expect(await post(fifo.url, numbered(2))).toBe(204);
    expect(await post(fifo.url, numbered(1))).toBe(204);
    expect(handled()).toEqual(['n1', 'n2']);
    expect(await cursor()).toMatchObject({ last: 2, epoch: 5, runId: '', attempts: 0, blocked: null });
  });

  test('a head that fails stays the head, and what is parked behind it is the envelope that came', async () => {
    reset();
    answers = [500];
    expect(await post(fifo.url, numbered(3))).toBe(500);
    expect(await post(fifo.url, numbered(4))).toBe(204);
    expect(await post(fifo.url, numbered(3))).toBe(204);
    expect(handled()).toEqual(['n3', 'n3', 'n4']);
    expect(calls.at(-1)?.body.message).toMatchObject({ messageId: 'n4', attributes: { 'ptk-seq': '4' } });
  });

  test('with FIFO_EARLY=nack and FIFO_ON_POISON=dead-letter early is 429, and a stream goes on without a number that always fails', async () => {
    reset();
    const settings = { FIFO_EARLY: 'nack', FIFO_ON_POISON: 'dead-letter', FIFO_MAX_ATTEMPTS: '2' };
    const chosen = await startFunction('fifo', { ...env, ...settings, CONSUMER: 'g' });
    answers = [500, 500];
    expect(await post(chosen.url, numbered(2))).toBe(429);
    expect(await post(chosen.url, numbered(1))).toBe(500);
    expect(await post(chosen.url, numbered(1))).toBe(204);
    expect(await post(chosen.url, numbered(2))).toBe(204);
    expect(handled()).toEqual(['n1', 'n1', 'n2']);
    await chosen.kill();
  });

  test('a message without a stream goes straight through', async () => {
    reset();
    expect(await post(fifo.url, pushBody({ 'ptk-key': 'free' }))).toBe(204);
    expect(calls).toHaveLength(1);
  });
});
