import { describe, expect, test } from 'vitest';
import {
  awaitsTask,
  type Dispatched,
  decideCancel,
  decideRelease,
  decideReschedule,
  decideSchedule,
  type ReleaseDecision,
  type ScheduleDecision,
} from '../../src/shared/delay/decide.ts';
import {
  cancelled,
  claimed,
  created,
  type DelayRecord,
  type Instruction,
  neverScheduled,
  replaced,
  rescheduled,
} from '../../src/shared/delay/ledger.ts';
import { entry, instruction, storedEntry, wanted } from '../support/delay-entries.ts';

const newer = (changes: Partial<Instruction> = {}) =>
  wanted({ instr: instruction({ publishTimeMs: 2_000, messageId: '60', key: 'instruction 2', ...changes }) });
const unreadable = expect.objectContaining({ code: 'RECORD_UNREADABLE' });

describe('decideSchedule, by a message', () => {
  test('where nothing is stored it creates the entry', () => {
    expect(decideSchedule(undefined, wanted())).toEqual({ kind: 'write', record: created(wanted()) });
  });

  const states: DelayRecord['state'][] = ['pending', 'releasing', 'fired', 'cancelled'];
  test.each<[string, Partial<Instruction>, Partial<DelayRecord>, ScheduleDecision['kind']]>([
    ['1 ms older', { publishTimeMs: 999 }, {}, 'superseded'],
    ['1 ms newer', { publishTimeMs: 1_001 }, {}, 'write'],
    ['of the same ms, with a lower id', { publishTimeMs: 1_000, messageId: '49' }, {}, 'superseded'],
    ['of the same ms, with the same id', { publishTimeMs: 1_000, messageId: '50' }, {}, 'superseded'],
    ['of the same ms, with a higher id', { publishTimeMs: 1_000, messageId: '51' }, {}, 'write'],
    ['of the same ms, with a longer and so higher id', { publishTimeMs: 1_000, messageId: '100' }, {}, 'write'],
    ['of the same ms, with a shorter and so lower id', { publishTimeMs: 1_000, messageId: '9' }, {}, 'superseded'],
    ['1 ms older, with a higher id', { publishTimeMs: 999, messageId: '51' }, {}, 'superseded'],
    ['1 ms newer, with a lower id', { publishTimeMs: 1_001, messageId: '49' }, {}, 'write'],
    ['the same, published again', { publishTimeMs: 5_000, messageId: '99', key: 'instruction 1' }, {}, 'same'],
    ['the same, delivered again', { publishTimeMs: 1_000, messageId: '50', key: 'instruction 1' }, {}, 'same'],
    ['seen before, published again', { publishTimeMs: 5_000 }, { seen: ['instruction 2', 'instruction 0'] }, 'superseded'],
    ['unlike those seen before', { publishTimeMs: 5_000 }, { seen: ['instruction 0'] }, 'write'],
  ])('an instruction that is %s', (_, instr, stored, kind) => {
    for (const state of states) {
      const { record } = storedEntry({ ...stored, state });
      const expected = kind === 'write' ? { kind, record: replaced(record, newer(instr)) } : { kind, record };
      expect(decideSchedule(storedEntry({ ...stored, state }), newer(instr))).toEqual(expected);
    }
  });

  test.each<[number, ScheduleDecision['kind']]>([
    [6_999, 'superseded'],
    [7_001, 'write'],
  ])('after a cancel at 7,000 a message that was published at %i', (publishTimeMs, kind) => {
    const after = [neverScheduled('order 7', 7_000, 'op', 'i'), cancelled(entry(), 7_000, 'op'), rescheduled(entry(), 99_000, 7_000, 'op')];
    for (const record of after) expect(decideSchedule({ ...storedEntry(), record }, newer({ publishTimeMs })).kind).toBe(kind);
  });

  test('what was written by a later version is left alone', () => {
    expect(() => decideSchedule(storedEntry({ v: 2 as 1 }), wanted())).toThrow(unreadable);
  });
});

describe('decideSchedule, by a call', () => {
  const call = (publishTimeMs: number) => newer({ publishTimeMs, messageId: '', key: 'call 2' });
  test.each<[string, number, number]>([
    ['after what it replaces', 1_001, 1_001],
    ['in the same ms', 1_000, 1_000],
    ['by a clock that is behind', 999, 1_000],
  ])('%s it replaces what it has read, and counts from there', (_, calledAtMs, publishTimeMs) => {
    const { record } = storedEntry();
    expect(decideSchedule(storedEntry(), call(calledAtMs))).toEqual({
      kind: 'write',
      record: replaced(record, newer({ publishTimeMs, messageId: '', key: 'call 2' })),
    });
  });

  test('replaces what was cancelled or published, too', () => {
    for (const state of ['releasing', 'fired', 'cancelled'] as const)
      expect(decideSchedule(storedEntry({ state }), call(1_001))).toMatchObject({
        kind: 'write',
        record: { state: 'pending', generation: 5 },
      });
  });

  test('that finds its own write has done it', () => {
    const stored = storedEntry({ instr: call(1_001).instr });
    expect(decideSchedule(stored, call(1_001))).toEqual({ kind: 'same', record: stored.record });
  });
});

