import { errorCodeOf, textOf } from '../errors.ts';
import { holdLease, type Lease } from '../lease.ts';
import type { OutgoingMessage } from '../message.ts';
import { encodeName, hash } from '../names.ts';
import { type Options, readOptions } from '../options.ts';
import type { Log, Publisher, RecordStore, System } from '../ports.ts';
import { settledGet, settledPut } from '../settled.ts';
import { decideRelay, planRelay, type RelayLease, relayBackoffMs, tombstoneOf } from './decide.ts';
import { outboxOptions } from './options.ts';
import type { PendingEntry, StreamStore } from './store.ts';

export type RelayParts = {
  readonly streams: StreamStore;
  readonly leases: RecordStore<RelayLease>;
  readonly publisher: Publisher;
  readonly system: System;
  readonly log: Log;
  readonly options?: Partial<Options<typeof outboxOptions>>;
};

const entriesAtOnce = 100;
/** A lease that is over may be deleted; a stream that is idle needs none. */
const leaseKeepMs = 86_400_000;

/**
 * Publishes what dead publishers left, in order of number (protocol 3.6): one pass over the streams with due entries. Two
 * relays do not work on one stream; a lease that is outlived costs one request of copies, with the same keys and numbers.
 */
export function createRelay(parts: RelayParts): () => Promise<{ published: number }> {
  const { streams, leases, publisher, system, log } = parts;
  const { relayLeaseMs: leaseMs, stubTtlSeconds, storeTimeoutMs } = readOptions(outboxOptions, parts.options);
  const { clock } = system;
  const storeParts = { store: leases, system, storeTimeoutMs };

  const claim = async (stream: string): Promise<Lease<RelayLease> | undefined> => {
    const key = hash(encodeName(stream, 'the stream'));
    const current = await settledGet(storeParts, key);
    const record = decideRelay(current, { runId: system.randomId(), leaseMs });
    if (!record) return undefined;
    const put = await settledPut(storeParts, key, record, current?.version ?? 'absent', leaseKeepMs);
    if (put.kind === 'lost') return undefined;
    return holdLease(storeParts, log, { ...put, key, record, keepMs: leaseKeepMs });
  };

  /** A refused message is dead, and a tombstone takes its number; any other failure waits, and all that follows waits with it. */
  const noteFailure = async (failed: PendingEntry, error: unknown) => {
    const { entry } = failed;
    const attempts = entry.attempts + 1;
    log.error({ stream: entry.stream, seq: entry.seq, attempts, reason: textOf(error) }, 'entry not published');
    if (errorCodeOf(error) === 'REFUSED' && entry.message && (await isBuried(entry.topic, entry.message))) {
      await streams.note(failed, { state: 'dead' });
      return true;
    }
    await streams.note(failed, { attempts, nextAttemptAtMs: clock.nowMs() + relayBackoffMs(attempts) });
    return false;
  };

  const isBuried = (topic: string, message: OutgoingMessage): Promise<boolean> =>
    publisher.publish(topic, [tombstoneOf(message, 'refused')]).then(
      () => true,
      (error: unknown) => {
        log.error({ topic, reason: textOf(error) }, 'tombstone not published');
        return false;
      },
    );

  /** One request of entries of one topic, from the lowest number; alone where the group was refused. */
  const publishLowest = async (pending: readonly PendingEntry[]): Promise<number> => {
    const topic = pending[0]?.entry.topic ?? '';
    const end = pending.findIndex(({ entry }) => entry.topic !== topic);
    const entries = pending.slice(0, end === -1 ? pending.length : end).map(({ entry }) => entry);
    const messages = entries.map(({ message }) => message).filter((message) => message !== null);
    const messageIds = await publisher.publish(topic, messages);
    await streams.markPublished(entries, messageIds, stubTtlSeconds * 1000);
    return entries.length;
  };

  const drain = async (stream: string, lease: Lease<RelayLease>): Promise<number> => {
    let published = 0;
    for (;;) {
      const pending = await streams.pending(stream, entriesAtOnce);
      const [lowest] = pending;
      if (
        !lowest ||
        planRelay(
          pending.map(({ entry }) => entry),
          clock.nowMs(),
        ) !== 'publish'
      )
        return published;
      if (!(await lease.renew())) return published;
      try {
        published += await publishLowest(pending).catch((error: unknown) => {
          // One of the group is refused, and the service does not say which: the lowest is tried alone.
          if (errorCodeOf(error) !== 'REFUSED' || pending.length === 1) throw error;
          return publishLowest([lowest]);
        });
      } catch (error) {
        if (!(await noteFailure(lowest, error))) return published;
      }
    }
  };

  return async () => {
    let published = 0;
    for (const stream of await streams.dueStreams(clock.nowMs())) {
      const lease = await claim(stream);
      if (!lease) continue;
      try {
        published += await drain(stream, lease);
      } finally {
        await lease
          .end((record) => ({ ...record, runId: '' }), leaseKeepMs)
          .catch((error: unknown) => log.warn({ stream, reason: textOf(error) }, 'stream not freed'));
      }
    }
    return { published };
  };
}
