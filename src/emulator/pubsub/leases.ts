import type { Time } from '../time.ts';
import type { Consumer } from './delivery.ts';
import type { Item } from './items.ts';

/** A delivery that is out: it ends by an ack, a nack or its deadline. */
export type Lease = { readonly ackId: string; readonly item: Item; readonly consumer: Consumer; untilMs: number };

export type Leases = {
  start(ackId: string, item: Item, consumer: Consumer): Lease;
  /** Undefined for a stale or unknown ack id. */
  find(ackId: string): Lease | undefined;
  extend(lease: Lease, ms: number): void;
  end(lease: Lease): void;
  all(): readonly Lease[];
};

type Due = { readonly leases: Set<Lease>; readonly cancel: () => void };

/** Leases that end at one instant share a timer: a batch goes out in one ms, and hardly one of its deadlines is ever reached. */
export function createLeases(time: Time, expired: (lease: Lease) => void): Leases {
  const byAckId = new Map<string, Lease>();
  const dues = new Map<number, Due>();

  const runOut = (untilMs: number) => {
    const due = dues.get(untilMs);
    dues.delete(untilMs);
    // One that runs out may take others of its key along.
    if (due) for (const lease of due.leases) if (byAckId.get(lease.ackId) === lease) expired(lease);
  };
  const schedule = (lease: Lease) => {
    const { untilMs } = lease;
    const due = dues.get(untilMs) ?? { leases: new Set(), cancel: time.at(untilMs, () => runOut(untilMs)) };
    dues.set(untilMs, due);
    due.leases.add(lease);
  };
  const unschedule = (lease: Lease) => {
    const due = dues.get(lease.untilMs);
    due?.leases.delete(lease);
    if (due?.leases.size !== 0) return;
    due.cancel();
    dues.delete(lease.untilMs);
  };
  return {
    start(ackId, item, consumer) {
      const lease = { ackId, item, consumer, untilMs: time.nowMs() + consumer.leaseMs() };
      item.lease = lease;
      byAckId.set(ackId, lease);
      schedule(lease);
      return lease;
    },
    find: (ackId) => byAckId.get(ackId),
    extend(lease, ms) {
      unschedule(lease);
      lease.untilMs = time.nowMs() + ms;
      schedule(lease);
    },
    end(lease) {
      unschedule(lease);
      byAckId.delete(lease.ackId);
      lease.item.lease = undefined;
      lease.consumer.settled(lease.item.bytes);
    },
    all: () => [...byAckId.values()],
  };
}
