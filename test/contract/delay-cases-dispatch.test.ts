import express from 'express';
import { afterEach, describe, expect, test } from 'vitest';
import { cloudTasksScheduler } from '../../src/shared/adapters/cloud-tasks.ts';
import { system } from '../../src/shared/adapters/system.ts';
import { ToolkitError } from '../../src/shared/errors.ts';
import type { Publisher } from '../../src/shared/ports.ts';
import { type DelayStack, day, delayStacks, hour, minute } from '../support/delay-stack.ts';
import { callsOf, cameAt, oneMessage, outcomeOf, watchedDispatches } from '../support/dispatches.ts';

const stacks = await delayStacks();
const { time, emulator, tasks, publisher, open } = stacks;
const { armed, scheduled } = oneMessage(stacks);
const { faults } = emulator;
afterEach(() => faults.reset());

const ledgers: [string, Record<string, string>][] = [
  ['without the ledger', {}],
  ['with the ledger', { 'ptk-delay-id': 'order-7' }],
];
const isDown = new ToolkitError('SERVICE_UNAVAILABLE', 'Pub/Sub is down');
const headersOf = ({ queueId }: DelayStack, task: string) => ({ 'X-AppEngine-QueueName': queueId, 'X-AppEngine-TaskName': task });

/** Fails with the errors given, one for each call, and then publishes. */
const failing = (...errors: Error[]): Publisher => ({
  async publish(...args) {
    const error = errors.shift();
    if (error) throw error;
    return publisher.publish(...args);
  },
});

describe.each(ledgers)('46: the task is made and the answer is lost, %s:', (_, id) => {
  /** Its pauses take real time: each of 25 by a clock that a test moves would take a step of that clock. */
  const scheduler = cloudTasksScheduler({ client: tasks, release: {}, system });

  test('46: the message comes once, when it is due', async () => {
    const stack = await open({ delay: { scheduler } });
    faults.add({ kind: 'answer-lost', rpc: 'CloudTasks.CreateTask', resource: stack.queue, times: 1 });
    const dueAtMs = await scheduled(stack, id);
    expect(faults.counts()['answer-lost']).toBe(1);
    await stack.pass(40 * day);
    expect(await outcomeOf(stack)).toEqual(cameAt(dueAtMs));
  });

  test('46: of 25 messages at once each comes once, when it is due', async () => {
    const stack = await open({ delay: { scheduler } });
    faults.add({ kind: 'answer-lost', rpc: 'CloudTasks.CreateTask', resource: stack.queue, times: 25 });
    const dueAtMs = time.nowMs() + hour;
    const keys = Array.from({ length: 25 }, (_message, index) => `k${index + 10}`);
    await Promise.all(
      keys.map((key) =>
        stack.publish({ 'ptk-key': key, 'ptk-delay-ms': String(hour), ...('ptk-delay-id' in id && { 'ptk-delay-id': key }) }),
      ),
    );
    await armed(stack, 25);
    expect(faults.counts()['answer-lost']).toBe(25);
    await stack.pass(40 * day);
    const { came, ...left } = await outcomeOf(stack);
    expect(came.map(([, key, atMs]) => [key, atMs]).sort()).toEqual(keys.map((key) => [key, dueAtMs]));
    expect(left).toEqual({ letters: [], tasks: 0, entries: 0 });
  });
});

describe.each(ledgers)('47: a release that fails, %s:', (_, id) => {
  test('47: is told to come again by 503 and 500, and publishes once with the fourth attempt', async () => {
    const { parser, statuses, retries } = watchedDispatches();
    const stack = await open({ parser, release: { publisher: failing(isDown, isDown, new Error('boom')) } });
    const dueAtMs = await scheduled(stack, id);
    await stack.pass(40 * day);
    expect([statuses, retries]).toEqual([
      [503, 503, 500, 200],
      ['0', '1', '2', '3'],
    ]);
    // By the queue's own pauses.
    expect(await outcomeOf(stack)).toEqual(cameAt(dueAtMs + 100 + 200 + 400));
  });

  test('47: is one task, however its headers are written', async () => {
    const stack = await open();
    await scheduled(stack, id);
    const [task] = stack.pending();
    const name = task?.name.split('/').at(-1) ?? '';
    const post = await callsOf(stack.app);
    const body = task?.body.toString() ?? '';
    expect(await post(body, { 'X-Appengine-Queuename': stack.queueId, 'X-Appengine-Taskname': name })).toBe(200);
    expect(await post(body, { 'X-AppEngine-QueueName': stack.queueId, 'X-AppEngine-TaskName': name })).toBe(200);
    const postedAtMs = time.nowMs();
    await stack.pass(40 * day);
    expect(await outcomeOf(stack)).toEqual(cameAt(postedAtMs));
  });
});

