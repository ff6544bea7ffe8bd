import { describe, expect, test } from 'vitest';
import { ToolkitError } from '../../src/shared/errors.ts';
import { testMessage } from '../../src/testing/doubles.ts';
import { setUpDelay } from '../support/delaying.ts';

const context = { signal: new AbortController().signal };
const day = 86_400_000;
const published = Date.UTC(2026, 0, 1);
const setUp = () => setUpDelay({ options: { holdMs: 0 } });

describe('release', () => {
  test('publishes what was delayed as it was, without the instruction, and with how often it was delayed', async () => {
    const { topics, task, delay, release } = setUp();
    const attributes = { a: 'é', 'ptk-key': 'k', 'ptk-stream': 's', 'ptk-seq': '1', 'ptk-epoch': '1' };
    const delayed = { ...attributes, 'ptk-delay-ms': '5000' };
    await delay(testMessage({ messageId: '5', data: Buffer.from([0x00, 0xff]), attributes: delayed, orderingKey: 'o' }), context);
    expect(await release(task(0))).toEqual({ kind: 'published', messageId: 'out-0' });
    const added = { 'ptk-origin-id': '5', 'ptk-origin-time': '2026-01-01T00:00:00.000Z', 'ptk-delay-count': '1' };
    expect(topics).toEqual([['final', { data: Buffer.from([0x00, 0xff]), attributes: { ...attributes, ...added }, orderingKey: 'o' }]]);
  });

  test('a released message that is delayed again gets a new task and counts on', async () => {
    const { topics, task, names, delay, release } = setUp();
    const attributes = { 'ptk-key': 'k', 'ptk-delay-ms': '5000' };
    await delay(testMessage({ attributes }), context);
    await release(task(0));
    await delay(testMessage({ attributes: { ...topics[0]?.[1].attributes, 'ptk-delay-ms': '5000' } }), context);
    expect(names.size).toBe(2);
    await release(task(0));
    expect(topics[1]?.[1].attributes['ptk-delay-count']).toBe('2');
  });

  test('60 days are three tasks of their own, at 25, 50 and 60 days, and then the message', async () => {
    const { topics, tasks, task, delay, dispatched } = setUp();
    await delay(testMessage({ attributes: { 'ptk-key': 'k', 'ptk-deliver-at': '2026-03-02T00:00:00Z' } }), context);
    const run = (index: number) => dispatched(task(index) ?? expect.fail());
    expect(await run(0)).toEqual({ kind: 'hop', hop: 2 });
    expect(await run(0)).toEqual({ kind: 'hop', hop: 2 });
    expect(await run(1)).toEqual({ kind: 'hop', hop: 3 });
    expect([...tasks.values()].map(({ scheduledForMs }) => (scheduledForMs - published) / day)).toEqual([25, 50, 60]);
    expect(topics).toEqual([]);
    expect(await run(2)).toEqual({ kind: 'published', messageId: 'out-0' });
    expect(topics[0]?.[1].attributes).toMatchObject({ 'ptk-key': 'k', 'ptk-delay-count': '1' });
  });

  test('a second dispatch of one task publishes nothing', async () => {
    const { topics, task, delay, dispatched } = setUp();
    await delay(testMessage({ attributes: { 'ptk-delay-ms': '1' } }), context);
    const only = task(0) ?? expect.fail();
    await dispatched(only);
    expect(await dispatched(only)).toEqual({ kind: 'published', messageId: 'out-0' });
    expect(topics).toHaveLength(1);
  });

  test('what the final topic refuses is one dead letter, however often its task is dispatched', async () => {
    const { failure, deadLetters, task, delay, dispatched } = setUp();
    await delay(testMessage({ data: 'x', attributes: { 'ptk-delay-ms': '1', a: 'b' } }), context);
    const only = task(0) ?? expect.fail();
    failure.publish = new ToolkitError('REFUSED', 'no');
    expect(await dispatched(only)).toEqual({ kind: 'deadLettered', reason: 'refused' });
    await dispatched(only);
    expect(deadLetters.kept).toEqual([{ message: expect.objectContaining({ data: Buffer.from('x') }), reason: 'refused', detail: 'no' }]);
    expect(deadLetters.kept[0]?.message.attributes).toMatchObject({ a: 'b' });
  });
});
