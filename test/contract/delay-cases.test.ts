import { describe, expect, test } from 'vitest';
import { cloudTasksScheduler } from '../../src/shared/adapters/cloud-tasks.ts';
import { system } from '../../src/shared/adapters/system.ts';
import { envelopeOf } from '../../src/shared/transports/push.ts';
import { testMessage } from '../../src/testing/doubles.ts';
import { type DelayStack, day, delayStacks, hour, minute, second } from '../support/delay-stack.ts';
import { oneMessage } from '../support/dispatches.ts';

const stacks = await delayStacks();
const { time, emulator, tasks, open } = stacks;
const { armed } = oneMessage(stacks);

const ledgered = { 'ptk-delay-id': 'order/7' };
const ledgers: [string, Record<string, string>][] = [
  ['without the ledger', {}],
  ['with the ledger', ledgered],
];
/** Bytes of every value, so that none is lost or read as text. */
const bytesOf = (length: number) =>
  Buffer.alloc(
    length,
    Uint8Array.from({ length: 251 }, (_, index) => index),
  );
const lettersOf = async ({ letters }: DelayStack) =>
  (await letters()).map(({ attributes }) => [attributes['ptk-dead-reason'], attributes['ptk-dead-detail']]);
const instantsOf = async ({ came }: DelayStack, fromMs: number) => (await came()).map(({ atMs }) => atMs - fromMs);

describe.each(ledgers)('43: far away, %s:', (_, id) => {
  test.each([
    ['30 d − 1 s', 30 * day - second],
    ['30 d', 30 * day],
    ['30 d + 1 s', 30 * day + second],
    ['90 d', 90 * day],
  ])('43: a message with a delay of %s comes then, once', async (_title, delayMs) => {
    const stack = await open();
    const sentAtMs = time.nowMs();
    await stack.publish({ ...id, 'ptk-delay-ms': String(delayMs) });
    await stack.pass(delayMs - 1);
    expect(await stack.came()).toEqual([]);
    await stack.pass(40 * day);
    expect([await instantsOf(stack, sentAtMs), await stack.letters(), stack.pending()]).toEqual([[delayMs], [], []]);
  });
});

describe('43: large,', () => {
  test.each([
    ['63,000 bytes, which a task carries', 63_000, 'message', {}],
    ['63,000 bytes, which a task carries, with the ledger', 63_000, 'message', ledgered],
    ['70 KB', 71_680, 'payload', {}],
    ['70 KB, with the ledger', 71_680, 'payload', ledgered],
    ['80 KB', 81_920, 'payload', {}],
    ['1 MB, with the ledger', 1_048_576, 'payload', ledgered],
    ['9 MB', 9_437_184, 'payload', {}],
  ])('43: a body of %s comes when it is due, once and whole', async (_title, length, carried, id) => {
    const stack = await open();
    const sentAtMs = time.nowMs();
    const body = bytesOf(length);
    await stack.publish({ ...id, 'ptk-delay-ms': String(hour) }, body);
    await stack.pass(hour - 1);
    expect(await stack.came()).toEqual([]);
    expect(stack.pending().map((task) => carried in JSON.parse(task.body.toString()))).toEqual([true]);
    await stack.pass(40 * day);
    const [only] = await stack.came();
    expect([await instantsOf(stack, sentAtMs), only?.data.equals(body), await stack.letters()]).toEqual([[hour], true, []]);
  });
});

