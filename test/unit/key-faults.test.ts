import { describe, expect, test } from 'vitest';
import { attributeKey, payloadKey } from '../../src/shared/adapters/keys.ts';
import type { DedupParts } from '../../src/shared/dedup/dedup.ts';
import type { KeyOf } from '../../src/shared/message.ts';
import { hash } from '../../src/shared/names.ts';
import type { Handler } from '../../src/shared/ports.ts';
import { ack, deadLetter, nack } from '../../src/shared/verdict.ts';
import { testMessage } from '../../src/testing/doubles.ts';
import { context, counting, dedupWorkers } from '../support/dedup-workers.ts';

/** Workers over one store that notes what is claimed in it. */
function setUp(parts: Partial<DedupParts> = {}) {
  const { records, worker, ...rest } = dedupWorkers();
  const claimed = new Set<string>();
  const store = {
    get: records.get,
    put: (...args: Parameters<typeof records.put>) => {
      claimed.add(args[0]);
      return records.put(...args);
    },
  };
  const deliver = (handle: Handler, message = testMessage(), more: Partial<DedupParts> = {}) =>
    worker({ store, ...parts, ...more })(handle)(message, context());
  return { ...rest, records, claimed, deliver };
}

const secret = testMessage({ data: '{"id": "secret"}' });
/** As callers without types may have it. */
const returning = (key: unknown) => (() => key) as KeyOf;

describe('a key function', () => {
  test('that throws gives the delivery back: nothing is claimed, and the log holds no payload', async () => {
    const keyOf = () => {
      throw new TypeError('no tenant');
    };
    const { deliver, claimed, logged } = setUp({ keyOf });
    const handler = counting();
    expect(await deliver(handler, secret)).toEqual(nack('failed'));
    expect([handler.runs, claimed.size]).toEqual([0, 0]);
    expect(logged).toEqual([{ level: 'warn', text: 'delivery not handled', fields: { messageId: '1', reason: 'keyOf threw TypeError' } }]);
  });

  test.each([
    ['', /is empty/],
    [' \t\n', /is empty/],
    [7, /is no text/],
    [null, /is no text/],
    [Promise.resolve('k'), /is no text/],
    ['a\ud83d', /lone surrogate/],
  ])('that returns %j makes a dead letter: nothing is claimed', async (key, detail) => {
    const { deliver, claimed, logged } = setUp({ keyOf: returning(key) });
    const handler = counting();
    expect(await deliver(handler, secret)).toEqual(deadLetter('malformed', expect.stringMatching(detail)));
    expect([handler.runs, claimed.size]).toEqual([0, 0]);
    expect(JSON.stringify(logged)).not.toContain('secret');
  });

  test.each(['a/b', '..', '.', '__k__', '~', '%2F', '😀', '\0', ' a', 'a'.repeat(1_024), '😀'.repeat(256)])(
    'may return %j: one record, under its digest, and the handler gets the key as it is',
    async (key) => {
      const { deliver, claimed } = setUp({ keyOf: () => key });
      const keys: unknown[] = [];
      const handle: Handler = async (_, { idempotencyKey }) => keys.push(idempotencyKey);
      expect([await deliver(handle), await deliver(handle)]).toEqual([ack('processed'), ack('duplicate')]);
      expect([keys, [...claimed]]).toEqual([[key], [`c~${hash(key)}`]]);
    },
  );

  test.each(['a'.repeat(1_025), 'a'.repeat(2_000), '😀'.repeat(257)])(
    'may return %j, which no attribute holds: the handler gets a digest of it',
    async (key) => {
      const { deliver, claimed } = setUp({ keyOf: () => key });
      const keys: unknown[] = [];
      const handle: Handler = async (_, { idempotencyKey }) => keys.push(idempotencyKey);
      expect([await deliver(handle), await deliver(handle)]).toEqual([ack('processed'), ack('duplicate')]);
      expect([keys, [...claimed]]).toEqual([[`sha256:${hash(key)}`], [`c~${hash(`sha256:${hash(key)}`)}`]]);
    },
  );

  test('may return keys that differ after a thousand characters: both messages run', async () => {
    const { deliver, claimed } = setUp({ keyOf: ({ messageId }) => `${'a'.repeat(1_999)}${messageId}` });
    const handler = counting();
    await deliver(handler, testMessage({ messageId: '1' }));
    await deliver(handler, testMessage({ messageId: '2' }));
    expect([handler.runs, claimed.size]).toEqual([2, 2]);
  });
});

