import { ToolkitError, textOf } from '../errors.ts';
import { attribute, type OutgoingMessage } from '../message.ts';
import { documentId, encodeName } from '../names.ts';
import { type Options, readOptions } from '../options.ts';
import type { Log, Publisher, System } from '../ports.ts';
import { type Draft, stamped } from '../publishing.ts';
import { jittered, pause, within } from '../waiting.ts';
import { type CounterState, type Entry, planNumbers, type Unnumbered } from './decide.ts';
import { outboxOptions } from './options.ts';
import type { StreamStore } from './store.ts';

export type SequencerParts = {
  readonly streams: StreamStore;
  readonly publisher: Publisher;
  readonly system: System;
  readonly log: Log;
  readonly options?: Partial<Options<typeof outboxOptions>>;
};

export type SequencedDraft = Draft & { readonly stream: string; readonly topic: string };

/** `messageId` is absent when the relay was left to publish. */
export type Sequenced = { readonly key: string; readonly epoch: number; readonly sequence: number; readonly messageId?: string };

export type Sequencer = {
  /**
   * Resolves once the number is durable, and from then on the message will be published, if need be by the relay. With a key
   * of your own a second call gets the number of the first.
   * @throws MALFORMED_MESSAGE, MESSAGE_TOO_LARGE before anything is numbered; STORE_UNAVAILABLE, STREAM_CONTENDED
   */
  publish(draft: SequencedDraft): Promise<Sequenced>;
  /** Resolves when nothing is under way. */
  flush(): Promise<void>;
};

type Job = { readonly unnumbered: Unnumbered; readonly resolve: (sequenced: Sequenced) => void; readonly reject: (error: unknown) => void };
type Lane = { readonly jobs: Job[]; running: Promise<void> | undefined };

/** A commit holds 500 writes in older clients and 10 MiB in all; a document 1 MiB (`docs/facts.md` B.8). */
const groupMessages = 400;
const groupBytes = 8 * 1024 * 1024;
const messageBytes = 1_000_000;
/** Of one attribute, by Pub/Sub (`docs/facts.md` A.3). */
const attributeNameBytes = 256;
const attributeValueBytes = 1_024;
const commitTries = 20;
/** How many streams' counters are remembered; another one costs a read. */
const rememberedCounters = 10_000;

