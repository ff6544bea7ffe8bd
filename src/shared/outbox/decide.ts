import type { OutgoingMessage } from '../message.ts';
import { attribute } from '../message.ts';
import type { Revised, Stored, Version } from '../ports.ts';

/** The publisher's counter of a stream (**wire**). */
export type Counter = { readonly next: number; readonly epoch: number; readonly rev: number };

/** A numbered message: outbox entry, receipt of its commit, and memory of its number in one (**wire**). */
export type Entry = {
  readonly state: 'pending' | 'published' | 'dead';
  readonly stream: string;
  readonly epoch: number;
  readonly seq: number;
  readonly key: string;
  readonly topic: string;
  /** `null` once it is published: the number stays, the body goes. */
  readonly message: OutgoingMessage | null;
  readonly nextAttemptAtMs: number;
  readonly attempts: number;
  readonly messageId: string | null;
};

/** What is to be numbered, before it has a number. */
export type Unnumbered = Pick<Entry, 'stream' | 'key' | 'topic'> & { readonly message: OutgoingMessage };

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
  const before = 'counter' in state ? state.counter : { next: 1, epoch: state.absentAtMs, rev: 0 };
  const entries = group.map((unnumbered, index): Entry => {
    const seq = before.next + index;
    return {
      ...unnumbered,
      state: 'pending',
      epoch: before.epoch,
      seq,
      message: numbered(unnumbered, before.epoch, seq, nowMs),
      nextAttemptAtMs: nowMs + handoffMs,
      attempts: 0,
      messageId: null,
    };
  });
  return {
    counter: { next: before.next + group.length, epoch: before.epoch, rev: before.rev + 1 },
    expected: 'version' in state ? state.version : 'absent',
    entries,
  };
}

function numbered({ message, stream }: Unnumbered, epoch: number, seq: number, nowMs: number): OutgoingMessage {
  const place = { [attribute.stream]: stream, [attribute.sequence]: String(seq), [attribute.epoch]: String(epoch) };
  return { ...message, attributes: { [attribute.originTime]: new Date(nowMs).toISOString(), ...message.attributes, ...place } };
}

/** What takes the place of a message that its topic refuses for good: its number must still pass. */
export function tombstoneOf(message: OutgoingMessage, reason: string): OutgoingMessage {
  const kept = [attribute.key, attribute.stream, attribute.sequence, attribute.epoch].flatMap((name) => {
    const value = message.attributes[name];
    return value === undefined ? [] : [[name, value]];
  });
  return { data: new Uint8Array(), attributes: { ...Object.fromEntries(kept), [attribute.tombstone]: reason } };
}

/** Which relay works on a stream (**wire**); `runId` is empty when none does. */
export type RelayLease = Revised & { readonly leaseMs: number };

/** The lease to write, or `undefined` while another relay holds the stream. */
export function decideRelay(
  current: Stored<RelayLease> | undefined,
  { runId, leaseMs }: Pick<RelayLease, 'runId' | 'leaseMs'>,
): RelayLease | undefined {
  if (current?.record.runId && current.nowMs < current.writtenAtMs + current.record.leaseMs) return undefined;
  return { rev: (current?.record.rev ?? 0) + 1, runId, leaseMs };
}

/** What a relay does with the pending entries of a stream, given from the lowest number: all of them, or wait for the lowest. */
export function planRelay(pending: readonly Entry[], nowMs: number): 'publish' | 'wait' | 'nothing' {
  const lowest = pending[0];
  if (!lowest) return 'nothing';
  return lowest.nextAttemptAtMs <= nowMs ? 'publish' : 'wait';
}

/** 1 s, doubled each time, 5 min at most. */
export const relayBackoffMs = (attempts: number): number => Math.min(1_000 * 2 ** (attempts - 1), 300_000);
