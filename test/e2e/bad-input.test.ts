import type { Firestore } from '@google-cloud/firestore';
import { PubSub } from '@google-cloud/pubsub';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { freshCursor } from '../../src/shared/fifo/cursor.ts';
import { type Backend, startBackend } from '../support/backend.ts';
import { type Deployed, post, pushBody, startFunction } from '../support/deployables.ts';
import { type Inbox, listenTo } from '../support/received.ts';
import { firestoreClient } from '../support/targets.ts';

const projectId = 'ptk-bad';
let emulator: Backend;
let pubsub: PubSub;
let db: Firestore;
let dead: Inbox;
let forwarded: Inbox;
let sunk: Inbox;
const functions: Partial<Record<'delay' | 'fifo' | 'strict', Deployed>> = {};
const numbered = (seq: string, more: Record<string, string> = {}) => ({ 'ptk-stream': 's', 'ptk-seq': seq, 'ptk-epoch': '1', ...more });
const urlOf = (name: keyof typeof functions) => functions[name]?.url ?? '';

beforeAll(async () => {
  emulator = await startBackend();
  pubsub = new PubSub({ projectId, apiEndpoint: emulator.pubsub.address });
  db = firestoreClient(emulator.firestore.address, projectId);
  for (const topic of ['dead', 'final', 'out']) await pubsub.createTopic(topic);
  [dead, forwarded, sunk] = await Promise.all([listenTo(pubsub, 'dead'), listenTo(pubsub, 'final'), listenTo(pubsub, 'out')]);
  const env = {
    ...emulator.env,
    GOOGLE_CLOUD_PROJECT: projectId,
    CONSUMER: 'c',
    SINK: 'topic:out',
    FINAL_TOPIC: 'final',
    TASK_QUEUES: 'projects/p/locations/l/queues/q',
  };
  const withTopic = { ...env, DEAD_LETTER_TOPIC: 'dead' };
  [functions.delay, functions.fifo, functions.strict] = await Promise.all([
    startFunction('delay', withTopic),
    startFunction('fifo', withTopic),
    startFunction('delay', env),
  ]);
});

afterAll(async () => {
  await Promise.all([...Object.values(functions).map((running) => running.kill()), dead.close(), forwarded.close(), sunk.close()]);
  await Promise.all([pubsub.close(), db.terminate()]);
  await emulator.close();
});

describe('a message that can never be handled', () => {
  type Row = [string, 'delay' | 'fifo', Record<string, string>, RegExp];
  test.each<Row>([
    ['a due time that is no date', 'delay', { 'ptk-deliver-at': 'tomorrow' }, /ptk-deliver-at is "tomorrow"/],
    ['a delay below 0', 'delay', { 'ptk-delay-ms': '-5' }, /ptk-delay-ms is "-5"/],
    ['an empty key', 'delay', { 'ptk-key': '' }, /ptk-key is empty/],
    ['an empty key', 'fifo', { 'ptk-key': '' }, /ptk-key is empty/],
    ['a sequence like 007', 'fifo', numbered('007'), /ptk-seq is "007"; it must be a decimal number/],
    ['a sequence like 1e3', 'fifo', numbered('1e3'), /ptk-seq is "1e3"; it must be a decimal number/],
    ['a sequence like 5.0', 'fifo', numbered('5.0'), /ptk-seq is "5\.0"; it must be a decimal number/],
    ['a sequence above 2^53-1', 'fifo', numbered('9007199254740992'), /ptk-seq is "9007199254740992"; it must be .* up to 2\^53-1/],
    ['the sequence 0', 'fifo', numbered('0'), /ptk-seq is 0; numbers begin at 1/],
    ['a stream without a number', 'fifo', { 'ptk-stream': 's', 'ptk-epoch': '1' }, /ptk-seq is missing/],
    ['a stream without an epoch', 'fifo', { 'ptk-stream': 's', 'ptk-seq': '1' }, /ptk-epoch is missing/],
    ['an epoch like 1.5', 'fifo', numbered('1', { 'ptk-epoch': '1.5' }), /ptk-epoch is "1.5"/],
    ['a stream without a name', 'fifo', numbered('1', { 'ptk-stream': '' }), /ptk-stream is empty/],
    ['a number without a stream', 'fifo', { 'ptk-seq': '1', 'ptk-epoch': '1' }, /ptk-seq is set without ptk-stream/],
    ['a stream of 2,000 characters', 'fifo', numbered('1', { 'ptk-stream': 's'.repeat(2_000) }), /a document id of 2002 bytes/],
    ['a stream whose documents have no id', 'fifo', numbered('1', { 'ptk-stream': 'ü'.repeat(512) }), /a document id of 3074 bytes/],
  ])('%s at %s is dead-lettered with its reason and then acked', async (_, name, attributes, detail) => {
    const before = dead.messages.length;
    expect(await post(urlOf(name), pushBody(attributes, 'body', `bad-${before}`))).toBe(204);
    const letter = (await dead.count(before + 1)).at(-1);
    expect(letter?.attributes).toMatchObject({ 'ptk-dead-reason': 'malformed', 'ptk-dead-source': 'projects/p/subscriptions/s' });
    expect(letter?.attributes['ptk-dead-detail']).toMatch(detail);
    expect(letter?.data.toString()).toBe('body');
  });

  test.each([
    ['the sequence 2^53-1', numbered('9007199254740991'), 'parked'],
    ['a stream of 1,024 characters, the most that an attribute holds', numbered('1', { 'ptk-stream': 's'.repeat(1_024) }), 'processed'],
  ])('%s is none: it is handled', async (_, attributes, reason) => {
    const messageId = `good-${reason}`;
    expect(await post(urlOf('fifo'), pushBody(attributes, 'body', messageId))).toBe(204);
    await expect.poll(() => functions.fifo?.log).toContainEqual(expect.objectContaining({ messageId, message: 'acked', reason }));
  });

  test('without a dead-letter topic it is rejected with an error in the log, and does not come again for ever', async () => {
    expect(await post(urlOf('strict'), pushBody({ 'ptk-delay-ms': '-5' }, 'secret payload', 'bad-9'))).toBe(204);
    const lines = () => functions.strict?.log.filter(({ messageId, severity }) => messageId === 'bad-9' && severity === 'ERROR');
    await expect.poll(lines).toEqual([expect.objectContaining({ reason: 'malformed', detail: expect.stringContaining('ptk-delay-ms') })]);
    expect(JSON.stringify(functions.strict?.log)).not.toContain('secret payload');
  });
});

