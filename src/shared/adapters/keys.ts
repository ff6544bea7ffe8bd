import canonicalize from 'canonicalize';
import { compile, type JSONPathQuery, type JSONValue } from 'json-p3';
import { malformed, ToolkitError, textOf } from '../errors.ts';
import { checkedKey, dedupKeyOf, fingerprintOf, type KeyOf, type Message } from '../message.ts';
import { hash } from '../names.ts';

/**
 * The values of one or several attributes, as a JSON array.
 * @returns a function that @throws KEY_MISSING without one of them, MALFORMED_MESSAGE for one that is empty
 * @throws INVALID_SETTINGS for no name, or an empty one
 */
export function attributeKey(...names: readonly string[]): KeyOf {
  if (names.length === 0 || names.includes('')) throw invalid('a key of attributes needs their names, and none of them empty');
  return (message) => JSON.stringify(names.map((name) => attributeOf(message, name)));
}

/**
 * CloudEvents source and id, which must be there.
 * @returns a function that @throws KEY_MISSING, MALFORMED_MESSAGE
 */
export function cloudEventKey(): KeyOf {
  return (message) => {
    const event = { 'ce-source': attributeOf(message, 'ce-source'), 'ce-id': attributeOf(message, 'ce-id') };
    return dedupKeyOf({ ...message, attributes: event });
  };
}

/** Subscription and message id, whatever else the message carries: only a redelivery is a duplicate. */
export function messageIdKey(): KeyOf {
  return (message) => dedupKeyOf({ ...message, attributes: {} });
}

/**
 * What stands at each JSONPath (RFC 9535) of the JSON payload, as a JSON array; without a path the payload's digest. Canonical
 * (RFC 8785): neither white space nor the order of members matters. Of members that share a name the last one counts.
 * Each path finds one value; null is none.
 * @returns a function that @throws KEY_MISSING where a path finds nothing, MALFORMED_MESSAGE where it finds several values or an
 *   empty text, or where the payload is no JSON
 * @throws INVALID_SETTINGS for a path that cannot be read
 */
export function payloadKey(...paths: readonly string[]): KeyOf {
  const queries = paths.map((path) => ({ path, query: compiled(path) }));
  return ({ data }) => {
    const payload = parsed(data);
    // A key goes where a payload must not: into logs, records and headers.
    if (queries.length === 0) return `sha256:${hash(canonical(payload, 'the payload'))}`;
    return `[${queries.map(({ path, query }) => canonical(found(query, path, payload), `the payload at ${path}`)).join(',')}]`;
  };
}

/**
 * For `fingerprintOf`, beside a key of the payload: two payloads that differ in white space or the order of members have one
 * fingerprint. What is no JSON is taken as it is.
 */
export function payloadFingerprint(): (message: Message) => string {
  return ({ data, attributes }) => {
    try {
      return fingerprintOf({ data: Buffer.from(canonical(parsed(data), 'the payload')), attributes });
    } catch {
      return fingerprintOf({ data, attributes });
    }
  };
}

const forms = 'message-id, cloudevent, attribute:NAME[,NAME…], payload or payload:PATH[;PATH…]';

/**
 * The key that the environment variable `DEDUP_KEY` names; none where it is not set. A `;` within a path is written `\u003b`.
 * @throws INVALID_SETTINGS
 */
export function keyOfSetting(text: string | undefined): KeyOf | undefined {
  if (text === undefined || text === '') return undefined;
  try {
    return keyNamed(text);
  } catch (error) {
    throw invalid(`DEDUP_KEY is ${JSON.stringify(text)}: ${textOf(error)}`);
  }
}

function keyNamed(text: string): KeyOf {
  const [, kind = text, list] = /^(attribute|payload):(.*)$/s.exec(text) ?? [];
  const listed = (separator: string) => (list ?? '').split(separator).map((part) => part.trim());
  if (list !== undefined) return kind === 'attribute' ? attributeKey(...listed(',')) : payloadKey(...listed(';'));
  if (kind === 'message-id') return messageIdKey();
  if (kind === 'cloudevent') return cloudEventKey();
  if (kind === 'payload') return payloadKey();
  throw invalid(`it must be ${forms}`);
}

