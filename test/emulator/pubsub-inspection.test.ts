import { afterAll, beforeEach, describe, expect, test } from 'vitest';
import { manualTime } from '../../src/emulator/time.ts';
import { textsOf, worker } from './pubsub-raw.ts';
import { codeOf, embeddedPubsub, withRawPubsub } from './pubsub-targets.ts';

const emulator = await embeddedPubsub(manualTime());
const { target, time } = emulator;
afterAll(emulator.stop);
beforeEach(emulator.reset);

describe('Pub/Sub inspection', () => {
  test(
    'shows topics and subscriptions as they are',
    withRawPubsub(target, async (raw) => {
      const { topic, subscription } = await worker(raw, { ackDeadlineSeconds: 60 });
      expect(emulator.topics()).toMatchObject([{ name: topic }]);
      expect(emulator.subscriptions()).toMatchObject([{ name: subscription, topic, ackDeadlineSeconds: 60 }]);
    }),
  );

  test(
    'shows the unacked messages of a subscription, how often each was delivered, and who has it until when',
    withRawPubsub(target, async (raw) => {
      const { topic, subscription } = await worker(raw);
      const [first, second] = await raw.publish(topic, ['1', '2', '3']);
      const shown = () => emulator.messages(subscription).map(({ message, ...rest }) => ({ messageId: message.messageId, ...rest }));
      expect(shown().slice(0, 1)).toEqual([{ messageId: first, deliveryAttempts: 0, lease: undefined }]);
      const received = await raw.pull(subscription, 2);
      await raw.modifyDeadline(subscription, received.slice(1), 0);
      await raw.acknowledge(
        subscription,
        (await raw.pull(subscription)).filter(({ message }) => message.data.toString() === '3'),
      );
      const [mine, again] = shown();
      expect(mine).toEqual({
        messageId: first,
        deliveryAttempts: 1,
        lease: { ackId: received[0]?.ackId, untilMs: time.nowMs() + 10_000 },
      });
      expect(again).toMatchObject({ messageId: second, deliveryAttempts: 2, lease: { untilMs: time.nowMs() + 10_000 } });
      expect([shown().length, emulator.backlog(subscription), emulator.backlog()]).toEqual([2, 2, 2]);
      await time.advance(10_000);
      expect(shown().map(({ lease }) => lease)).toEqual([undefined, undefined]);
    }),
  );

  test(
    'names the subscription of each open stream, as long as it is open, and no pull',
    withRawPubsub(target, async (raw) => {
      const { subscription } = await worker(raw);
      const streams = [raw.stream(subscription), raw.stream(subscription)];
      const pull = raw.call('Pull', { subscription, maxMessages: 1 });
      await expect.poll(emulator.openStreams).toEqual([subscription, subscription]);
      streams[0]?.cancel();
      await expect.poll(emulator.openStreams).toEqual([subscription]);
      emulator.endStreams();
      expect(emulator.openStreams()).toEqual([]);
      expect(await codeOf(pull)).toBe('UNAVAILABLE');
    }),
  );

  test('says so where there is no such subscription', () => {
    expect(() => emulator.messages('projects/p/subscriptions/none')).toThrow('projects/p/subscriptions/none does not exist');
    expect(() => emulator.backlog('projects/p/subscriptions/none')).toThrow('projects/p/subscriptions/none does not exist');
  });

  test(
    'a reset ends streams with UNAVAILABLE and leaves nothing, and no id of before comes again',
    withRawPubsub(target, async (raw) => {
      const { topic, subscription } = await worker(raw, { retainAckedMessages: true });
      const [id] = await raw.publish(topic, ['1']);
      await raw.call('CreateSnapshot', { name: `${raw.project}/snapshots/mine`, subscription });
      const stream = raw.stream(subscription);
      const [before] = await stream.count(1);
      emulator.reset();
      expect(await stream.ended).toBe('UNAVAILABLE');
      expect([emulator.topics(), emulator.subscriptions(), emulator.openStreams(), emulator.backlog()]).toEqual([[], [], [], 0]);
      expect(await raw.call('ListSnapshots', { project: raw.project })).toMatchObject({ snapshots: [] });
      await worker(raw);
      expect(await raw.pull(subscription)).toEqual([]);
      const [later] = await raw.publish(topic, ['2']);
      expect(Number(later)).toBeGreaterThan(Number(id));
      const received = await raw.pull(subscription);
      expect([textsOf(received), received[0]?.ackId === before?.ackId]).toEqual([['2'], false]);
    }),
  );
});
