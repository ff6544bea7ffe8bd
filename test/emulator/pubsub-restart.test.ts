import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { sqliteJournal } from '../../src/emulator/journal.ts';
import { type ManualTime, manualTime } from '../../src/emulator/time.ts';
import { type RawPubsub, rawPubsub, textsOf, worker } from './pubsub-raw.ts';
import { type EmbeddedPubsub, embeddedPubsub } from './pubsub-targets.ts';

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

type Run = { readonly raw: RawPubsub; readonly emulator: EmbeddedPubsub<ManualTime>; readonly folder: string };

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'ptk-journal-'));
  cleanups.push(() => rmSync(folder, { recursive: true }));
  return folder;
}

async function start(folder = newFolder(), time = manualTime()): Promise<Run> {
  const journal = sqliteJournal(folder);
  const emulator = await embeddedPubsub(time, { journal });
  const raw = rawPubsub(emulator.target, 'ptk');
  cleanups.push(async () => {
    raw.close();
    await emulator.stop();
    journal.close();
  });
  return { raw, emulator, folder };
}

/** What a process finds that starts after the one before was killed at this moment: its folder, without a goodbye. */
function restart({ folder, emulator }: Run): Promise<Run> {
  const copy = newFolder();
  cpSync(folder, copy, { recursive: true });
  return start(copy, manualTime(emulator.time.nowMs()));
}