const invalid = (message: string) => new ToolkitError('INVALID_SETTINGS', message);
const missing = (message: string) => new ToolkitError('KEY_MISSING', message);

function attributeOf({ attributes }: Message, name: string): string {
  const value = Object.hasOwn(attributes, name) ? attributes[name] : undefined;
  if (value === undefined) throw missing(`the attribute ${name} is missing`);
  checkedKey(value, name);
  return value;
}

function compiled(path: string): JSONPathQuery {
  try {
    return compile(path);
  } catch (error) {
    throw invalid(`the JSONPath ${JSON.stringify(path)} cannot be read: ${textOf(error)}`);
  }
}

function found(query: JSONPathQuery, path: string, payload: JSONValue): JSONValue {
  let value: JSONValue = null;
  let count = 0;
  try {
    // Lazily: the other way puts what it finds on the stack.
    for (const node of query.lazyQuery(payload)) {
      value = node.value;
      count++;
    }
  } catch {
    throw malformed(`the payload is nested too deeply for ${path}`);
  }
  if (count > 1) throw malformed(`${path} finds ${count} values in the payload; a key takes one`);
  if (count === 0) throw missing(`the payload has nothing at ${path}`);
  return value;
}

/** RFC 8785. Errors name the place and hold nothing of the payload. */
function canonical(value: JSONValue, place: string): string {
  if (value === null) throw missing(`${place} is null`);
  if (typeof value === 'string' && value.trim() === '') throw malformed(`${place} is empty`);
  let text: string | undefined;
  try {
    text = canonicalize(value);
  } catch {
    // Nothing else that comes out of JSON is refused.
  }
  if (text === undefined) throw malformed(`${place} holds a lone surrogate`);
  return text;
}

const utf8 = new TextDecoder('utf-8', { fatal: true });

function parsed(data: Uint8Array): JSONValue {
  let text: string;
  try {
    text = utf8.decode(data);
  } catch {
    throw malformed('the payload is not UTF-8');
  }
  let payload: JSONValue | undefined;
  try {
    payload = mayNeedMarks.test(text) ? JSON.parse(text, marked) : JSON.parse(text);
  } catch (error) {
    // The error's own text quotes the payload; one that is no SyntaxError says that the stack is full.
    if (error instanceof SyntaxError) throw malformed('the payload is not JSON');
  }
  if (payload === undefined || isDeeper(payload, levels)) throw malformed(`the payload is nested more than ${levels} levels deep`);
  return payload;
}

/** Millions of levels fit a message, and take seconds to write down. */
const levels = 500;

function isDeeper(value: JSONValue, left: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return left === 0 || Object.values(value).some((inner) => isDeeper(inner, left - 1));
}

/** In front of the digits of a number that a double cannot hold, and doubled in a text: no such number is the key of a text. */
const mark = '\0';
/** Fifteen digits fit a double; a reviver makes parsing five times as slow. */
const mayNeedMarks = /[\d.]{16}|\d[eE]|\\u0000/;

function marked(_name: string, value: unknown, context?: { readonly source?: string }): unknown {
  if (typeof value === 'string' && value.startsWith(mark)) return mark + value;
  if (typeof value !== 'number') return value;
  const exact = decimal(context?.source ?? String(value));
  return exact === decimal(String(value)) ? value : mark + exact;
}

/** One text for each number, however it is written: `1.50` and `15e-1` are `15e-1`. */
function decimal(source: string): string {
  const [, sign, whole, fraction = '', power = 0] = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(source) ?? [];
  if (whole === undefined) return source;
  const digits = (whole + fraction).replace(/^0+/, '');
  if (digits === '') return '0';
  // A loop: the pattern /0+$/ takes quadratic time.
  let end = digits.length;
  while (digits[end - 1] === '0') end--;
  const exponent = Number(power) - fraction.length + digits.length - end;
  return Number.isSafeInteger(exponent) ? `${sign}${digits.slice(0, end)}e${exponent}` : source;
}
