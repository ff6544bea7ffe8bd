import { describe, expect, test } from 'vitest';
import {
  cancelled,
  carriedBy,
  claimed,
  created,
  type DelayRecord,
  fired,
  freed,
  ledgerKeyOf,
  neverScheduled,
  readable,
  rearmed,
  recurring,
  replaced,
  rescheduled,
  tombstoneFor,
} from '../../src/shared/delay/ledger.ts';
import { entry, instruction, storedEntry, wanted } from '../support/delay-entries.ts';

const payload = { id: 'p', bytes: 5, sha256: 'ab' };
const seqRef = { stream: 's', epoch: 100, sequence: 5 };
const older = { target: 'final', key: 'j', seqRef: { stream: 's', epoch: 100, sequence: 4 }, reason: 'replaced' };

describe('an entry', () => {
  test('begins pending, with generation 1, and counts its hops from the instruction', () => {
    const { carried: _, ...given } = wanted();
    const begun = {
      v: 1,
      rev: 1,
      state: 'pending',
      generation: 1,
      armedAtMs: 2_000,
      seen: [],
      runId: '',
      leaseMs: 0,
      owed: [],
      messageId: null,
    };
    expect(created(wanted())).toEqual({
      ...given,
      ...begun,
      message: { data: Buffer.from('b'), attributes: { 'ptk-key': 'l' } },
      payload: null,
    });
  });

  test('refers to what it cannot hold', () => {
    expect(created(wanted({ carried: { payload } }))).toMatchObject({ message: null, payload });
  });

  test('that is cancelled before it is scheduled ends what was published until then', () => {
    expect(neverScheduled('order 7', 5_000, 'op', 'i')).toEqual({
      ...{ v: 1, id: 'order 7', state: 'cancelled', rev: 1, generation: 1, incarnation: 'i', dueAtMs: 5_000, armedAtMs: 5_000 },
      ...{ target: '', key: '', message: null, payload: null, seqRef: null, seen: [], runId: '', opId: 'op', leaseMs: 0, queue: '' },
      ...{ instr: { publishTimeMs: 5_000, messageId: '', key: 'op' }, shard: 15, recurrence: null, owed: [], messageId: null },
    });
  });
});

describe('each transition changes this, raises `rev` by one, and leaves all else', () => {
  const running = { state: 'releasing', runId: 'run', opId: '', leaseMs: 500 } as const;
  const { incarnation: _, carried: __, ...fresh } = wanted();
  test.each<[string, Partial<DelayRecord>, (record: DelayRecord) => DelayRecord, Partial<DelayRecord>]>([
    [
      'replaced',
      { messageId: 'm1' },
      (record) => replaced(record, wanted()),
      {
        ...fresh,
        generation: 5,
        armedAtMs: 2_000,
        seen: ['instruction 1'],
        message: { data: Buffer.from('b'), attributes: { 'ptk-key': 'l' } },
      },
    ],
    [
      'replaced by something larger',
      {},
      (record) => replaced(record, wanted({ carried: { payload } })),
      { ...fresh, generation: 5, armedAtMs: 2_000, seen: ['instruction 1'], message: null, payload },
    ],
    [
      'replaced while it is published',
      running,
      (record) => replaced(record, wanted()),
      {
        ...{ ...fresh, state: 'pending', generation: 5, armedAtMs: 2_000, seen: ['instruction 1'], runId: '', leaseMs: 0 },
        message: { data: Buffer.from('b'), attributes: { 'ptk-key': 'l' } },
      },
    ],
    [
      'rescheduled',
      {},
      (record) => rescheduled(record, 99_000, 7_000, 'op 3'),
      {
        ...{ generation: 5, dueAtMs: 99_000, armedAtMs: 7_000, opId: 'op 3', seen: ['instruction 1'] },
        instr: instruction({ publishTimeMs: 7_000 }),
      },
    ],
    [
      'cancelled',
      { payload },
      (record) => cancelled(record, 7_000, 'op 3'),
      {
        ...{ state: 'cancelled', message: null, payload: null, opId: 'op 3', seen: ['instruction 1'] },
        instr: instruction({ publishTimeMs: 7_000 }),
      },
    ],
    ['claimed', {}, (record) => claimed(record, 'run', 500), running],
    ['freed', running, freed, { runId: '', opId: 'run', leaseMs: 0 }],
    [
      'fired',
      { ...running, payload, owed: [older] },
      (record) => fired(record, 'm2'),
      { state: 'fired', runId: '', opId: 'run', leaseMs: 0, message: null, payload: null, owed: [], messageId: 'm2' },
    ],
    [
      'recurring',
      { ...running, owed: [older] },
      (record) => recurring(record, 'm2', 120_000),
      {
        ...{ state: 'pending', generation: 5, dueAtMs: 120_000, armedAtMs: 90_000, runId: '', opId: 'run', leaseMs: 0 },
        ...{ owed: [], messageId: 'm2' },
      },
    ],
    [
      'rearmed',
      running,
      (record) => rearmed(record, 'q2', 7_000, 'op 3'),
      { generation: 5, armedAtMs: 7_000, queue: 'q2', runId: '', opId: 'op 3', leaseMs: 0 },
    ],
  ])('%s', (_, from, transition, changes) => {
    const record = entry(from);
    expect(transition(record)).toEqual({ ...record, ...changes, rev: 10 });
  });

  test('a call that comes by an earlier clock than the instruction sets nothing back', () => {
    const record = entry({ instr: instruction({ publishTimeMs: 8_000 }) });
    expect(rescheduled(record, 99_000, 7_000, 'op').instr.publishTimeMs).toBe(8_000);
    expect(cancelled(record, 7_000, 'op').instr.publishTimeMs).toBe(8_000);
  });
});

