import { FieldValue, type Firestore } from '@google-cloud/firestore';
import { firestoreInbox } from '../../../src/shared/adapters/firestore.ts';
import { createDedup } from '../../../src/shared/dedup/dedup.ts';
import { createInbox } from '../../../src/shared/dedup/inbox.ts';
import type { Meter, System, VerdictHandler } from '../../../src/shared/ports.ts';
import { ack } from '../../../src/shared/verdict.ts';
import { silentLog } from '../../../src/testing/doubles.ts';
import { unprotected, unprotectedInbox } from './controls.ts';
import { consumer, leases, type Task } from './plan.ts';
import { type StopAt, stoppingInbox, stoppingStore } from './stops.ts';
import { collection, type Stores } from './stores.ts';

export type ConsumerParts = {
  readonly db: Firestore;
  readonly stores: Stores;
  readonly system: System;
  readonly effect: (cell: string) => Promise<void>;
  readonly countZombie: (cell: string) => void;
};

/** A write may wait until its process is killed. */
const storeTimeoutMs = 60_000;

export const effects = 'effects';

/** The handler of one cell, with what it is guarded by. */
export async function createConsumer(parts: ConsumerParts, task: Task, stopAt: StopAt): Promise<VerdictHandler> {
  return task.setup === 'inbox' ? inboxConsumer(parts, task, stopAt) : leaseConsumer(parts, task, stopAt);
}

async function leaseConsumer(
  parts: ConsumerParts,
  { cell, setup, without, renewals, lease }: Task,
  stopAt: StopAt,
): Promise<VerdictHandler> {
  const { stores, effect, countZombie } = parts;
  const options = { leaseMs: leases[lease], storeTimeoutMs };
  const system = renewals === 'made' ? parts.system : withoutRenewals(parts.system, options.leaseMs);
  const handle = async () => {
    await stopAt('before the effect');
    await effect(cell);
    await stopAt('after the effect');
  };
  if (without === 'the claim') return async () => handle().then(() => ack('processed'));
  const store = stoppingStore(unprotected(await stores.storeOf(setup, stopAt), without, system.clock), stopAt);
  const meter: Meter = {
    record: (_, { kind }) => {
      if (kind === 'zombie') countZombie(cell);
    },
  };
  return createDedup({ consumer, store, system, log: silentLog, meter, options })(handle);
}

function inboxConsumer({ db, system }: ConsumerParts, { cell, without }: Task, stopAt: StopAt): VerdictHandler {
  const inbox = unprotectedInbox(firestoreInbox(db, system.clock, collection), without, system);
  const store = stoppingInbox(inbox, stopAt);
  return createInbox({ consumer, store, system, log: silentLog })(async (_, { transaction }) => {
    await stopAt('before the write');
    transaction.set(db.collection(effects).doc(cell), { made: FieldValue.increment(1) }, { merge: true });
    await stopAt('after the write');
  });
}

/** The timers of renewals never come. */
const withoutRenewals = (system: System, leaseMs: number): System => ({
  ...system,
  clock: {
    ...system.clock,
    after: (delayMs, run) => (delayMs === leaseMs / 3 ? () => {} : system.clock.after(delayMs, run)),
  },
});
