import type { DedupRecord } from '../../../src/shared/dedup/decide.ts';
import type { Message } from '../../../src/shared/message.ts';
import type { Version } from '../../../src/shared/ports.ts';
import type { Verdict } from '../../../src/shared/verdict.ts';
import type { Protection } from './controls.ts';

export const consumer = 'crash';
export const projectId = 'ptk-crash-dedup';
/** Short where a lease is to end; long where it must be held, however late a busy machine renews it. */
export const leases = { short: 1_200, long: 20_000 } as const;

/** The awaits between receive and ack; `sent` is a write that has left the worker and not reached the store yet. */
export const leaseStops = [
  'received',
  'claim sent',
  'claim applied',
  'before the effect',
  'renewal sent',
  'renewal applied',
  'after the effect',
  'end sent',
  'end applied',
  'verdict known',
  'ack called',
] as const;
/** The end is in Firestore, and Redis in front of it has not heard of it. */
export const twoTierStops = [...leaseStops, 'end in Firestore alone'] as const;
export const inboxStops = [
  'received',
  'before the transaction',
  'before the write',
  'after the write',
  'before the commit',
  'commit applied',
  'verdict known',
  'ack called',
] as const;
export type Stop = (typeof twoTierStops)[number] | (typeof inboxStops)[number];

/** Where the records of a cell are: a store, or one behind which a Redis loses what it holds. */
export type Setup = 'inbox' | 'firestore' | `${'redis' | 'twoTier'}${'' | ` ${RedisFault}`}`;
export const redisFaults = ['flushed', 'restarted', 'failed over'] as const;
export type RedisFault = (typeof redisFaults)[number];

/** What a message tells the worker that handles it. */
export type Task = {
  readonly cell: string;
  readonly setup: Setup;
  /** Only a worker that is to be killed stops there. */
  readonly stop: Stop | 'nowhere';
  readonly without: Protection | 'nothing';
  readonly renewals: 'made' | 'missing';
  readonly lease: keyof typeof leases;
};

export const attributesOf = ({ cell, setup, stop, without, renewals, lease }: Task): Record<string, string> => ({
  'ptk-key': cell,
  cell,
  setup,
  stop,
  without,
  renewals,
  lease,
});
export const taskOf = ({ attributes }: Message): Task => attributes as Task;

export type WorkerPlan = {
  readonly subscriptions: readonly string[];
  readonly stops: boolean;
  /** The client keeps its acks for a minute, as it keeps them for 100 ms by itself. */
  readonly keepsAcks: boolean;
  /** Of its wall clock, and so of `system.clock.nowMs`. */
  readonly clockAheadMs: number;
  readonly sinkUrl: string;
  readonly redisUrls: RedisUrls;
};

export type RedisUrls = Readonly<Record<RedisFault | 'sound', string>>;

/** A write as it was sent. */
export type LateWrite = {
  readonly key: string;
  readonly record: DedupRecord;
  readonly expected: Version | 'absent';
  readonly keepMs: number | 'forever';
};

/** What a worker says, one line of JSON each. */
export type Line =
  | { readonly said: 'ready'; readonly pid: number }
  | { readonly said: 'stopped'; readonly cell: string; readonly write?: LateWrite }
  | { readonly said: 'verdict'; readonly cell: string; readonly kind: Verdict['kind']; readonly reason: string }
  | { readonly said: 'zombie'; readonly cell: string }
  | { readonly said: 'failed'; readonly reason: string };