describe('earlier instructions', () => {
  const keys = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, index) => `key ${from + index}`);
  test.each([
    ['none', [], ['instruction 1']],
    ['fifteen', keys(1, 15), [...keys(1, 15), 'instruction 1']],
    ['sixteen, of which the oldest goes', keys(1, 16), [...keys(2, 16), 'instruction 1']],
    ['itself among them', ['key 1', 'instruction 1', 'key 2'], ['key 1', 'key 2', 'instruction 1']],
  ])('%s', (_, seen, seenNow) => {
    expect(replaced(entry({ seen }), wanted()).seen).toEqual(seenNow);
    expect(rescheduled(entry({ seen }), 1, 1, 'op').seen).toEqual(seenNow);
    expect(cancelled(entry({ seen }), 1, 'op').seen).toEqual(seenNow);
  });
});

describe('a number that its stream waits for', () => {
  const own = { target: 'final', key: 'k', seqRef, reason: 'replaced' };
  test.each<[string, Partial<DelayRecord>, DelayRecord['owed']]>([
    ['is owed, of what is pending', { seqRef }, [own]],
    ['is owed, of what is being published', { seqRef, state: 'releasing' }, [own]],
    ['is owed beside those that are owed already', { seqRef, owed: [older] }, [older, own]],
    ['is not owed, of what was published', { seqRef, state: 'fired' }, []],
    [
      'is not owed twice, of what was cancelled',
      { seqRef, state: 'cancelled', owed: [{ ...own, reason: 'cancelled' }] },
      [{ ...own, reason: 'cancelled' }],
    ],
    ['is not owed where there is none', { owed: [older] }, [older]],
  ])('%s', (_, from, owed) => {
    expect(replaced(entry(from), wanted()).owed).toEqual(owed);
  });

  test('is owed for a cancel as well', () => {
    expect(cancelled(entry({ seqRef, owed: [older] }), 7_000, 'op').owed).toEqual([older, { ...own, reason: 'cancelled' }]);
    expect(cancelled(entry(), 7_000, 'op').owed).toEqual([]);
  });

  test.each<[string, (record: DelayRecord) => DelayRecord]>([
    ['a new due time', (record) => rescheduled(record, 99_000, 7_000, 'op')],
    ['a claim', (record) => claimed(record, 'run', 500)],
    ['a run that gives up', freed],
    ['a repair', (record) => rearmed(record, 'q', 7_000, 'op')],
  ])('stays owed over %s', (_, transition) => {
    expect(transition(entry({ seqRef, owed: [older] })).owed).toEqual([older]);
  });

  test('is passed on as a tombstone', () => {
    expect(tombstoneFor({ ...own, reason: 'cancelled' })).toEqual({
      data: new Uint8Array(),
      attributes: { 'ptk-key': 'k', 'ptk-stream': 's', 'ptk-epoch': '100', 'ptk-seq': '5', 'ptk-tombstone': 'cancelled' },
    });
  });
});

describe('what is stored', () => {
  test('is read in format 1', () => {
    expect(readable(storedEntry())).toEqual(entry());
  });

  test.each<[string, object]>([
    ['format 2', { v: 2 }],
    ['no format', { v: undefined }],
    ['a generation that is no whole number', { generation: 1.5 }],
    ['a generation in text', { generation: '1' }],
    ['no state', { state: undefined }],
  ])('is not read with %s', (_, changes) => {
    expect(() => readable(storedEntry(changes as Partial<DelayRecord>))).toThrow(expect.objectContaining({ code: 'RECORD_UNREADABLE' }));
  });

  test('holds a message or refers to one', () => {
    const { message } = entry();
    expect(carriedBy(entry())).toEqual({ message });
    expect(carriedBy(entry({ message: null, payload }))).toEqual({ payload });
    expect(() => carriedBy(entry({ message: null }))).toThrow(expect.objectContaining({ code: 'RECORD_UNREADABLE' }));
  });
});

describe('a delay id', () => {
  test('is stored under its digest', () => {
    expect(ledgerKeyOf('order 7')).toBe('0fc89f8ae19394b48debd6353bb9ad3393f3bc791931519f19d176a7e5513ebc');
  });

  test('has up to 1,024 bytes', () => {
    expect(ledgerKeyOf('é'.repeat(512))).toMatch(/^[0-9a-f]{64}$/);
    expect(() => ledgerKeyOf(`${'é'.repeat(512)}a`)).toThrow('the delay id takes 1025 bytes; at most 1024 are allowed');
  });

  test.each(['', ' \n', '\ud800', 7, undefined])('%j is none', (id) => {
    expect(() => ledgerKeyOf(id as string)).toThrow(expect.objectContaining({ code: 'MALFORMED_MESSAGE' }));
  });
});
