import { describe, expect, test } from 'vitest';
import { envelopeOf, messageOf } from '../../src/shared/transports/push.ts';
import { testMessage } from '../../src/testing/doubles.ts';

const json = { 'content-type': 'application/json' };
const pushed = { messageId: '5', data: 'AP8=', attributes: { a: '1' }, orderingKey: 'o', publishTime: '2026-01-01T00:00:00.5Z' };
const envelope = { message: pushed, subscription: 'projects/p/subscriptions/s', deliveryAttempt: 3 };
const message = {
  messageId: '5',
  data: Buffer.from([0x00, 0xff]),
  attributes: { a: '1' },
  orderingKey: 'o',
  publishTimeMs: 1_767_225_600_500,
  subscription: 'projects/p/subscriptions/s',
  deliveryAttempt: 3,
};
const read = (change: object) => messageOf({ headers: json, body: { ...envelope, message: { ...pushed, ...change } } });
const malformed = (reason: RegExp) => expect.objectContaining({ code: 'MALFORMED_MESSAGE', message: expect.stringMatching(reason) });

describe('messageOf reads', () => {
  test('a raw push body', () => {
    expect(messageOf({ headers: json, body: envelope })).toEqual(message);
  });

  test('a CloudEvent in binary mode, whose body is the push body', () => {
    const headers = { ...json, 'ce-id': '5', 'ce-source': '//pubsub/t', 'ce-type': 'google.cloud.pubsub.topic.v1.messagePublished' };
    expect(messageOf({ headers, body: envelope })).toEqual(message);
    expect(messageOf({ headers, body: { message: { data: 'AP8=' }, subscription: 's' } }).messageId).toBe('5');
  });

  test.each(['application/cloudevents+json', 'application/cloudevents+json; charset=utf-8'])(
    'a CloudEvent in structured mode: %s',
    (type) => {
      const event = { specversion: '1.0', id: '5', source: '//pubsub/t', data: envelope };
      expect(messageOf({ headers: { 'content-type': type }, body: event })).toEqual(message);
    },
  );

  test('names with underscores, which older senders use alone', () => {
    const older = { message_id: '6', publish_time: '2026-01-01T00:00:00Z', data: '' };
    expect(messageOf({ headers: json, body: { message: older, subscription: 's' } })).toMatchObject({
      messageId: '6',
      publishTimeMs: 1_767_225_600_000,
    });
  });

  test.each([{ data: undefined }, { data: null }, { data: '' }])('a message of attributes alone: %o', (change) => {
    expect(read(change)).toEqual({ ...message, data: Buffer.of() });
  });

  test.each([{ attributes: undefined }, { attributes: null }, { attributes: {} }])('a message of data alone: %o', (change) => {
    expect(read(change)).toEqual({ ...message, attributes: {} });
  });

  test('an attribute that is empty', () => {
    expect(read({ attributes: { a: '' } }).attributes).toEqual({ a: '' });
  });

  test.each([
    ['AP8=', [0x00, 0xff]],
    ['AP8', [0x00, 0xff]],
    ['+/+/', [0xfb, 0xff, 0xbf]],
    ['-_-_', [0xfb, 0xff, 0xbf]],
    ['AA==', [0x00]],
  ])('data %s in either alphabet, padded or not', (data, bytes) => {
    expect([...read({ data }).data]).toEqual(bytes);
  });

  test.each([
    ['1970-01-01T00:00:00Z', undefined],
    ['1970-01-01T00:00:00.001Z', 1],
    ['soon', undefined],
    [undefined, undefined],
    [7, undefined],
  ])('the publish time %s as %s: what is no time is none, not a very old one', (publishTime, atMs) => {
    expect(read({ publishTime }).publishTimeMs).toBe(atMs);
  });

  test('no delivery attempt where the subscription counts none', () => {
    expect(messageOf({ headers: json, body: { ...envelope, deliveryAttempt: undefined } }).deliveryAttempt).toBeUndefined();
  });
});

describe('messageOf refuses', () => {
  test.each([undefined, null, '', 'text', 7, [], Buffer.from('{}')])('the body %o', (body) => {
    expect(() => messageOf({ headers: json, body })).toThrow(malformed(/^the push body is missing or no object$/));
  });

  test.each([undefined, null, 'text', []])('the message %o', (value) => {
    expect(() => messageOf({ headers: json, body: { message: value, subscription: 's' } })).toThrow(malformed(/^message is missing/));
  });

  test.each([undefined, null, 'text', {}])('a structured CloudEvent with the data %o', (data) => {
    const headers = { 'content-type': 'application/cloudevents+json' };
    expect(() => messageOf({ headers, body: { id: '5', data } })).toThrow(malformed(/(push body|message) is missing/));
  });

  test.each<[string, object, RegExp]>([
    ['no message id', { messageId: undefined }, /^message.messageId is missing/],
    ['an empty message id', { messageId: '' }, /^message.messageId is missing/],
    ['a message id that is a number', { messageId: 5 }, /^message.messageId is missing or no text/],
    ['data that is no text', { data: { a: 1 } }, /^message.data is not base64/],
    ['data that is no base64', { data: '%%%' }, /^message.data is not base64/],
    ['data with a space', { data: 'AP 8=' }, /^message.data is not base64/],
    ['data that ends half way', { data: 'AAAAA' }, /^message.data is not base64/],
    ['attributes that are a list', { attributes: ['a'] }, /^message.attributes is missing or no object/],
    ['attributes that are text', { attributes: 'a' }, /^message.attributes is missing or no object/],
    ['an attribute that is a number', { attributes: { a: 1 } }, /^message.attributes.a is missing or no text/],
    ['an attribute that is null', { attributes: { a: null } }, /^message.attributes.a is missing or no text/],
  ])('%s', (_, change, reason) => {
    expect(() => read(change)).toThrow(malformed(reason));
  });

  test('a subscription that is no text', () => {
    expect(() => messageOf({ headers: json, body: { ...envelope, subscription: 7 } })).toThrow(malformed(/^subscription is missing/));
  });
});

describe('envelopeOf', () => {
  test('is what messageOf reads back', () => {
    expect(messageOf({ headers: json, body: JSON.parse(JSON.stringify(envelopeOf(message))) })).toEqual(message);
  });

  test('carries id and time under both names, as Pub/Sub does', () => {
    expect(envelopeOf(message)).toEqual({
      message: {
        messageId: '5',
        message_id: '5',
        data: 'AP8=',
        attributes: { a: '1' },
        orderingKey: 'o',
        publishTime: '2026-01-01T00:00:00.500Z',
        publish_time: '2026-01-01T00:00:00.500Z',
      },
      subscription: 'projects/p/subscriptions/s',
      deliveryAttempt: 3,
    });
  });

  test('leaves out what the message has not', () => {
    expect(envelopeOf(testMessage({ publishTimeMs: undefined, subscription: 's' }))).toEqual({
      message: { messageId: '1', message_id: '1', data: '', attributes: {} },
      subscription: 's',
    });
  });
});
