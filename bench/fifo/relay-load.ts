import { firestoreRecordStore } from '../../src/shared/adapters/firestore.ts';
import { firestoreStreamStore } from '../../src/shared/adapters/firestore-streams.ts';
import { pubsubPublisher } from '../../src/shared/adapters/pubsub.ts';
import { system } from '../../src/shared/adapters/system.ts';
import { planNumbers, type RelayLease, type Unnumbered } from '../../src/shared/outbox/decide.ts';
import { createRelay } from '../../src/shared/outbox/relay.ts';
import { silentLog } from '../../src/testing/doubles.ts';
import { type Addresses, firestoreAt, payload, pubsubAt } from './clients.ts';

export type RelayLoad = {
  /** Entries of 64 streams, 30 each, as publishers leave them that die after their commit; due at once. */
  fill(): Promise<void>;
  /** Entries a second that one pass publishes and marks. */
  pass(): Promise<number>;
  close(): Promise<void>;
};

const streamCount = 64;
const entriesEach = 30;

export async function openRelayLoad(addresses: Addresses): Promise<RelayLoad> {
  const [db, pubsub] = [firestoreAt(addresses.firestore), pubsubAt(addresses.pubsub)];
  const streams = firestoreStreamStore(db, system.clock);
  const leases = firestoreRecordStore<RelayLease>(db, system.clock, 'ptk-relays');
  const relay = createRelay({ streams, leases, publisher: pubsubPublisher(pubsub), system, log: silentLog });
  const [topic] = await pubsub.createTopic('relay');

  const fillStream = async (stream: string) => {
    const group = Array.from({ length: entriesEach }, (): Unnumbered => {
      const key = system.randomId();
      return { stream, key, topic: topic.name, message: { data: payload, attributes: { 'ptk-key': key } } };
    });
    const { state } = await streams.look(stream, group);
    await streams.append(stream, planNumbers(state, group, { nowMs: system.clock.nowMs(), handoffMs: 0 }));
  };
  return {
    async fill() {
      await Promise.all(Array.from({ length: streamCount }, (_, index) => fillStream(`relay-${index}`)));
    },
    async pass() {
      const startMs = performance.now();
      const { published } = await relay();
      const lastedMs = performance.now() - startMs;
      if (published !== streamCount * entriesEach)
        throw new Error(`the relay published ${published} of ${streamCount * entriesEach} entries`);
      return (published * 1_000) / lastedMs;
    },
    async close() {
      await Promise.all([db.terminate(), pubsub.close()]);
    },
  };
}
