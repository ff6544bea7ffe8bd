import { errorCodeOf, textOf } from '../errors.ts';
import { readOptions } from '../options.ts';
import { relayBackoffMs } from './decide.ts';
import { placeOf, requestsOf } from './limits.ts';
import type { Marker } from './marks.ts';
import { outboxOptions } from './options.ts';
import type { PendingEntry } from './store.ts';
import type { Relayed, RelayParts } from './stream-relay.ts';

const entriesAtOnce = 100;
/** Another relay took some of what was read: the next read has others. */
const claimTries = 20;

/**
 * Publishes entries without a stream: the claim of one is that it is not due again for the time of a lease, so that relays share them
 * without a lease of their own. One that fails holds no other.
 */
export function createUnorderedRelay(parts: RelayParts, mark: Marker): (signal?: AbortSignal) => Promise<Relayed> {
  const { streams, publisher, system, log } = parts;
  const { relayLeaseMs } = readOptions(outboxOptions, parts.options);
  const { clock } = system;

  const noteFailure = async (failed: PendingEntry, error: unknown): Promise<Relayed> => {
    const { attempts, topic } = failed.entry;
    log.error({ topic, entry: failed.id, attempts, reason: textOf(error) }, 'entry not published');
    const isDead = errorCodeOf(error) === 'REFUSED';
    await streams.note(failed, isDead ? { state: 'dead' } : { attempts, nextAttemptAtMs: clock.nowMs() + relayBackoffMs(attempts) });
    return { published: 0, failed: isDead ? 0 : 1, dead: isDead ? 1 : 0 };
  };

  const publish = async (request: readonly PendingEntry[]): Promise<Relayed> => {
    const messages = request.map(({ entry }) => entry.message).filter((message) => message !== null);
    let messageIds: readonly string[];
    try {
      messageIds = await publisher.publish(request[0]?.entry.topic ?? '', messages);
    } catch (error) {
      const isShared = errorCodeOf(error) === 'REFUSED' && request.length > 1;
      return sumOf(await Promise.all(request.map((one) => (isShared ? publish([one]) : noteFailure(one, error)))));
    }
    await mark(request.map(({ id, entry }, index) => ({ id, entry, messageId: messageIds[index] ?? '' })));
    return { published: request.length, failed: 0, dead: 0 };
  };

  return async (signal) => {
    let counts: Relayed = { published: 0, failed: 0, dead: 0 };
    for (let tries = 0; tries < claimTries && !signal?.aborted; ) {
      const due = await streams.dueUnordered(clock.nowMs(), entriesAtOnce);
      if (due.length === 0) break;
      const claimed = await streams.claimUnordered(due, clock.nowMs() + relayLeaseMs);
      if (!claimed) {
        tries += 1;
        continue;
      }
      const places = [...Map.groupBy(claimed, ({ entry }) => placeOf(entry)).values()];
      const requests = places.flatMap((alike) => requestsOf(alike, ({ entry }) => entry));
      counts = sumOf([counts, ...(await Promise.all(requests.map(publish)))]);
      if (due.length < entriesAtOnce) break;
    }
    return counts;
  };
}

export const sumOf = (all: readonly Relayed[]): Relayed =>
  all.reduce(
    (sum, { published, failed, dead }) => ({
      published: sum.published + published,
      failed: sum.failed + failed,
      dead: sum.dead + dead,
    }),
    { published: 0, failed: 0, dead: 0 },
  );
