import type { Message as PubsubMessage, Subscription } from '@google-cloud/pubsub';
import { textOf } from '../errors.ts';
import { type Options, readOptions } from '../options.ts';
import type { DeadLetters, Log, Meter, System, VerdictHandler } from '../ports.ts';
import { nack, type Verdict } from '../verdict.ts';
import { jittered } from '../waiting.ts';
import { closeClient } from './client-close.ts';
import { aboutMessage, type Taken, type TakeParts, takeDelivery } from './pull-delivery.ts';
import { pullOptions } from './pull-options.ts';

export type PullParts = {
  /** Made for this pull; `close` closes it. */
  readonly subscription: Subscription;
  /** One that has a sweep of its own (`fifo`) is swept every `sweepEveryMs`, until closing. */
  readonly handle: VerdictHandler & { sweep?(): Promise<object> };
  readonly deadLetters: DeadLetters;
  readonly system: System;
  readonly log: Log;
  readonly meter?: Meter;
  readonly options?: Partial<Options<typeof pullOptions>>;
};

export type Pull = {
  /**
   * Takes no more, gives back what no handler has begun, and waits for what is running. After `timeoutMs` (`closeTimeoutMs` of
   * the options) the signals abort; handlers that go on for another second are left, and their messages given back. Later calls
   * get the promise of the first.
   */
  close(within?: { readonly timeoutMs?: number }): Promise<void>;
};

/** A nacked message comes back at once, so one that is in progress elsewhere is kept for a while first. */
const longestHoldMs = 1_000;
/** What a handler gets to stop in, once its signal has aborted. */
const stopMs = 1_000;

/** What the client lets be outstanding at once, which it tells nobody; 1,000 by default. */
function outstandingOf(subscription: Subscription): number {
  const subscriber: { readonly maxMessages?: unknown } | undefined = Reflect.get(subscription, '_subscriber');
  return typeof subscriber?.maxMessages === 'number' ? subscriber.maxMessages : Number.POSITIVE_INFINITY;
}

/** Subscribes with the Pub/Sub client: every delivery is settled exactly once, and `concurrency` of them at most are handled at once. */
export function startPull({ subscription, handle, deadLetters, system, log, meter, options }: PullParts): Pull {
  const { clock } = system;
  const { concurrency, maxExtensionMs, closeTimeoutMs, sweepEveryMs } = readOptions(pullOptions, options);
  /** In the order of their receipt; the client extends them meanwhile. */
  const waiting: Taken[] = [];
  const running = new Set<Taken>();
  /** Nacks to come; they take no place of the concurrency. */
  const held = new Set<() => void>();
  let isClosing = false;
  let closed: Promise<void> | undefined;
  let onIdle = () => {};

  const takeParts: TakeParts = {
    subscription,
    clock,
    places: Math.min(concurrency, outstandingOf(subscription)),
    maxExtensionMs,
    onExtensionEnd(taken, { why, reason }) {
      meter?.record('ptk.pull.extension_ended', { why });
      log.warn({ ...aboutMessage(taken.message), reason: reason.message }, 'delivery lost');
      if (!running.has(taken)) taken.nack();
    },
    onAckFailed({ message }, error) {
      meter?.record('ptk.pull.ack_failed', {});
      log.error({ ...aboutMessage(message), reason: textOf(error) }, 'ack refused; the message comes again');
    },
  };
  const take = (delivery: PubsubMessage) => {
    if (isClosing) return delivery.nack();
    const taken = takeDelivery(delivery, takeParts);
    if (running.size < concurrency) void run(taken);
    else waiting.push(taken);
  };
  const run = async (taken: Taken) => {
    running.add(taken);
    const verdict = await verdictFor(taken).catch((error: unknown) => {
      log.error({ ...aboutMessage(taken.message), reason: textOf(error) }, 'delivery failed');
      return nack('failed');
    });
    running.delete(taken);
    settle(taken, verdict);
    startWaiting();
    if (running.size === 0) onIdle();
  };
  const startWaiting = () => {
    while (running.size < concurrency) {
      const next = waiting.shift();
      if (!next) return;
      if (!next.isSettled) void run(next);
    }
  };
  const verdictFor = async (taken: Taken): Promise<Verdict> => {
    const verdict = await handle(taken.message, taken.context);
    // Not acked after that, so it would be dead-lettered by its next delivery again.
    if (verdict.kind === 'deadLetter' && taken.isExtended) {
      await deadLetters.publish(taken.message, verdict);
      log.warn({ ...aboutMessage(taken.message), reason: verdict.reason, detail: verdict.detail }, 'dead letter');
    }
    return verdict;
  };
  const settle = (taken: Taken, verdict: Verdict) => {
    const fields = { ...aboutMessage(taken.message), reason: verdict.reason };
    if (taken.isSettled) return log.warn(fields, 'ended after closing had left it');
    if (verdict.kind === 'nack') {
      log.debug(fields, 'not acked');
      return giveBack(taken, verdict.retryAfterMs ?? 0);
    }
    if (!taken.isExtended) {
      log.warn(fields, 'not acked: ended after its delivery was lost');
      return taken.nack();
    }
    log.debug(fields, 'acked');
    taken.ack();
  };
  const giveBack = (taken: Taken, retryAfterMs: number) => {
    if (retryAfterMs <= 0 || isClosing) return taken.nack();
    const release = () => {
      held.delete(release);
      cancel();
      taken.nack();
    };
    const cancel = clock.after(jittered(system, Math.min(retryAfterMs, longestHoldMs)), release);
    held.add(release);
  };

  let sweeping: Promise<void> | undefined;
  const sweepLater = (): (() => void) =>
    clock.after(jittered(system, sweepEveryMs), () => {
      sweeping = sweepOnce();
    });
  const sweepOnce = async () => {
    await handle.sweep?.().catch((error: unknown) => log.warn({ reason: textOf(error) }, 'not swept'));
    sweeping = undefined;
    if (!isClosing) cancelSweep = sweepLater();
  };
  let cancelSweep = handle.sweep ? sweepLater() : () => {};

  /** Until nothing runs, or the time is over. */
  const idle = (timeoutMs: number) =>
    new Promise<void>((resolve) => {
      if (running.size === 0) return resolve();
      const cancel = clock.after(timeoutMs, resolve);
      onIdle = () => {
        cancel();
        resolve();
      };
    });
  const shutDown = async (timeoutMs: number) => {
    cancelSweep();
    const client = closeClient(subscription, clock, log, timeoutMs + stopMs);
    for (const taken of waiting.splice(0)) taken.nack();
    for (const release of held) release();
    await idle(timeoutMs);
    for (const taken of running) taken.stop(new Error(`the pull is closing, and its ${timeoutMs} ms are over`));
    await idle(stopMs);
    for (const taken of running) {
      log.error(aboutMessage(taken.message), 'handler left: it did not stop');
      taken.nack();
    }
    await client.flushed();
    await sweeping;
    subscription.off('message', take);
  };

  subscription.on('message', take);
  subscription.on('error', (error) =>
    log.error({ subscription: subscription.name, reason: textOf(error) }, 'subscription closed by an error'),
  );
  return {
    close({ timeoutMs = closeTimeoutMs } = {}) {
      isClosing = true;
      closed ??= shutDown(timeoutMs);
      return closed;
    },
  };
}