describe('a cursor that was edited by hand', () => {
  const whole = { ...freshCursor(1, 1), rev: 3, last: 4 };
  const without = (field: string) => Object.fromEntries(Object.entries(whole).filter(([name]) => name !== field));
  let edits = 0;

  test.each<[string, object, RegExp]>([
    ['last is a text', { ...whole, last: 'x' }, /^the cursor .* has last x$/],
    ['last is a fraction', { ...whole, last: 4.5 }, /^the cursor .* has last 4\.5$/],
    ['epoch is gone', without('epoch'), /^the cursor .* has epoch NaN$/],
    ['last is gone', without('last'), /^the cursor .* has last NaN$/],
    ['skipped is no list', { ...whole, skipped: 'x' }, /^the cursor .* has fields of other forms$/],
    ['blocked is a text', { ...whole, blocked: 'x' }, /^the cursor .* has fields of other forms$/],
    ['rev is gone', without('rev'), /^the document ptk-cursors\/c~edited-7 is no record/],
    ['runId is a number', { ...whole, runId: 7 }, /^the document ptk-cursors\/c~edited-8 is no record/],
    ['all is gone', {}, /^the document ptk-cursors\/c~edited-9 is no record/],
  ])('so that %s: old, next and early are 503 with a reason in the log, until it is mended', async (_, fields, reason) => {
    const stream = `edited-${++edits}`;
    const keyOf = (seq: number) => `${stream}/${seq}`;
    const push = (seq: number) =>
      post(urlOf('fifo'), pushBody(numbered(String(seq), { 'ptk-stream': stream, 'ptk-key': keyOf(seq) }), 'body', keyOf(seq)));
    const cursor = db.doc(`ptk-cursors/c~${stream}`);
    await cursor.set(fields);
    expect([await push(4), await push(5), await push(6)]).toEqual([503, 503, 503]);
    expect((await cursor.get()).data()).toEqual(fields);
    const line = { messageId: keyOf(5), severity: 'WARNING', stream, reason: expect.stringMatching(reason) };
    await expect.poll(() => functions.fifo?.log).toContainEqual(expect.objectContaining(line));
    await cursor.set(whole);
    expect([await push(4), await push(5), await push(6)]).toEqual([204, 204, 204]);
    await expect.poll(() => sunk.messages.flatMap(({ attributes }) => attributes['ptk-key'] ?? []).slice(-2)).toEqual([keyOf(5), keyOf(6)]);
    expect((await cursor.get()).data()).toMatchObject({ last: 6, epoch: 1, runId: '' });
  });
});

describe('a body that is no push', () => {
  test.each<[string, unknown]>([
    ['an empty object', {}],
    ['an array', []],
    ['a message that is text', { message: 'x', subscription: 's' }],
    ['bad base64', { message: { messageId: '1', data: '%%%' }, subscription: 's' }],
    ['data that is a number', { message: { messageId: '1', data: 5 }, subscription: 's' }],
    ['attributes that are no texts', { message: { messageId: '1', attributes: { a: 1 } }, subscription: 's' }],
    ['no message id', { message: { data: 'YQ==' }, subscription: 's' }],
  ])('%s is answered 400 and logged', async (_, body) => {
    const before = functions.strict?.log.length ?? 0;
    expect(await post(urlOf('strict'), body)).toBe(400);
    await expect
      .poll(() => functions.strict?.log.slice(before))
      .toContainEqual(expect.objectContaining({ severity: 'ERROR', message: 'push request rejected' }));
  });

  test('with a dead-letter topic it is kept there, with its reason, and nothing comes again', async () => {
    const before = dead.messages.length;
    expect(await post(urlOf('delay'), { message: { messageId: '1', data: '%%%' }, subscription: 's' })).toBe(204);
    const letter = (await dead.count(before + 1)).at(-1);
    expect(letter?.attributes).toMatchObject({ 'ptk-dead-reason': 'malformed', 'ptk-dead-detail': 'message.data is not base64' });
    expect(JSON.parse(letter?.data.toString() ?? '')).toEqual({ message: { messageId: '1', data: '%%%' }, subscription: 's' });
  });

  test('a GET is no push', async () => {
    expect((await fetch(urlOf('delay'))).status).toBe(405);
  });

  test('text that is no JSON is answered 400 by the framework, and the function lives on', async () => {
    expect(await post(urlOf('strict'), undefined, { raw: '{"message":' })).toBe(400);
    expect(await post(urlOf('strict'), pushBody({}, 'fine', 'ok-1'))).toBe(204);
    expect((await forwarded.count(1)).at(-1)?.data.toString()).toBe('fine');
  });
});
