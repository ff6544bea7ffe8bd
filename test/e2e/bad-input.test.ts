import { PubSub } from '@google-cloud/pubsub';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Backend, startBackend } from '../support/backend.ts';
import { type Deployed, post, pushBody, startFunction } from '../support/deployables.ts';
import { type Inbox, listenTo } from '../support/received.ts';

const projectId = 'ptk-bad';
let emulator: Backend;
let pubsub: PubSub;
let dead: Inbox;
let forwarded: Inbox;
const functions: Partial<Record<'delay' | 'fifo' | 'strict', Deployed>> = {};
const urlOf = (name: keyof typeof functions) => functions[name]?.url ?? '';

beforeAll(async () => {
  emulator = await startBackend();
  pubsub = new PubSub({ projectId, apiEndpoint: emulator.pubsub.address });
  for (const topic of ['dead', 'final', 'out']) await pubsub.createTopic(topic);
  [dead, forwarded] = await Promise.all([listenTo(pubsub, 'dead'), listenTo(pubsub, 'final')]);
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
  await Promise.all([...Object.values(functions).map((running) => running.kill()), dead.close(), forwarded.close()]);
  await pubsub.close();
  await emulator.close();
});

describe('a message that can never be handled', () => {
  test.each<[string, 'delay' | 'fifo', Record<string, string>, RegExp]>([
    ['a due time that is no date', 'delay', { 'ptk-deliver-at': 'tomorrow' }, /ptk-deliver-at is "tomorrow"/],
    ['a delay below 0', 'delay', { 'ptk-delay-ms': '-5' }, /ptk-delay-ms is "-5"/],
    ['an empty key', 'delay', { 'ptk-key': '' }, /ptk-key is empty/],
    ['an empty key', 'fifo', { 'ptk-key': '' }, /ptk-key is empty/],
    ['a sequence like 1e3', 'fifo', { 'ptk-stream': 's', 'ptk-seq': '1e3', 'ptk-epoch': '1' }, /ptk-seq is "1e3"/],
    ['a stream without a number', 'fifo', { 'ptk-stream': 's' }, /ptk-seq is missing/],
  ])('%s at %s is dead-lettered with its reason and then acked', async (_, name, attributes, detail) => {
    const before = dead.messages.length;
    expect(await post(urlOf(name), pushBody(attributes, 'body', `bad-${before}`))).toBe(204);
    const letter = (await dead.count(before + 1)).at(-1);
    expect(letter?.attributes).toMatchObject({ 'ptk-dead-reason': 'malformed', 'ptk-dead-source': 'projects/p/subscriptions/s' });
    expect(letter?.attributes['ptk-dead-detail']).toMatch(detail);
    expect(letter?.data.toString()).toBe('body');
  });

  test('without a dead-letter topic it is rejected with an error in the log, and does not come again for ever', async () => {
    expect(await post(urlOf('strict'), pushBody({ 'ptk-delay-ms': '-5' }, 'secret payload', 'bad-9'))).toBe(204);
    const lines = () => functions.strict?.log.filter(({ messageId, severity }) => messageId === 'bad-9' && severity === 'ERROR');
    await expect.poll(lines).toEqual([expect.objectContaining({ reason: 'malformed', detail: expect.stringContaining('ptk-delay-ms') })]);
    expect(JSON.stringify(functions.strict?.log)).not.toContain('secret payload');
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
