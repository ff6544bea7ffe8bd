import { Buffer } from 'node:buffer';
import { PubSub } from '@google-cloud/pubsub';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { freePort } from '../../src/cli/demo/processes.ts';
import { cloudTasksClient } from '../../src/shared/adapters/cloud-tasks.ts';
import { type Backend, startBackend } from '../support/backend.ts';
import { type Deployed, post, startAppEngine, startFunction } from '../support/deployables.ts';
import { isOfficial } from '../support/official.ts';
import { type Inbox, listenTo } from '../support/received.ts';

const projectId = 'ptk-delay';
const queue = `projects/${projectId}/locations/local/queues/q`;
let emulator: Backend;
let pubsub: PubSub;
let delay: Deployed;
let appEngine: Deployed;
let final: Inbox;

beforeAll(async () => {
  const port = String(await freePort());
  emulator = await startBackend({ appEngineUrl: `http://127.0.0.1:${port}` });
  const env = { ...emulator.env, GOOGLE_CLOUD_PROJECT: projectId, FINAL_TOPIC: 'final', TASK_QUEUES: queue };
  [delay, appEngine] = await Promise.all([startFunction('delay', env), startAppEngine({ ...env, PORT: port })]);
  pubsub = new PubSub({ projectId, apiEndpoint: emulator.pubsub.address });
  await Promise.all([pubsub.createTopic('source'), pubsub.createTopic('final')]);
  final = await listenTo(pubsub, 'final');
  await pubsub.topic('source').createSubscription('source', { pushConfig: { pushEndpoint: delay.url } });
  const tasks = cloudTasksClient(projectId, emulator.env.CLOUD_TASKS_EMULATOR_HOST);
  await tasks.createQueue({ parent: queue.slice(0, queue.indexOf('/queues/')), queue: { name: queue } });
  await tasks.close();
});

afterAll(async () => {
  await Promise.all([delay.kill(), appEngine.kill(), final.close()]);
  await pubsub.close();
  await emulator.close();
});

describe('delay, from topic to topic', () => {
  test('a message comes when it is due and not before, whole', async () => {
    const data = Buffer.from([0x00, 0xff, 0x80]);
    const dueAtMs = Date.parse(new Date().toISOString()) + 700;
    const attributes = { 'ptk-deliver-at': new Date(dueAtMs).toISOString(), 'ptk-key': 'k1', own: 'grüße' };
    const messageId = await pubsub.topic('source', { messageOrdering: true }).publishMessage({ data, attributes, orderingKey: 'o' });
    const [released] = await final.count(1);
    expect(released?.received).toBeGreaterThanOrEqual(dueAtMs);
    expect(released?.data).toEqual(data);
    // Google's emulator leaves the ordering key out of what it pushes.
    expect(released?.orderingKey).toBe(isOfficial ? '' : 'o');
    const travels = { 'ptk-key': 'k1', own: 'grüße', 'ptk-delay-count': '1', 'ptk-origin-id': messageId };
    expect(released?.attributes).toEqual({ ...travels, 'ptk-origin-time': expect.any(String) });
    expect(released?.attributes['ptk-origin-time']).toMatch(/^\d{4}-.*Z$/);
  });

  test('a source message that is delivered twice makes one task', async () => {
    emulator.faults.add({ kind: 'duplicate', resource: '/subscriptions/source', times: 1 });
    const before = final.messages.length;
    await pubsub.topic('source').publishMessage({ data: Buffer.from('a'), attributes: { 'ptk-delay-ms': '300' } });
    await pubsub.topic('source').publishMessage({ data: Buffer.from('last'), attributes: { 'ptk-delay-ms': '900' } });
    const messages = (await final.count(before + 2)).slice(before);
    expect(messages.map(({ data }) => data.toString())).toEqual(['a', 'last']);
    expect(emulator.faults.counts().duplicate).toBe(1);
  });

  test('a task whose creation got no answer is one task', async () => {
    emulator.faults.add({ kind: 'answer-lost', rpc: 'CloudTasks.CreateTask', times: 2 });
    const before = final.messages.length;
    await pubsub.topic('source').publishMessage({ data: Buffer.from('b'), attributes: { 'ptk-delay-ms': '200' } });
    await pubsub.topic('source').publishMessage({ data: Buffer.from('last'), attributes: { 'ptk-delay-ms': '2500' } });
    const messages = (await final.count(before + 2)).slice(before);
    expect(messages.map(({ data }) => data.toString())).toEqual(['b', 'last']);
  });

  test('a message without a due time goes on at once, with a key', async () => {
    const before = final.messages.length;
    const messageId = await pubsub.topic('source').publishMessage({ data: Buffer.from('now') });
    const message = (await final.count(before + 1)).at(-1);
    expect(message?.attributes['ptk-key']).toBe(`projects/${projectId}/subscriptions/source/${messageId}`);
    expect(message?.attributes['ptk-delay-count']).toBeUndefined();
  });

  test('a caller from outside cannot release, whatever it claims', async () => {
    const before = final.messages.length;
    const forged = { headers: { 'X-AppEngine-QueueName': 'q' } };
    expect(await post(`${emulator.appEngine?.url}/tasks/release`, {}, forged)).toBe(403);
    expect(await post(`${appEngine.url}/tasks/release`, {})).toBe(403);
    expect(final.messages.length).toBe(before);
  });
});
