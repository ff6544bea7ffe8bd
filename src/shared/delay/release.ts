import type { DedupRecord } from '../dedup/decide.ts';
import { createIdempotent } from '../dedup/idempotent.ts';
import { errorCodeOf, textOf } from '../errors.ts';
import type { Message } from '../message.ts';
import { type Options, readOptions } from '../options.ts';
import type { Calendar, DeadLetters, Log, Meter, PayloadStore, Publisher, RecordStore, Scheduler, System } from '../ports.ts';
import { verdictOfError } from '../verdict.ts';
import { armNextHop, publishTombstone, released, tombstoneLeft } from './arming.ts';
import { uncarried } from './carrying.ts';
import { delayOptions } from './options.ts';
import { type Released, releaseRecord } from './release-record.ts';
import type { DelayLedger } from './store.ts';
import { decodeTask, type TaskBody } from './task-body.ts';

export type ReleaseParts = {
  readonly publisher: Publisher;
  readonly finalTopic: string;
  readonly scheduler: Scheduler;
  readonly queues: readonly string[];
  /** Of dedup keys: a task that is dispatched again publishes nothing. */
  readonly store: RecordStore<DedupRecord>;
  readonly ledger: DelayLedger;
  readonly payloads: PayloadStore;
  readonly calendar: Calendar;
  readonly deadLetters: DeadLetters;
  readonly system: System;
  readonly log: Log;
  readonly meter?: Meter;
  /** Told of each message that was published, and how late. */
  readonly onPublished?: (latenessMs: number) => void;
  readonly options?: Partial<Options<typeof delayOptions>>;
};

/** A task as it was dispatched. */
export type DispatchedTask = {
  /** Short names. */
  readonly id: string;
  readonly queue: string;
  /** The text that the task carries. */
  readonly body: string;
  /** From 1. */
  readonly attempt: number;
};

/** Under whose name a release keeps its dedup keys. */
const consumer = 'ptk-release';
/** Longer than a task lives, and how often it may be dispatched again meanwhile. */
const ttlSeconds = 32 * 86_400;

/**
 * What a task does when its time has come: it publishes the message, or makes the task of the next hop. Resolves once the message id is
 * known, or the next task exists, or a dead letter is stored. A dispatch of a task that has done its work does nothing.
 * @returns a function that @throws STORE_UNAVAILABLE, SERVICE_UNAVAILABLE: to be dispatched again
 * @throws INVALID_SETTINGS
 */
