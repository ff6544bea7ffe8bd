import { malformed, ToolkitError } from '../errors.ts';
import type { OutgoingMessage } from '../message.ts';
import type { PayloadRef } from '../ports.ts';

/** Which record of the ledger a task is for, and which generation of it. */
export type LedgerRef = { readonly id: string; readonly incarnation: string; readonly generation: number };

/** What is delayed: the message, or where it stands. */
export type Carried = { readonly message: OutgoingMessage } | { readonly payload: PayloadRef };

/** What a task carries (**wire**). Tasks outlive deployments by up to 31 days, so every older `v` stays readable. */
export type TaskBody = Carried & {
  readonly v: 1;
  readonly source: string;
  readonly key: string;
  readonly instruction: string;
  readonly hop: number;
  readonly dueAtMs: number;
  readonly scheduledForMs: number;
  /** Where the message goes; the final topic of the release where there is none. */
  readonly target?: string;
  /** Where the message is no part of the body: how often it was delayed before, as its attribute says. */
  readonly delayCount?: string;
  /** Only with a ledger. */
  readonly ledger?: LedgerRef;
};

export function encodeTask(body: TaskBody): Uint8Array {
  if ('payload' in body) return Buffer.from(JSON.stringify(body));
  return Buffer.from(JSON.stringify({ ...body, message: { ...body.message, data: Buffer.from(body.message.data).toString('base64') } }));
}

/**
 * @param body the parsed JSON of a task
 * @throws MALFORMED_MESSAGE; SERVICE_UNAVAILABLE for a format newer than this code, which a later deployment will read
 */
export function decodeTask(body: unknown): TaskBody {
  const task = body as Partial<TaskBody & { message: unknown; payload: unknown }> | null;
  if (typeof task !== 'object' || task === null) throw malformed('the task body is no JSON object');
  if (typeof task.v === 'number' && task.v > 1)
    throw new ToolkitError('SERVICE_UNAVAILABLE', `the task has format ${task.v}; this release reads 1`);
  const { source, key, instruction, hop, dueAtMs, scheduledForMs, target, ledger, delayCount } = task;
  const isWhole = [hop, dueAtMs, scheduledForMs].every(Number.isSafeInteger) && [source, key, instruction].every(isText);
  if (task.v !== 1 || !isWhole) throw malformed('the task body lacks a field of format 1');
  for (const [name, value] of Object.entries({ target, delayCount }))
    if (value !== undefined && !isText(value)) throw malformed(`the ${name} of the task body is no text`);
  if (ledger !== undefined && !isLedgerRef(ledger)) throw malformed('the ledger of the task body lacks id, incarnation or generation');
  if (task.payload === undefined) return { ...(task as TaskBody), message: decodeMessage(task.message) };
  if (!isPayloadRef(task.payload)) throw malformed('the payload of the task body lacks id, bytes or sha256');
  return task as TaskBody;
}

function decodeMessage(encoded: unknown): OutgoingMessage {
  const { data, attributes, orderingKey } = (encoded ?? {}) as { data?: unknown; attributes?: unknown; orderingKey?: unknown };
  const bytes = Buffer.from(isText(data) ? data : '', 'base64');
  // `Buffer.from` skips what is no base64, and would publish half a message.
  if (bytes.toString('base64') !== data) throw malformed('the data of the task body is missing or no base64');
  return { data: bytes, ...checkedHead(attributes, orderingKey, 'the task body') };
}

function checkedHead(attributes: unknown, orderingKey: unknown, where: string): Omit<OutgoingMessage, 'data'> {
  if (typeof attributes !== 'object' || attributes === null || Array.isArray(attributes) || !Object.values(attributes).every(isText))
    throw malformed(`the attributes of ${where} are missing or not all text`);
  if (orderingKey !== undefined && !isText(orderingKey)) throw malformed(`the ordering key of ${where} is no text`);
  return { attributes: attributes as OutgoingMessage['attributes'], ...(orderingKey && { orderingKey }) };
}

const newLine = 0x0a;

/** A message as stored bytes (**wire**): a line of JSON with attributes and ordering key, and then the data as it is. */
export function encodePayload({ data, attributes, orderingKey }: OutgoingMessage): Uint8Array {
  return Buffer.concat([Buffer.from(`${JSON.stringify({ attributes, ...(orderingKey && { orderingKey }) })}\n`), data]);
}

/** @throws MALFORMED_MESSAGE */
export function decodePayload(bytes: Uint8Array): OutgoingMessage {
  const end = bytes.indexOf(newLine);
  let head: { attributes?: unknown; orderingKey?: unknown } | null = null;
  try {
    head = JSON.parse(Buffer.from(bytes.subarray(0, Math.max(end, 0))).toString());
  } catch {
    // Told below.
  }
  if (typeof head !== 'object' || head === null) throw malformed('the payload does not begin with a line of JSON');
  return { data: bytes.subarray(end + 1), ...checkedHead(head.attributes, head.orderingKey, 'the payload') };
}

const isText = (value: unknown): value is string => typeof value === 'string';

function isLedgerRef(value: unknown): value is LedgerRef {
  const { id, incarnation, generation } = (value ?? {}) as Partial<LedgerRef>;
  return isText(id) && isText(incarnation) && Number.isSafeInteger(generation);
}

function isPayloadRef(value: unknown): value is PayloadRef {
  const { id, bytes, sha256 } = (value ?? {}) as Partial<PayloadRef>;
  return isText(id) && Number.isSafeInteger(bytes) && isText(sha256);
}
