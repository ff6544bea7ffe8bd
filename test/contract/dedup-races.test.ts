import type { Firestore } from '@google-cloud/firestore';
import { createClient } from 'redis';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { firestoreRecordStore } from '../../src/shared/adapters/firestore.ts';
import { memoryRecordStore } from '../../src/shared/adapters/memory.ts';
import { redisDoneCache, redisRecordStore } from '../../src/shared/adapters/redis.ts';
import { system } from '../../src/shared/adapters/system.ts';
import { twoTierRecordStore } from '../../src/shared/adapters/two-tier.ts';
import type { DedupRecord } from '../../src/shared/dedup/decide.ts';
import { createDedup } from '../../src/shared/dedup/dedup.ts';
import type { Message } from '../../src/shared/message.ts';
import type { RecordStore } from '../../src/shared/ports.ts';
import { ack, type Verdict } from '../../src/shared/verdict.ts';
import { silentLog, testMessage } from '../../src/testing/doubles.ts';
import { type FirestoreProcess, startFirestoreProcess } from '../support/firestore-process.ts';
import { gate } from '../support/manual-system.ts';
import { firestoreClient } from '../support/targets.ts';

const messages = 200;
const copies = 50;
/** So many messages are raced for at the same time. */
const atOnce = 5;

let emulator: FirestoreProcess;
let db: Firestore;
const connect = () => createClient({ url: inject('redisUrl') }).connect();
let redis: Awaited<ReturnType<typeof connect>>;
beforeAll(async () => {
  redis = await connect();
  emulator = await startFirestoreProcess();
  db = firestoreClient(emulator.address, `ptk-races-${Date.now()}`);
});
afterAll(async () => {
  await redis.close();
  await db.terminate();
  await emulator.kill();
});

const firestore = (collection: string) => firestoreRecordStore<DedupRecord>(db, system.clock, collection);
const stores = {
  memory: () => memoryRecordStore<DedupRecord>(system.clock),
  redis: () => redisRecordStore<DedupRecord>(redis, `ptk:races-${process.pid}:`),
  firestore: () => firestore('ptk-dedup'),
  'two tiers': () =>
    twoTierRecordStore({
      fast: redisDoneCache(redis, `ptk:done-races-${process.pid}:`),
      truth: firestore('ptk-dedup-behind'),
      system,
      log: silentLog,
    }),
};

type Race = { runs: number; isDone: boolean; answered: number; ackedEarly: number; readonly allOthers: ReturnType<typeof gate> };

/** As many processes as copies: each knows of the others by the store alone. */
function workers(store: RecordStore<DedupRecord>, handle: (message: Message) => Promise<void>) {
  return Array.from({ length: copies }, () => {
    const deliver = createDedup({ consumer: 'races', store, system, log: silentLog, options: { storeTimeoutMs: 60_000 } })(handle);
    return (message: Message) => deliver(message, { signal: new AbortController().signal });
  });
}

describe.each(Object.keys(stores) as (keyof typeof stores)[])('dedup on %s', (name) => {
  test(`${messages} messages, ${copies} copies of each at once: ${messages} runs, and no copy is acked before its message is done`, async () => {
    const races = new Map<string, Race>();
    const raceOf = ({ messageId }: Message): Race => {
      const race = races.get(messageId) ?? { runs: 0, isDone: false, answered: 0, ackedEarly: 0, allOthers: gate() };
      races.set(messageId, race);
      return race;
    };
    const deliverers = workers(stores[name](), async (message) => {
      const race = raceOf(message);
      race.runs += 1;
      // Half of them are held until every other copy has its answer; the others end among the claims.
      if (Number(message.messageId) % 2 === 0) await race.allOthers.opened;
      race.isDone = true;
    });

    const raced = async (message: Message): Promise<Verdict[]> => {
      const race = raceOf(message);
      const deliveries = deliverers.map(async (deliver) => {
        const verdict = await deliver(message);
        if (verdict.kind === 'ack' && !race.isDone) race.ackedEarly += 1;
        race.answered += 1;
        if (race.answered === copies - 1) race.allOthers.open();
        return verdict;
      });
      return Promise.all(deliveries);
    };

    const waiting = Array.from({ length: messages }, (_, index) => testMessage({ messageId: String(index) }));
    const all = [...waiting];
    const kinds: Record<string, number> = {};
    const racer = async () => {
      for (let message = waiting.shift(); message; message = waiting.shift()) {
        for (const { kind, reason } of await raced(message)) kinds[`${kind} ${reason}`] = (kinds[`${kind} ${reason}`] ?? 0) + 1;
      }
    };
    await Promise.all(Array.from({ length: atOnce }, racer));

    expect([...races.values()].filter(({ runs }) => runs !== 1)).toEqual([]);
    expect([...races.values()].filter(({ ackedEarly }) => ackedEarly > 0)).toEqual([]);
    expect(kinds['ack processed']).toBe(messages);
    expect(kinds['nack inProgress']).toBeGreaterThanOrEqual((messages / 2) * (copies - 1));
    const [again] = deliverers;
    expect(await Promise.all(all.map((message) => again?.(message)))).toEqual(all.map(() => ack('duplicate')));
    expect(races.size).toBe(messages);
  }, 180_000);
});
