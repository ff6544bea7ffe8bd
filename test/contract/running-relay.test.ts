import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { system } from '../../src/shared/adapters/system.ts';
import type { RelayPass } from '../../src/shared/outbox/relay.ts';
import { startRelay } from '../../src/shared/outbox/running-relay.ts';
import type { StreamStore } from '../../src/shared/outbox/store.ts';
import type { RelayParts } from '../../src/shared/outbox/stream-relay.ts';
import { silentLog } from '../../src/testing/doubles.ts';
import { firestoreDatabases } from '../support/databases.ts';
import { gate } from '../support/manual-system.ts';
import { draft, sequencing, upTo } from '../support/sequencing.ts';

const databases = await firestoreDatabases();

function setUp() {
  const parts = sequencing(databases, system);
  const passes: RelayPass[] = [];
  const running = (more: Partial<RelayParts> = {}) => {
    const { streams, publisher, leases } = parts;
    const relayed = { streams: streams(), publisher, leases, system, log: silentLog, options: { relayPollMs: 600_000 }, ...more };
    const relay = startRelay({ ...relayed, onPass: (pass) => passes.push(pass) });
    onTestFinished(() => relay.stop());
    return relay;
  };
  return { ...parts, passes, running, strict: parts.sequencer({ topicOrder: 'strict' }) };
}

/** None is woken by its poll, which comes after ten minutes, but where it is said. */
describe('a running relay', () => {
  test('publishes what is there when it starts, and is woken from its rest by what comes after', async () => {
    const { strict, db, streams, outbox, running, publisher, passes } = setUp();
    await strict.publish(draft('k1'));
    const store = streams();
    let isAtRest = false;
    const watched: StreamStore = {
      ...store,
      watch(fromMs, onNext, onError) {
        const told = (dueAtMs: number | undefined) => {
          isAtRest = dueAtMs === undefined;
          onNext(dueAtMs);
        };
        return store.watch(fromMs, told, onError);
      },
    };
    running({ streams: watched });
    const rested = async (published: number) => {
      await vi.waitFor(() => expect([publisher.published.length, isAtRest]).toEqual([published, true]), 5_000);
    };
    await rested(1);
    await strict.publish(draft('k2'));
    await rested(2);
    await db.runTransaction((tx) => outbox().add(tx, { topic: 't', key: 'k3', data: Buffer.of() }));
    await rested(3);
    expect(passes).toMatchObject(Array(3).fill({ published: 1, failed: 0, dead: 0 }));
  });

  test('comes when an entry is due whose publisher died, and not before', async () => {
    const { sequencer, running, publisher } = setUp();
    const dying = { publish: () => Promise.reject(new Error('dead')) };
    const numberedAtMs = performance.now();
    await sequencer({ publisher: dying, options: { handoffMs: 1_000 } }).publish(draft('k1'));
    running();
    await vi.waitFor(() => expect(publisher.numbers()).toEqual([1]), 5_000);
    expect(performance.now() - numberedAtMs).toBeGreaterThan(990);
  });

  test('looks from time to time where the store wakes nobody', async () => {
    const { strict, streams, running, publisher } = setUp();
    const deaf: StreamStore = {
      ...streams(),
      watch(_fromMs, _onNext, onError) {
        onError(new Error('unimplemented'));
        return () => {};
      },
    };
    running({ streams: deaf, options: { relayPollMs: 100 } });
    await strict.publish(draft('k1'));
    await vi.waitFor(() => expect(publisher.numbers()).toEqual([1]), 5_000);
  });

  test('goes on after a pass that failed', async () => {
    const { strict, streams, running, publisher } = setUp();
    const store = streams();
    let faults = 1;
    const failing: StreamStore = {
      ...store,
      dueStreams(nowMs) {
        if (faults-- > 0) throw new Error('down');
        return store.dueStreams(nowMs);
      },
    };
    await strict.publish(draft('k1'));
    running({ streams: failing });
    await vi.waitFor(() => expect(publisher.numbers()).toEqual([1]), 5_000);
  });

  test('when it is stopped ends its request, marks it, gives the stream free, and begins nothing more', async () => {
    const { strict, running, publisher, entries, db } = setUp();
    const [entered, go] = [gate(), gate()];
    const slow = {
      async publish(...args: Parameters<typeof publisher.publish>) {
        entered.open();
        await go.opened;
        return publisher.publish(...args);
      },
    };
    await Promise.all(upTo(150).map((n) => strict.publish(draft(`k${n}`))));
    const relay = running({ publisher: slow });
    await entered.opened;
    const stopped = relay.stop();
    go.open();
    await stopped;
    expect(publisher.numbers()).toEqual(upTo(100));
    expect((await entries()).filter(({ state }) => state === 'published')).toHaveLength(100);
    expect((await db.collection('ptk-relays').get()).docs.map((lease) => lease.get('runId'))).toEqual(['']);
  });

  test('does not turn in circles while a stream backs off', async () => {
    const { strict, streams, running, publisher } = setUp();
    await Promise.all(upTo(3).map((n) => strict.publish(draft(`k${n}`))));
    publisher.refusal = () => new Error('down');
    const store = streams();
    let passes = 0;
    const counted: StreamStore = {
      ...store,
      dueStreams(nowMs) {
        passes += 1;
        return store.dueStreams(nowMs);
      },
    };
    const startedAtMs = performance.now();
    running({ streams: counted });
    await vi.waitFor(() => expect(performance.now() - startedAtMs).toBeGreaterThan(900), 5_000);
    expect(passes).toBeLessThan(10);
    publisher.refusal = () => undefined;
    await vi.waitFor(() => expect(publisher.numbers()).toEqual([1, 2, 3]), 8_000);
  });
});