describe('a message without its key', () => {
  const keyOf = attributeKey('order');

  test('is a dead letter: nothing is claimed', async () => {
    const { deliver, claimed, meter } = setUp({ keyOf });
    const handler = counting();
    expect(await deliver(handler)).toEqual(deadLetter('malformed', 'the attribute order is missing'));
    expect([handler.runs, claimed.size, meter.counts.get('ptk.dedup.unguarded key missing')]).toEqual([0, 0, undefined]);
  });

  test('runs each time where that is asked for, which is counted and said', async () => {
    const { deliver, claimed, meter, logged } = setUp({ keyOf, onMissingKey: 'run' });
    const handler = counting();
    expect([await deliver(handler), await deliver(handler)]).toEqual([ack('processed'), ack('processed')]);
    expect([handler.runs, claimed.size, meter.counts.get('ptk.dedup.unguarded key missing')]).toEqual([2, 0, 2]);
    const warning = {
      level: 'warn',
      text: 'run without dedup',
      fields: { messageId: '1', reason: 'the attribute order is missing' },
    };
    expect(logged).toEqual([warning, warning]);
  });

  test('that runs all the same has the verdict of its handler', async () => {
    const { deliver } = setUp({ keyOf, onMissingKey: 'run' });
    expect(await deliver(counting(new Error('boom')))).toEqual(nack('failed'));
    expect(await deliver(counting(nack('early')))).toEqual(nack('early'));
  });

  test('is not one whose key is empty or unreadable: that is a dead letter however missing keys are taken', async () => {
    const { deliver } = setUp({ onMissingKey: 'run' });
    const handler = counting();
    const empty = testMessage({ attributes: { order: '' } });
    expect(await deliver(handler, empty, { keyOf })).toEqual(deadLetter('malformed', 'order is empty'));
    const unreadable = testMessage({ data: 'secret' });
    expect(await deliver(handler, unreadable, { keyOf: payloadKey('$.id') })).toEqual(deadLetter('malformed', 'the payload is not JSON'));
    expect(handler.runs).toBe(0);
  });

  test('has none of its own to fall back on: a stamped key and the message id do not count', async () => {
    const { deliver } = setUp({ keyOf });
    const stamped = testMessage({ attributes: { 'ptk-key': 'k' } });
    expect(await deliver(counting(), stamped)).toEqual(deadLetter('malformed', 'the attribute order is missing'));
  });
});

describe('a handler that changes data and attributes', () => {
  const fresh = () => testMessage({ data: '{"id": 7}', attributes: { order: 'a' } });
  const spoil: Handler = async ({ data, attributes }) => {
    data.fill(0);
    Object.assign(attributes, { order: 'b', 'ptk-key': 'b', 'ptk-origin-id': 'b' });
  };
  const spoilAndThrow: Handler = async (message, held) => {
    await spoil(message, held);
    throw new Error('boom');
  };

  test.each([
    ['payloadKey', payloadKey('$.id'), '[7]'],
    ['attributeKey', attributeKey('order'), '["a"]'],
  ])('ends its own claim, made with %s, when it is done and when it throws', async (_, keyOf, key) => {
    const { deliver, claimed, record } = setUp({ keyOf });
    expect(await deliver(spoilAndThrow, fresh())).toEqual(nack('failed'));
    expect(await record(key)).toMatchObject({ state: 'failed', attempts: 1, key, originId: '1' });
    expect(await deliver(spoil, fresh())).toEqual(ack('processed'));
    expect(await record(key)).toMatchObject({ state: 'done', attempts: 2, key, originId: '1' });
    const handler = counting();
    expect(await deliver(handler, fresh())).toEqual(ack('duplicate'));
    expect([handler.runs, [...claimed]]).toEqual([0, [`c~${hash(key)}`]]);
  });
});

describe('consumers over one store', () => {
  test.each([
    ['a', 'b', 'k', 'k'],
    ['a', 'a~b', 'b~c', 'c'],
    ['a', 'a/b', 'b/c', 'c'],
    ['a', `a~${hash('k')}`, 'k', 'k'],
    ['a~b', 'a%7Eb', 'k', 'k'],
    ['A', 'a', 'k', 'k'],
  ])('%j and %j run a message each under the keys %j and %j, and once', async (one, other, oneKey, otherKey) => {
    const { deliver, claimed } = setUp();
    const handler = counting();
    const deliverBoth = async () => [
      await deliver(handler, testMessage(), { consumer: one, keyOf: () => oneKey }),
      await deliver(handler, testMessage(), { consumer: other, keyOf: () => otherKey }),
    ];
    expect(await deliverBoth()).toEqual([ack('processed'), ack('processed')]);
    expect(await deliverBoth()).toEqual([ack('duplicate'), ack('duplicate')]);
    expect([handler.runs, claimed.size]).toEqual([2, 2]);
    for (const id of claimed) expect(id).toMatch(/^[\w%]+~[\da-f]{64}$/);
  });
});
