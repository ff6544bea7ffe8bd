import { afterAll, describe, expect, test } from 'vitest';
import { status } from '../../src/emulator/grpc.ts';
import { parseFilter } from '../../src/emulator/pubsub/filter.ts';
import { statement } from '../support/targets.ts';
import { textsOf } from './pubsub-raw.ts';
import { codeOf, embeddedPubsub, withRawPubsub } from './pubsub-targets.ts';

/** Google's emulator is not asked: it takes any filter and applies none. */
const embedded = await embeddedPubsub();
afterAll(embedded.stop);
const { target } = embedded;

const long = (bytes: number) => `attributes.a = "${'v'.repeat(bytes - 'attributes.a = ""'.length)}"`;

describe('Pub/Sub filters', () => {
  for (const [filter, attributes, taken] of [
    ['', {}, true],
    ['attributes:a', { a: '' }, true],
    ['attributes:a', { b: 'a' }, false],
    ['attributes:a', { A: 'x' }, false],
    ['attributes:toString', {}, false],
    ['attributes.a = "x"', { a: 'x' }, true],
    ['attributes.a="x"', { a: 'X' }, false],
    ['attributes.a = "x"', {}, false],
    ['attributes.a != "x"', { a: 'y' }, true],
    ['attributes.a != "x"', { a: 'x' }, false],
    ['attributes.a != "x"', {}, true],
    ['attributes.a = ""', { a: '' }, true],
    ['hasPrefix(attributes.a, "eu-")', { a: 'eu-west' }, true],
    ['hasPrefix(attributes.a, "eu-")', { a: 'us-eu-' }, false],
    ['hasPrefix(attributes.a, "")', {}, false],
    ['NOT attributes:a', { b: '' }, true],
    ['NOT attributes:a', { a: '' }, false],
    ['-attributes:a', { b: '' }, true],
    ['NOT attributes:a AND attributes:b', { b: '' }, true],
    ['NOT attributes:a AND attributes:b', {}, false],
    ['NOT (attributes:a AND attributes:b)', { a: '' }, true],
    ['attributes:a AND attributes:b AND attributes:c', { a: '', b: '', c: '' }, true],
    ['attributes:a AND attributes:b AND attributes:c', { a: '', b: '' }, false],
    ['attributes:a OR attributes:b OR attributes:c', { c: '' }, true],
    ['attributes:a OR attributes:b OR attributes:c', { d: '' }, false],
    ['attributes:a AND (attributes:b OR attributes:c)', { a: '', c: '' }, true],
    ['attributes:a AND (attributes:b OR attributes:c)', { c: '' }, false],
    ['(attributes:a AND attributes:b) OR attributes:c', { c: '' }, true],
    ['attributes:a-b_1', { 'a-b_1': '' }, true],
    ['attributes:"a.b/c d"', { 'a.b/c d': '' }, true],
    ['attributes."a.b" = "x"', { 'a.b': 'x' }, true],
    ['attributes:AND AND attributes:NOT', { AND: '', NOT: '' }, true],
    ['attributes.a = "AND"', { a: 'AND' }, true],
    [String.raw`attributes.a = "\"\\\n\x41\u00e9\101"`, { a: '"\\\nA\u00e9A' }, true],
    ['\n attributes : a ', { a: '' }, true],
    [long(256), {}, false],
  ] as const) {
    statement(target, 52, `${JSON.stringify(filter)} ${taken ? 'takes' : 'leaves'} ${JSON.stringify(attributes)}`, async () => {
      expect(parseFilter(filter)(attributes)).toBe(taken);
    });
  }

  for (const filter of [
    ' ',
    'a',
    'data = "x"',
    'attributes',
    'attributes:',
    'attributes.a',
    'attributes.a = ',
    'attributes.a = x',
    "attributes.a = 'x'",
    'attributes.a = "x',
    'attributes.a > "x"',
    'attributes.a == "x"',
    String.raw`attributes.a = "\q"`,
    'attributes:a attributes:b',
    'attributes:a and attributes:b',
    'not attributes:a',
    'attributes:a AND',
    'OR attributes:a',
    'attributes:a AND attributes:b OR attributes:c',
    'attributes:a OR attributes:b AND attributes:c',
    '(attributes:a',
    'attributes:a)',
    '()',
    'hasPrefix(attributes.a)',
    'hasPrefix(attributes:a, "x")',
    'hasPrefix attributes.a, "x"',
    'NOT',
    long(257),
  ]) {
    statement(target, 52, `${JSON.stringify(filter.slice(0, 60))} is no filter`, async () => {
      expect(() => parseFilter(filter)).toThrow(expect.objectContaining({ code: status.INVALID_ARGUMENT }));
    });
  }

  test('says where a filter cannot be read', () => {
    expect(() => parseFilter('attributes:a AND attributes.b = c')).toThrow('no text in double quotes at its character 32');
  });

  statement(
    target,
    52,
    'what a filter leaves out is no backlog, and holds no ordering key up',
    withRawPubsub(target, async (raw) => {
      const topic = await raw.createTopic('orders');
      const subscription = await raw.createSubscription('worker', topic, {
        filter: 'attributes.kind = "order"',
        enableMessageOrdering: true,
      });
      const messages = ['order', 'other', 'order'].map((kind, index) => ({
        data: Buffer.from(String(index)),
        attributes: { kind },
        orderingKey: 'k',
      }));
      await raw.call('Publish', { topic, messages });
      expect(embedded.backlog(subscription)).toBe(2);
      const received = await raw.pull(subscription);
      expect(textsOf(received)).toEqual(['0', '2']);
      await raw.acknowledge(subscription, received);
      expect(embedded.backlog(subscription)).toBe(0);
    }),
  );

  statement(
    target,
    52,
    'a subscription with a bad filter is refused and not made',
    withRawPubsub(target, async (raw) => {
      const topic = await raw.createTopic('orders');
      expect(await codeOf(raw.createSubscription('worker', topic, { filter: 'kind = order' }))).toBe('INVALID_ARGUMENT');
      expect(await codeOf(raw.createSubscription('worker', topic))).toBe('OK');
    }),
  );
});
