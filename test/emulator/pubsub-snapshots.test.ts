import { afterAll, describe, expect, test } from 'vitest';
import { manualTime } from '../../src/emulator/time.ts';
import { statement } from '../support/targets.ts';
import { type RawPubsub, textsOf } from './pubsub-raw.ts';
import { codeOf, embeddedPubsub, withRawPubsub } from './pubsub-targets.ts';

/** Days pass here: on the embedded emulator alone. */
const { backlog, stop, target, time } = await embeddedPubsub(manualTime());
afterAll(stop);

const [hourMs, dayMs] = [3_600_000, 86_400_000];
const at = (atMs: number) => ({ seconds: String(Math.floor(atMs / 1_000)), nanos: (atMs % 1_000) * 1_000_000 });

async function worker(raw: RawPubsub, settings: object = {}): Promise<{ topic: string; subscription: string; snapshot: string }> {
  const topic = await raw.createTopic('orders');
  const subscription = await raw.createSubscription('worker', topic, settings);
  return { topic, subscription, snapshot: `${raw.project}/snapshots/mine` };
}

describe('Pub/Sub seek: manual time', () => {
  statement(
    target,
    41,
    'a message published at the very time is unacked after a seek to it, one of the ms before is acked',
    withRawPubsub(target, async (raw) => {
      const { topic, subscription } = await worker(raw, { retainAckedMessages: true });
      await raw.publish(topic, ['1']);
      await time.advance(1);
      await raw.publish(topic, ['2']);
      const secondMs = time.nowMs();
      await raw.acknowledge(subscription, await raw.pull(subscription));
      await time.advance(1);
      await raw.publish(topic, ['3']);
      await raw.call('Seek', { subscription, time: at(secondMs) });
      expect(textsOf(await raw.pull(subscription))).toEqual(['2', '3']);
      await raw.call('Seek', { subscription, time: at(secondMs + 2) });
      expect(backlog(subscription)).toBe(0);
      await raw.call('Seek', { subscription, time: at(0) });
      expect(textsOf(await raw.pull(subscription))).toEqual(['1', '2', '3']);
    }),
  );

  test(
    'a seek makes the ack ids of before stale, and brings a key in order from its first wanted message on',
    withRawPubsub(target, async (raw) => {
      const { topic, subscription } = await worker(raw, { retainAckedMessages: true, enableMessageOrdering: true });
      await raw.publish(topic, ['1', '2', '3', '4'], 'k');
      const received = await raw.pull(subscription);
      await raw.acknowledge(subscription, received.slice(0, 3));
      await raw.call('Seek', { subscription, time: at(0) });
      await raw.acknowledge(subscription, received.slice(3));
      await raw.publish(topic, ['5'], 'k');
      expect(textsOf(await raw.pull(subscription))).toEqual(['1', '2', '3', '4', '5']);
      expect(backlog(subscription)).toBe(5);
    }),
  );

  test(
    'an acked message that waits for earlier ones of its key is acked for a seek too',
    withRawPubsub(target, async (raw) => {
      const { topic, subscription } = await worker(raw, { enableMessageOrdering: true });
      await raw.publish(topic, ['1', '2', '3'], 'k');
      await raw.acknowledge(subscription, (await raw.pull(subscription)).slice(1, 2));
      await raw.call('Seek', { subscription, time: at(0) });
      expect(textsOf(await raw.pull(subscription))).toEqual(['1', '3']);
    }),
  );

  test(
    'attempts of unacked messages are counted on, those of replayed ones from the start',
    withRawPubsub(target, async (raw) => {
      const deadLetterPolicy = { deadLetterTopic: await raw.createTopic('dead') };
      const { topic, subscription } = await worker(raw, { retainAckedMessages: true, deadLetterPolicy });
      await raw.publish(topic, ['acked', 'unacked']);
      await raw.modifyDeadline(subscription, await raw.pull(subscription), 0);
      await raw.acknowledge(subscription, await raw.pull(subscription, 1));
      await raw.call('Seek', { subscription, time: at(0) });
      const again = await raw.pull(subscription);
      expect(again.map(({ message, deliveryAttempt }) => [message.data.toString(), deliveryAttempt])).toEqual([
        ['acked', 1],
        ['unacked', 2],
      ]);
    }),
  );

  test(
    'what a topic retains comes again after a seek, to acked and to later subscriptions, as far as the filter lets it through',
    withRawPubsub(target, async (raw) => {
      const name = `${raw.project}/topics/kept`;
      await raw.call('CreateTopic', { name, messageRetentionDuration: { seconds: 3_600 } });
      const early = await raw.createSubscription('early', name);
      await raw.publish(name, ['old']);
      await time.advance(1);
      await raw.call('Publish', { topic: name, messages: [{ data: Buffer.from('new'), attributes: { own: 'x' } }] });
      await raw.acknowledge(early, await raw.pull(early));
      const filtered = await raw.createSubscription('filtered', name, { filter: 'attributes:own' });
      for (const subscription of [early, filtered]) await raw.call('Seek', { subscription, time: at(0) });
      expect(textsOf(await raw.pull(early))).toEqual(['old', 'new']);
      expect(textsOf(await raw.pull(filtered))).toEqual(['new']);
      await time.advance(hourMs - 1);
      const late = await raw.createSubscription('late', name);
      await raw.call('Seek', { subscription: late, time: at(0) });
      expect(textsOf(await raw.pull(late))).toEqual(['new']);
    }),
  );

  test(
    'acked messages that are no longer retained do not come again',
    withRawPubsub(target, async (raw) => {
      const { topic, subscription } = await worker(raw, { retainAckedMessages: true, messageRetentionDuration: { seconds: 600 } });
      await raw.publish(topic, ['1']);
      await raw.acknowledge(subscription, await raw.pull(subscription));
      await time.advance(600_000);
      await raw.publish(topic, ['2']);
      await raw.acknowledge(subscription, await raw.pull(subscription));
      await raw.call('Seek', { subscription, time: at(0) });
      const again = await raw.pull(subscription);
      expect(textsOf(again)).toEqual(['2']);
      await raw.acknowledge(subscription, again);
      await raw.call('UpdateSubscription', {
        subscription: { name: subscription, retainAckedMessages: false },
        updateMask: { paths: ['retain_acked_messages'] },
      });
      await raw.call('Seek', { subscription, time: at(0) });
      expect(backlog(subscription)).toBe(0);
    }),
  );

  for (const [what, request, code] of [
    ['to nothing', {}, 'INVALID_ARGUMENT'],
    ['to a missing snapshot', { snapshot: 'projects/p/snapshots/missing' }, 'NOT_FOUND'],
    ['to what is no snapshot', { snapshot: 'mine' }, 'INVALID_ARGUMENT'],
  ] as const) {
    test(
      `a seek ${what} answers ${code}`,
      withRawPubsub(target, async (raw) => {
        const { subscription } = await worker(raw);
        expect(await codeOf(raw.call('Seek', { subscription, ...request }))).toBe(code);
      }),
    );
  }
});

