import type { OutgoingMessage } from '../message.ts';
import { attribute } from '../message.ts';
import type { Revised, Stored, Version } from '../ports.ts';

/** The publisher's counter of a stream (**wire**). */
export type Counter = {
  readonly next: number;
  readonly epoch: number;
  readonly rev: number;
  /** Where the stream's numbers go, fixed by the first: in two topics each would have gaps. */
  readonly topic?: string;
  /** Who wrote it last in direct mode, where no entry tells. */
  readonly runId?: string;
};

/** A numbered message: outbox entry, receipt of its commit, and memory of its number in one (**wire**). */
export type Entry = {
  readonly state: 'pending' | 'published' | 'dead';
  /** Empty for an entry without a stream, which has number 0 and no order. */
  readonly stream: string;
  readonly epoch: number;
  readonly seq: number;
  readonly key: string;
  readonly topic: string;
  /** `null` once it is published: the number stays, the body goes, unless `keepBody` is set. */
  readonly message: OutgoingMessage | null;
  readonly keepBody?: boolean;
  readonly nextAttemptAtMs: number;
  readonly attempts: number;
  readonly messageId: string | null;
};

/** What is to be numbered, before it has a number. */
export type Unnumbered = Pick<Entry, 'stream' | 'key' | 'topic' | 'keepBody'> & {
  readonly message: OutgoingMessage;
  /** The number orders the entry and does not go out; so its topic is no concern of the stream's. */
  readonly plain?: boolean;
};

/** The counter of a stream, or the instant of the read that found none, by the store's clock. */
export type CounterState = { readonly counter: Counter; readonly version: Version } | { readonly absentAtMs: number };

export type Numbering = { readonly counter: Counter; readonly expected: Version | 'absent'; readonly entries: readonly Entry[] };

/**
 * Gives a group the next numbers of its stream (protocol 3.3). A new counter starts at 1, in an epoch that is the instant at
 * which none was found: a deleted counter cannot come back with an old one.
 */
export function planNumbers(
  state: CounterState,
  group: readonly Unnumbered[],
  { nowMs, handoffMs }: { nowMs: number; handoffMs: number },
): Numbering {
  const before: Counter = 'counter' in state ? state.counter : { next: 1, epoch: state.absentAtMs, rev: 0 };
  const entries = group.map(({ plain, ...unnumbered }, index): Entry => {
    const seq = before.next + index;
    return {
      ...unnumbered,
      state: 'pending',
      epoch: before.epoch,
      seq,
      message: plain ? unnumbered.message : numbered(unnumbered, before.epoch, seq, nowMs),
      nextAttemptAtMs: nowMs + handoffMs,
      attempts: 0,
      messageId: null,
    };
  });
  const topic = topicOf(state, group);
  return {
    counter: { next: before.next + group.length, epoch: before.epoch, rev: before.rev + 1, ...(topic !== undefined && { topic }) },
    expected: 'version' in state ? state.version : 'absent',
    entries,
  };
}

function numbered({ message, stream }: Pick<Unnumbered, 'message' | 'stream'>, epoch: number, seq: number, nowMs: number): OutgoingMessage {
  const place = { [attribute.stream]: stream, [attribute.sequence]: String(seq), [attribute.epoch]: String(epoch) };
  return { ...message, attributes: { [attribute.originTime]: new Date(nowMs).toISOString(), ...message.attributes, ...place } };
}

/** An entry that nothing comes before or after; due at once. */
export const unorderedEntry = ({ plain: _, ...unnumbered }: Unnumbered, nowMs: number): Entry => ({
  ...unnumbered,
  state: 'pending',
  epoch: 0,
  seq: 0,
  nextAttemptAtMs: nowMs,
  attempts: 0,
  messageId: null,
});

/** What has its topic fixed by its stream: its number goes out, and no delay brings it to another topic first. */
const isBound = ({ plain, message }: Unnumbered): boolean => !plain && message.attributes[attribute.deliverAt] === undefined;

/** The topic of a stream's numbers: as its counter says, else that of the first message to be numbered. */
const topicOf = (state: CounterState, group: readonly Unnumbered[]): string | undefined =>
  ('counter' in state ? state.counter.topic : undefined) ?? group.find(isBound)?.topic;

