import { ToolkitError, textOf } from '../errors.ts';
import { type Options, readOptions } from '../options.ts';
import type { Log, Publisher, RecordStore, System } from '../ports.ts';
import { collecting } from './collecting.ts';
import type { Entry, RelayLease, Unnumbered } from './decide.ts';
import { requireKey, type SequencedDraft, sequenced, type Wishes } from './drafts.ts';
import { fitting } from './limits.ts';
import { createMarker } from './marks.ts';
import { createNumbering, type Numbered } from './numbering.ts';
import { outboxOptions } from './options.ts';
import { type Outcomes, publishEach, publishUntilFailure } from './publishing.ts';
import { entryIdOf, type StreamStore } from './store.ts';
import { createStreamRelay } from './stream-relay.ts';

export type { SequencedDraft } from './drafts.ts';

export type SequencerParts<Transaction = unknown> = Wishes & {
  readonly streams: StreamStore<Transaction>;
  readonly publisher: Publisher;
  readonly system: System;
  readonly log: Log;
  /** Only for `flush(stream)`, which is a relay for that stream. */
  readonly leases?: RecordStore<RelayLease>;
  /** `direct`: no entries, for who accepts that a number may never be published. */
  readonly mode?: 'outbox' | 'direct';
  /** `strict`: only the relay publishes, so that the topic has the order of the numbers. */
  readonly topicOrder?: 'numbers' | 'strict';
  readonly options?: Partial<Options<typeof outboxOptions>>;
};

/** `messageId` is absent when the relay was left to publish. */
export type Sequenced = { readonly key: string; readonly epoch: number; readonly sequence: number; readonly messageId?: string };

export type Sequencer<Transaction = unknown> = {
  /**
   * Resolves once the number is durable, and from then on the message will be published, if need be by the relay. With a key
   * of your own a second call gets the number of the first. In direct mode it resolves once the message is published, and a second
   * call gets another number.
   * @throws MALFORMED_MESSAGE, MESSAGE_TOO_LARGE before anything is numbered; STORE_UNAVAILABLE, STREAM_CONTENDED, RECORD_UNREADABLE;
   *   in direct mode SERVICE_UNAVAILABLE, REFUSED with the number that is missing now
   */
  publish(draft: SequencedDraft): Promise<Sequenced>;
  /**
   * Numbers in a transaction of yours: reads, then writes, so it is called once, with one message or all, after your reads and before
   * your writes. Each needs its own key, and gets the number that it has already. The relay publishes them after the commit; or
   * `flush(stream)` does.
   * @throws MALFORMED_MESSAGE, MESSAGE_TOO_LARGE, RECORD_UNREADABLE, and what the transaction throws
   */
  publishWithin<Given extends SequencedDraft | readonly SequencedDraft[]>(
    transaction: Transaction,
    given: Given,
  ): Promise<Given extends SequencedDraft ? Sequenced : readonly Sequenced[]>;
  /** Resolves when nothing is under way; given a stream, also publishes what is pending there, unless a relay is at it. */
  flush(stream?: string): Promise<void>;
  /** Takes nothing more, and resolves when nothing is under way. */
  close(): Promise<void>;
};

type Job = { readonly unnumbered: Unnumbered; readonly resolve: (sequenced: Sequenced) => void; readonly reject: (error: unknown) => void };
/** `groups`: numbered and not yet published, the oldest first. */
type Lane = { readonly jobs: Job[]; readonly groups: Promise<void>[]; isNumbering: boolean };

/** Groups of a stream that may be numbered while an older one is still being published. */
const groupsAhead = 4;

/**
 * The sequencing client: number and outbox entry in one commit, grouped per stream, then published in order of number while the next
 * group is numbered.
 */
