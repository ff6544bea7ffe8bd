import { errorCodeOf, malformed, ToolkitError } from '../errors.ts';
import { attribute, dedupKeyOf, type KeyOf, type Message } from '../message.ts';
import { telemetry } from '../metrics.ts';
import { type Options, readOptions } from '../options.ts';
import type { Context, Log, Meter, System, VerdictHandler, Version } from '../ports.ts';
import { ack, deadLetter, nack, neverThrowing, type Verdict, verdictOf } from '../verdict.ts';
import { jittered, pause, within } from '../waiting.ts';
import { consumerScope } from './claim.ts';
import { versionedOptions } from './options.ts';
import { decideEvent, eventHash, noEvents, type ProcessedEvents, processedEventsFault } from './processed-events.ts';

/** A document of the user's with what it knows of the events that changed it. */
export type Marked<D extends object> = D & { readonly processedEvents?: ProcessedEvents };

/** Whole documents by their id, each changed only if nobody changed it since. No two of them change together. */
export interface VersionedDocuments<D extends object> {
  /**
   * What is stored under the id, as it was saved.
   * @throws STORE_UNAVAILABLE; MALFORMED_MESSAGE for an id that no document can have
   */
  load(id: string): Promise<{ readonly data: D; readonly version: Version } | undefined>;
  /**
   * Replaces the document if the stored version is `expected` ('absent': nothing is stored). Never partial. What is saved differs
   * from what it replaces.
   * @throws STORE_UNAVAILABLE and then it may have been saved, may be later, or never; REFUSED for what the store does not hold;
   *   MALFORMED_MESSAGE for an id that no document can have
   */
  save(id: string, data: D, expected: Version | 'absent'): Promise<'saved' | 'conflict'>;
}

export type VersionedParts<D extends object> = {
  /** Part of each event's key: two consumers may change one document for one message. */
  readonly consumer: string;
  readonly documents: VersionedDocuments<Marked<D>>;
  readonly documentOf: (message: Message) => string;
  /**
   * When the event happened, ms since 1970: the same for every copy of it. By default when it was first published: a publisher that
   * tries again gives its copy an instant of its own, so such a copy is known only while its key is remembered.
   */
  readonly orderOf?: (message: Message) => number | undefined;
  readonly keyOf?: KeyOf;
  readonly system: System;
  readonly log: Log;
  readonly meter?: Meter;
  readonly options?: Partial<Options<typeof versionedOptions>>;
};

/**
 * What an event makes of its document; `undefined`: there is none yet. May run several times for one event, so it does nothing else.
 * A `Verdict` instead of data writes nothing and is passed on.
 */
export type Apply<D extends object> = (message: Message, data: D | undefined, context: Context) => Promise<D | Verdict> | D | Verdict;

const firstPauseMs = 20;
const longestPauseMs = 200;
/** Given back at once, it would meet the same crowd at once. */
const contendedRetryMs = 1_000;

/**
 * Changes a document once per event, where a store can change only one document at a time: the keys of the events stand in the
 * document that they change. A copy of an event is a `duplicate` as long as its key is remembered; one from before that time is a dead
 * letter (`tooOld`), since nobody can say whether it was applied.
 *
 * @throws INVALID_SETTINGS here, and never while messages are handled
 */
