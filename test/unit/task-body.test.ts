import { describe, expect, test } from 'vitest';
import { decodeTask, encodeTask } from '../../src/shared/delay/task-body.ts';

const task = {
  v: 1 as const,
  source: 'projects/p/subscriptions/s',
  key: 'k',
  instruction: 'after 5',
  hop: 1,
  dueAtMs: 2_000,
  scheduledForMs: 1_000,
  message: { data: Buffer.from([0x00, 0xff]), attributes: { a: 'é', 'ptk-key': 'k' }, orderingKey: 'o' },
};
const wire = () => JSON.parse(Buffer.from(encodeTask(task)).toString());
const malformed = (reason: RegExp) => expect.objectContaining({ code: 'MALFORMED_MESSAGE', message: expect.stringMatching(reason) });

test('a task is JSON with format 1 and the data in base64', () => {
  expect(wire()).toEqual({ ...task, message: { ...task.message, data: 'AP8=' } });
});

test('binary data, attributes and ordering key come back as they went', () => {
  expect(decodeTask(wire())).toEqual(task);
});

test('an empty body and no ordering key come back as they went', () => {
  const message = { data: Buffer.of(), attributes: {} };
  expect(decodeTask(JSON.parse(Buffer.from(encodeTask({ ...task, message })).toString()))).toMatchObject({ message });
});

describe('decodeTask refuses', () => {
  test.each([undefined, null, 'text', 7, true])('%j, which is no object', (body) => {
    expect(() => decodeTask(body)).toThrow(malformed(/no JSON object/));
  });

  test.each([[[]], [{}], [{ message: {} }]])('%j, which has no field', (body) => {
    expect(() => decodeTask(body)).toThrow(malformed(/lacks a field of format 1/));
  });

  test.each(['v', 'source', 'key', 'instruction', 'hop', 'dueAtMs', 'scheduledForMs'])('a task without %s', (field) => {
    expect(() => decodeTask({ ...wire(), [field]: undefined })).toThrow(malformed(/lacks a field of format 1/));
  });

  test.each<[string, object]>([
    ['format 0', { v: 0 }],
    ['a format in words', { v: '1' }],
    ['a hop that is text', { hop: '1' }],
    ['a due time that is no whole number', { dueAtMs: 1.5 }],
    ['a due time that is no number', { scheduledForMs: null }],
  ])('%s', (_, change) => {
    expect(() => decodeTask({ ...wire(), ...change })).toThrow(malformed(/lacks a field of format 1/));
  });

  test.each<[string, object, RegExp]>([
    ['data that is not there', { data: undefined }, /data/],
    ['data that is not base64', { data: '%%%' }, /base64/],
    ['data that ends half way', { data: 'AP8' }, /base64/],
    ['attributes that are not there', { attributes: undefined }, /attributes/],
    ['attributes that are null', { attributes: null }, /attributes/],
    ['attributes that are a list', { attributes: ['a'] }, /attributes/],
    ['an attribute that is no text', { attributes: { a: 1 } }, /attributes/],
    ['an ordering key that is no text', { orderingKey: 1 }, /ordering key/],
  ])('%s', (_, change, reason) => {
    expect(() => decodeTask({ ...wire(), message: { ...wire().message, ...change } })).toThrow(malformed(reason));
  });
});

test('a task without a message is refused', () => {
  expect(() => decodeTask({ ...wire(), message: undefined })).toThrow(malformed(/data of the task body is missing/));
});

test('a format newer than this code is left to a later deployment and not dead-lettered', () => {
  expect(() => decodeTask({ v: 2 })).toThrow(
    expect.objectContaining({ code: 'SERVICE_UNAVAILABLE', message: expect.stringMatching(/format 2/) }),
  );
});
