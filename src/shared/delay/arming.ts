import { errorCodeOf, malformed, textOf } from '../errors.ts';
import { attribute, keyOrIdOf, type Message, type OutgoingMessage, sequenceRefOf, tombstoneOf } from '../message.ts';
import type { Log, Publisher, Scheduler } from '../ports.ts';
import { hopsOf, ledgerTaskId, nextHop, queueOf, taskId } from './decide.ts';
import { carriedBy, type DelayRecord } from './ledger.ts';
import { encodeTask, type TaskBody } from './task-body.ts';

/** What tells a delayed message where and when to go, and does not travel on: or it would be delayed again. */
const instructions: readonly string[] = [attribute.deliverAt, attribute.delayMs, attribute.delayId, attribute.target];

export const withoutInstructions = (message: OutgoingMessage): OutgoingMessage => ({
  ...message,
  attributes: Object.fromEntries(Object.entries(message.attributes).filter(([name]) => !instructions.includes(name))),
});

/** The message as it is published when its time has come: delayed once more than before. */
export function released(message: OutgoingMessage): OutgoingMessage {
  const { attributes, ...rest } = withoutInstructions(message);
  const count = Number(attributes[attribute.delayCount] ?? 0) + 1;
  return { ...rest, attributes: { ...attributes, [attribute.delayCount]: String(count) } };
}

/**
 * How often a message was delayed before, as its attribute says.
 * @throws MALFORMED_MESSAGE
 */
export function delayCountOf({ attributes }: Pick<OutgoingMessage, 'attributes'>): string {
  const count = attributes[attribute.delayCount] ?? '0';
  if (!/^\d{1,9}$/.test(count)) throw malformed(`${attribute.delayCount} is no whole number from 0`);
  return count;
}

/** The short name of a task. */
function idOf(body: TaskBody): string {
  if (body.ledger) return ledgerTaskId(body.ledger, body.hop);
  return taskId({ ...body, delayCount: 'message' in body ? delayCountOf(body.message) : (body.delayCount ?? '0') });
}

/** The task of a body: one, however often it is made. */
export function arm(scheduler: Pick<Scheduler, 'schedule'>, queues: readonly string[], body: TaskBody): Promise<void> {
  const id = idOf(body);
  return scheduler.schedule({ queue: queueOf(id, queues), id, scheduledForMs: body.scheduledForMs, body: encodeTask(body) });
}

/** The task of the next hop, and which one that is. */
export async function armNextHop(scheduler: Pick<Scheduler, 'schedule'>, queues: readonly string[], body: TaskBody): Promise<number> {
  const hop = body.hop + 1;
  await arm(scheduler, queues, { ...body, hop, scheduledForMs: nextHop(body.scheduledForMs, body.dueAtMs) });
  return hop;
}

/** The first task of an entry's generation. */
export function armRecord(scheduler: Pick<Scheduler, 'schedule'>, record: DelayRecord): Promise<void> {
  const { id, incarnation, generation, dueAtMs, armedAtMs, target, key, queue } = record;
  const body: TaskBody = {
    ...carriedBy(record),
    v: 1,
    source: '',
    key,
    instruction: '',
    hop: 1,
    dueAtMs,
    scheduledForMs: nextHop(armedAtMs, dueAtMs),
    target,
    ledger: { id, incarnation, generation },
  };
  return arm(scheduler, [queue], body);
}

/** Every name that a task of an entry's generation may have; one of them waits or runs while it is armed. */
export function taskNamesOf({ incarnation, generation, armedAtMs, dueAtMs, queue }: DelayRecord): { queue: string; id: string }[] {
  return Array.from({ length: hopsOf(armedAtMs, dueAtMs) }, (_, index) => ({
    queue,
    id: ledgerTaskId({ incarnation, generation }, index + 1),
  }));
}

/**
 * What a message that ends here leaves to its stream (protocol 0.12); nothing where it has no number. A tombstone that cannot be handled leaves
 * none of its own, or two topics would pass them on for ever.
 */
export function tombstoneLeft(message: Message, reason: string): OutgoingMessage | undefined {
  try {
    if (message.attributes[attribute.tombstone] !== undefined || !sequenceRefOf(message)) return undefined;
  } catch {
    return undefined;
  }
  return withoutInstructions(tombstoneOf(message, keyOrIdOf(message), reason));
}

/**
 * Gives a number back to its stream. What the topic refuses is told in the log alone: whoever waits for it would try for ever.
 * @throws SERVICE_UNAVAILABLE
 */
export async function publishTombstone(
  { publisher, log }: { readonly publisher: Publisher; readonly log: Log },
  topic: string,
  tombstone: OutgoingMessage,
): Promise<void> {
  try {
    await publisher.publish(topic, [tombstone]);
  } catch (error) {
    if (errorCodeOf(error) !== 'REFUSED') throw error;
    log.error(
      { topic, stream: tombstone.attributes[attribute.stream], reason: textOf(error) },
      'a number was not given back to its stream',
    );
  }
}