describe('Pub/Sub snapshots: manual time', () => {
  test(
    'a snapshot lasts seven days less the age of its oldest message, and is refused where that is less than an hour',
    withRawPubsub(target, async (raw) => {
      const { topic, subscription, snapshot } = await worker(raw, { messageRetentionDuration: { seconds: 864_000 } });
      await raw.publish(topic, ['1']);
      await time.advance(3 * dayMs);
      const made = await raw.call('CreateSnapshot', { name: snapshot, subscription });
      expect(made).toMatchObject({ expireTime: at(time.nowMs() + 4 * dayMs) });
      await time.advance(4 * dayMs - hourMs);
      const last = await raw.call('CreateSnapshot', { subscription });
      expect(last).toMatchObject({ name: expect.stringMatching(`^${raw.project}/snapshots/`) });
      await time.advance(1);
      const refused = raw.call('CreateSnapshot', { name: `${raw.project}/snapshots/late`, subscription });
      await expect(refused).rejects.toMatchObject({ details: expect.stringContaining('3599999') });
      expect(await codeOf(refused)).toBe('FAILED_PRECONDITION');
      await time.advance(hourMs - 2);
      expect(await codeOf(raw.call('GetSnapshot', { snapshot }))).toBe('OK');
      await time.advance(1);
      expect(await codeOf(raw.call('GetSnapshot', { snapshot }))).toBe('NOT_FOUND');
    }),
  );

  test(
    'a snapshot of one subscription restores another of the same topic, in order of publishing',
    withRawPubsub(target, async (raw) => {
      const { topic, subscription, snapshot } = await worker(raw);
      const other = await raw.createSubscription('other', topic, { enableMessageOrdering: true });
      await raw.publish(topic, ['1', '2', '3'], 'k');
      await raw.acknowledge(subscription, await raw.pull(subscription, 1));
      await raw.call('CreateSnapshot', { name: snapshot, subscription });
      await raw.acknowledge(other, await raw.pull(other));
      await raw.publish(topic, ['4'], 'k');
      await raw.call('Seek', { subscription: other, snapshot });
      expect(textsOf(await raw.pull(other))).toEqual(['2', '3', '4']);
    }),
  );

  test(
    'a snapshot outlives its topic and its subscription, and then names no topic',
    withRawPubsub(target, async (raw) => {
      const { topic, subscription, snapshot } = await worker(raw);
      await raw.call('CreateSnapshot', { name: snapshot, subscription });
      await raw.call('DeleteSubscription', { subscription });
      await raw.call('DeleteTopic', { topic });
      expect(await raw.call('GetSnapshot', { snapshot })).toMatchObject({ topic: '_deleted-topic_' });
    }),
  );

  test(
    'a detached subscription has nothing for a snapshot and cannot be sought',
    withRawPubsub(target, async (raw) => {
      const { subscription, snapshot } = await worker(raw);
      await raw.call('DetachSubscription', { subscription });
      expect(await codeOf(raw.call('CreateSnapshot', { name: snapshot, subscription }))).toBe('FAILED_PRECONDITION');
      expect(await codeOf(raw.call('Seek', { subscription, time: at(0) }))).toBe('FAILED_PRECONDITION');
    }),
  );

  test(
    'snapshots are listed, relabelled and deleted, by project and by topic',
    withRawPubsub(target, async (raw) => {
      const topic = await raw.createTopic('orders');
      const subscription = await raw.createSubscription('worker', topic);
      const name = `${raw.project}/snapshots/mine`;
      const made = await raw.call('CreateSnapshot', { name, subscription, labels: { a: '1' } });
      expect(made).toMatchObject({ name, topic, labels: { a: '1' } });
      expect(await codeOf(raw.call('CreateSnapshot', { name, subscription }))).toBe('ALREADY_EXISTS');
      expect(await raw.call('ListSnapshots', { project: raw.project })).toMatchObject({ snapshots: [made] });
      expect(await raw.call('ListTopicSnapshots', { topic })).toMatchObject({ snapshots: [name] });
      const relabelled = { ...made, labels: { b: '2' } };
      const updateMask = { paths: ['labels'] };
      expect(await raw.call('UpdateSnapshot', { snapshot: relabelled, updateMask })).toEqual(relabelled);
      expect(await raw.call('GetSnapshot', { snapshot: name })).toEqual(relabelled);
      await raw.call('DeleteSnapshot', { snapshot: name });
      expect(await codeOf(raw.call('GetSnapshot', { snapshot: name }))).toBe('NOT_FOUND');
      expect(await codeOf(raw.call('Seek', { subscription, snapshot: name }))).toBe('NOT_FOUND');
      expect(await raw.call('ListSnapshots', { project: raw.project })).toMatchObject({ snapshots: [] });
    }),
  );
});
