import { malformed } from '../errors.ts';
import { attribute, dedupKeyOf, forwarded, type Message } from '../message.ts';
import type { Log, Publisher, Scheduler, System, VerdictHandler } from '../ports.ts';
import { ack, neverThrowing, type Verdict } from '../verdict.ts';
import { planDelay, taskId } from './decide.ts';
import { encodeTask, type TaskBody } from './task-body.ts';

export type DelayParts = {
  readonly publisher: Publisher;
  /** Where messages go once they are due. */
  readonly finalTopic: string;
  readonly scheduler: Scheduler;
  readonly system: Pick<System, 'clock'>;
  readonly log: Log;
};

/** Turns a message with a due time into one task, however often it is delivered; one without goes on at once. */
export function createDelay({ publisher, finalTopic, scheduler, system, log }: DelayParts): VerdictHandler {
  const deliver = async (message: Message): Promise<Verdict> => {
    const key = dedupKeyOf(message);
    const plan = planDelay(message, system.clock.nowMs());
    const outgoing = forwarded(message, key);
    if (plan.kind === 'now') {
      await publisher.publish(finalTopic, [outgoing]);
      return ack('processed');
    }
    const { dueAtMs, scheduledForMs, instruction } = plan;
    await scheduleHop(scheduler, {
      v: 1,
      source: message.subscription,
      key,
      instruction,
      hop: 1,
      dueAtMs,
      scheduledForMs,
      message: outgoing,
    });
    return ack('scheduled');
  };
  return neverThrowing(log, deliver);
}

export function scheduleHop(scheduler: Scheduler, body: TaskBody): Promise<void> {
  const delayCount = body.message.attributes[attribute.delayCount] ?? '0';
  if (!/^\d{1,9}$/.test(delayCount)) throw malformed(`${attribute.delayCount} is no whole number from 0`);
  return scheduler.schedule({ id: taskId({ ...body, delayCount }), scheduledForMs: body.scheduledForMs, body: encodeTask(body) });
}
