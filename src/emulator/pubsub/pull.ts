import type { RpcError } from '../grpc.ts';
import type { Time } from '../time.ts';
import type { Consumer, Delivery } from './delivery.ts';
import type { Source } from './subscription.ts';

export type PullRequest = {
  readonly most: number;
  /** How long it waits for the first message. */
  readonly waitMs: number;
  readonly cancelled: AbortSignal;
};

/** One pull: what is there, or the first that comes. */
export function pull(source: Source, time: Time, { most, waitMs, cancelled }: PullRequest): Promise<readonly Delivery[]> {
  const { backlog, calls, keyBatch, settings } = source;
  return new Promise((resolve, reject) => {
    let over = false;
    const leave = () => {
      over = true;
      detach();
      cancelWait();
      calls.delete(call);
    };
    const answer = (deliveries: readonly Delivery[]) => {
      if (over) return;
      leave();
      resolve(deliveries);
    };
    const nothing = () => answer([]);
    const call = {
      kind: 'pull',
      end(error: RpcError) {
        leave();
        reject(error);
      },
    } as const;
    const consumer: Consumer = {
      keyBatch,
      room: () => ({ messages: over ? 0 : most, bytes: Number.POSITIVE_INFINITY, isIdle: true }),
      leaseMs: () => settings().ackDeadlineSeconds * 1_000,
      deliver: answer,
      settled: () => {},
    };
    calls.add(call);
    const detach = backlog.attach(consumer);
    const cancelWait = waitMs > 0 ? time.after(waitMs, nothing) : () => {};
    // What is there is delivered in a microtask of its own, which this one follows.
    if (waitMs === 0) queueMicrotask(nothing);
    cancelled.addEventListener('abort', nothing, { once: true });
  });
}
