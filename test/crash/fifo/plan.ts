import type { Message } from '../../../src/shared/message.ts';
import type { Verdict } from '../../../src/shared/verdict.ts';
import type { Protection } from './controls.ts';

export const projectId = 'ptk-crash-fifo';
/** Short where the process is to be killed; long where the lease must be held, however late a busy machine renews it. */
export const leases = { short: 3_000, long: 20_000 } as const;
/** Topics of this name lose answers. */
export const lossy = 'lossy';
/** Where `deadLetters` of a consumer go. */
export const deadTopic = 'dead';

/** How messages of a cell come to the consumer, and what its handler does with them. */
export type Task = {
  /** Its stream, too. */
  readonly cell: string;
  /** The step at which a process that is to be killed stops. */
  readonly stop: string;
  readonly consumer: string;
  readonly without: Protection | 'nothing';
  /** The messages of a cell that the first process handles; it ends with the ack of the last. */
  readonly count: number;
  /** One after the other by their index, or as they come. */
  readonly isTogether: boolean;
};

/** One message of a task. */
export type Part = { readonly seq: number; readonly index: number; readonly delayMs: number; readonly isPoison: boolean };

export const keyOf = (cell: string, seq: number): string => `${cell}/${seq}`;

/** A part that is just handled. */
export const plainPart = (seq: number, index = 0, delayMs = 0): Part => ({ seq, index, delayMs, isPoison: false });

export const attributesOf = (task: Task, part: Part): Record<string, string> => ({
  'ptk-key': keyOf(task.cell, part.seq),
  'ptk-stream': task.cell,
  'ptk-seq': String(part.seq),
  'ptk-epoch': '1',
  task: JSON.stringify(task),
  part: JSON.stringify(part),
});
export const taskOf = ({ attributes }: Message): Task => JSON.parse(attributes.task ?? '');
export const partOf = ({ attributes }: Message): Part => JSON.parse(attributes.part ?? '');

/** Each cell whose protections differ has cursors of its own. */
export const consumerOf = ({ consumer, without }: Pick<Task, 'consumer' | 'without'>): string =>
  without === 'nothing' ? consumer : `${consumer} without ${without}`;

/** What one publisher or relay of a process does, once. */
export type SenderCell = Pick<Task, 'cell' | 'stop' | 'consumer' | 'without'> & { readonly topic: string; readonly prefix: string };

/** What relays keep looking at: the collections of a prefix. */
export type Outbox = Pick<SenderCell, 'prefix' | 'without'>;

export type WorkerPlan = {
  readonly name: string;
  /** Walks a cell once and tells its steps; stops with each cell at its stop; or goes on with whatever there is. */
  readonly mode: 'walk' | 'stop' | 'work';
  readonly publishers: readonly SenderCell[];
  readonly relays: readonly SenderCell[];
  readonly outboxes: readonly Outbox[];
  readonly subscriptions: readonly string[];
  /** The client keeps its acks for a minute, as it keeps them for 100 ms by itself. */
  readonly keepsAcks: boolean;
  readonly takesPushes: boolean;
  /** Consumers whose forgotten messages it looks for. */
  readonly sweeps: readonly string[];
  readonly sinkUrl: string;
  readonly leaseMs: number;
};

/** What a worker says, one line of JSON each. */
export type Line =
  | { readonly said: 'ready'; readonly pid: number; readonly pushUrl: string }
  | { readonly said: 'numbered'; readonly cell: string; readonly key: string; readonly sequence: number }
  | { readonly said: 'verdict'; readonly cell: string; readonly seq: number; readonly kind: Verdict['kind']; readonly reason: string }
  | { readonly said: 'stopped'; readonly cell: string }
  /** Without a stop: at the end of its cell, after these steps. */
  | { readonly said: 'ended'; readonly cell: string; readonly steps: readonly string[] }
  | { readonly said: 'failed'; readonly reason: string };

/** The begin and the end of a handler's run. */
export type Post = {
  readonly phase: 'begin' | 'end';
  readonly worker: string;
  readonly cell: string;
  readonly seq: number;
  readonly key: string;
};
