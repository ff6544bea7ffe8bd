import type { Duration, Subscription } from '@google-cloud/pubsub';
import { textOf } from '../errors.ts';
import type { Clock, Log } from '../ports.ts';
import { within } from '../waiting.ts';

/** What the client takes to send its last batch: 100 ms, and the call. */
const flushMs = 2_000;

/**
 * Closes the client's streams at once, so that nothing more comes, and leaves it running as long as deliveries are unsettled:
 * it goes on extending them, and sends their acks. By default it nacks what is being handled, and drops the acks that follow
 * (`docs/facts.md` A.4).
 *
 * @param busyMs by then every delivery is settled
 */
export function closeClient(subscription: Subscription, clock: Clock, log: Log, busyMs: number): { flushed(): Promise<void> } {
  // Replaces all options, of which an open client reads no other one any more.
  subscription.setOptions({ closeOptions: { behavior: 'WAIT', timeout: clientDuration(busyMs + flushMs) } });
  const closed = subscription.close();
  closed.catch(() => {});
  return {
    /** A delivery that the client has kept back holds it open until its own time is over; nobody waits for that. */
    flushed: () =>
      within(clock, flushMs, 'SERVICE_UNAVAILABLE', 'the closing client', closed).catch((error: unknown) =>
        log.warn({ subscription: subscription.name, reason: textOf(error) }, 'client not closed yet'),
      ),
  };
}

/**
 * A duration as the client reads it when it closes. Its own class is a value of its package, which is the caller's to load: a
 * second copy would cost a third of a second at start.
 */
function clientDuration(milliseconds: number): Duration {
  const duration = {
    milliseconds,
    total: () => milliseconds,
    subtract: (other: { readonly milliseconds: number }) => clientDuration(milliseconds - other.milliseconds),
  };
  return duration as unknown as Duration;
}
