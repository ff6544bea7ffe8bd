import { Timestamp } from '@google-cloud/firestore';
import { describe, expect, test } from 'vitest';
import { ToolkitError } from '../../src/shared/errors.ts';
import { firestoreDatabases } from '../support/databases.ts';
import { manualSystem } from '../support/manual-system.ts';
import type { RecordingPublisher } from '../support/recording-publisher.ts';
import { draft, sequencing, upTo } from '../support/sequencing.ts';

const manual = manualSystem();
const databases = await firestoreDatabases(manual.time);
const down = new ToolkitError('SERVICE_UNAVAILABLE', 'down');
const refused = new ToolkitError('REFUSED', 'invalid argument');

const handoffMs = 30_000;

/** Publishers that number and die before they publish. */
function setUp() {
  const parts = sequencing(databases, manual);
  const abandoned = async (...drafts: ReturnType<typeof draft>[]) => {
    const { publish } = parts.sequencer({ publisher: { publish: () => Promise.reject(down) } });
    return Promise.all(drafts.map(publish));
  };
  return { ...parts, abandoned };
}

const keys = ({ published }: RecordingPublisher) => published.map(({ message }) => message.attributes['ptk-key']);

describe('relay on firestore', () => {
  test('publishes what a dead publisher left, in order, once its time is over and not before', async () => {
    const { abandoned, relay, publisher, entry, db } = setUp();
    const [first] = await abandoned(draft('k1', { attributes: { colour: 'red' }, orderingKey: 'o' }), draft('k2'), draft('k3'));
    await manual.time.advance(handoffMs - 1);
    expect(await relay()()).toMatchObject({ published: 0 });
    await manual.time.advance(1);
    expect(await relay()()).toMatchObject({ published: 3 });
    expect(publisher.numbers()).toEqual([1, 2, 3]);
    const attributes = { 'ptk-key': 'k1', 'ptk-stream': 's', 'ptk-seq': '1', 'ptk-epoch': `${first?.epoch}`, colour: 'red' };
    expect(publisher.published[0]).toMatchObject({ topic: 't', message: { data: Buffer.from('k1'), attributes, orderingKey: 'o' } });
    const nowMs = manual.clock.nowMs();
    const stub = { state: 'published', message: null, messageId: 'm1', expireAt: Timestamp.fromMillis(nowMs + 691_200_000) };
    expect(await entry('k1')).toMatchObject(stub);
    expect(await entry('k1')).not.toHaveProperty('nextAttemptAt');
    const [lease] = (await db.collection('ptk-relays').get()).docs;
    expect(lease?.id).toBe('043a718774c572bd8a25adbeb1bfcd5c0256ae11cecf9f9c3f925d0e52beaf89');
    expect(lease?.data()).toMatchObject({ runId: '', leaseMs: 30_000 });
    expect(await relay()()).toMatchObject({ published: 0 });
  });

  test('publishes what is not yet due with what is, since it comes after it', async () => {
    const { abandoned, relay, publisher } = setUp();
    await abandoned(draft('k1'));
    await manual.time.advance(10_000);
    await abandoned(draft('k2'));
    await manual.time.advance(handoffMs - 10_000);
    await relay()();
    expect(publisher.numbers()).toEqual([1, 2]);
  });

  test('publishes 250 in order, 100 to a request', async () => {
    const { abandoned, relay, publisher } = setUp();
    const requests: number[] = [];
    publisher.refusal = (_, messages) => void requests.push(messages.length);
    await abandoned(...upTo(250).map((n) => draft(`k${n}`)));
    await manual.time.advance(handoffMs);
    expect(await relay()()).toMatchObject({ published: 250 });
    expect(requests).toEqual([100, 100, 50]);
    expect(publisher.numbers()).toEqual(upTo(250));
  });

  test('keeps the order of numbers across ordering keys, of which a request holds one', async () => {
    const { abandoned, relay, publisher } = setUp();
    const requests: number[] = [];
    publisher.refusal = (_, messages) => void requests.push(messages.length);
    await abandoned(...['o', 'o', 'p', 'o'].map((orderingKey, index) => draft(`k${index + 1}`, { orderingKey })));
    await manual.time.advance(handoffMs);
    await relay()();
    expect(requests).toEqual([2, 1, 1]);
    expect(publisher.numbers()).toEqual([1, 2, 3, 4]);
  });

  test('a retry of the publisher in the meantime gets the same number, and the id once there is one', async () => {
    const { abandoned, sequencer, relay, publisher } = setUp();
    const [left] = await abandoned(draft('k1'));
    expect(await sequencer().publish(draft('k1'))).toEqual(left);
    await manual.time.advance(handoffMs);
    await relay()();
    expect(await sequencer().publish(draft('k1'))).toEqual({ ...left, messageId: 'm1' });
    expect(publisher.numbers()).toEqual([1]);
  });
});

