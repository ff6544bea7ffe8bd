import { attribute, type OutgoingMessage } from '../message.ts';
import type { Publisher, Scheduler } from '../ports.ts';
import { nextHop } from './decide.ts';
import { scheduleHop } from './delay.ts';
import { decodeTask } from './task-body.ts';

export type ReleaseParts = { readonly publisher: Publisher; readonly finalTopic: string; readonly scheduler: Scheduler };

/**
 * What a task does when its time has come: it publishes the message, or makes the task of the next hop. Resolves once the
 * message id is known, or the next task exists. A second dispatch publishes a copy under the same key.
 * @throws MALFORMED_MESSAGE, MESSAGE_TOO_LARGE, REFUSED, SERVICE_UNAVAILABLE
 */
export function createRelease({
  publisher,
  finalTopic,
  scheduler,
}: ReleaseParts): (body: unknown) => Promise<{ messageId: string } | { hop: number }> {
  return async (body) => {
    const task = decodeTask(body);
    if (task.scheduledForMs < task.dueAtMs) {
      const hop = task.hop + 1;
      await scheduleHop(scheduler, { ...task, hop, scheduledForMs: nextHop(task.scheduledForMs, task.dueAtMs) });
      return { hop };
    }
    const [messageId = ''] = await publisher.publish(finalTopic, [counted(task.message)]);
    return { messageId };
  };
}

function counted(message: OutgoingMessage): OutgoingMessage {
  const delayCount = Number(message.attributes[attribute.delayCount] ?? 0) + 1;
  return { ...message, attributes: { ...message.attributes, [attribute.delayCount]: String(delayCount) } };
}
