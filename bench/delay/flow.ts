import { setTimeout as passed } from 'node:timers/promises';
import type { Message } from '@google-cloud/pubsub';
import { pubsubPublisher } from '../../src/shared/adapters/pubsub.ts';
import type { OutgoingMessage } from '../../src/shared/message.ts';
import { quantile } from '../measure/figures.ts';
import type { Measure } from '../measure/rounds.ts';
import { queues, type Side, type Stack } from './stack.ts';

export type Flow = {
  /** Messages a second from their publish to the last task; the queues are paused meanwhile. */
  readonly enqueue: Readonly<Record<Side, Measure>>;
  /** Of the tasks of the enqueue before it, all of them due: how many a second, from the start of the queues, came to the final topic. */
  readonly release: Measure;
  /** How late the 99th of 100 messages was published that come and fall due at an even pace. */
  readonly latenessP99: Readonly<Record<Side, Measure>>;
  /** The smallest publish time − due time of all messages up to now. */
  earliestMs(): number;
};

/** Longer than what a function holds itself. */
const delayMs = 2_000;
const burst = 4_000;
const perRequest = 100;
const paced = 2_000;
const pacePerSecond = 200;
/** What a publisher's client sends at once of 200 a second, which gathers them for 10 ms. */
const perPace = 2;

/** A function's server takes 511 new connections at once; beyond them a push waits for TCP to ask again, for seconds. */
const mostPushed = 400;

/** Each look costs what two messages cost. */
const pollMs = 20;
const mostMs = 120_000;

/** Each message goes the whole way, and every round is checked: each is released once, and none before it is due. */
export function openFlow({ pubsub, tasks, backlog }: Stack): Flow {
  const publisher = pubsubPublisher(pubsub);
  const delayed = new Set<string>();
  let earliestMs = Number.POSITIVE_INFINITY;
  let messages = 0;

  const nextMessage = (): OutgoingMessage => {
    const key = `key-${++messages}`;
    delayed.add(key);
    return { data: Buffer.alloc(100, 'x'), attributes: { 'ptk-key': key, 'ptk-delay-ms': String(delayMs) } };
  };

  const untilBacklog = async (isReached: (messages: number) => boolean) => {
    const startMs = performance.now();
    for (let found = await backlog(); !isReached(found); found = await backlog()) {
      if (performance.now() - startMs > mostMs) throw new Error(`${found} messages are not acked after ${mostMs} ms`);
      await passed(pollMs);
    }
  };

  /** Takes what was released, and compares it with what was delayed; how late each was. */
  const drained = async (): Promise<number[]> => {
    const subscription = pubsub.subscription('final');
    const latenesses: number[] = [];
    const { promise: isEmpty, resolve, reject } = Promise.withResolvers<void>();
    subscription.on('error', reject);
    subscription.on('message', (message: Message) => {
      message.ack();
      const { 'ptk-key': key = '', 'ptk-origin-time': publishedAt = '' } = message.attributes;
      if (!delayed.delete(key)) return reject(new Error(`${key} was released twice`));
      latenesses.push(message.publishTime.getTime() - (Date.parse(publishedAt) + delayMs));
      if (delayed.size === 0) resolve();
    });
    await isEmpty;
    await subscription.close();
    await untilBacklog((left) => left === 0);
    earliestMs = Math.min(earliestMs, ...latenesses);
    return latenesses;
  };

  const enqueue = (side: Side) => async () => {
    await Promise.all(queues.map((name) => tasks.pauseQueue({ name })));
    const requests = Array.from({ length: burst / perRequest }, () => Array.from({ length: perRequest }, nextMessage));
    const startMs = performance.now();
    for (const request of requests) {
      await untilBacklog((left) => left + perRequest <= mostPushed);
      await publisher.publish(side, request);
    }
    await untilBacklog((left) => left === 0);
    const lastedMs = performance.now() - startMs;
    await passed(delayMs);
    return (burst * 1_000) / lastedMs;
  };

  const release = async () => {
    const startMs = performance.now();
    await Promise.all(queues.map((name) => tasks.resumeQueue({ name })));
    await untilBacklog((released) => released >= burst);
    const lastedMs = performance.now() - startMs;
    await drained();
    return (burst * 1_000) / lastedMs;
  };

  const latenessP99 = (side: Side) => async () => {
    const startMs = performance.now();
    const published: Promise<unknown>[] = [];
    for (let sent = 0; sent < paced; sent += perPace) {
      await passed(Math.max(startMs + (sent * 1_000) / pacePerSecond - performance.now(), 0));
      published.push(publisher.publish(side, Array.from({ length: perPace }, nextMessage)));
    }
    await Promise.all(published);
    await untilBacklog((released) => released >= paced);
    return quantile(await drained(), 0.99);
  };

  return {
    enqueue: { plain: enqueue('plain'), ledger: enqueue('ledger') },
    release,
    latenessP99: { plain: latenessP99('plain'), ledger: latenessP99('ledger') },
    earliestMs: () => earliestMs,
  };
}
