import { describe, expect, test } from 'vitest';
import { unrulyPublisher } from '../../src/cli/demo/unruly-publisher.ts';
import { seededRandom } from '../../src/emulator/faults.ts';
import { recordingPublisher } from '../support/recording-publisher.ts';

const messages = ['1', '2', '3', '4', '5'].map((text) => ({ data: Buffer.from(text), attributes: { 'ptk-seq': text } }));

/** Publishes the five messages as often as asked. */
async function published(chaos: number, requests: number) {
  const recording = recordingPublisher();
  const unruly = unrulyPublisher(recording, chaos, seededRandom(1));
  const ids: (readonly string[])[] = [];
  for (let request = 0; request < requests; request++) ids.push(await unruly.publish('t', messages));
  return { recording, unruly, ids };
}

describe('unruly publisher', () => {
  test('without chaos publishes each request once, in its order', async () => {
    const { recording, unruly, ids } = await published(0, 2);
    expect(recording.numbers()).toEqual([1, 2, 3, 4, 5, 1, 2, 3, 4, 5]);
    expect(unruly.counts).toEqual({ duplicate: 0, reorder: 0 });
    expect(ids[0]).toEqual(['m1', 'm2', 'm3', 'm4', 'm5']);
  });

  test('with chaos changes the order of requests and sends some again, and says how often', async () => {
    const { recording, unruly } = await published(1, 20);
    expect(unruly.counts.reorder).toBe(20);
    expect(unruly.counts.duplicate).toBeGreaterThan(0);
    expect(recording.published).toHaveLength(100 + unruly.counts.duplicate);
    expect(recording.numbers().slice(0, 5)).not.toEqual([1, 2, 3, 4, 5]);
  });

  test('resolves to the id of each message, whatever place it was sent in', async () => {
    const { recording, ids } = await published(1, 1);
    const texts = ids[0]?.map((id) => recording.published.find(({ messageId }) => messageId === id)?.message.data);
    expect(texts).toEqual(messages.map(({ data }) => data));
  });

  test('never changes the order of one message, nor loses the error of a request', async () => {
    const recording = recordingPublisher();
    const unruly = unrulyPublisher(recording, 1, () => 0);
    await unruly.publish('t', messages.slice(0, 1));
    expect(unruly.counts).toEqual({ duplicate: 1, reorder: 0 });
    recording.refusal = () => new Error('down');
    await expect(unruly.publish('t', messages)).rejects.toThrow('down');
  });
});
