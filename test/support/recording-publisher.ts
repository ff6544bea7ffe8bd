import type { OutgoingMessage } from '../../src/shared/message.ts';
import type { Publisher } from '../../src/shared/ports.ts';

export type Published = { readonly topic: string; readonly messageId: string; readonly message: OutgoingMessage };

/** Publishes nowhere and remembers every message, in order; a request is refused with what `refusal` returns. */
export type RecordingPublisher = Publisher & {
  readonly published: Published[];
  refusal: (topic: string, messages: readonly OutgoingMessage[]) => Error | undefined;
  /** The numbers published, of one stream or of all. */
  numbers(stream?: string): number[];
};

export function recordingPublisher(): RecordingPublisher {
  const published: Published[] = [];
  const publisher: RecordingPublisher = {
    published,
    refusal: () => undefined,
    numbers: (stream) =>
      published
        .map(({ message }) => message.attributes)
        .filter((attributes) => stream === undefined || attributes['ptk-stream'] === stream)
        .map((attributes) => Number(attributes['ptk-seq'])),
    async publish(topic, messages) {
      const error = publisher.refusal(topic, messages);
      if (error) throw error;
      return messages.map((message) => {
        const messageId = `m${published.length + 1}`;
        published.push({ topic, messageId, message });
        return messageId;
      });
    },
  };
  return publisher;
}