/** Why a message may not be numbered in its stream, or `undefined`: numbers of one stream go to one topic. */
export function topicConflict(state: CounterState, group: readonly Unnumbered[], message: Unnumbered): string | undefined {
  const { stream, topic } = message;
  const own = topicOf(state, group);
  if (!isBound(message) || own === undefined || isSameTopic(own, topic)) return undefined;
  return `stream ${stream.slice(0, 100)} is numbered for topic ${own}, not ${topic}: a stream has one topic`;
}

/** One may be given by its short name, the other by its full one. */
function isSameTopic(one: string, other: string): boolean {
  if (one === other) return true;
  const [short, full] = one.length < other.length ? [one, other] : [other, one];
  return !short.includes('/') && full.endsWith(`/topics/${short}`);
}

/** What is wrong with a counter as it is stored, or `undefined`. */
export function counterFault({ next, epoch, rev, topic }: Partial<Record<keyof Counter, unknown>>): string | undefined {
  if (!isWhole(next, 1)) return `next is ${shown(next)}, which is no whole number from 1`;
  if (!isWhole(epoch, 0)) return `epoch is ${shown(epoch)}, which is no whole number`;
  if (!isWhole(rev, 0)) return `rev is ${shown(rev)}, which is no whole number`;
  return topic === undefined || (typeof topic === 'string' && topic !== '') ? undefined : `topic is ${shown(topic)}, which is no name`;
}

const isWhole = (value: unknown, least: number): boolean => Number.isSafeInteger(value) && (value as number) >= least;
const shown = (value: unknown): string =>
  value === undefined ? 'missing' : typeof value === 'number' ? String(value) : `a ${typeof value}`;

/** Whether a counter as read gives numbers again that were given: then somebody set it back by hand. */
export const isSetBack = (known: CounterState | undefined, seen: CounterState): boolean =>
  known !== undefined &&
  'counter' in known &&
  'counter' in seen &&
  known.counter.epoch === seen.counter.epoch &&
  seen.counter.next < known.counter.next;

/** What takes the place of a message that its topic refuses for good: its number must still pass. */
export function tombstoneOf(message: OutgoingMessage, reason: string): OutgoingMessage {
  const kept = [attribute.key, attribute.stream, attribute.sequence, attribute.epoch].flatMap((name) => {
    const value = message.attributes[name];
    return value === undefined ? [] : [[name, value]];
  });
  return { data: new Uint8Array(), attributes: { ...Object.fromEntries(kept), [attribute.tombstone]: reason } };
}

/** Which relay works on a stream (**wire**); `runId` is empty when none does. */
export type RelayLease = Revised & {
  readonly leaseMs: number;
  /** With an empty `runId`: how long from this write nobody need look, since the lowest entry backs off. */
  readonly restMs?: number;
};

/** The lease to write, or `undefined` while another relay holds the stream or its lowest entry backs off. */
export function decideRelay(
  current: Stored<RelayLease> | undefined,
  { runId, leaseMs }: Pick<RelayLease, 'runId' | 'leaseMs'>,
): RelayLease | undefined {
  const held = current && (current.record.runId ? current.record.leaseMs : current.record.restMs);
  if (current && held && current.nowMs < current.writtenAtMs + held) return undefined;
  return { rev: (current?.record.rev ?? 0) + 1, runId, leaseMs };
}

/**
 * What a relay does with the pending entries of a stream, given from the lowest number: all of them, or wait for the lowest.
 * `restMs`: as long as the lowest backs off nobody need look; its publisher may be at one that never failed, and done any moment.
 */
export function planRelay(pending: readonly Entry[], nowMs: number): { kind: 'publish' } | { kind: 'wait'; restMs: number } {
  const lowest = pending[0];
  if (!lowest) return { kind: 'wait', restMs: 0 };
  if (lowest.nextAttemptAtMs <= nowMs) return { kind: 'publish' };
  return { kind: 'wait', restMs: lowest.attempts > 0 ? lowest.nextAttemptAtMs - nowMs : 0 };
}

/** 1 s, doubled each time, 5 min at most. */
export const relayBackoffMs = (attempts: number): number => Math.min(1_000 * 2 ** (attempts - 1), 300_000);
