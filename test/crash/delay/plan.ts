import type { Protection } from './controls.ts';

export const projectId = 'ptk-crash-delay';
export const location = `projects/${projectId}/locations/local`;
/** Several, since one of them dispatches a hundred tasks at once. */
export const queues = [1, 2, 3, 4].map((number) => `${location}/queues/release-${number}`);
const topicOf = (name: string) => `projects/${projectId}/topics/${name}`;
/** Full names. What comes twice in `plain` was published twice; the answers of `lossy` may be lost. */
export const topics = { plain: topicOf('final'), lossy: topicOf('lossy-final'), dead: topicOf('dead') } as const;

export const leaseMs = 20_000;
const dayMs = 86_400_000;
/** As long as one task may wait in a chain of hops. */
const hopMs = 25 * dayMs;

/** What happens in a round, in ms from its begin, by the emulator's clock alone. */
export const instants = {
  /** First hops, and what is due before it is rescheduled. */
  early: 60_007,
  repair: 122_000,
  sooner: 150_007,
  due: 180_007,
  nextOccurrence: 300_007,
} as const;
export const everyMs = instants.nextOccurrence - instants.due;
/** What is published at the begin of a round as if it had lain in its subscription for so long is due after two hops. */
export const oldMs = hopMs - instants.early;

/** Of what a process is killed in: the function at a message, a client at a call, the release at a hop or at its end. */
export type Role = 'function' | 'client' | 'hop' | 'release';

/** Of which cell a request is, and what its process does with it. */
export type Task = {
  readonly cell: string;
  readonly role: Role;
  /** The step at which a process that is to be killed stops. */
  readonly stop: string;
  readonly without: Protection | 'nothing';
  readonly isOld: boolean;
  /** Its process goes on after its stop, when it is told to. */
  readonly goesOn: boolean;
  /** In collections of its own, which nothing repairs. */
  readonly isUnrepaired: boolean;
  /** Messages of the cell, one after the other by their index. */
  readonly count: number;
};
/** Carries the task, as JSON, beside what the services send. */
export const taskHeader = 'x-crash-task';
/** Where a worker is told to go on with what has stopped. */
export const goOnPath = '/go-on';

export type Call = { readonly key: string; readonly id: string; readonly topic: string } & (
  | { readonly kind: 'schedule'; readonly dueAtMs: number; readonly everyMs?: number }
  | { readonly kind: 'reschedule'; readonly dueAtMs: number }
  | { readonly kind: 'cancel' | 'get' }
);
export type CallAnswer = {
  readonly outcome?: string;
  readonly state?: string;
  readonly key?: string;
  readonly dueAtMs?: number;
};

/** A key tells its cell. */
export const keyOf = (cell: string, number: number): string => `${cell}#${number}`;
export const cellOfKey = (key: string): string => key.slice(0, key.indexOf('#'));

const largeBytes = 70_000;
/** More than a task carries, where it is large. */
export const dataOf = (key: string, isLarge: boolean): Buffer =>
  isLarge ? Buffer.alloc(largeBytes, `${key}, `) : Buffer.from(`${key}, and no more`);

export type WorkerPlan = {
  readonly name: string;
  /** Walks cells and tells their steps; stops with each cell at its stop; or goes on with whatever there is. */
  readonly mode: 'walk' | 'stop' | 'work';
};

/** What a worker says, one line of JSON each. */
export type Line =
  | { readonly said: 'ready'; readonly pid: number; readonly url: string }
  | { readonly said: 'stopped'; readonly cell: string; readonly role: Role }
  /** Without a stop: at the end of its way, after these steps. */
  | { readonly said: 'ended'; readonly cell: string; readonly role: Role; readonly steps: readonly string[] }
  | { readonly said: 'failed'; readonly reason: string };
