import http from 'node:http';
import https from 'node:https';
import type { Time } from '../time.ts';
import type { Backlog, Consumer, Delivery } from './backlog.ts';
import { msOf } from './messages.ts';
import type { SubscriptionSettings } from './settings.ts';

/** Anything else is a nack, 203 and redirects among it (`docs/facts.md` A.9). */
const ackStatus = new Set([102, 200, 201, 202, 204]);

/** How many pushes are under way at once: one more with each ack, half with each nack. */
const window = { start: 100, least: 50, most: 1_000 } as const;

/** Posts a subscription's messages to its endpoint; returns its end, which leaves what is under way to its deadline. */
export function startPush(backlog: Backlog, settings: () => SubscriptionSettings, time: Time): () => void {
  let size: number = window.start;
  let underWay = 0;
  const stopped = new AbortController();
  const post = async (delivery: Delivery) => {
    const status = await statusOf(delivery, settings(), time, stopped.signal);
    if (stopped.signal.aborted) return;
    if (ackStatus.has(status)) {
      size = Math.min(size + 1, window.most);
      backlog.acknowledge(delivery.ackId);
    } else {
      size = Math.max(Math.floor(size / 2), window.least);
      backlog.modifyDeadline(delivery.ackId, 0);
    }
  };
  const consumer: Consumer = {
    keyBatch: 1,
    room: () => ({ messages: size - underWay, bytes: Number.POSITIVE_INFINITY, isIdle: underWay === 0 }),
    leaseMs: () => settings().ackDeadlineSeconds * 1_000,
    deliver(deliveries) {
      underWay += deliveries.length;
      for (const delivery of deliveries) time.track(post(delivery)).catch(() => undefined);
    },
    settled: () => {
      underWay -= 1;
    },
  };
  const detach = backlog.attach(consumer);
  return () => {
    detach();
    stopped.abort();
  };
}

/** The status of the answer; 0 where there was none before the ack deadline. A 102 counts by itself, which `fetch` would hide. */
function statusOf(delivery: Delivery, settings: SubscriptionSettings, time: Time, stopped: AbortSignal): Promise<number> {
  return new Promise((resolve) => {
    const over = new AbortController();
    const cancel = time.after(settings.ackDeadlineSeconds * 1_000, () => over.abort());
    const answered = (status = 0) => {
      cancel();
      resolve(status);
    };
    const endpoint = new URL(settings.pushConfig?.pushEndpoint ?? '');
    const send = endpoint.protocol === 'https:' ? https.request : http.request;
    const request = send(endpoint, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      signal: AbortSignal.any([over.signal, stopped]),
    });
    request.on('information', ({ statusCode }) => {
      if (statusCode === 102) answered(statusCode);
    });
    request.on('response', (response) => {
      response.resume();
      answered(response.statusCode);
    });
    request.on('error', () => answered());
    request.end(JSON.stringify(envelopeOf(delivery, settings)));
  });
}

/** Both spellings of id and time, as the service sends them. */
function envelopeOf({ message, deliveryAttempt }: Delivery, { name }: SubscriptionSettings): object {
  const publishTime = new Date(msOf(message.publishTime)).toISOString();
  return {
    message: {
      attributes: message.attributes,
      data: message.data.toString('base64'),
      messageId: message.messageId,
      message_id: message.messageId,
      publishTime,
      publish_time: publishTime,
      ...(message.orderingKey !== '' && { orderingKey: message.orderingKey }),
    },
    subscription: name,
    ...(deliveryAttempt > 0 && { deliveryAttempt }),
  };
}
