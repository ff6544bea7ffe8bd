import http from 'node:http';
import https from 'node:https';
import type { Identity } from '../oidc.ts';
import type { Time } from '../time.ts';
import type { Delivery } from './delivery.ts';
import { msOf } from './messages.ts';
import type { PushConfig, SubscriptionSettings } from './settings.ts';

export type PushRequestParts = { readonly time: Time; readonly identity: Identity; readonly stopped: AbortSignal };

type Headers = Readonly<Record<string, string>>;
type Content = { readonly headers: Headers; readonly body: string | Buffer };

/** The status of the answer; 0 where there was none before the ack deadline. A 102 counts by itself, which `fetch` would hide. */
export async function postPush(delivery: Delivery, settings: SubscriptionSettings, parts: PushRequestParts): Promise<number> {
  const { pushConfig, ackDeadlineSeconds } = settings;
  if (!pushConfig) return 0;
  const over = new AbortController();
  const cancel = parts.time.after(ackDeadlineSeconds * 1_000, () => over.abort());
  try {
    const { headers, body } = pushConfig.noWrapper ? unwrapped(delivery, settings) : wrapped(delivery, settings);
    const signed = { ...headers, ...(await authorization(pushConfig, parts.identity)) };
    return await statusOf(pushConfig.pushEndpoint, signed, body, AbortSignal.any([over.signal, parts.stopped]));
  } finally {
    cancel();
  }
}

function statusOf(endpoint: string, headers: Headers, body: string | Buffer, signal: AbortSignal): Promise<number> {
  return new Promise((resolve) => {
    const send = endpoint.startsWith('https:') ? https.request : http.request;
    const request = send(endpoint, { method: 'POST', headers, signal });
    request.on('information', ({ statusCode }) => {
      if (statusCode === 102) resolve(statusCode);
    });
    request.on('response', (response) => {
      response.resume();
      resolve(response.statusCode ?? 0);
    });
    request.on('error', () => resolve(0));
    request.end(body);
  });
}

async function authorization({ oidcToken, pushEndpoint }: PushConfig, identity: Identity): Promise<Headers> {
  if (!oidcToken) return {};
  const { serviceAccountEmail: email, audience } = oidcToken;
  return { authorization: `Bearer ${await identity.token({ email, audience: audience || pushEndpoint })}` };
}

const publishTimeOf = ({ message }: Delivery) => new Date(msOf(message.publishTime)).toISOString();

/** Both spellings of id and time, as the service sends them. */
function wrapped(delivery: Delivery, { name }: SubscriptionSettings): Content {
  const { message, deliveryAttempt } = delivery;
  const { messageId, attributes, data, orderingKey } = message;
  const publishTime = publishTimeOf(delivery);
  const envelope = {
    message: {
      attributes,
      data: data.toString('base64'),
      messageId,
      message_id: messageId,
      publishTime,
      publish_time: publishTime,
      ...(orderingKey !== '' && { orderingKey }),
    },
    subscription: name,
    ...(deliveryAttempt > 0 && { deliveryAttempt }),
  };
  return { headers: { 'content-type': 'application/json' }, body: JSON.stringify(envelope) };
}

/** The data alone; what else there is goes into headers, where that is asked for. */
function unwrapped(delivery: Delivery, { name, pushConfig }: SubscriptionSettings): Content {
  const { message, deliveryAttempt } = delivery;
  if (!pushConfig?.noWrapper?.writeMetadata) return { headers: {}, body: message.data };
  const headers = {
    ...Object.fromEntries(Object.entries(message.attributes).filter(([key, value]) => isHeader(key, value))),
    'x-goog-pubsub-subscription-name': name,
    'x-goog-pubsub-message-id': message.messageId,
    'x-goog-pubsub-publish-time': publishTimeOf(delivery),
    ...(message.orderingKey !== '' && isHeader('key', message.orderingKey) && { 'x-goog-pubsub-ordering-key': message.orderingKey }),
    ...(deliveryAttempt > 0 && { 'x-goog-pubsub-delivery-attempt': String(deliveryAttempt) }),
  };
  return { headers, body: message.data };
}

/** An attribute may hold what no header can; it is left out then. */
function isHeader(name: string, value: string): boolean {
  try {
    http.validateHeaderName(name);
    http.validateHeaderValue(name, value);
    return true;
  } catch {
    return false;
  }
}
