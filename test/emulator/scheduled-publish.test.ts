import { afterAll, beforeEach, describe, expect, test } from 'vitest';
import { manualTime, startEmulator } from '../../src/emulator/server.ts';
import type { Target } from '../support/targets.ts';
import { atTime, type TaskRequest, tasksClient } from '../support/tasks-stack.ts';
import { type RawPubsub, rawPubsub, textOf, worker } from './pubsub-raw.ts';
import { askRest, json, publishPath } from './rest-publish.ts';

const emulator = await startEmulator({ time: manualTime() });
const { faults, tasks, time } = emulator;
const target: Target = { name: 'embedded', address: emulator.pubsub.address };
const client = tasksClient(tasks.address);
// The key of OIDC tokens is made once; on a busy machine that takes longer than an advance waits for a task.
await emulator.identity.jwks();
let raw: RawPubsub;
afterAll(async () => {
  raw.close();
  await client.close();
  await emulator.close();
});

const parent = 'projects/ptk-test/locations/europe-west1';
const oauthToken = { serviceAccountEmail: 'delay@ptk-test.iam.gserviceaccount.com' };
const dayMs = 86_400_000;

beforeEach(async () => {
  await emulator.reset();
  raw?.close();
  raw = rawPubsub(target, 'ptk-test');
  await client.createQueue({ parent, queue: { name: `${parent}/queues/delay` } });
});

/** A task that publishes "later" by itself, and the queue forgets it once that is answered with a success. */
async function schedule(topic: string, dueAtMs: number, httpRequest: TaskRequest['httpRequest'] = { oauthToken }): Promise<void> {
  const messages = [{ data: Buffer.from('later').toString('base64'), attributes: { kind: 'reminder' }, orderingKey: 'k' }];
  const url = `http://${target.address}${publishPath(topic)}`;
  const body = Buffer.from(JSON.stringify({ messages }));
  const request = { url, headers: { 'Content-Type': 'application/json' }, body, ...httpRequest };
  await client.createTask({ parent: `${parent}/queues/delay`, task: { scheduleTime: atTime(dueAtMs), httpRequest: request } });
}

/** What is there to be pulled, by text, attributes and key. */
async function there(subscription: string) {
  const received = await raw.pull(subscription);
  return received.map((each) => [textOf(each), each.message.attributes, each.message.orderingKey]);
}

describe('a task that publishes by itself', () => {
  test('puts its message on the subscription at its time and not before, with nobody in between', async () => {
    const { topic, subscription } = await worker(raw);
    await schedule(topic, time.nowMs() + 30 * dayMs);
    await time.advance(30 * dayMs - 1);
    expect(await there(subscription)).toEqual([]);
    await time.advance(1);
    expect(await there(subscription)).toEqual([['later', { kind: 'reminder' }, 'k']]);
    expect(tasks.pending()).toEqual([]);
  });

  test.each([
    { kind: 'fail-before', copies: 1 },
    { kind: 'answer-lost', copies: 2 },
  ] as const)('is tried again after $kind, which makes $copies of one message', async ({ kind, copies }) => {
    const { topic, subscription } = await worker(raw);
    faults.add({ kind, rpc: 'Publisher.Publish', times: 1 });
    await schedule(topic, time.nowMs() + 1_000);
    await time.advance(10_000);
    expect(await there(subscription)).toHaveLength(copies);
    expect(tasks.pending()).toEqual([]);
  });

  test.each([
    { what: 'an OIDC token', httpRequest: { oidcToken: oauthToken }, code: 16 },
    {
      what: 'a token of another scope',
      httpRequest: { oauthToken: { ...oauthToken, scope: 'https://www.googleapis.com/auth/datastore' } },
      code: 7,
    },
    { what: 'a body that is no JSON', httpRequest: { oauthToken, body: Buffer.from('later') }, code: 3 },
  ])('with $what publishes nothing, and its last attempt tells the status', async ({ httpRequest, code }) => {
    const { topic, subscription } = await worker(raw);
    await schedule(topic, time.nowMs() + 1_000, httpRequest);
    await time.advance(1_000);
    expect(await there(subscription)).toEqual([]);
    const [pending] = tasks.pending();
    const [task] = await client.getTask({ name: pending?.name ?? '' });
    expect(task.lastAttempt?.responseStatus).toMatchObject({ code });
  });
});

test('REST is on the port of Pub/Sub alone, beside the control of the emulator', async () => {
  const { topic } = await worker(raw);
  const body = { messages: [{ data: 'YQ==' }] };
  expect(await askRest(target, publishPath(topic), body)).toMatchObject({ status: 200 });
  expect(await askRest(target, '/backlog', undefined, { method: 'GET' })).toEqual({ status: 200, body: { messages: 1 } });
  const { status } = await askRest({ ...target, address: tasks.address }, publishPath(topic), body, { headers: json });
  expect(status).toBe(404);
});
