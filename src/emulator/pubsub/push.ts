import type { Faults } from '../faults.ts';
import type { Identity } from '../oidc.ts';
import type { Time } from '../time.ts';
import type { Backlog } from './backlog.ts';
import type { Consumer, Delivery } from './delivery.ts';
import { pushPace } from './push-pace.ts';
import { postPush } from './push-request.ts';
import type { SubscriptionSettings } from './settings.ts';

/** Anything else is a nack, 203 and redirects among it (`docs/facts.md` A.9). */
const ackStatus = new Set([102, 200, 201, 202, 204]);

/** How many pushes are under way at once: one more with each ack, half with each nack. */
const window = { start: 100, least: 50, most: 1_000 } as const;

export type PushParts = {
  readonly time: Time;
  readonly faults: Faults;
  readonly identity: Identity;
  readonly settings: () => SubscriptionSettings;
  /** The endpoint took a message. */
  readonly acked: () => void;
};

/** Posts a subscription's messages to its endpoint; returns its end, which leaves what is under way to its deadline. */
export function startPush(backlog: Backlog, { time, faults, identity, settings, acked }: PushParts): () => void {
  let size: number = window.start;
  let underWay = 0;
  const pace = pushPace(time, backlog.wake);
  const stopped = new AbortController();
  const post = async (delivery: Delivery) => {
    const status = await postPush(delivery, settings(), { time, identity, stopped: stopped.signal });
    if (stopped.signal.aborted) return;
    const isLost = faults.roll('lost-push-answer', { resource: settings().name }) !== undefined;
    if (ackStatus.has(status) && !isLost) {
      pace.acked();
      size = Math.min(size + 1, window.most);
      backlog.acknowledge(delivery.ackId);
      acked();
    } else {
      // A retry policy spaces them by itself.
      if (!settings().retryPolicy) pace.nacked();
      size = Math.max(Math.floor(size / 2), window.least);
      backlog.modifyDeadline(delivery.ackId, 0);
    }
  };
  const consumer: Consumer = {
    keyBatch: 1,
    room: () => ({ messages: pace.isPaused() ? 0 : size - underWay, bytes: Number.POSITIVE_INFINITY, isIdle: underWay === 0 }),
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
    pace.stop();
    stopped.abort();
  };
}
