import { textOf } from '../errors.ts';
import { createStreamRelay, type Relayed, type RelayParts, relayMarker } from './stream-relay.ts';
import { createUnorderedRelay, sumOf } from './unordered-relay.ts';

export type { RelayParts } from './stream-relay.ts';

/** `streams`: that were worked on; those that another relay holds or that back off are not. */
export type RelayPass = Relayed & { readonly streams: number };

/** Streams that one pass works on at a time. */
const streamsAtOnce = 16;

/**
 * Publishes what dead publishers and transactions left: one pass over the streams with due entries, several at a time, each in order of
 * number (protocol 3.6). Any number of relays may run.
 *
 * @returns a pass; once its signal aborts it ends what is in flight and begins nothing more
 *   @throws STORE_UNAVAILABLE when what is due cannot be read
 */
export function createRelay(parts: RelayParts): (how?: { readonly signal?: AbortSignal }) => Promise<RelayPass> {
  const { streams, system, log } = parts;
  const mark = relayMarker(parts);
  const relayStream = createStreamRelay(parts, mark);
  const relayUnordered = createUnorderedRelay(parts, mark);

  /** A stream that cannot be worked on now is no matter of the others. */
  const relayed = (stream: string, signal: AbortSignal | undefined): Promise<Relayed | undefined> =>
    (stream === '' ? relayUnordered(signal) : relayStream(stream, signal)).catch((error: unknown) => {
      log.warn({ stream, reason: textOf(error) }, 'stream not relayed');
      return { published: 0, failed: 1, dead: 0 };
    });

  return async ({ signal } = {}) => {
    const results: Relayed[] = [];
    const atWork = new Set<Promise<void>>();
    for await (const stream of streams.dueStreams(system.clock.nowMs())) {
      if (signal?.aborted) break;
      const work = relayed(stream, signal).then((result) => {
        if (result) results.push(result);
        atWork.delete(work);
      });
      atWork.add(work);
      if (atWork.size >= streamsAtOnce) await Promise.race(atWork);
    }
    await Promise.all(atWork);
    return { ...sumOf(results), streams: results.length };
  };
}
