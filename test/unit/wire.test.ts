import { expect, test } from 'vitest';
import { fromWire, toWire } from '../../src/shared/wire.ts';

const back = (fields: Record<string, unknown>) => fromWire(fields, (value) => (value instanceof Date ? value.getTime() : undefined));

test('instants of a record, and of objects within it, have their names of the wire there and ours here', () => {
  const record = { rev: 1, firstSeenAtMs: 7, blocked: { seq: 2, sinceMs: 8 }, free: null, at: 'noon' };
  const fields = toWire(record, (atMs) => new Date(atMs));
  expect(fields).toEqual({ rev: 1, firstSeenAt: new Date(7), blocked: { seq: 2, since: new Date(8) }, free: null, at: 'noon' });
  expect(back({ ...fields, expireAt: new Date(9) })).toEqual(record);
});

test('attributes that a user named like fields of ours come back as they went', () => {
  const message = {
    data: Buffer.from('x'),
    attributes: { expireAt: 'never', since: 'monday', seenAt: 'noon', sinceMs: '5', dueAtMs: '6' },
  };
  expect(back(toWire({ message }, (atMs) => new Date(atMs)))).toEqual({ message });
});
