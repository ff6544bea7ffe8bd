import { malformed, ToolkitError } from '../errors.ts';
import type { OutgoingMessage } from '../message.ts';

/** What a task carries (**wire**). Tasks outlive deployments by up to 31 days, so every older `v` stays readable. */
export type TaskBody = {
  readonly v: 1;
  readonly source: string;
  readonly key: string;
  readonly instruction: string;
  readonly hop: number;
  readonly dueAtMs: number;
  readonly scheduledForMs: number;
  readonly message: OutgoingMessage;
};

export function encodeTask(body: TaskBody): Uint8Array {
  const message = { ...body.message, data: Buffer.from(body.message.data).toString('base64') };
  return Buffer.from(JSON.stringify({ ...body, message }));
}

/**
 * @param body the parsed JSON of a task
 * @throws MALFORMED_MESSAGE; SERVICE_UNAVAILABLE for a format newer than this code, which a later deployment will read
 */
export function decodeTask(body: unknown): TaskBody {
  const task = body as Partial<TaskBody> | null;
  if (typeof task !== 'object' || task === null) throw malformed('the task body is no JSON object');
  if (typeof task.v === 'number' && task.v > 1)
    throw new ToolkitError('SERVICE_UNAVAILABLE', `the task has format ${task.v}; this release reads 1`);
  const message = task.message as { data?: unknown; attributes?: unknown; orderingKey?: unknown } | undefined;
  const numbers = [task.hop, task.dueAtMs, task.scheduledForMs];
  const texts = [task.source, task.key, task.instruction, message?.data];
  if (task.v !== 1 || !numbers.every(Number.isSafeInteger) || !texts.every((text) => typeof text === 'string')) {
    throw malformed('the task body lacks a field of format 1');
  }
  if (typeof message?.attributes !== 'object' || message.attributes === null) throw malformed('the task body holds no attributes');
  return { ...(task as TaskBody), message: { ...(message as OutgoingMessage), data: Buffer.from(String(message.data), 'base64') } };
}