/** The sequencing client: number and outbox entry in one commit, grouped per stream, then published in order of number. */
export function createSequencer(parts: SequencerParts): Sequencer {
  const { streams, publisher, system, log } = parts;
  const { handoffMs, stubTtlSeconds, storeTimeoutMs } = readOptions(outboxOptions, parts.options);
  const { clock } = system;
  const lanes = new Map<string, Lane>();
  const counters = new Map<string, CounterState>();
  const remember = (stream: string, state: CounterState) => {
    counters.delete(stream);
    counters.set(stream, state);
    const [oldest] = counters.keys();
    if (counters.size > rememberedCounters && oldest !== undefined) counters.delete(oldest);
  };

  /** The numbers of a group. `fresh` are those given by this call, `old` those that the keys had already. */
  const number = async (stream: string, group: readonly Unnumbered[]) => {
    const bounded = <T>(what: string, call: Promise<T>) => within(clock, storeTimeoutMs, 'STORE_UNAVAILABLE', what, call);
    const untilMs = clock.monotonicMs() + storeTimeoutMs;
    // One instant for every try: what is sent again is sent as it was.
    const nowMs = clock.nowMs();
    const sent = new Map<string, Entry>();
    /** Written by a commit of this call whose answer was lost. */
    const isOwn = ({ key, state, seq, nextAttemptAtMs }: Entry) => {
      const own = sent.get(key);
      return state === 'pending' && own?.seq === seq && own.nextAttemptAtMs === nextAttemptAtMs;
    };
    const found: Entry[] = [];
    let rest = group;
    let failure: unknown;
    for (let tries = 1; tries <= commitTries; tries++) {
      const state = counters.get(stream);
      if (state) {
        const numbering = planNumbers(state, rest, { nowMs, handoffMs });
        for (const entry of numbering.entries) sent.set(entry.key, entry);
        failure = undefined;
        try {
          const counter = await bounded('append', streams.append(stream, numbering));
          if (counter) {
            remember(stream, counter);
            return { old: found, fresh: numbering.entries };
          }
        } catch (error) {
          if (clock.monotonicMs() >= untilMs) throw error;
          failure = error;
        }
        await pause(clock, jittered(system, 10 * tries));
      }
      // One snapshot: an entry that is there has its number, whoever wrote it; the others were not committed.
      const seen = await bounded('look', streams.look(stream, rest));
      remember(stream, seen.state);
      found.push(...seen.entries.filter((entry) => entry !== undefined));
      rest = rest.filter((_, index) => !seen.entries[index]);
      if (rest.length === 0) return { old: found.filter((entry) => !isOwn(entry)), fresh: found.filter(isOwn) };
    }
    throw failure ?? new ToolkitError('STREAM_CONTENDED', `stream ${stream}: ${commitTries} commits lost against other publishers`);
  };

  /** In order, one request at a time; what fails is left to the relay, and so is all that follows it. */
  const publishFresh = async (fresh: readonly Entry[]): Promise<ReadonlyMap<string, string>> => {
    const ids = new Map<string, string>();
    for (const run of runsOfTopic(fresh)) {
      try {
        const messages = run.map((entry) => entry.message).filter((message) => message !== null);
        const topic = run[0]?.topic ?? '';
        const messageIds = await within(clock, handoffMs / 2, 'SERVICE_UNAVAILABLE', 'publish', publisher.publish(topic, messages));
        run.forEach((entry, index) => {
          ids.set(entry.key, messageIds[index] ?? '');
        });
      } catch (error) {
        log.warn({ stream: run[0]?.stream, from: run[0]?.seq, reason: textOf(error) }, 'left to the relay');
        return ids;
      }
    }
    return ids;
  };

  const work = async (stream: string, waiting: Job[]) => {
    while (waiting.length > 0) {
      const jobs = takeGroup(waiting);
      const group = [...new Map(jobs.map(({ unnumbered }) => [unnumbered.key, unnumbered])).values()];
      try {
        const { old, fresh } = await number(stream, group);
        const ids = await publishFresh(fresh);
        const byKey = new Map([...old, ...fresh].map((entry) => [entry.key, entry]));
        for (const { unnumbered, resolve } of jobs) resolve(sequencedOf(byKey.get(unnumbered.key), ids));
        const published = fresh.filter(({ key }) => ids.has(key));
        const messageIds = published.map(({ key }) => ids.get(key) ?? '');
        await streams.markPublished(published, messageIds, stubTtlSeconds * 1000).catch((error: unknown) => {
          log.warn({ stream, reason: textOf(error) }, 'not marked as published; the relay will publish copies');
        });
      } catch (error) {
        counters.delete(stream);
        for (const { reject } of jobs) reject(error);
      }
    }
    lanes.delete(stream);
  };

  return {
    publish({ stream, topic, ...draft }) {
      return new Promise((resolve, reject) => {
        const message = stamped(draft, system);
        const key = message.attributes[attribute.key] ?? '';
        documentId(encodeName(stream, attribute.stream));
        refuseTooLarge({ ...message, attributes: { ...message.attributes, [attribute.stream]: stream } });
        const lane = lanes.get(stream) ?? { jobs: [], running: undefined };
        lanes.set(stream, lane);
        lane.jobs.push({ unnumbered: { stream, key, topic, message }, resolve, reject });
        // Begins after this turn of the event loop, so that what is published in one turn is one group.
        lane.running ??= Promise.resolve().then(() => work(stream, lane.jobs));
      });
    },
    async flush() {
      while (lanes.size > 0) await Promise.all([...lanes.values()].map((lane) => lane.running));
    },
  };
}

function sequencedOf(entry: Entry | undefined, ids: ReadonlyMap<string, string>): Sequenced {
  if (!entry) throw new Error('a numbered message has no entry');
  const messageId = ids.get(entry.key) ?? entry.messageId;
  return { key: entry.key, epoch: entry.epoch, sequence: entry.seq, ...(messageId && { messageId }) };
}

function refuseTooLarge(message: OutgoingMessage): void {
  const bytes = sizeOf(message);
  if (bytes > messageBytes)
    throw new ToolkitError('MESSAGE_TOO_LARGE', `the message takes ${bytes} bytes; an outbox entry holds at most ${messageBytes}`);
  for (const [name, value] of Object.entries(message.attributes)) {
    const [nameBytes, valueBytes] = [Buffer.byteLength(name), Buffer.byteLength(value)];
    if (nameBytes > attributeNameBytes || valueBytes > attributeValueBytes)
      throw new ToolkitError(
        'MESSAGE_TOO_LARGE',
        `attribute ${name.slice(0, 40)} takes ${nameBytes} + ${valueBytes} bytes; at most ${attributeNameBytes} + ${attributeValueBytes} are allowed`,
      );
  }
}

function sizeOf({ data, attributes }: OutgoingMessage): number {
  return Object.entries(attributes).reduce(
    (bytes, [name, value]) => bytes + Buffer.byteLength(name) + Buffer.byteLength(value),
    data.length,
  );
}

function takeGroup(jobs: Job[]): Job[] {
  let bytes = 0;
  const end = jobs.findIndex(({ unnumbered }, index) => {
    bytes += sizeOf(unnumbered.message);
    return index === groupMessages || (index > 0 && bytes > groupBytes);
  });
  return jobs.splice(0, end === -1 ? jobs.length : end);
}

/** Neighbours of one topic share a request. */
function runsOfTopic(entries: readonly Entry[]): Entry[][] {
  const runs: Entry[][] = [];
  for (const entry of entries) {
    const run = runs.at(-1);
    if (run?.[0]?.topic === entry.topic) run.push(entry);
    else runs.push([entry]);
  }
  return runs;
}
