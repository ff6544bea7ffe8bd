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
  const numbers = [task.hop, task.dueAtMs, task.scheduledForMs];
  const texts = [task.source, task.key, task.instruction];
  if (task.v !== 1 || !numbers.every(Number.isSafeInteger) || !texts.every(isText))
    throw malformed('the task body lacks a field of format 1');
  return { ...(task as TaskBody), message: decodeMessage(task.message) };
}

function decodeMessage(encoded: unknown): OutgoingMessage {
  const { data, attributes, orderingKey } = (encoded ?? {}) as { data?: unknown; attributes?: unknown; orderingKey?: unknown };
  const bytes = Buffer.from(isText(data) ? data : '', 'base64');
  // `Buffer.from` skips what is no base64, and would publish half a message.
  if (bytes.toString('base64') !== data) throw malformed('the data of the task body is missing or no base64');
  if (typeof attributes !== 'object' || attributes === null || Array.isArray(attributes) || !Object.values(attributes).every(isText))
    throw malformed('the attributes of the task body are missing or not all text');
  if (orderingKey !== undefined && !isText(orderingKey)) throw malformed('the ordering key of the task body is no text');
  return { data: bytes, attributes: attributes as OutgoingMessage['attributes'], ...(orderingKey && { orderingKey }) };
}

const isText = (value: unknown): value is string => typeof value === 'string';
