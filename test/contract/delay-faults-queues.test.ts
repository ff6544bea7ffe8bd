import { describe, expect, test } from 'vitest';
import { createRepair, type Repaired } from '../../src/shared/delay/repair.ts';
import { type DelayStack, day, delayStacks, hour, minute } from '../support/delay-stack.ts';
import { cameAt, oneMessage, outcomeOf } from '../support/dispatches.ts';

const stacks = await delayStacks();
const { time, open, tasks } = stacks;
const { scheduled } = oneMessage(stacks);

const location = (queue: string) => queue.slice(0, queue.indexOf('/queues/'));
const nothing = { checked: 0, rearmed: 0, overdue: 0, failed: 0 };
const repaired = ({ queue }: DelayStack, state: Repaired['queues'][number]['state'], counts: Partial<Repaired> = {}) => ({
  ...{ queues: [{ queue, state }], ...nothing },
  ...counts,
});
const sumOf = (counts: readonly Repaired[], what: keyof typeof nothing) => counts.reduce((sum, each) => sum + each[what], 0);

describe('without the ledger', () => {
  test('a message of a queue that is paused comes once, when it is resumed; a repair tells that the queue is paused', async () => {
    const stack = await open();
    await scheduled(stack, {});
    await tasks.pauseQueue({ name: stack.queue });
    await stack.pass(2 * hour);
    expect(await outcomeOf(stack)).toEqual({ ...cameAt(), tasks: 1 });
    expect(await stack.repair()).toEqual(repaired(stack, 'paused'));
    await tasks.resumeQueue({ name: stack.queue });
    const resumedAtMs = time.nowMs();
    await stack.pass(40 * day);
    expect(await outcomeOf(stack)).toEqual(cameAt(resumedAtMs));
  });

  test('a message of a queue that is purged is gone with its task, and no repair knows it', async () => {
    const stack = await open();
    await scheduled(stack, {});
    await tasks.purgeQueue({ name: stack.queue });
    await stack.pass(minute);
    expect(await stack.repair()).toEqual(repaired(stack, 'running'));
    await stack.pass(40 * day);
    expect(await outcomeOf(stack)).toEqual(cameAt());
  });
});

describe.each([
  ['under an id', { 'ptk-delay-id': 'order-7' }, false],
  ['under its key, where the ledger knows every message', {}, true],
])('with the ledger, %s', (_, id, ledgerAll) => {
  test('a message of a queue that is paused comes once, when it is resumed; a repair tells it, and changes nothing', async () => {
    const stack = await open({ delay: { ledgerAll } });
    const dueAtMs = await scheduled(stack, id);
    await tasks.pauseQueue({ name: stack.queue });
    await stack.pass(dueAtMs + minute - time.nowMs());
    expect(await outcomeOf(stack)).toEqual({ ...cameAt(), tasks: 1, entries: 1 });
    const before = stack.pending();
    expect(await stack.repair()).toEqual(repaired(stack, 'paused', { checked: 1 }));
    await stack.pass(1);
    const overdue = repaired(stack, 'paused', { checked: 1, overdue: 1 });
    expect(await Promise.all([stack.repair(), stack.repair()])).toEqual([overdue, overdue]);
    expect(stack.pending()).toEqual(before);
    await tasks.resumeQueue({ name: stack.queue });
    const resumedAtMs = time.nowMs();
    await stack.pass(40 * day);
    expect(await outcomeOf(stack)).toEqual(cameAt(resumedAtMs));
  });

  test('a message of a queue that is purged has a task again after a repair, or two at once, and comes once, when it is due', async () => {
    const stack = await open({ delay: { ledgerAll } });
    const dueAtMs = await scheduled(stack, id);
    await tasks.purgeQueue({ name: stack.queue });
    await stack.pass(minute);
    expect(stack.pending()).toEqual([]);
    const both = await Promise.all([stack.repair(), stack.repair()]);
    expect([sumOf(both, 'rearmed'), sumOf(both, 'failed')]).toEqual([1, 0]);
    const made = stack.pending();
    expect(made.map((task) => task.dueAtMs)).toEqual([dueAtMs]);
    expect(await stack.repair()).toEqual(repaired(stack, 'running'));
    await stack.pass(minute);
    expect(await stack.repair()).toEqual(repaired(stack, 'running', { checked: 1 }));
    expect(stack.pending()).toEqual(made);
    await stack.pass(40 * day);
    expect(await outcomeOf(stack)).toEqual(cameAt(dueAtMs));
  });

  test('a message of a queue that was purged and only repaired after its due time comes once, at once', async () => {
    const stack = await open({ delay: { ledgerAll } });
    await scheduled(stack, id);
    await tasks.purgeQueue({ name: stack.queue });
    await stack.pass(50 * day);
    expect(await outcomeOf(stack)).toEqual({ ...cameAt(), entries: 1 });
    expect(await stack.repair()).toEqual(repaired(stack, 'running', { checked: 1, rearmed: 1 }));
    const repairedAtMs = time.nowMs();
    await stack.pass(40 * day);
    expect(await outcomeOf(stack)).toEqual(cameAt(repairedAtMs));
  });

  test('a message of a queue that is deleted has no task until the queue is made again: a repair tells it, the next one makes the task', async () => {
    const stack = await open({ delay: { ledgerAll } });
    const { queue, repair } = stack;
    await scheduled(stack, id);
    await tasks.deleteQueue({ name: queue });
    await stack.pass(minute);
    expect(await repair()).toEqual(repaired(stack, 'missing', { checked: 1, failed: 1 }));
    expect(await repair()).toEqual(repaired(stack, 'missing'));
    // Its name is taken for 7 days.
    await stack.pass(7 * day);
    await tasks.createQueue({ parent: location(queue), queue: { name: queue } });
    expect(await repair()).toEqual(repaired(stack, 'running', { checked: 1, rearmed: 1 }));
    const repairedAtMs = time.nowMs();
    expect(await repair()).toEqual(repaired(stack, 'running'));
    await stack.pass(40 * day);
    expect(await outcomeOf(stack)).toEqual(cameAt(repairedAtMs));
  });

  test('a message of a queue that is deleted goes to the queue that is named instead, and comes once, when it is due', async () => {
    const stack = await open({ delay: { ledgerAll } });
    const dueAtMs = await scheduled(stack, id);
    await tasks.deleteQueue({ name: stack.queue });
    const { ledger, payloads, scheduler, system } = stack;
    const other = await open({ release: { ledger, payloads } });
    await other.pass(minute);
    const repair = createRepair({ ledger, scheduler, system, queues: [other.queue] });
    expect(await repair()).toEqual(repaired(other, 'running', { checked: 1, rearmed: 1 }));
    expect(other.pending().map((task) => task.dueAtMs)).toEqual([dueAtMs]);
    expect(await repair()).toEqual(repaired(other, 'running'));
    await other.pass(40 * day);
    expect([await outcomeOf(stack), other.pending(), await other.letters()]).toEqual([cameAt(dueAtMs), [], []]);
  });
});
