import { describe, expect, test, vi } from 'vitest';
import type { Publisher } from '../../src/shared/ports.ts';
import { firestoreDatabases } from '../support/databases.ts';
import { gate } from '../support/manual-system.ts';
import { outboxTopics } from '../support/outbox-topics.ts';
import { upTo } from '../support/sequencing.ts';

const databases = await firestoreDatabases();
const setUp = outboxTopics(databases);
const options = { relayLeaseMs: 1_000 };
const slow = () => databases.emulator.faults.add({ kind: 'slow-call', rpc: 'Publisher.Publish', delayMs: 50 });

async function withRows(rows: 'of 100 streams' | 'of one stream' | 'without a stream') {
  const parts = await setUp();
  const keys = upTo(100).map((n) => `k${n}`);
  const streamOf = (key: string) => (rows === 'of one stream' ? 's' : `s-${key}`);
  if (rows === 'without a stream') {
    const drafts = keys.map((key) => ({ topic: parts.topic, key, data: Buffer.from(key) }));
    await parts.db.runTransaction((tx) => parts.outbox().add(tx, drafts));
  } else {
    const { publish } = parts.sequencer({ topicOrder: 'strict' });
    await Promise.all(keys.map((key) => publish(parts.draft(key, { stream: streamOf(key) }))));
  }
  return { ...parts, keys, receivedKeys: () => parts.received.map(({ key }) => key) };
}

/** Never answers again from the call on that is given, as a process that was killed; `killed` opens when it is made. */
function killedAt(publisher: Publisher, call: number): Publisher & { killed: Promise<void> } {
  const killed = gate();
  let calls = 0;
  return {
    killed: killed.opened,
    publish(...args) {
      if (++calls < call) return publisher.publish(...args);
      killed.open();
      return new Promise(() => {});
    },
  };
}

describe.each(['of 100 streams', 'of one stream', 'without a stream'] as const)('40: two relays, 100 rows %s', (rows) => {
  test('and each publish takes 50 ms: every row is published once', async () => {
    const { relay, client, streams, keys, receivedKeys } = await withRows(rows);
    const rule = slow();
    const relays = [relay({ options }), relay({ options, streams: streams(client()) })];
    const published = async () => (await Promise.all(relays.map((pass) => pass()))).reduce((sum, pass) => sum + pass.published, 0);
    let total = 0;
    await vi.waitFor(async () => {
      total += await published();
      expect(total).toBe(100);
    }, 15_000);
    rule();
    await vi.waitFor(() => expect(receivedKeys().toSorted()).toEqual(keys.toSorted()), 5_000);
  });

  test('and one is killed in the middle of its work: its rows go out after the lease, and none is lost', async () => {
    const { relay, publisher, leases, streams, keys, receivedKeys, entries } = await withRows(rows);
    const dying = killedAt(publisher, rows === 'of 100 streams' ? 5 : 1);
    let isDead = false;
    const never = new Promise<never>(() => {});
    const store = streams();
    void dying.killed.then(() => {
      isDead = true;
    });
    const killed = relay({
      options,
      publisher: dying,
      leases: { get: leases.get, put: (...args) => (isDead ? never : leases.put(...args)) },
      streams: { ...store, markPublished: (...args) => (isDead ? never : store.markPublished(...args)) },
    })();
    // What its timers find later is nobody's.
    killed.catch(() => {});
    await dying.killed;
    const killedAtMs = performance.now();
    const pass = relay({ options });
    await vi.waitFor(async () => {
      await pass();
      expect((await entries()).filter(({ state }) => state === 'pending')).toEqual([]);
    }, 15_000);
    expect(performance.now() - killedAtMs).toBeGreaterThan(500);
    await vi.waitFor(() => expect([...new Set(receivedKeys())].toSorted()).toEqual(keys.toSorted()), 5_000);
  });
});
