import { errorCodeOf, malformed, textOf } from '../errors.ts';
import { type Message, traceIdOf } from '../message.ts';
import type { DeadLetters, Log, VerdictHandler } from '../ports.ts';
import type { Verdict } from '../verdict.ts';

export type PushRequest = { readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>; readonly body: unknown };
export type PushAnswer = { readonly status: number; readonly text?: string };

export type PushParts = {
  readonly handle: VerdictHandler;
  readonly deadLetters: DeadLetters;
  readonly log: Log;
  /** Where a body goes that is no push, as data of a message; without it such a body is only answered 400. */
  readonly strays?: DeadLetters | undefined;
};

/** Only 102, 200, 201, 202 and 204 ack a push (`docs/facts.md` G53). */
const statusOfVerdict = (verdict: Verdict): number => {
  if (verdict.kind !== 'nack') return 204;
  return verdict.reason === 'failed' ? 500 : verdict.reason === 'storeUnavailable' ? 503 : 429;
};

/**
 * Answers Pub/Sub pushes: raw push bodies, and CloudEvents in binary or structured mode. A body that is no push is kept as a
 * stray dead letter, or answered 400: Pub/Sub sends none, so nobody waits for it.
 */
export function createPush({ handle, deadLetters, log, strays }: PushParts): (request: PushRequest) => Promise<PushAnswer> {
  return async (request) => {
    let message: Message;
    try {
      message = messageOf(request);
    } catch (error) {
      log.error({ reason: textOf(error) }, 'push request rejected');
      if (!strays) return { status: 400, text: textOf(error) };
      return keepStray(strays, request.body, textOf(error), log);
    }
    const about = { messageId: message.messageId, traceId: traceIdOf(message) };
    try {
      // Never aborted: a platform that gives the request up has the message delivered again, and that delivery joins this run.
      const verdict = await handle(message, { signal: new AbortController().signal });
      if (verdict.kind === 'deadLetter') {
        await deadLetters.publish(message, verdict);
        log.warn({ ...about, reason: verdict.reason, detail: verdict.detail }, 'dead letter');
      } else {
        log.debug({ ...about, reason: verdict.reason }, verdict.kind === 'nack' ? 'not acked' : 'acked');
      }
      return { status: statusOfVerdict(verdict) };
    } catch (error) {
      log.error({ ...about, reason: textOf(error), code: errorCodeOf(error) }, 'delivery failed');
      return { status: 500 };
    }
  };
}

async function keepStray(strays: DeadLetters, body: unknown, detail: string, log: Log): Promise<PushAnswer> {
  const data = Buffer.from(JSON.stringify(body ?? null));
  const stray = {
    messageId: 'none',
    data,
    attributes: {},
    orderingKey: '',
    publishTimeMs: undefined,
    subscription: '',
    deliveryAttempt: undefined,
  };
  try {
    await strays.publish(stray, { kind: 'deadLetter', reason: 'malformed', detail });
    return { status: 204 };
  } catch (error) {
    log.error({ reason: textOf(error) }, 'dead letter not published');
    return { status: 500 };
  }
}

/**
 * The message of a push request.
 * @throws MALFORMED_MESSAGE
 */
export function messageOf({ headers, body }: PushRequest): Message {
  const envelope = asObject(isStructured(headers) ? asObject(body, 'the CloudEvent').data : body, 'the push body');
  const pushed = asObject(envelope.message, 'message');
  const messageId = text(pushed.messageId ?? pushed.message_id ?? headers['ce-id'], 'message.messageId');
  const data = pushed.data ?? '';
  if (typeof data !== 'string' || !isBase64(data)) throw malformed('message.data is not base64');
  const attributes = pushed.attributes ?? {};
  const attempt = envelope.deliveryAttempt;
  return {
    messageId,
    data: Buffer.from(data, 'base64'),
    attributes: checkedAttributes(attributes),
    orderingKey: typeof pushed.orderingKey === 'string' ? pushed.orderingKey : '',
    publishTimeMs: instantMs(pushed.publishTime ?? pushed.publish_time),
    subscription: text(envelope.subscription ?? '', 'subscription', true),
    deliveryAttempt: typeof attempt === 'number' ? attempt : undefined,
  };
}

/** The push body for a message, as Pub/Sub would send it. */
export function envelopeOf(message: Message): object {
  const { messageId, attributes, orderingKey, publishTimeMs, subscription, deliveryAttempt } = message;
  const publishTime = publishTimeMs === undefined ? undefined : new Date(publishTimeMs).toISOString();
  return {
    message: {
      data: Buffer.from(message.data).toString('base64'),
      attributes,
      messageId,
      message_id: messageId,
      ...(publishTime && { publishTime, publish_time: publishTime }),
      ...(orderingKey !== '' && { orderingKey }),
    },
    subscription,
    ...(deliveryAttempt !== undefined && { deliveryAttempt }),
  };
}

const isStructured = (headers: PushRequest['headers']): boolean =>
  String(headers['content-type'] ?? '').startsWith('application/cloudevents+json');

function asObject(value: unknown, what: string): Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value) || Buffer.isBuffer(value))
    throw malformed(`${what} is missing or no object`);
  return value as Record<string, unknown>;
}

function text(value: unknown, what: string, emptyAllowed = false): string {
  if (typeof value !== 'string' || (value === '' && !emptyAllowed)) throw malformed(`${what} is missing or no text`);
  return value;
}

function checkedAttributes(value: unknown): Record<string, string> {
  const attributes = asObject(value, 'message.attributes');
  for (const [name, attribute] of Object.entries(attributes)) text(attribute, `message.attributes.${name}`, true);
  return attributes as Record<string, string>;
}

/** Both alphabets, padded or not; `Buffer.from` itself skips whatever it does not know. */
const isBase64 = (data: string): boolean => /^[A-Za-z0-9+/_-]*={0,2}$/.test(data) && data.replace(/=+$/, '').length % 4 !== 1;

function instantMs(value: unknown): number | undefined {
  const atMs = typeof value === 'string' ? Date.parse(value) : Number.NaN;
  return atMs > 0 ? atMs : undefined;
}
