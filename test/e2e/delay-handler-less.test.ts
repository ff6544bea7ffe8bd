import { PubSub } from '@google-cloud/pubsub';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { cloudTasksClient } from '../../src/shared/adapters/cloud-tasks.ts';
import { type Backend, startBackend } from '../support/backend.ts';
import { type Deployed, startFunction } from '../support/deployables.ts';
import { type Inbox, listenTo } from '../support/received.ts';

const projectId = 'ptk-handler-less';
const queue = `projects/${projectId}/locations/local/queues/q`;
let emulator: Backend;
let pubsub: PubSub;
let delay: Deployed;
let final: Inbox;
let dead: Inbox;

beforeAll(async () => {
  emulator = await startBackend();
  const env = { ...emulator.env, GOOGLE_CLOUD_PROJECT: projectId, FINAL_TOPIC: 'final', TASK_QUEUES: queue, DEAD_LETTER_TOPIC: 'dead' };
  const mode = { DELAY_MODE: 'handler-less', RELEASE_ACCOUNT: `tasks@${projectId}.iam.gserviceaccount.com`, DELAY_HOLD_MS: '0' };
  delay = await startFunction('delay', { ...env, ...mode });
  pubsub = new PubSub({ projectId, apiEndpoint: emulator.pubsub.address });
  await Promise.all(['source', 'final', 'dead'].map((topic) => pubsub.createTopic(topic)));
  [final, dead] = await Promise.all([listenTo(pubsub, 'final'), listenTo(pubsub, 'dead')]);
  await pubsub.topic('source').createSubscription('source', { pushConfig: { pushEndpoint: delay.url } });
  const tasks = cloudTasksClient(projectId, emulator.env.CLOUD_TASKS_EMULATOR_HOST);
  await tasks.createQueue({ parent: queue.slice(0, queue.indexOf('/queues/')), queue: { name: queue } });
  await tasks.close();
});

afterAll(async () => {
  await Promise.all([delay.kill(), final.close(), dead.close()]);
  await pubsub.close();
  await emulator.close();
});

describe('delay without a handler', () => {
  test('the task publishes by itself, when the message is due and not before, whole', async () => {
    const data = Buffer.from([0x00, 0xff, 0x80]);
    const dueAtMs = Date.now() + 700;
    const attributes = { 'ptk-deliver-at': new Date(dueAtMs).toISOString(), 'ptk-key': 'k1', own: 'grüße' };
    const messageId = await pubsub.topic('source', { messageOrdering: true }).publishMessage({ data, attributes, orderingKey: 'o' });
    const [released] = await final.count(1);
    expect(released?.received).toBeGreaterThanOrEqual(dueAtMs);
    expect(released).toMatchObject({ data, orderingKey: 'o' });
    const travels = { 'ptk-key': 'k1', own: 'grüße', 'ptk-delay-count': '1', 'ptk-origin-id': messageId };
    expect(released?.attributes).toEqual({ ...travels, 'ptk-origin-time': expect.any(String) });
  });

  test.each([
    ['an id, which only the ledger knows', { 'ptk-delay-id': 'order-4', 'ptk-delay-ms': '500' }, 'malformed', 'ptk-delay-id'],
    ['more than 30 days, which one task cannot wait', { 'ptk-delay-ms': String(720 * 3_600_000 + 1) }, 'refused', '2592000000'],
  ])('%s, is a dead letter', async (_, attributes, reason, detail) => {
    const before = dead.messages.length;
    await pubsub.topic('source').publishMessage({ data: Buffer.from('x'), attributes });
    const letter = (await dead.count(before + 1)).at(-1);
    expect(letter?.attributes['ptk-dead-reason']).toBe(reason);
    expect(letter?.attributes['ptk-dead-detail']).toContain(detail);
  });
});
