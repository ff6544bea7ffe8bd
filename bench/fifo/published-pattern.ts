import type { Firestore } from '@google-cloud/firestore';
import type { Message, Subscription, Topic } from '@google-cloud/pubsub';

/** gRPC codes: a transaction that lost against others; a document that is there already, or was changed since. */
const aborted = 10;
const conflicts: readonly unknown[] = [6, 9, aborted];
const codeOf = (error: unknown): unknown => (error as { readonly code?: unknown } | null)?.code;

/**
 * The publisher of the published pattern, with the clients' defaults: a transaction counts the stream's counter up, and then the message is
 * published with its number. A transaction that has lost all its tries is begun anew, as nothing is published yet.
 *
 * @returns publishes one message and gives its number
 */
export function patternPublisher(db: Firestore, topic: Topic): (stream: string, data: Buffer) => Promise<number> {
  const next = async (stream: string): Promise<number> => {
    const counter = db.collection('counters').doc(stream);
    for (;;) {
      try {
        return await db.runTransaction(async (transaction) => {
          const sequence = ((await transaction.get(counter)).get('last') ?? 0) + 1;
          transaction.set(counter, { last: sequence });
          return sequence;
        });
      } catch (error) {
        if (codeOf(error) !== aborted) throw error;
      }
    }
  };
  return async (stream, data) => {
    const sequence = await next(stream);
    await topic.publishMessage({ data, attributes: { stream, sequence: String(sequence) } });
    return sequence;
  };
}

/**
 * Its subscriber: each delivery is compared with the consumer's counter of the stream. One ahead of it is handled, and the counter moves if
 * nobody has moved it since; further ahead is early and nacked, the rest is old and acked. One plain read and, for the next in order, one
 * conditional write are the fewest calls that the pattern allows: a transaction around them sends a commit for early messages too, and its
 * locks make the one in order wait for theirs.
 */
export function patternSubscriber(db: Firestore, subscription: Subscription, handle: (message: Message) => Promise<void>) {
  const deliver = async (message: Message): Promise<void> => {
    const cursor = db.collection('cursors').doc(message.attributes.stream ?? '');
    const seen = await cursor.get();
    const delta = Number(message.attributes.sequence) - (seen.get('last') ?? 0);
    if (delta < 1) return message.ack();
    if (delta > 1) return message.nack();
    await handle(message);
    const moved = { last: Number(message.attributes.sequence) };
    await (seen.updateTime ? cursor.update(moved, { lastUpdateTime: seen.updateTime }) : cursor.create(moved));
    message.ack();
  };
  subscription.on('message', (message: Message) => {
    deliver(message).catch((error: unknown) => {
      message.nack();
      // Another copy of it was faster.
      if (!conflicts.includes(codeOf(error))) subscription.emit('error', error);
    });
  });
}