describe('43: without what it needs,', () => {
  test('43: a body that a task carries needs no payload store; one of 70 KB is one dead letter with its reason', async () => {
    const stack = await open({ delay: { payloads: undefined } as object });
    await stack.publish({ 'ptk-key': 'a', 'ptk-delay-ms': String(hour) }, bytesOf(63_000));
    await stack.publish({ 'ptk-key': 'b', 'ptk-delay-ms': String(hour) }, bytesOf(71_680));
    await stack.pass(40 * day);
    expect((await stack.came()).map(({ attributes }) => attributes['ptk-key'])).toEqual(['a']);
    const detail = expect.stringMatching(/^the message takes 95\d{3} bytes in a task; at most 85000 fit without a payload store$/);
    expect(await lettersOf(stack)).toEqual([['tooLarge', detail]]);
  });

  test('43: a task that publishes by itself waits 30 d; a message that is to wait 1 s longer is one dead letter with its reason', async () => {
    const publishing = { url: `http://${emulator.pubsub.address}`, account: 'tasks@ptk-delays.iam.gserviceaccount.com' };
    const scheduler = cloudTasksScheduler({ client: tasks, release: {}, publishing, system });
    const stack = await open({ delay: { handlerless: true, scheduler } });
    const sentAtMs = time.nowMs();
    await stack.publish({ 'ptk-key': 'a', 'ptk-delay-ms': String(30 * day) });
    await stack.publish({ 'ptk-key': 'b', 'ptk-delay-ms': String(30 * day + second) });
    await stack.pass(90 * day);
    expect(await instantsOf(stack, sentAtMs)).toEqual([30 * day]);
    expect(await lettersOf(stack)).toEqual([
      ['refused', 'the message is due 2592001000 ms after it was published; a task that publishes by itself may wait 2592000000'],
    ]);
  });
});

describe.each(ledgers)('45: the same message, %s,', (_, id) => {
  test('45: is one task and three acks where it is delivered three times, one after the other and at once', async () => {
    const stack = await open();
    const attributes = { ...id, 'ptk-key': 'k', 'ptk-delay-ms': String(hour) };
    const body = JSON.stringify(
      envelopeOf(testMessage({ messageId: '77', attributes, publishTimeMs: time.nowMs(), subscription: stack.subscription })),
    );
    const deliver = async () => {
      const response = await fetch(stack.functionUrl, { method: 'POST', body, headers: { 'content-type': 'application/json' } });
      return response.status;
    };
    expect([await deliver(), ...(await Promise.all([deliver(), deliver()]))]).toEqual([204, 204, 204]);
    expect(stack.pending().length).toBe(1);
    await stack.pass(40 * day);
    expect((await stack.came()).length).toBe(1);
  });

  test.each([
    ['by the same delay, as it came', String(minute), true],
    ['by another delay, under the same key alone', String(2 * minute), false],
  ])('45: comes a second time where a consumer delays it again 5 minutes after it came, %s', async (_title, again, keepsAttributes) => {
    const stack = await open();
    const sentAtMs = time.nowMs();
    await stack.publish({ ...id, 'ptk-key': 'k', 'ptk-delay-ms': String(minute) });
    await stack.pass(6 * minute);
    const [first] = await stack.came();
    const kept = keepsAttributes ? first?.attributes : { 'ptk-key': first?.attributes['ptk-key'] ?? '' };
    await stack.publish({ ...kept, ...id, 'ptk-delay-ms': again }, first?.data);
    await stack.pass(40 * day);
    const came = (await stack.came()).map(({ attributes, atMs }) => [
      attributes['ptk-key'],
      attributes['ptk-delay-count'],
      atMs - sentAtMs,
    ]);
    expect(came).toEqual([
      ['k', '1', minute],
      ['k', keepsAttributes ? '2' : '1', 6 * minute + Number(again)],
    ]);
    expect([await stack.letters(), stack.pending()]).toEqual([[], []]);
  });

  test.each([
    ['with slashes', 'orders/7/../a//b'],
    ['of 600 characters', 'k'.repeat(600)],
    ['of 600 characters and 1,024 bytes', `${'ü'.repeat(424)}${'k'.repeat(176)}`],
  ])('45: comes once under a key and an id %s', async (_title, key) => {
    const stack = await open();
    const sentAtMs = time.nowMs();
    await stack.publish({ 'ptk-key': key, 'ptk-delay-ms': String(hour), ...('ptk-delay-id' in id && { 'ptk-delay-id': key }) });
    await armed(stack, 1);
    await stack.pass(40 * day);
    expect((await stack.came()).map(({ attributes, atMs }) => [attributes['ptk-key'], atMs - sentAtMs])).toEqual([[key, hour]]);
    expect([await stack.letters(), stack.pending()]).toEqual([[], []]);
  });
});
