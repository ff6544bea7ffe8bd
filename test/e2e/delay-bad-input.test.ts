import { PubSub } from '@google-cloud/pubsub';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Emulator, startEmulator } from '../../src/emulator/server.ts';
import { cloudTasksClient } from '../../src/shared/adapters/cloud-tasks.ts';
import { type Deployed, startFunction } from '../support/deployables.ts';
import { type Inbox, listenTo } from '../support/received.ts';

const projectId = 'ptk-bad-delay';
const queue = `projects/${projectId}/locations/local/queues/q`;
const secret = 'secret payload';
let emulator: Emulator;
let pubsub: PubSub;
const functions: Partial<Record<'ledger' | 'plain', Deployed>> = {};
let final: Inbox;
let dead: Inbox;

beforeAll(async () => {
  emulator = await startEmulator();
  const topics = { FINAL_TOPIC: 'final', TARGET_TOPICS: 'other', DEAD_LETTER_TOPIC: 'dead' };
  const env = { ...emulator.env, GOOGLE_CLOUD_PROJECT: projectId, TASK_QUEUES: queue, DELAY_HOLD_MS: '0', ...topics };
  const plain = { DELAY_MODE: 'handler-less', RELEASE_ACCOUNT: `tasks@${projectId}.iam.gserviceaccount.com` };
  [functions.ledger, functions.plain] = await Promise.all([startFunction('delay', env), startFunction('delay', { ...env, ...plain })]);
  pubsub = new PubSub({ projectId, apiEndpoint: emulator.pubsub.address });
  await Promise.all(['ledger', 'plain', 'final', 'other', 'dead'].map((topic) => pubsub.createTopic(topic)));
  [final, dead] = await Promise.all([listenTo(pubsub, 'final'), listenTo(pubsub, 'dead')]);
  for (const [name, running] of Object.entries(functions))
    await pubsub.topic(name).createSubscription(name, { pushConfig: { pushEndpoint: running.url } });
  const tasks = cloudTasksClient(projectId, emulator.tasks.address);
  await tasks.createQueue({ parent: queue.slice(0, queue.indexOf('/queues/')), queue: { name: queue } });
  await tasks.close();
});

afterAll(async () => {
  await Promise.all([...Object.values(functions).map((running) => running.kill()), final.close(), dead.close()]);
  await pubsub.close();
  await emulator.close();
});

const wholeMs = /^ptk-delay-ms is ".*"; it must be a whole number of ms from 0$/;
const instant = /^ptk-deliver-at is ".*"; it must be an RFC 3339 instant such as 2026-01-31T09:30:00Z$/;