export function createRelease(parts: ReleaseParts): (task: DispatchedTask) => Promise<Released> {
  const { publisher, scheduler, queues, payloads, system, log, meter, deadLetters } = parts;
  const { leaseMs, storeTimeoutMs, maxAttempts } = readOptions(delayOptions, parts.options);
  const once = createIdempotent({ ...parts, consumer, options: { leaseMs, storeTimeoutMs, ttlSeconds } });
  const published = (dueAtMs: number) => {
    const latenessMs = Math.max(system.clock.nowMs() - dueAtMs, 0);
    meter?.record('ptk.delay.lateness', {}, latenessMs);
    parts.onPublished?.(latenessMs);
  };

  /** Stores a message that can never be published; what is no such error is thrown as it came. */
  const deadLettered = async (task: DispatchedTask, body: TaskBody | undefined, error: unknown) => {
    const verdict = verdictOfError(error);
    if (verdict.kind !== 'deadLetter') throw error;
    await deadLetters.publish(await letterOf(task, body), verdict);
    return { kind: 'deadLettered', reason: verdict.reason } as const;
  };

  const targetOf = (body: TaskBody | undefined): string => body?.target ?? parts.finalTopic;

  /** The same, and the number that the message had goes to its stream, first: it may be given back twice, and a dead letter is stored once. */
  const ended = async (task: DispatchedTask, body: TaskBody, error: unknown) => {
    const verdict = verdictOfError(error);
    const tombstone = verdict.kind === 'deadLetter' && tombstoneLeft(await letterOf(task, body), verdict.reason);
    if (tombstone) await publishTombstone(parts, targetOf(body), tombstone);
    return deadLettered(task, body, error);
  };

  /** No dispatch may come after this one. */
  const exhausted = async (task: DispatchedTask, error: unknown, isBusy: boolean) => {
    const body = decoded(task);
    const letter = await letterOf(task, body);
    const detail = `${task.attempt} dispatches failed, the last one: ${textOf(error)}`;
    await deadLetters.publish(letter, { kind: 'deadLetter', reason: 'attempts', detail });
    // Another dispatch that is at it may still publish the message, under its number.
    const tombstone = isBusy ? undefined : tombstoneLeft(letter, 'attempts');
    if (tombstone)
      await publishTombstone(parts, targetOf(body), tombstone).catch((failure: unknown) =>
        log.error({ task: task.id, reason: textOf(failure) }, 'the number of a dead letter was not given back'),
      );
    return { kind: 'deadLettered', reason: 'attempts' } as const;
  };

  /** The message, or the task's body where there is none to be had. */
  const letterOf = async ({ id, queue, body: data }: DispatchedTask, body: TaskBody | undefined): Promise<Message> => {
    const message = body && (await uncarried(payloads, body).catch(() => undefined));
    const { orderingKey = '', ...outgoing } = message ? released(message) : { data: Buffer.from(data), attributes: {} };
    return {
      ...outgoing,
      orderingKey,
      messageId: id,
      publishTimeMs: undefined,
      subscription: body?.source || queue,
      deliveryAttempt: undefined,
    };
  };

  /** Without a ledger the task's name tells that its work is done. */
  const releaseTask = async (task: DispatchedTask, body: TaskBody): Promise<Released> => {
    if (body.scheduledForMs < body.dueAtMs) {
      try {
        return { kind: 'hop', hop: await armNextHop(scheduler, queues, body) };
      } catch (error) {
        return once(task.id, () => ended(task, body, error));
      }
    }
    const target = targetOf(body);
    const outcome = await once(task.id, async (): Promise<Released> => {
      try {
        const message = released(await uncarried(payloads, body));
        const [messageId = ''] = await publisher.publish(target, [message]);
        published(body.dueAtMs);
        return { kind: 'published', messageId };
      } catch (error) {
        return ended(task, body, error);
      }
    });
    if ('payload' in body) await removed(body);
    return outcome;
  };

  /** Only garbage: nothing refers to it any more, and its time to live takes it. */
  const removed = (body: Extract<TaskBody, { payload: unknown }>) =>
    payloads.remove(body.payload).catch((error: unknown) => log.warn({ reason: textOf(error) }, 'payload not removed'));

  const release = async (task: DispatchedTask): Promise<Released> => {
    let body: TaskBody;
    try {
      body = decodeTask(parsed(task.body));
    } catch (error) {
      return once(task.id, () => deadLettered(task, undefined, error));
    }
    if (!body.ledger) return releaseTask(task, body);
    const ends = {
      deadLettered: (error: unknown) => deadLettered(task, body, error),
      /** Once: there is no entry that would tell the next dispatch. */
      ended: (error: unknown) => once(task.id, () => ended(task, body, error)),
    };
    return releaseRecord({ ...parts, leaseMs, storeTimeoutMs, published, ...ends }, body, body.ledger);
  };

  return async (task) => {
    try {
      return await release(task);
    } catch (error) {
      const code = errorCodeOf(error);
      const isBusy = code === 'IN_PROGRESS' || code === 'LEASE_LOST';
      // What is in the ledger is not lost with its task: a repair makes another one.
      if (maxAttempts > 0 && task.attempt >= maxAttempts && !decoded(task)?.ledger) return exhausted(task, error, isBusy);
      if (isBusy) return { kind: 'busy' };
      throw error;
    }
  };
}

/** A body that is no JSON is malformed like any other that has not the task's form. */
function parsed(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return undefined;
  }
}

function decoded({ body }: DispatchedTask): TaskBody | undefined {
  try {
    return decodeTask(parsed(body));
  } catch {
    return undefined;
  }
}