export function createSequencer<Transaction = unknown>(parts: SequencerParts<Transaction>): Sequencer<Transaction> {
  const { streams, publisher, system, log, mode = 'outbox', topicOrder = 'numbers' } = parts;
  const { handoffMs, storeTimeoutMs, stubTtlSeconds } = readOptions(outboxOptions, parts.options);
  if (mode === 'direct' && topicOrder === 'strict')
    throw new ToolkitError('INVALID_SETTINGS', 'topicOrder "strict" needs mode "outbox": a relay publishes entries');
  const { clock } = system;
  const number = createNumbering({
    streams,
    system,
    handoffMs: topicOrder === 'strict' ? 0 : handoffMs,
    storeTimeoutMs,
    isDirect: mode === 'direct',
  });
  const mark = createMarker(streams, stubTtlSeconds * 1000);
  const publishing = { publisher, system, log, timeoutMs: handoffMs / 2 };
  const lanes = new Map<string, Lane>();
  const underWay = new Set<Promise<unknown>>();
  let isClosed = false;

  const watched = <T>(work: Promise<T>): Promise<T> => {
    underWay.add(work);
    const done = () => underWay.delete(work);
    work.then(done, done);
    return work;
  };

  const unmarked = (error: unknown) => {
    log.warn({ reason: textOf(error) }, 'not marked as published; the relay will publish copies');
  };

  const publishFresh = async (fresh: readonly Entry[], untilMs: number): Promise<Outcomes> => {
    if (mode === 'direct') return publishEach(publishing, fresh);
    // Too late: a relay may be at it by now.
    if (topicOrder === 'strict' || clock.monotonicMs() >= untilMs) return new Map();
    return publishUntilFailure(publishing, fresh);
  };

  const publishGroup = async (jobs: readonly Job[], { fresh, old, refused }: Numbered, untilMs: number) => {
    const outcomes = await publishFresh(fresh, untilMs);
    const byKey = new Map([...old, ...fresh].map((entry) => [entry.key, entry]));
    for (const { unnumbered, resolve, reject } of jobs) {
      const entry = byKey.get(unnumbered.key);
      const outcome = outcomes.get(unnumbered.key) ?? refused.get(unnumbered.key);
      if (entry && typeof outcome !== 'object') resolve(sequencedOf(entry, outcome));
      else reject(outcome);
    }
    if (mode === 'direct') return;
    const marks = fresh.flatMap((entry) => {
      const messageId = outcomes.get(entry.key);
      return typeof messageId === 'string' ? [{ entry, id: entryIdOf(entry), messageId }] : [];
    });
    if (marks.length > 0) void watched(mark(marks).catch(unmarked));
  };

  const dropIdle = (stream: string, { isNumbering, groups }: Lane) => {
    if (!isNumbering && groups.length === 0) lanes.delete(stream);
  };

  const numberWaiting = async (stream: string, lane: Lane) => {
    // Begins after this turn of the event loop, so that what is published in one turn is one group.
    await undefined;
    while (lane.jobs.length > 0) {
      const jobs = lane.jobs.splice(
        0,
        fitting(lane.jobs, ({ unnumbered }) => unnumbered.message),
      );
      const group = [...new Map(jobs.map(({ unnumbered }) => [unnumbered.key, unnumbered])).values()];
      const untilMs = clock.monotonicMs() + handoffMs / 2;
      try {
        const numbered = await number(stream, group);
        const before = lane.groups.at(-1) ?? Promise.resolve();
        const published = watched(before.then(() => publishGroup(jobs, numbered, untilMs)));
        lane.groups.push(published);
        void published.then(() => {
          void lane.groups.shift();
          dropIdle(stream, lane);
        });
        if (lane.groups.length > groupsAhead) await lane.groups[0];
      } catch (error) {
        for (const { reject } of jobs) reject(error);
      }
    }
    lane.isNumbering = false;
    dropIdle(stream, lane);
  };

  const publish = async (draft: SequencedDraft): Promise<Sequenced> => {
    if (isClosed) throw new ToolkitError('SERVICE_UNAVAILABLE', 'the sequencer is closed; nothing was numbered');
    const unnumbered = sequenced(draft, system, parts);
    const { stream } = unnumbered;
    const lane = lanes.get(stream) ?? { jobs: [], groups: [], isNumbering: false };
    lanes.set(stream, lane);
    return new Promise((resolve, reject) => {
      lane.jobs.push({ unnumbered, resolve, reject });
      if (lane.isNumbering) return;
      lane.isNumbering = true;
      void watched(numberWaiting(stream, lane));
    });
  };

  const flush = async (stream?: string): Promise<void> => {
    while (underWay.size > 0) await Promise.all(underWay);
    if (stream === undefined) return;
    if (!parts.leases) throw new ToolkitError('INVALID_SETTINGS', 'flush(stream) needs the leases of the relays');
    await createStreamRelay({ ...parts, leases: parts.leases })(stream);
  };

  const numberWithin = async (transaction: Transaction, drafts: readonly SequencedDraft[]): Promise<readonly Sequenced[]> => {
    if (mode === 'direct') throw new ToolkitError('INVALID_SETTINGS', 'publishWithin needs mode "outbox": the relay publishes entries');
    const group = drafts.map((draft) => {
      requireKey(draft);
      return sequenced(draft, system, parts);
    });
    const collection = collecting(parts, transaction, '');
    await collection.add(group);
    const entries = await collection.write();
    return group.map((unnumbered) => sequencedOf(entries.get(entryIdOf(unnumbered))));
  };

  return {
    publish,
    async publishWithin(transaction, given) {
      const isOne = 'stream' in given;
      const all = await numberWithin(transaction, isOne ? [given] : given);
      return (isOne ? all[0] : all) as never;
    },
    flush,
    close() {
      isClosed = true;
      return flush();
    },
  };
}

function sequencedOf(entry: Entry | undefined, published?: string): Sequenced {
  if (!entry) throw new Error('a numbered message has no entry');
  const messageId = published ?? entry.messageId;
  return { key: entry.key, epoch: entry.epoch, sequence: entry.seq, ...(messageId && { messageId }) };
}