describe('a call on what is stored', () => {
  test.each<[DelayRecord['state'], Partial<DelayRecord>, string]>([
    ['pending', {}, 'write'],
    ['releasing', { runId: 'run', leaseMs: 500 }, 'tooLate'],
    ['releasing', { runId: '', leaseMs: 0 }, 'tooLate'],
    ['fired', {}, 'tooLate'],
    ['cancelled', { message: null }, 'cancelled'],
  ])('that is %s (%j)', (state, changes, kind) => {
    // The lease is over: the run may have published all the same.
    const stored = storedEntry({ state, ...changes }, 60_000);
    const { record, nowMs } = stored;
    expect(decideCancel(stored, 'op')).toEqual({ kind, record: kind === 'write' ? cancelled(record, nowMs, 'op') : record });
    expect(decideReschedule(stored, 99_000, 'op')).toEqual({
      kind,
      record: kind === 'write' ? rescheduled(record, 99_000, nowMs, 'op') : record,
    });
  });

  test('counts by the store’s clock', () => {
    expect(decideCancel(storedEntry({}, 6_000), 'op').record.instr.publishTimeMs).toBe(7_000);
    expect(decideReschedule(storedEntry({}, 6_000), 99_000, 'op').record).toMatchObject({
      armedAtMs: 7_000,
      instr: { publishTimeMs: 7_000 },
    });
  });

  test('that a later version wrote does nothing', () => {
    expect(() => decideCancel(storedEntry({ v: 2 as 1 }), 'op')).toThrow(unreadable);
    expect(() => decideReschedule(storedEntry({ v: 2 as 1 }), 99_000, 'op')).toThrow(unreadable);
  });
});

describe('decideRelease', () => {
  const task: Dispatched = { id: 'order 7', incarnation: 'first', generation: 4, hasMoreHops: false, runId: 'mine', leaseMs: 700 };
  const running = { state: 'releasing', runId: 'other', leaseMs: 500 } as const;
  const record = (kind: 'ended' | 'rearm' | 'hop', changes: Partial<DelayRecord> = {}): ReleaseDecision => ({
    kind,
    record: entry(changes),
  });
  const claim = (changes: Partial<DelayRecord> = {}): ReleaseDecision => ({ kind: 'claim', record: claimed(entry(changes), 'mine', 700) });

  test.each<[string, Partial<DelayRecord>, number, Partial<Dispatched>, ReleaseDecision]>([
    ['an entry that was deleted and made anew', { incarnation: 'second' }, 0, {}, { kind: 'missing' }],
    ['fired', { state: 'fired' }, 0, {}, record('ended', { state: 'fired' })],
    ['cancelled', { state: 'cancelled' }, 0, {}, record('ended', { state: 'cancelled' })],
    ['fired in a newer generation', { state: 'fired', generation: 5 }, 0, {}, record('ended', { state: 'fired', generation: 5 })],
    ['cancelled, at a hop', { state: 'cancelled' }, 0, { hasMoreHops: true }, record('ended', { state: 'cancelled' })],
    ['a newer generation', { generation: 5 }, 0, {}, record('rearm', { generation: 5 })],
    ['a newer generation, at a hop', { generation: 5 }, 0, { hasMoreHops: true }, record('rearm', { generation: 5 })],
    ['a newer generation that is published', { ...running, generation: 5 }, 0, {}, record('rearm', { ...running, generation: 5 })],
    ['an older generation', { generation: 3 }, 0, {}, record('ended', { generation: 3 })],
    ['an older generation that is published', { ...running, generation: 3 }, 0, {}, record('ended', { ...running, generation: 3 })],
    ['its own, at a hop', {}, 0, { hasMoreHops: true }, record('hop')],
    ['its own, pending', {}, 0, {}, claim()],
    ['its own, pending for long', {}, 86_400_000, {}, claim()],
    ['another run, just begun', running, 0, {}, { kind: 'busy', retryAfterMs: 500 }],
    ['another run, 1 ms before its lease is over', running, 499, {}, { kind: 'busy', retryAfterMs: 1 }],
    ['another run, as its lease is over', running, 500, {}, claim(running)],
    [
      'another run that gave up',
      { state: 'releasing', runId: '', leaseMs: 0 },
      0,
      {},
      claim({ state: 'releasing', runId: '', leaseMs: 0 }),
    ],
  ])('finds %s', (_, changes, ageMs, dispatched, decision) => {
    expect(decideRelease(storedEntry(changes, ageMs), { ...task, ...dispatched })).toEqual(decision);
  });

  test('finds nothing', () => {
    expect(decideRelease(undefined, task)).toEqual({ kind: 'missing' });
  });

  test('what was written by a later version is left alone', () => {
    expect(() => decideRelease(storedEntry({ v: 2 as 1 }), task)).toThrow(unreadable);
  });
});

describe('whether a repair looks at what is', () => {
  const running = { state: 'releasing', runId: 'other', leaseMs: 70_000 } as const;
  test.each<[string, Partial<DelayRecord>, number, boolean]>([
    ['pending, written 59,999 ms ago', {}, 59_999, false],
    ['pending, written 60,000 ms ago', {}, 60_000, true],
    ['releasing, 1 ms before its lease is over', running, 69_999, false],
    ['releasing, as its lease is over', running, 70_000, true],
    ['releasing and given up, written 59,999 ms ago', { state: 'releasing' }, 59_999, false],
    ['releasing and given up, written 60,000 ms ago', { state: 'releasing' }, 60_000, true],
    ['fired', { state: 'fired' }, 86_400_000, false],
    ['cancelled', { state: 'cancelled' }, 86_400_000, false],
  ])('%s: $3', (_, changes, ageMs, looks) => {
    expect(awaitsTask(storedEntry(changes, ageMs), 60_000)).toBe(looks);
  });
});
