import { afterEach, describe, expect, test } from 'vitest';
import { ToolkitError } from '../../src/shared/errors.ts';
import type { Publisher } from '../../src/shared/ports.ts';
import { day, delayStacks, hour, minute } from '../support/delay-stack.ts';
import { callsOf, cameAt, oneMessage, outcomeOf, watchedDispatches } from '../support/dispatches.ts';

const stacks = await delayStacks();
const { emulator, publisher, open } = stacks;
const { scheduled } = oneMessage(stacks);
const { faults } = emulator;
afterEach(() => faults.reset());

/** The answers to as many commits as come next. */
const loseCommits = (times: number) => faults.add({ kind: 'answer-lost', rpc: 'Firestore.Commit', times });
/** More than a task carries. */
const large = 'x'.repeat(100_000);

describe.each<[string, Record<string, string>]>([
  ['without the ledger', {}],
  ['with the ledger', { 'ptk-delay-id': 'order-7' }],
])('%s', (_, id) => {
  describe('a message comes once, when it is due, though', () => {
    test.each([
      ['it is delivered twice at once', 'duplicate', 1],
      ['it is delivered three times, as the first two answers were lost', 'lost-push-answer', 2],
    ] as const)('%s', async (_title, kind, times) => {
      const stack = await open();
      faults.add({ kind, resource: stack.source, times });
      const dueAtMs = await scheduled(stack, id);
      expect(faults.counts()[kind]).toBe(times);
      await stack.pass(40 * day);
      expect(await outcomeOf(stack)).toEqual(cameAt(dueAtMs));
    });

    test('its task is dispatched twice at once', async () => {
      const { parser, statuses } = watchedDispatches();
      const stack = await open({ parser });
      faults.add({ kind: 'double-dispatch', resource: stack.queue, times: 1 });
      const dueAtMs = await scheduled(stack, id);
      await stack.pass(40 * day);
      expect(await outcomeOf(stack)).toEqual(cameAt(dueAtMs));
      expect(statuses.length).toBeGreaterThanOrEqual(2);
      expect(statuses.filter((status) => status !== 200 && status !== 429)).toEqual([]);
    });

    test.each([1, 2])('its task is dispatched again, as %d answers were lost', async (lost) => {
      const { parser, statuses } = watchedDispatches(lost);
      const stack = await open({ parser });
      const dueAtMs = await scheduled(stack, id);
      await stack.pass(40 * day);
      expect([await outcomeOf(stack), statuses]).toEqual([cameAt(dueAtMs), Array.from({ length: lost + 1 }, () => 200)]);
    });

    test('its task is dispatched again 31 days after it was done', async () => {
      const stack = await open();
      const dueAtMs = await scheduled(stack, id);
      const [task] = stack.pending();
      await stack.pass(hour + 31 * day);
      const headers = { 'X-AppEngine-QueueName': stack.queueId, 'X-AppEngine-TaskName': task?.name.split('/').at(-1) ?? '' };
      expect(await (await callsOf(stack.app))(task?.body ?? '', headers)).toBe(200);
      await stack.pass(day);
      expect(await outcomeOf(stack)).toEqual(cameAt(dueAtMs));
    });

    test.each([
      ['the first write of its release', 1, 0],
      ['the last write of its release', 0, 1],
      ['both writes of its release', 1, 1],
    ])('the answer to %s was lost', async (_title, first, last) => {
      const losing: Publisher = {
        async publish(...args) {
          const ids = await publisher.publish(...args);
          if (last > 0) loseCommits(last);
          return ids;
        },
      };
      const stack = await open({ release: { publisher: losing } });
      const dueAtMs = await scheduled(stack, id);
      if (first > 0) loseCommits(first);
      await stack.pass(40 * day);
      expect([await outcomeOf(stack), faults.counts()['answer-lost']]).toEqual([cameAt(dueAtMs), first + last]);
    });

    test('the answer to each write of its way in was lost', async () => {
      const stack = await open();
      const writes = 'ptk-delay-id' in id ? 2 : 1;
      loseCommits(writes);
      const dueAtMs = await scheduled(stack, id, large);
      expect(faults.counts()['answer-lost']).toBe(writes);
      await stack.pass(40 * day);
      expect(await outcomeOf(stack)).toEqual({ ...cameAt(dueAtMs), came: [[large, 'k', dueAtMs]] });
    });

    test('Pub/Sub was down for 10 minutes, in which each dispatch was told to come again', async () => {
      let isDown = true;
      const flaky: Publisher = {
        publish: async (...args) => {
          if (isDown) throw new ToolkitError('SERVICE_UNAVAILABLE', 'Pub/Sub is down');
          return publisher.publish(...args);
        },
      };
      const { parser, statuses } = watchedDispatches();
      const stack = await open({ parser, release: { publisher: flaky } });
      await scheduled(stack, id);
      await stack.pass(hour + 10 * minute);
      expect(await outcomeOf(stack)).toMatchObject({ came: [], letters: [], tasks: 1 });
      expect([statuses.length > 5, new Set(statuses)]).toEqual([true, new Set([503])]);
      isDown = false;
      const [task] = stack.pending();
      await stack.pass(40 * day);
      expect(await outcomeOf(stack)).toEqual(cameAt(task?.dueAtMs ?? 0));
    });
  });

  test('a message whose publish was applied and not answered comes twice, under one key and as the same message, and no more', async () => {
    const stack = await open();
    const dueAtMs = await scheduled(stack, id);
    faults.add({ kind: 'answer-lost', rpc: 'Publisher.Publish', resource: stack.finalTopic, times: 1 });
    await stack.pass(40 * day);
    expect(await outcomeOf(stack)).toEqual(cameAt(dueAtMs, dueAtMs));
    const [first, copy] = await stack.came();
    expect(copy).toEqual({ ...first, messageId: expect.any(String) });
    expect(copy?.messageId).not.toBe(first?.messageId);
  });
});