describe('relay on firestore: a topic that fails', () => {
  test('is tried again after 1 s, then 2 s, and what follows in its stream waits with it', async () => {
    const { abandoned, relay, publisher, entry } = setUp();
    await abandoned(draft('k1'), draft('k2'), draft('k3'));
    publisher.refusal = () => down;
    await manual.time.advance(handoffMs);
    for (const [attempts, waitMs] of [
      [1, 1_000],
      [2, 2_000],
    ] as const) {
      expect(await relay()()).toMatchObject({ published: 0 });
      expect(await entry('k1')).toMatchObject({ attempts, nextAttemptAt: Timestamp.fromMillis(manual.clock.nowMs() + waitMs) });
      await manual.time.advance(waitMs - 1);
      await relay()();
      expect(await entry('k1')).toMatchObject({ attempts });
      await manual.time.advance(1);
    }
    publisher.refusal = () => undefined;
    expect(await relay()()).toMatchObject({ published: 3 });
    expect(publisher.numbers()).toEqual([1, 2, 3]);
  });

  test('holds no other stream back, however much has piled up behind it', async () => {
    const { abandoned, relay, publisher } = setUp();
    await abandoned(...upTo(301).map((n) => draft(`k${n}`, { topic: 'down' })));
    await manual.time.advance(1);
    await abandoned(draft('k', { stream: 'other' }));
    publisher.refusal = (topic) => (topic === 'down' ? down : undefined);
    await manual.time.advance(handoffMs);
    expect(await relay()()).toMatchObject({ published: 1 });
    expect(publisher.numbers('other')).toEqual([1]);
  });
});

describe('relay on firestore: a message that is refused', () => {
  const refusing = (publisher: RecordingPublisher, key: string) => {
    publisher.refusal = (_, messages) =>
      messages.some(({ attributes }) => attributes['ptk-key'] === key && attributes['ptk-tombstone'] === undefined) ? refused : undefined;
  };

  test('is dead; a tombstone goes out under its number, and the rest follows', async () => {
    const { abandoned, relay, publisher, entry } = setUp();
    const [, second] = await abandoned(draft('k1'), draft('k2', { attributes: { colour: 'red' } }), draft('k3'));
    refusing(publisher, 'k2');
    await manual.time.advance(handoffMs);
    expect(await relay()()).toMatchObject({ published: 2 });
    expect(publisher.numbers()).toEqual([1, 2, 3]);
    const place = { 'ptk-stream': 's', 'ptk-seq': '2', 'ptk-epoch': `${second?.epoch}` };
    expect(publisher.published[1]).toEqual({
      topic: 't',
      messageId: 'm2',
      message: { data: new Uint8Array(), attributes: { ...place, 'ptk-key': 'k2', 'ptk-tombstone': 'refused' } },
    });
    expect(await entry('k2')).toMatchObject({ state: 'dead', seq: 2 });
    expect(await entry('k3')).toMatchObject({ state: 'published' });
    expect(await relay()()).toMatchObject({ published: 0 });
  });

  test('waits, and holds only its own stream, while its tombstone cannot be published', async () => {
    const { abandoned, relay, publisher, entry } = setUp();
    await abandoned(draft('k1'), draft('k2'));
    await manual.time.advance(1);
    await abandoned(draft('k', { stream: 'other' }));
    publisher.refusal = (_, [message]) =>
      message?.attributes['ptk-stream'] === 'other' ? undefined : message?.attributes['ptk-tombstone'] ? down : refused;
    await manual.time.advance(handoffMs);
    expect(await relay()()).toMatchObject({ published: 1 });
    expect(await entry('k1')).toMatchObject({ state: 'pending', attempts: 1 });
    refusing(publisher, 'k1');
    await manual.time.advance(1_000);
    expect(await relay()()).toMatchObject({ published: 1 });
    expect(keys(publisher)).toEqual(['k', 'k1', 'k2']);
    expect(publisher.numbers('s')).toEqual([1, 2]);
  });
});
