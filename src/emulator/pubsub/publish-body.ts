import { invalidArgument } from '../grpc.ts';
import type { MessageContent } from './messages.ts';

type Fields = Readonly<Record<string, unknown>>;

/** Id and time are the service's: what a publisher gives for them is not taken, as over gRPC. */
const messageFields = ['data', 'attributes', 'orderingKey', 'ordering_key', 'messageId', 'message_id', 'publishTime', 'publish_time'];
const base64 = /^[A-Za-z0-9+/_-]*={0,2}$/;

/**
 * The messages of a publish over REST, by the JSON mapping of protobuf: null is a field that is not set, and bytes are base64 of either
 * alphabet, padded or not.
 *
 * @throws INVALID_ARGUMENT that names the field, and never what it holds
 */
export function messagesIn(body: unknown): readonly MessageContent[] {
  const { messages = null } = fieldsOf('the body', body, ['messages']);
  if (messages === null) return [];
  if (!Array.isArray(messages)) throw invalidArgument('messages is no array');
  return messages.map((message, index) => contentOf(`messages[${index}]`, message));
}

function contentOf(path: string, message: unknown): MessageContent {
  const { data, attributes, orderingKey, ordering_key: spelledKey } = fieldsOf(path, message, messageFields);
  return {
    data: bytesIn(`${path}.data`, data ?? ''),
    attributes: textsIn(`${path}.attributes`, attributes ?? {}),
    orderingKey: textIn(`${path}.orderingKey`, orderingKey ?? spelledKey ?? ''),
  };
}

function fieldsOf(path: string, value: unknown, known?: readonly string[]): Fields {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw invalidArgument(`${path} is no JSON object`);
  const unknown = known && Object.keys(value).find((name) => !known.includes(name));
  if (unknown !== undefined) throw invalidArgument(`${path} has the unknown field "${unknown}"; known are ${known?.join(', ')}`);
  return value as Fields;
}

function textsIn(path: string, value: unknown): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(fieldsOf(path, value)).map(([name, text]) => [textIn(path, name), textIn(path, text)]));
}

/** Half a character would arrive as another one. */
function textIn(path: string, value: unknown): string {
  if (typeof value !== 'string') throw invalidArgument(`${path} holds ${value === null ? 'null' : `a ${typeof value}`}; it must be a text`);
  if (!value.isWellFormed()) throw invalidArgument(`${path} holds a text that is no Unicode`);
  return value;
}

function bytesIn(path: string, value: unknown): Buffer {
  const text = textIn(path, value);
  const digits = text.replace(/=+$/, '').length;
  if (!base64.test(text) || digits % 4 === 1) throw invalidArgument(`${path} is no base64`);
  return Buffer.from(text, 'base64');
}
