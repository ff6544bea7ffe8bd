import { Timestamp } from '@google-cloud/firestore';
import { describe, expect, test } from 'vitest';
import { ToolkitError } from '../../src/shared/errors.ts';
import type { Publisher } from '../../src/shared/ports.ts';
import { firestoreDatabases } from '../support/databases.ts';
import { gate, manualSystem } from '../support/manual-system.ts';
import { draft, sequencing, upTo } from '../support/sequencing.ts';

const manual = manualSystem();
const databases = await firestoreDatabases(manual.time);
const down = new ToolkitError('SERVICE_UNAVAILABLE', 'down');
const options = { relayLeaseMs: 5_000 };
/** Of a relay that the test has killed: what its timers find later is nobody's. */
const abandoned = (pass: Promise<unknown>) => void pass.catch(() => {});

function setUp() {
  const parts = sequencing(databases, manual);
  const add = (keys: readonly string[], more: object = {}) =>
    parts.db.runTransaction((tx) =>
      parts.outbox().add(
        tx,
        keys.map((key) => ({ topic: 't', key, data: Buffer.from(key), ...more })),
      ),
    );
  const keys = () => parts.publisher.published.map(({ message }) => message.attributes['ptk-key']).sort();
  return { ...parts, add, keys };
}
const names = (count: number) => upTo(count).map((n) => `k${100 + n}`);

/** One after the other: they share a clock. */
describe('entries without a stream', () => {
  test('are shared by two relays at once: each is published once, and none is left', async () => {
    const { add, relay, client, streams, keys } = setUp();
    await add(names(250));
    const passes = await Promise.all([relay()(), relay({ streams: streams(client()) })()]);
    expect(keys()).toEqual(names(250));
    expect(passes[0].published + passes[1].published).toBe(250);
  });

  test('that another relay took meanwhile are not taken again', async () => {
    const { add, relay, streams, keys } = setUp();
    await add(names(3));
    const store = streams();
    const [read, go] = [gate(), gate()];
    const late = relay({
      streams: {
        ...store,
        async claimUnordered(...args) {
          read.open();
          await go.opened;
          return store.claimUnordered(...args);
        },
      },
    })();
    await read.opened;
    expect(await relay()()).toMatchObject({ published: 3 });
    go.open();
    expect(await late).toMatchObject({ published: 0, failed: 0 });
    expect(keys()).toEqual(names(3));
  });

  test('are claimed until a lease is over: what a killed relay had taken goes out after that', async () => {
    const { add, relay, keys, entries } = setUp();
    await add(names(3));
    const nowMs = manual.clock.nowMs();
    const entered = gate();
    const hanging: Publisher = {
      publish() {
        entered.open();
        return new Promise(() => {});
      },
    };
    abandoned(relay({ publisher: hanging, options })());
    await entered.opened;
    expect(await entries()).toMatchObject(Array(3).fill({ attempts: 1, nextAttemptAt: Timestamp.fromMillis(nowMs + 5_000) }));
    await manual.time.advance(4_999);
    expect(await relay({ options })()).toMatchObject({ published: 0 });
    await manual.time.advance(1);
    expect(await relay({ options })()).toMatchObject({ published: 3 });
    expect(keys()).toEqual(names(3));
  });

  test('that fail are tried again after 1 s, then 2 s, and hold no others', async () => {
    const { add, relay, publisher, keys, entries } = setUp();
    await add(['bad'], { topic: 'down' });
    await add(['good']);
    publisher.refusal = (topic) => (topic === 'down' ? down : undefined);
    expect(await relay()()).toMatchObject({ published: 1, failed: 1 });
    const failed = async () => (await entries()).find(({ key }) => key === 'bad');
    expect(await failed()).toMatchObject({ attempts: 1, nextAttemptAt: Timestamp.fromMillis(manual.clock.nowMs() + 1_000) });
    await manual.time.advance(999);
    expect(await relay()()).toMatchObject({ published: 0, failed: 0 });
    await manual.time.advance(1);
    expect(await relay()()).toMatchObject({ failed: 1 });
    expect(await failed()).toMatchObject({ attempts: 2, nextAttemptAt: Timestamp.fromMillis(manual.clock.nowMs() + 2_000) });
    publisher.refusal = () => undefined;
    await manual.time.advance(2_000);
    expect(await relay()()).toMatchObject({ published: 1 });
    expect(keys()).toEqual(['bad', 'good']);
  });

  test('of which one is refused for good: it is dead, and those of its request go out', async () => {
    const { add, relay, publisher, keys, entries } = setUp();
    await add(names(3));
    publisher.refusal = (_, messages) =>
      messages.some(({ attributes }) => attributes['ptk-key'] === 'k102') ? new ToolkitError('REFUSED', 'no') : undefined;
    expect(await relay()()).toMatchObject({ published: 2, dead: 1, failed: 0 });
    expect(keys()).toEqual(['k101', 'k103']);
    expect((await entries()).find(({ key }) => key === 'k102')).toMatchObject({ state: 'dead', nextAttemptAt: null });
    expect(await relay()()).toMatchObject({ published: 0, dead: 0 });
  });
});

describe('a stream that is stuck', () => {
  test('is looked at once in its back-off: its entries are not read again, and other streams go on', async () => {
    const { sequencer, streams, relay, publisher, keys } = setUp();
    const { publish } = sequencer({ topicOrder: 'strict' });
    await Promise.all(upTo(120).map((n) => publish(draft(`k${n}`, { stream: 'stuck', topic: 'down' }))));
    publisher.refusal = (topic) => (topic === 'down' ? down : undefined);
    const read: string[] = [];
    const store = streams();
    const watched = {
      ...store,
      pending(stream: string, limit: number) {
        read.push(stream);
        return store.pending(stream, limit);
      },
    };
    const pass = relay({ streams: watched });
    expect(await pass()).toMatchObject({ published: 0, failed: 1, streams: 1 });
    for (const key of ['a', 'b']) {
      await publish(draft(key, { stream: 'other' }));
      expect(await pass()).toMatchObject({ published: 1, failed: 0, streams: 1 });
    }
    expect(read).toEqual(['stuck', 'other', 'other']);
    await manual.time.advance(1_000);
    publisher.refusal = () => undefined;
    expect(await pass()).toMatchObject({ published: 120, streams: 1 });
    expect([publisher.numbers('stuck'), keys().length]).toEqual([upTo(120), 122]);
  });

  test('does not end the pass where its entries cannot be read', async () => {
    const { sequencer, streams, relay, publisher } = setUp();
    const { publish } = sequencer({ topicOrder: 'strict' });
    for (const stream of ['a', 'b', 'c']) await publish(draft('k', { stream }));
    const store = streams();
    const pending = (stream: string, limit: number) =>
      stream === 'b' ? Promise.reject(new ToolkitError('STORE_UNAVAILABLE', 'down')) : store.pending(stream, limit);
    expect(await relay({ streams: { ...store, pending } })()).toEqual({ published: 2, failed: 1, dead: 0, streams: 3 });
    expect(publisher.numbers('b')).toEqual([]);
  });
});