describe('47: the last of three attempts', () => {
  const attributes = { own: 'grüße', 'ptk-origin-id': '5', 'ptk-origin-time': '2026-01-01T00:00:00Z' };
  /** So many attempts fail; the queue itself gives up after three. */
  const openFailing = async (failures: number) => {
    const { parser, statuses } = watchedDispatches();
    const release = { publisher: failing(...Array.from({ length: failures }, () => isDown)), options: { maxAttempts: 3 } };
    return { statuses, stack: await open({ parser, release, queue: { retryConfig: { maxAttempts: 3 } } }) };
  };

  test('47: publishes the message where it succeeds', async () => {
    const { stack, statuses } = await openFailing(2);
    const dueAtMs = await scheduled(stack, attributes);
    await stack.pass(40 * day);
    expect([statuses, await outcomeOf(stack)]).toEqual([[503, 503, 200], cameAt(dueAtMs + 300)]);
  });

  test('47: leaves one dead letter with data, attributes and key where it fails', async () => {
    const { stack, statuses } = await openFailing(3);
    await scheduled(stack, attributes);
    await stack.pass(40 * day);
    expect([statuses, await stack.came(), stack.pending()]).toEqual([[503, 503, 200], [], []]);
    const dead = { 'ptk-dead-reason': 'attempts', 'ptk-dead-detail': '3 dispatches failed, the last one: Pub/Sub is down' };
    expect((await stack.letters()).map((letter) => [`${letter.data}`, letter.attributes])).toEqual([
      ['body', { ...attributes, ...dead, 'ptk-key': 'k', 'ptk-delay-count': '1', 'ptk-dead-source': stack.subscription }],
    ]);
  });

  test('47: leaves no dead letter where the ledger has the message: a repair makes another task, and it comes once', async () => {
    const { stack, statuses } = await openFailing(3);
    await scheduled(stack, { ...attributes, 'ptk-delay-id': 'order-7' });
    await stack.pass(2 * hour);
    expect([statuses, await outcomeOf(stack)]).toEqual([[503, 503, 503], { ...cameAt(), entries: 1 }]);
    expect(await stack.repair()).toMatchObject({ checked: 1, rearmed: 1 });
    const repairedAtMs = time.nowMs();
    await stack.pass(40 * day);
    expect(await outcomeOf(stack)).toEqual(cameAt(repairedAtMs));
  });
});

describe('48: a call of the release', () => {
  test('48: without the header of a queue is 403, publishes nothing and is counted; so is that of another queue', async () => {
    const stack = await open();
    await scheduled(stack, {});
    const [task] = stack.pending();
    const body = task?.body.toString() ?? '';
    const post = await callsOf(stack.app);
    const headers = headersOf(stack, task?.name.split('/').at(-1) ?? '');
    const { 'X-AppEngine-QueueName': _, ...nameAlone } = headers;
    expect([await post(body, {}), await post(body, nameAlone)]).toEqual([403, 403]);
    expect(await post(body, { ...headers, 'X-AppEngine-QueueName': 'other' })).toBe(403);
    await stack.pass(minute);
    expect(await outcomeOf(stack)).toEqual({ ...cameAt(), tasks: 1 });
    expect(['header', 'queue', 'token'].map((reason) => stack.meter.counts.get(`ptk.delay.forged ${reason}`))).toEqual([2, 1, undefined]);
  });

  const message = { data: Buffer.from('x').toString('base64'), attributes: { 'ptk-key': 'k' } };
  const fields = { v: 1, source: 's', key: 'k', instruction: 'after 5', hop: 1, dueAtMs: 5, scheduledForMs: 5 };
  const whole = JSON.stringify({ ...fields, message });
  test.each([
    ['no field', '{}', 'the task body lacks a field of format 1'],
    [
      'data that is no base64',
      JSON.stringify({ ...fields, message: { ...message, data: 'x!' } }),
      'the data of the task body is missing or no base64',
    ],
    ['base64 over the whole', Buffer.from(whole).toString('base64'), 'the task body is no JSON object'],
    ['nothing', '', 'the task body is no JSON object'],
  ])(
    '48: of a task with %s is 200 and one dead letter with its reason, also the second time, and publishes nothing',
    async (_, body, detail) => {
      const stack = await open();
      const post = await callsOf(stack.app);
      expect([await post(body, headersOf(stack, 't1')), await post(body, headersOf(stack, 't1'))]).toEqual([200, 200]);
      expect(
        (await stack.letters()).map(({ attributes, data }) => [attributes['ptk-dead-reason'], attributes['ptk-dead-detail'], `${data}`]),
      ).toEqual([['malformed', detail, body]]);
      expect(await stack.came()).toEqual([]);
    },
  );

  test('48: of a task that is whole publishes, which shows that nothing else was wrong with the others', async () => {
    const stack = await open();
    expect(await (await callsOf(stack.app))(whole, headersOf(stack, 't1'))).toBe(200);
    expect((await stack.came()).map(({ data, attributes }) => [`${data}`, attributes['ptk-key']])).toEqual([['x', 'k']]);
  });

  test.each([
    ['nothing in front of the app', undefined],
    ['express.raw() in front of the app', express.raw({ type: () => true })],
    ['express.json() in front of the app', express.json()],
    ['express.text() in front of the app', express.text({ type: () => true })],
  ])('48: publishes binary data whole with %s', async (_, parser) => {
    const stack = await open({ ...(parser && { parser }) });
    const data = Buffer.from([0x00, 0xff]);
    await stack.publish({ 'ptk-key': 'k', 'ptk-delay-ms': String(hour) }, data);
    await stack.pass(40 * day);
    expect([(await stack.came()).map((came) => came.data), await stack.letters()]).toEqual([[data], []]);
  });
});