describe('what can never be delayed is one dead letter with its reason, and no task', () => {
  type Row = [string, keyof typeof functions, Record<string, string>, RegExp];
  test.each<Row>([
    ['a due time that is no date', 'ledger', { 'ptk-deliver-at': 'tomorrow' }, instant],
    ['30 February', 'ledger', { 'ptk-deliver-at': '2026-02-30T00:00:00Z' }, instant],
    ['an instant without a zone', 'ledger', { 'ptk-deliver-at': '2026-03-01T00:00:00' }, instant],
    ['the year 10000 by five digits', 'ledger', { 'ptk-deliver-at': '10000-01-01T00:00:00Z' }, instant],
    [
      'the year 10000 by its zone',
      'ledger',
      { 'ptk-deliver-at': '9999-12-31T23:59:59-00:01' },
      /^the due time .* lies after the year 9999$/,
    ],
    ['the year 10000 by its delay', 'ledger', { 'ptk-delay-ms': '253402300800000' }, /^the due time .* lies after the year 9999$/],
    ['a delay below 0', 'ledger', { 'ptk-delay-ms': '-1' }, wholeMs],
    ['a delay that is no number', 'ledger', { 'ptk-delay-ms': 'NaN' }, wholeMs],
    ['a fraction of a ms', 'ledger', { 'ptk-delay-ms': '60.5' }, wholeMs],
    ['an empty delay', 'ledger', { 'ptk-delay-ms': '' }, wholeMs],
    [
      'two due times',
      'ledger',
      { 'ptk-delay-ms': '60000', 'ptk-deliver-at': '2099-01-01T00:00:00Z' },
      /^ptk-deliver-at and ptk-delay-ms are both set$/,
    ],
    [
      'a topic that is not allowed',
      'ledger',
      { 'ptk-delay-ms': '60000', 'ptk-target': 'dead' },
      /^ptk-target is "dead"; it must be one of .*\/final, .*\/other$/,
    ],
    [
      'an id without a ledger',
      'plain',
      { 'ptk-delay-ms': '60000', 'ptk-delay-id': 'order-4' },
      /^ptk-delay-id is set, and there is no ledger here$/,
    ],
    ['a due time that is no date, without a handler', 'plain', { 'ptk-deliver-at': 'tomorrow' }, instant],
  ])('%s', async (_, name, attributes, detail) => {
    const before = dead.messages.length;
    const messageId = await pubsub.topic(name).publishMessage({ data: Buffer.from(secret), attributes });
    const letter = (await dead.count(before + 1)).at(-1);
    const from = { 'ptk-origin-id': messageId, 'ptk-dead-source': `projects/${projectId}/subscriptions/${name}` };
    expect(letter?.attributes).toMatchObject({ ...attributes, ...from, 'ptk-dead-reason': 'malformed' });
    expect(letter?.attributes['ptk-dead-detail']).toMatch(detail);
    expect(letter?.data.toString()).toBe(secret);
    const line = { severity: 'WARNING', messageId, reason: 'malformed', detail: expect.stringMatching(detail) };
    await expect.poll(() => functions[name]?.log).toContainEqual(expect.objectContaining(line));
    await expect.poll(() => emulator.pubsub.backlog()).toBe(0);
    expect([dead.messages.length, final.messages.length, emulator.tasks.pending().length]).toEqual([before + 1, 0, 0]);
  });
});

describe('a message that is too large', () => {
  test.each<[string, keyof typeof functions, number, RegExp]>([
    [
      'with its stamps for Pub/Sub',
      'ledger',
      9_999_900,
      /^the message takes 10000\d{3} bytes as it is released; at most 10000000 can be published$/,
    ],
    ['for a task that publishes by itself', 'plain', 1_100_000, /^Cloud Tasks refused the task: .*/],
  ])('%s is one dead letter, whole, and no task', async (_, name, bytes, detail) => {
    const before = dead.messages.length;
    const data = Buffer.alloc(bytes, secret);
    const messageId = await pubsub.topic(name).publishMessage({ data, attributes: { 'ptk-delay-ms': '60000' } });
    const letter = (await dead.count(before + 1)).at(-1);
    expect(letter?.attributes).toMatchObject({ 'ptk-delay-ms': '60000', 'ptk-dead-reason': 'tooLarge' });
    expect(letter?.data.equals(data)).toBe(true);
    const line = { severity: 'WARNING', messageId, reason: 'tooLarge', detail: expect.stringMatching(detail) };
    await expect.poll(() => functions[name]?.log).toContainEqual(expect.objectContaining(line));
    await expect.poll(() => emulator.pubsub.backlog()).toBe(0);
    expect([dead.messages.length, final.messages.length, emulator.tasks.pending().length]).toEqual([before + 1, 0, 0]);
  });

  test('by 200 bytes less is none: it becomes a task', async () => {
    const before = dead.messages.length;
    await pubsub.topic('ledger').publishMessage({ data: Buffer.alloc(9_999_700, secret), attributes: { 'ptk-delay-ms': '60000' } });
    await expect.poll(() => emulator.tasks.pending().length, { timeout: 5_000 }).toBe(1);
    await expect.poll(() => emulator.pubsub.backlog()).toBe(0);
    expect([dead.messages.length, final.messages.length]).toEqual([before, 0]);
  });
});

test('no log shows a payload', () => {
  for (const running of Object.values(functions)) {
    expect(running.log.length).toBeGreaterThan(0);
    const log = JSON.stringify(running.log);
    expect(log).not.toContain(secret);
    expect(log).not.toContain(Buffer.from(secret).toString('base64').slice(0, 16));
  }
});
