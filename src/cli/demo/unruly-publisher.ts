import type { Publisher } from '../../shared/ports.ts';

export type UnrulyPublisher = Publisher & {
  /** Messages sent again, and requests whose order was changed. */
  readonly counts: { duplicate: number; reorder: number };
};

/**
 * A publisher that does what publishers can do wrong on any broker: it sends a request again, and the messages of a request in
 * any order.
 *
 * @param random the seed's dice
 */
export function unrulyPublisher(publisher: Publisher, chaos: number, random: () => number): UnrulyPublisher {
  const counts = { duplicate: 0, reorder: 0 };
  const shuffled = <T>(items: readonly T[]): readonly T[] =>
    items
      .map((item) => ({ item, rank: random() }))
      .sort((a, b) => a.rank - b.rank)
      .map(({ item }) => item);
  return {
    counts,
    async publish(topic, messages) {
      const disorderly = messages.length > 1 && random() < chaos;
      const order = disorderly ? shuffled(messages) : messages;
      const ids = await publisher.publish(topic, order);
      if (disorderly) counts.reorder += 1;
      if (random() < 0.3 * chaos) {
        await publisher.publish(topic, order);
        counts.duplicate += messages.length;
      }
      return messages.map((message) => ids[order.indexOf(message)] ?? '');
    },
  };
}
