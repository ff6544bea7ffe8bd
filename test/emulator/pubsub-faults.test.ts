import { afterAll, beforeEach, describe, expect, test } from 'vitest';
import { manualTime } from '../../src/emulator/time.ts';
import { textsOf } from './pubsub-raw.ts';
import { embeddedPubsub, withRawPubsub } from './pubsub-targets.ts';

const { faults, stop, target } = await embeddedPubsub(manualTime());
afterAll(stop);
beforeEach(() => faults.replace([]));

describe('Pub/Sub faults: where they stop', () => {
  test(
    'a redelivery is not duplicated again',
    withRawPubsub(target, async (raw) => {
      const topic = await raw.createTopic('orders');
      const subscription = await raw.createSubscription('worker', topic);
      faults.add({ kind: 'duplicate' });
      await raw.publish(topic, ['a']);
      for (let round = 0; round < 3; round++) {
        const received = await raw.pull(subscription);
        expect(received).toHaveLength(2);
        await raw.modifyDeadline(subscription, received, 0);
      }
    }),
  );

  test(
    'an ordered message is not held back, and its duplicate stays beside it',
    withRawPubsub(target, async (raw) => {
      const topic = await raw.createTopic('orders');
      const subscription = await raw.createSubscription('worker', topic, { enableMessageOrdering: true });
      faults.add({ kind: 'hold-back', holdMs: 1_000 });
      faults.add({ kind: 'duplicate', times: 1 });
      await raw.publish(topic, ['1', '2'], 'k');
      expect(textsOf(await raw.pull(subscription))).toEqual(['1', '1', '2']);
    }),
  );
});
