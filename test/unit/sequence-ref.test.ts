import { describe, expect, test } from 'vitest';
import { sequenceRefOf } from '../../src/shared/message.ts';

const place = (sequence: string, epoch = '1') => ({ attributes: { 'ptk-stream': 's', 'ptk-seq': sequence, 'ptk-epoch': epoch } });
const malformed = (reason: RegExp) => expect.objectContaining({ code: 'MALFORMED_MESSAGE', message: expect.stringMatching(reason) });

describe('sequenceRefOf', () => {
  test.each([
    ['1', 1],
    ['10', 10],
    ['9007199254740991', 9_007_199_254_740_991],
  ])('reads the number %s', (text, sequence) => {
    expect(sequenceRefOf(place(text))).toEqual({ stream: 's', epoch: 1, sequence });
  });

  test.each(['1e3', '+1', '-1', '01', '', ' 1', '1 ', '1.0', '0x1', '１', '9007199254740992', '9'.repeat(17)])(
    'refuses the number %j',
    (text) => {
      expect(() => sequenceRefOf(place(text))).toThrow(malformed(/^ptk-seq is ".*"; it must be a decimal number/));
    },
  );

  test('refuses number 0, since numbers begin at 1', () => {
    expect(() => sequenceRefOf(place('0'))).toThrow(malformed(/begin at 1/));
  });

  test.each([
    ['0', 0],
    ['1767225600000', 1_767_225_600_000],
  ])('reads the epoch %s', (text, epoch) => {
    expect(sequenceRefOf(place('1', text))?.epoch).toBe(epoch);
  });

  test.each(['-1', '1e3', '00', '9007199254740992'])('refuses the epoch %s', (text) => {
    expect(() => sequenceRefOf(place('1', text))).toThrow(malformed(/^ptk-epoch is/));
  });

  test.each([
    ['ptk-epoch is missing', { 'ptk-stream': 's', 'ptk-seq': '1' }],
    ['ptk-seq is missing', { 'ptk-stream': 's', 'ptk-epoch': '1' }],
    ['ptk-stream is empty', { 'ptk-stream': '', 'ptk-seq': '1', 'ptk-epoch': '1' }],
    ['ptk-seq is set without ptk-stream', { 'ptk-seq': '1', 'ptk-epoch': '1' }],
  ])('refuses a half place: %s', (reason, attributes) => {
    expect(() => sequenceRefOf({ attributes })).toThrow(malformed(new RegExp(`^${reason}`)));
  });

  test('a message without a stream is not sequenced', () => {
    expect(sequenceRefOf({ attributes: { a: '1' } })).toBeUndefined();
  });

  test('an error shows 40 characters of a long number and no more', () => {
    expect(() => sequenceRefOf(place('x'.repeat(1_000)))).toThrow(malformed(/"x{40}"/));
  });
});