describe('Pub/Sub after a kill', () => {
  test('topics, subscriptions and what was changed of them are there, and what was deleted is not', async () => {
    const before = await start();
    const { topic, subscription } = await worker(before.raw, { filter: 'attributes:own', labels: { team: 'a' } });
    await before.raw.createSubscription('deleted', topic);
    await before.raw.call('DeleteSubscription', { subscription: `${before.raw.project}/subscriptions/deleted` });
    await before.raw.createTopic('gone');
    await before.raw.createSubscription('orphan', `${before.raw.project}/topics/gone`);
    await before.raw.call('DeleteTopic', { topic: `${before.raw.project}/topics/gone` });
    await before.raw.call('UpdateSubscription', {
      subscription: { name: subscription, ackDeadlineSeconds: 60 },
      updateMask: { paths: ['ack_deadline_seconds'] },
    });
    const { raw, emulator } = await restart(before);
    expect(emulator.topics().map(({ name }) => name)).toEqual([topic]);
    expect(await raw.call('GetSubscription', { subscription })).toMatchObject({ ackDeadlineSeconds: 60, labels: { team: 'a' } });
    expect(emulator.subscriptions().map(({ name, topic: of }) => [name.split('/').at(-1), of])).toEqual([
      ['orphan', '_deleted-topic_'],
      ['worker', topic],
    ]);
    await raw.publish(topic, ['1']);
    expect(emulator.backlog(subscription)).toBe(0);
  });

  test('unacked messages are all there, whole, and available at once; acked ones are gone', async () => {
    const before = await start();
    const { topic, subscription } = await worker(before.raw);
    const message = { data: Buffer.from([0, 1, 255]), attributes: { own: 'x' }, orderingKey: 'k' };
    const { messageIds = [] } = await before.raw.call('Publish', { topic, messages: [message] });
    const [sent] = await before.raw.pull(subscription);
    await before.raw.publish(topic, ['acked', 'leased']);
    const received = await before.raw.pull(subscription);
    await before.raw.acknowledge(subscription, received.slice(0, 1));
    const { raw, emulator } = await restart(before);
    const again = await raw.pull(subscription);
    expect(again.map(({ message: { data } }) => data)).toEqual([message.data, Buffer.from('leased')]);
    expect(again[0]?.message).toEqual(sent?.message);
    expect(again[0]?.message.messageId).toBe(messageIds[0]);
    await raw.acknowledge(subscription, again);
    expect(emulator.backlog()).toBe(0);
  });

  test('no message id and no ack id comes a second time, and ack ids of before are stale', async () => {
    const before = await start();
    const { topic, subscription } = await worker(before.raw);
    const ids = new Set(await before.raw.publish(topic, ['1', '2']));
    const stale = await before.raw.pull(subscription);
    await before.raw.acknowledge(subscription, stale.slice(1));
    const { raw, emulator } = await restart(before);
    for (const id of await raw.publish(topic, ['3', '4'])) expect(ids).not.toContain(id);
    const received = await raw.pull(subscription);
    expect(textsOf(received)).toEqual(['1', '3', '4']);
    const staleIds = stale.map(({ ackId }) => ackId);
    for (const { ackId } of received) expect(staleIds).not.toContain(ackId);
    await raw.acknowledge(subscription, stale);
    expect(emulator.backlog(subscription)).toBe(3);
  });

  test('a key goes on at its first unacked message, in order', async () => {
    const before = await start();
    const { topic, subscription } = await worker(before.raw, { enableMessageOrdering: true });
    await before.raw.publish(topic, ['1', '2', '3', '4'], 'k');
    const received = await before.raw.pull(subscription);
    await before.raw.acknowledge(subscription, received.slice(0, 1));
    await before.raw.acknowledge(subscription, received.slice(2, 3));
    const { raw } = await restart(before);
    await raw.publish(topic, ['5'], 'k');
    expect(textsOf(await raw.pull(subscription))).toEqual(['2', '4', '5']);
  });

  test('failed deliveries still count towards the dead letter', async () => {
    let run = await start();
    const deadLetterTopic = await run.raw.createTopic('dead');
    const letters = await run.raw.createSubscription('letters', deadLetterTopic);
    const { topic, subscription } = await worker(run.raw, { deadLetterPolicy: { deadLetterTopic, maxDeliveryAttempts: 5 } });
    await run.raw.publish(topic, ['poison']);
    for (let attempt = 1; attempt <= 5; attempt++) {
      const received = await run.raw.pull(subscription);
      expect(received[0]?.deliveryAttempt).toBe(attempt);
      await run.raw.modifyDeadline(subscription, received, 0);
      run = await restart(run);
    }
    expect(run.emulator.backlog(subscription)).toBe(0);
    expect(textsOf(await run.raw.pull(letters))).toEqual(['poison']);
  });

  test('what is kept for replays is there: acked messages, the log of a topic, snapshots', async () => {
    const before = await start();
    const { topic, subscription } = await worker(before.raw, { retainAckedMessages: true });
    await before.raw.publish(topic, ['1', '2']);
    await before.raw.acknowledge(subscription, await before.raw.pull(subscription, 1));
    const snapshot = `${before.raw.project}/snapshots/half`;
    await before.raw.call('CreateSnapshot', { name: snapshot, subscription });
    await before.raw.acknowledge(subscription, await before.raw.pull(subscription));
    const kept = await before.raw.createTopic('kept');
    await before.raw.call('UpdateTopic', {
      topic: { name: kept, messageRetentionDuration: { seconds: 86_400 } },
      updateMask: { paths: ['message_retention_duration'] },
    });
    await before.raw.publish(kept, ['a']);
    const { raw, emulator } = await restart(before);
    expect(emulator.backlog()).toBe(0);
    await raw.call('Seek', { subscription, time: { seconds: 0 } });
    expect(textsOf(await raw.pull(subscription))).toEqual(['1', '2']);
    await raw.call('Seek', { subscription, snapshot });
    expect(textsOf(await raw.pull(subscription))).toEqual(['2']);
    const late = await raw.createSubscription('late', kept);
    await raw.call('Seek', { subscription: late, time: { seconds: 0 } });
    expect(textsOf(await raw.pull(late))).toEqual(['a']);
  });

  test('a reset leaves nothing for the next start', async () => {
    const before = await start();
    const { topic, subscription } = await worker(before.raw, { retainAckedMessages: true });
    await before.raw.publish(topic, ['1', '2']);
    await before.raw.acknowledge(subscription, await before.raw.pull(subscription, 1));
    await before.raw.call('CreateSnapshot', { name: `${before.raw.project}/snapshots/half`, subscription });
    before.emulator.reset();
    expect(await before.raw.call('ListTopics', { project: before.raw.project })).toMatchObject({ topics: [] });
    const { raw, emulator } = await restart(before);
    expect([emulator.topics(), emulator.subscriptions()]).toEqual([[], []]);
    expect(await raw.call('ListSnapshots', { project: raw.project })).toMatchObject({ snapshots: [] });
    const again = await worker(raw);
    expect(await raw.pull(again.subscription)).toEqual([]);
  });
});
