import { errorCodeOf, textOf } from '../errors.ts';
import { holdLease, type Lease } from '../lease.ts';
import { attribute } from '../message.ts';
import { encodeName, hash } from '../names.ts';
import { type Options, readOptions } from '../options.ts';
import type { Log, Publisher, RecordStore, System } from '../ports.ts';
import { settledGet, settledPut } from '../settled.ts';
import { decideRelay, type Entry, planRelay, type RelayLease, relayBackoffMs, tombstoneOf } from './decide.ts';
import { requestsOf } from './limits.ts';
import { createMarker, type Marker } from './marks.ts';
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

/** What became of entries: `failed` are requests that will be tried again, `dead` messages that were refused for good. */
export type Relayed = { readonly published: number; readonly failed: number; readonly dead: number };

const entriesAtOnce = 100;
/** A lease that is over may be deleted; a stream that is idle needs none. */
const leaseKeepMs = 86_400_000;

type Held = { readonly lease: Lease<RelayLease>; renewedAtMs: number };

/** For all that one relay publishes. */
export const relayMarker = ({ streams, options }: RelayParts): Marker =>
  createMarker(streams, readOptions(outboxOptions, options).stubTtlSeconds * 1000);

/**
 * Publishes what is pending in a stream, from the lowest number, while nobody else does (protocol 3.6, L2 to L7). A lease that is
 * outlived costs one request of copies, with the same keys and numbers.
 *
 * @returns of one stream: what became of its entries, or `undefined` while another relay holds it or its lowest entry backs off
 */
export function createStreamRelay(
  parts: RelayParts,
  mark = relayMarker(parts),
): (stream: string, signal?: AbortSignal) => Promise<Relayed | undefined> {
  const { streams, leases, publisher, system, log } = parts;
  const { relayLeaseMs: leaseMs, storeTimeoutMs } = readOptions(outboxOptions, parts.options);
  const { clock } = system;
  const storeParts = { store: leases, system, storeTimeoutMs };

  const claim = async (stream: string): Promise<Held | undefined> => {
    const key = hash(encodeName(stream, 'the stream'));
    const current = await settledGet(storeParts, key);
    const record = decideRelay(current, { runId: system.randomId(), leaseMs });
    if (!record) return undefined;
    const put = await settledPut(storeParts, key, record, current?.version ?? 'absent', leaseKeepMs);
    if (put.kind === 'lost') return undefined;
    return { lease: holdLease(storeParts, log, { ...put, key, record, keepMs: leaseKeepMs }), renewedAtMs: put.sentAtMs };
  };

  /** Nobody takes a lease of which two thirds are left; so a write in front of each request says no more than one now and then. */
  const isHeld = async (held: Held): Promise<boolean> => {
    const nowMs = clock.monotonicMs();
    if (nowMs - held.renewedAtMs < leaseMs / 3) return true;
    held.renewedAtMs = nowMs;
    return held.lease.renew();
  };

  const publish = async (request: readonly PendingEntry[]): Promise<number> => {
    const messages = request.map(({ entry }) => entry.message).filter((message) => message !== null);
    const messageIds = await publisher.publish(request[0]?.entry.topic ?? '', messages);
    await mark(request.map(({ id, entry }, index) => ({ id, entry, messageId: messageIds[index] ?? '' })));
    return request.length;
  };

  const isBuried = (topic: string, message: NonNullable<Entry['message']>): Promise<boolean> => {
    // Where no number went out none is missing.
    if (message.attributes[attribute.sequence] === undefined) return Promise.resolve(true);
    return publisher.publish(topic, [tombstoneOf(message, 'refused')]).then(
      () => true,
      (error: unknown) => {
        log.error({ topic, reason: textOf(error) }, 'tombstone not published');
        return false;
      },
    );
  };

  /** @returns for how long the stream has to wait: what follows the failed entry waits with it; 0 for a refused one, which is dead */
  const noteFailure = async (failed: PendingEntry, error: unknown): Promise<number> => {
    const { entry } = failed;
    const attempts = entry.attempts + 1;
    log.error({ stream: entry.stream, seq: entry.seq, attempts, reason: textOf(error) }, 'entry not published');
    if (errorCodeOf(error) === 'REFUSED' && entry.message && (await isBuried(entry.topic, entry.message))) {
      await streams.note(failed, { state: 'dead' });
      return 0;
    }
    const waitMs = relayBackoffMs(attempts);
    await streams.note(failed, { attempts, nextAttemptAtMs: clock.nowMs() + waitMs });
    return waitMs;
  };

  /** One request; of a group that is refused the lowest alone, since the service does not say which one it means. */
  const publishFrom = async (
    entries: readonly PendingEntry[],
  ): Promise<{ published: number; failed?: { head: PendingEntry; error: unknown } }> => {
    for (let group = entries; ; group = group.slice(0, 1)) {
      const [head] = group;
      if (!head) return { published: 0 };
      try {
        return { published: await publish(group) };
      } catch (error) {
        if (errorCodeOf(error) !== 'REFUSED' || group.length === 1) return { published: 0, failed: { head, error } };
      }
    }
  };

  /** @returns also for how long the stream is to rest */
  const drain = async (stream: string, held: Held, signal: AbortSignal | undefined): Promise<Relayed & { restMs: number }> => {
    const counts = { published: 0, failed: 0, dead: 0, restMs: 0 };
    for (;;) {
      const pending = await streams.pending(stream, entriesAtOnce);
      const plan = planRelay(
        pending.map(({ entry }) => entry),
        clock.nowMs(),
      );
      if (plan.kind === 'wait') return { ...counts, restMs: plan.restMs };
      let isWhole = true;
      for (const request of requestsOf(pending, ({ entry }) => entry)) {
        if (signal?.aborted || !(await isHeld(held))) return counts;
        const { published, failed } = await publishFrom(request);
        counts.published += published;
        const restMs = failed ? await noteFailure(failed.head, failed.error) : 0;
        if (restMs > 0) return { ...counts, failed: 1, restMs };
        if (failed) counts.dead += 1;
        isWhole = published === request.length;
        // What is left of it comes before all that follows.
        if (!isWhole) break;
      }
      if (isWhole && pending.length < entriesAtOnce) return counts;
    }
  };

  return async (stream, signal) => {
    const held = await claim(stream);
    if (!held) return undefined;
    let restMs = 0;
    try {
      const drained = await drain(stream, held, signal);
      restMs = drained.restMs;
      return { published: drained.published, failed: drained.failed, dead: drained.dead };
    } finally {
      // Also where it is 0: a put leaves what it does not name.
      const freed = (record: RelayLease): RelayLease => ({ ...record, runId: '', restMs });
      await held.lease.end(freed, leaseKeepMs).catch((error: unknown) => log.warn({ stream, reason: textOf(error) }, 'stream not freed'));
    }
  };
}
