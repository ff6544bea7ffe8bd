import { describe, expect, test } from 'vitest';
import type { OutgoingMessage } from '../../src/shared/message.ts';
import { createPublisher, type Draft, stamped } from '../../src/shared/publishing.ts';
import { manualSystem } from '../support/manual-system.ts';

const data = Buffer.from('x');
const malformed = (reason: RegExp) => expect.objectContaining({ code: 'MALFORMED_MESSAGE', message: expect.stringMatching(reason) });

/** Stamped at the start of 2026, where manual time begins. */
const attributesOf = (draft: Omit<Draft, 'data'>) => stamped({ data, ...draft }, manualSystem()).attributes;

describe('stamped', () => {
  test('makes a key where none is given, another one for each draft', () => {
    const system = manualSystem();
    expect(stamped({ data }, system)).toEqual({ data, attributes: { 'ptk-key': 'id-1' } });
    expect(stamped({ data }, system).attributes).toEqual({ 'ptk-key': 'id-2' });
  });

  test('takes the key of the draft before the one among its attributes', () => {
    expect(attributesOf({ key: 'own', attributes: { 'ptk-key': 'other', a: '1' } })).toEqual({ 'ptk-key': 'own', a: '1' });
    expect(attributesOf({ attributes: { 'ptk-key': 'other' } })).toEqual({ 'ptk-key': 'other' });
  });

  test.each(['', '  ', 'a\ud83d'])('refuses the key %j', (key) => {
    expect(() => attributesOf({ key })).toThrow(malformed(/key of the message is empty or no well-formed text/));
  });

  test('turns a delay into an instant, so that a second try is not due later', () => {
    expect(attributesOf({ key: 'k', delayMs: 60_500 })).toEqual({ 'ptk-key': 'k', 'ptk-deliver-at': '2026-01-01T00:01:00.500Z' });
    expect(attributesOf({ key: 'k', attributes: { 'ptk-delay-ms': '60500' } })).toEqual({
      'ptk-key': 'k',
      'ptk-deliver-at': '2026-01-01T00:01:00.500Z',
    });
  });

  test('rounds up, so that nothing is early', () => {
    expect(attributesOf({ key: 'k', delayMs: 0.2 })).toMatchObject({ 'ptk-deliver-at': '2026-01-01T00:00:00.001Z' });
    expect(attributesOf({ key: 'k', deliverAtMs: 1_767_225_600_000.2 })).toMatchObject({ 'ptk-deliver-at': '2026-01-01T00:00:00.001Z' });
  });

  test('writes a given instant as it is', () => {
    expect(attributesOf({ key: 'k', deliverAtMs: 1_767_225_600_000 })).toMatchObject({ 'ptk-deliver-at': '2026-01-01T00:00:00.000Z' });
  });

  test.each<[string, Omit<Draft, 'data'>, RegExp]>([
    ['a delay below 0', { delayMs: -1 }, /ptk-delay-ms is "-1"/],
    ['a delay that is no number', { delayMs: Number.NaN }, /ptk-delay-ms is "NaN"/],
    ['an instant that is none', { deliverAtMs: Number.NaN }, /deliverAtMs is NaN/],
    ['an instant after 275760', { deliverAtMs: 8.64e15 + 1 }, /must be an instant/],
    ['a due time that is no date', { attributes: { 'ptk-deliver-at': 'tomorrow' } }, /ptk-deliver-at is "tomorrow"/],
    ['two due times', { delayMs: 1, attributes: { 'ptk-deliver-at': '2027-01-01T00:00:00Z' } }, /both set/],
  ])('refuses %s', (_, draft, reason) => {
    expect(() => attributesOf(draft)).toThrow(malformed(reason));
  });

  test('leaves room for the attributes of the toolkit: 85 of your own, and not one more', () => {
    const many = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, index) => [`a${index}`, '']));
    expect(Object.keys(attributesOf({ attributes: many(85) }))).toHaveLength(86);
    expect(() => attributesOf({ attributes: many(86) })).toThrow(malformed(/86 attributes; at most 85/));
  });

  test('keeps an ordering key and makes none of an empty one', () => {
    const system = manualSystem();
    expect(stamped({ data, orderingKey: 'o' }, system).orderingKey).toBe('o');
    expect(stamped({ data, orderingKey: '' }, system)).not.toHaveProperty('orderingKey');
  });
});

test('a publisher answers the message id and the key under which to try again', async () => {
  const published: [string, readonly OutgoingMessage[]][] = [];
  const publish = createPublisher({
    publisher: {
      publish: async (topic, messages) => {
        published.push([topic, messages]);
        return ['77'];
      },
    },
    topic: 'orders',
    system: manualSystem(),
  });
  expect(await publish({ data })).toEqual({ messageId: '77', key: 'id-1' });
  expect(published).toEqual([['orders', [{ data, attributes: { 'ptk-key': 'id-1' } }]]]);
});