export function createVersioned<D extends object>(parts: VersionedParts<D>): (apply: Apply<D>) => VerdictHandler {
  const { consumer, documents, documentOf, orderOf = firstPublishedMs, keyOf, system, log } = parts;
  const { maxEvents, conflictTries, storeTimeoutMs } = readOptions(versionedOptions, parts.options);
  const scope = consumerScope(consumer);
  const { count } = telemetry(consumer, log, parts.meter);
  const inTurn = createTurns();

  /** One try; undefined when another change came first. @throws STORE_UNAVAILABLE with the outcome unknown */
  const tryOnce = async (apply: Apply<D>, message: Message, context: Context, id: string, key: string): Promise<Verdict | undefined> => {
    const bounded = <T>(what: string, work: Promise<T>) => within(system.clock, storeTimeoutMs, 'STORE_UNAVAILABLE', what, work);
    const loaded = await bounded('load', documents.load(id));
    const { processedEvents = noEvents, ...data } = loaded?.data ?? ({} as Marked<D>);
    const fault = processedEventsFault(processedEvents);
    if (fault !== undefined) throw new ToolkitError('RECORD_UNREADABLE', `processedEvents of the document cannot be read: ${fault}`);
    const event = { hash: eventHash(`${scope} ${key}`), atMs: instantOrNone(orderOf(message)) };
    const decision = decideEvent(processedEvents, event, { maxEvents });
    if (decision.kind === 'duplicate') {
      count('ptk.dedup.duplicates');
      return ack('duplicate');
    }
    if (decision.kind === 'tooOld') return deadLetter('tooOld', tooOld(event.atMs, decision.watermarkMs), key);
    const made = await apply(message, loaded && (data as unknown as D), { ...context, idempotencyKey: key });
    if (typeof made !== 'object' || made === null) throw new Error('apply returned neither data nor a verdict');
    if (verdictOf(made) === made) return made as Verdict;
    const next: Marked<D> = { ...(made as D), processedEvents: decision.next };
    const saved = await bounded('save', documents.save(id, next, loaded?.version ?? 'absent'));
    if (saved === 'conflict') return undefined;
    count('ptk.dedup.handled', { outcome: 'processed' });
    return ack('processed');
  };

  const deliver = async (apply: Apply<D>, message: Message, context: Context, id: string, key: string): Promise<Verdict> => {
    const { clock } = system;
    let pauseMs = firstPauseMs;
    let conflicts = 0;
    let unclearUntilMs: number | undefined;
    for (;;) {
      try {
        const verdict = await tryOnce(apply, message, context, id, key);
        if (verdict) return verdict;
        conflicts += 1;
        if (conflicts >= conflictTries) break;
      } catch (error) {
        // The document tells whether it was saved: the event is in it. Of a save that comes late and this next one, only one can apply.
        if (errorCodeOf(error) !== 'STORE_UNAVAILABLE') throw error;
        unclearUntilMs ??= clock.monotonicMs() + storeTimeoutMs;
        if (clock.monotonicMs() >= unclearUntilMs) throw error;
      }
      await pause(clock, jittered(system, pauseMs));
      pauseMs = Math.min(pauseMs * 2, longestPauseMs);
    }
    count('ptk.dedup.in_progress');
    return nack('inProgress', contendedRetryMs);
  };

  return (apply) =>
    neverThrowing(log, async (message, context) => {
      const id = checkedId(documentOf(message));
      const key = dedupKeyOf(message, keyOf);
      return inTurn(id, () => deliver(apply, message, context, id, key));
    });
}

/** Deliveries of this process for one document go one after the other: at the same time all but one would lose. */
function createTurns(): <T>(id: string, work: () => Promise<T>) => Promise<T> {
  const last = new Map<string, Promise<unknown>>();
  return (id, work) => {
    const done = (last.get(id) ?? Promise.resolve()).then(work);
    const ended = done
      .catch(() => {})
      .finally(() => {
        if (last.get(id) === ended) last.delete(id);
      });
    last.set(id, ended);
    return done;
  };
}

/** Kept over hops by `ptk-origin-time`; an event is not published again before it was published first. */
function firstPublishedMs({ attributes, publishTimeMs }: Message): number | undefined {
  const originMs = instantOrNone(Date.parse(attributes[attribute.originTime] ?? ''));
  if (originMs === undefined || publishTimeMs === undefined) return originMs ?? publishTimeMs;
  return Math.min(originMs, publishTimeMs);
}

/** 1970 is what services write where they know no time. */
const instantOrNone = (atMs: number | undefined): number | undefined => (Number.isFinite(atMs) && Number(atMs) > 0 ? atMs : undefined);

function checkedId(id: string): string {
  if (typeof id !== 'string' || id === '') throw malformed('the document id made by documentOf is empty');
  if (!id.isWellFormed()) throw malformed('the document id made by documentOf holds a lone surrogate');
  return id;
}

const tooOld = (atMs: number | undefined, watermarkMs: number): string =>
  `published at ${isoOf(atMs)}; of the events up to ${isoOf(watermarkMs)} the document no longer knows which were applied`;

const isoOf = (atMs: number | undefined): string => {
  const date = new Date(atMs ?? Number.NaN);
  return Number.isNaN(date.getTime()) ? String(atMs) : date.toISOString();
};
