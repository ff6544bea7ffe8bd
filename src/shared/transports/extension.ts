import type { Message as PubsubMessage } from '@google-cloud/pubsub';
import { textOf } from '../errors.ts';
import type { Clock } from '../ports.ts';

/** Why the client extends a delivery no more; from then on Pub/Sub may deliver the message again. */
export type ExtensionEnd = { readonly why: 'time' | 'refused'; readonly reason: Error };

/**
 * Tells when the client stops extending a delivery: `maxExtensionMs` after its receipt, or once Pub/Sub has refused for good,
 * which it does under exactly-once delivery only (`docs/facts.md` A.7). May tell both.
 *
 * @returns ends the watch of the time
 */
export function watchExtension(
  delivery: PubsubMessage,
  clock: Clock,
  maxExtensionMs: number,
  onEnd: (end: ExtensionEnd) => void,
): () => void {
  // The client stamps the receipt by the wall clock and may keep a delivery back; from here on time is monotonic.
  const keptBackMs = Math.max(clock.nowMs() - delivery.received, 0);
  // The client tells nobody of a refusal, it only drops the delivery; so the method that it extends by is wrapped, on this one
  // object. Its `debug` events name no delivery, and a prototype is shared with subscriptions that are not ours.
  const { modAckWithResponse } = delivery;
  delivery.modAckWithResponse = async (deadlineSeconds) => {
    try {
      return await modAckWithResponse.call(delivery, deadlineSeconds);
    } catch (error) {
      onEnd({ why: 'refused', reason: new Error(`Pub/Sub refused to extend the delivery: ${textOf(error)}`, { cause: error }) });
      throw error;
    }
  };
  return clock.after(Math.max(maxExtensionMs - keptBackMs, 0), () =>
    onEnd({ why: 'time', reason: new Error(`the delivery is extended no more: ${maxExtensionMs} ms since its receipt are over`) }),
  );
}
