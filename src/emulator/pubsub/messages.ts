import { invalidArgument } from '../grpc.ts';

export type Timestamp = { readonly seconds: string; readonly nanos: number };

/** As it stands on the wire; id and time are the service's. */
export type PubsubMessage = {
  readonly data: Buffer;
  readonly attributes: Readonly<Record<string, string>>;
  readonly messageId: string;
  readonly publishTime: Timestamp;
  readonly orderingKey: string;
};

/** What a publisher gives. */
export type MessageContent = Pick<PubsubMessage, 'data' | 'attributes' | 'orderingKey'>;

const limits = {
  messages: 1_000,
  requestBytes: 10_000_000,
  attributes: 100,
  attributeNameBytes: 256,
  attributeValueBytes: 1_024,
  orderingKeyBytes: 1_024,
} as const;

export const sizeOf = ({ data, attributes, orderingKey }: MessageContent): number =>
  Object.entries(attributes).reduce(
    (bytes, [name, value]) => bytes + Buffer.byteLength(name) + Buffer.byteLength(value),
    data.length + Buffer.byteLength(orderingKey),
  );

/** Refuses the whole request: nothing of it is stored (`docs/facts.md` A.3). */
export function checkPublish(messages: readonly MessageContent[]): void {
  if (messages.length === 0) throw invalidArgument('the request holds no messages');
  if (messages.length > limits.messages)
    throw invalidArgument(`the request holds ${messages.length} messages; at most ${limits.messages} are allowed`);
  let bytes = 0;
  for (const message of messages) {
    checkMessage(message);
    bytes += sizeOf(message);
    if (message.orderingKey !== messages[0]?.orderingKey)
      throw invalidArgument(
        `the request mixes the ordering keys "${messages[0]?.orderingKey}" and "${message.orderingKey}"; it may have one`,
      );
  }
  if (bytes > limits.requestBytes) throw invalidArgument(`the messages take ${bytes} bytes; at most ${limits.requestBytes} are allowed`);
}

function checkMessage({ data, attributes, orderingKey }: MessageContent): void {
  const entries = Object.entries(attributes);
  if (data.length === 0 && entries.length === 0) throw invalidArgument('a message needs data or at least one attribute');
  if (entries.length > limits.attributes)
    throw invalidArgument(`a message has ${entries.length} attributes; at most ${limits.attributes} are allowed`);
  for (const [name, value] of entries) {
    const [nameBytes, valueBytes] = [Buffer.byteLength(name), Buffer.byteLength(value)];
    if (nameBytes === 0 || nameBytes > limits.attributeNameBytes) {
      throw invalidArgument(`an attribute name takes ${nameBytes} bytes; 1 to ${limits.attributeNameBytes} are allowed`);
    }
    if (valueBytes > limits.attributeValueBytes) {
      throw invalidArgument(`the value of attribute ${name} takes ${valueBytes} bytes; at most ${limits.attributeValueBytes} are allowed`);
    }
  }
  const keyBytes = Buffer.byteLength(orderingKey);
  if (keyBytes > limits.orderingKeyBytes)
    throw invalidArgument(`the ordering key takes ${keyBytes} bytes; at most ${limits.orderingKeyBytes} are allowed`);
}

export const timestampOf = (atMs: number): Timestamp => ({ seconds: String(Math.floor(atMs / 1_000)), nanos: (atMs % 1_000) * 1_000_000 });

export const msOf = ({ seconds, nanos }: Timestamp): number => Number(seconds) * 1_000 + nanos / 1_000_000;

/** In the order of publishing: ids are given in it. */
export const byPublishing = (left: PubsubMessage, right: PubsubMessage): number => Number(left.messageId) - Number(right.messageId);
