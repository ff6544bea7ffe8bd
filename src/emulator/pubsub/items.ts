import { type Journal, noJournal } from '../journal.ts';
import type { Time } from '../time.ts';
import type { Lease } from './leases.ts';
import { msOf, type PubsubMessage, sizeOf } from './messages.ts';

/** A message of one subscription, as long as something may deliver it. */
export type Item = {
  readonly serial: number;
  readonly message: PubsubMessage;
  readonly bytes: number;
  /** Deliveries that ended by a nack or a deadline. */
  failures: number;
  deliveries: number;
  /** It stays while the subscription retains it, and while a redelivery of an earlier one of its key would take it along. */
  acked: boolean;
  /** Nothing delivers it any more. */
  gone: boolean;
  /** It came once more after its ack; a fault does that once. */
  replayed: boolean;
  lease: Lease | undefined;
};

/** What a subscription holds, in the order of publishing. */
export type Items = {
  add(message: PubsubMessage, state?: { readonly failures?: number; readonly acked?: boolean }): Item;
  failed(item: Item): void;
  acked(item: Item): void;
  /** An acked one is to be delivered again. */
  revived(item: Item): void;
  /** No redelivery takes this acked one along any more: it goes, unless the subscription retains it. */
  release(item: Item): void;
  remove(item: Item): void;
  /** Those without an ack. */
  unacked(): readonly Item[];
  all(): readonly Item[];
  size(): number;
  /** The settings changed. */
  follow(): void;
  clear(): void;
  close(): void;
};

export type ItemsParts = {
  readonly time: Time;
  readonly journal: Journal;
  readonly name: string;
  readonly retentionMs: () => number;
  readonly retainsAcked: () => boolean;
  /** Its retention is over. */
  readonly expire: (item: Item) => void;
};

type Saved = { readonly message: PubsubMessage; readonly failures: number; readonly acked: boolean };

/** Reads back what the journal holds. */
export function createItems({ time, journal, name, retentionMs, retainsAcked, expire }: ItemsParts): Items {
  const kind = `pubsub/messages of ${name}`;
  const items = new Set<Item>();
  /** Acked, and here for replays alone. */
  const retained = new Set<Item>();
  let serials = 0;
  let size = 0;
  let cancelSweep: (() => void) | undefined;

  const keyOf = ({ serial }: Item) => String(serial).padStart(16, '0');
  const keeps = journal !== noJournal;
  const note = (item: Item) => {
    const { message, failures, acked } = item;
    if (keeps) journal.put(kind, keyOf(item), { message, failures, acked } satisfies Saved);
  };
  const forget = (item: Item) => {
    if (keeps) journal.delete(kind, keyOf(item));
  };

  const endOf = ({ message }: Item) => msOf(message.publishTime) + retentionMs();
  /** One timer for all: they end in the order of publishing. */
  const arm = () => {
    const [oldest] = items;
    cancelSweep = oldest && time.at(endOf(oldest), sweep);
  };
  const sweep = () => {
    const nowMs = time.nowMs();
    for (const item of items) {
      if (endOf(item) > nowMs) break;
      expire(item);
    }
    arm();
  };
  const remove = (item: Item) => {
    if (!items.delete(item)) return;
    retained.delete(item);
    if (!item.acked) size -= 1;
    item.gone = true;
    forget(item);
  };
  const release = (item: Item) => {
    if (retainsAcked()) retained.add(item);
    else remove(item);
  };
  const dropUnretained = () => {
    if (!retainsAcked()) for (const item of retained) remove(item);
  };
  const store = (serial: number, message: PubsubMessage, failures: number, acked: boolean) => {
    const bytes = sizeOf(message);
    const item: Item = { serial, message, bytes, failures, deliveries: 0, acked, gone: false, replayed: false, lease: undefined };
    items.add(item);
    if (acked) retained.add(item);
    else size += 1;
    cancelSweep ??= time.at(endOf(item), sweep);
    return item;
  };

  for (const [key, { message, failures, acked }] of journal.load<Saved>(kind)) {
    serials = Number(key);
    store(serials, message, failures, acked);
  }
  dropUnretained();
  return {
    add(message, { failures = 0, acked = false } = {}) {
      const item = store(++serials, message, failures, acked);
      note(item);
      return item;
    },
    failed(item) {
      item.failures += 1;
      note(item);
    },
    acked(item) {
      item.acked = true;
      size -= 1;
      // After a restart nothing takes an acked one along: what was out is available, and that begins at the first without an ack.
      if (retainsAcked()) note(item);
      else forget(item);
    },
    revived(item) {
      item.acked = false;
      size += 1;
      note(item);
    },
    release,
    remove,
    unacked: () => [...items].filter(({ acked }) => !acked),
    all: () => [...items],
    size: () => size,
    follow() {
      dropUnretained();
      cancelSweep?.();
      arm();
    },
    clear() {
      for (const item of items) remove(item);
      cancelSweep?.();
      cancelSweep = undefined;
    },
    close() {
      cancelSweep?.();
    },
  };
}
