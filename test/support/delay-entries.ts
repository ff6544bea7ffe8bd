import type { DelayRecord, Instruction, Wanted } from '../../src/shared/delay/ledger.ts';
import type { Stored } from '../../src/shared/index.ts';

export const instruction = (changes: Partial<Instruction> = {}): Instruction => ({
  ...{ publishTimeMs: 1_000, messageId: '50', key: 'instruction 1' },
  ...changes,
});

/** An entry of the ledger that waits for its task. */
export const entry = (changes: Partial<DelayRecord> = {}): DelayRecord => ({
  ...{ v: 1, id: 'order 7', state: 'pending', rev: 9, generation: 4, incarnation: 'first', dueAtMs: 90_000, armedAtMs: 1_000 },
  ...{ target: 'final', key: 'k', message: { data: Buffer.from('a'), attributes: { 'ptk-key': 'k' } }, payload: null, seqRef: null },
  ...{
    instr: instruction(),
    seen: [],
    runId: '',
    opId: 'op 1',
    leaseMs: 0,
    queue: 'q',
    shard: 3,
    recurrence: null,
    owed: [],
    messageId: null,
  },
  ...changes,
});

/** As the store gives it, so many ms after it was written, at 1,000 by its clock. */
export const storedEntry = (changes: Partial<DelayRecord> = {}, ageMs = 0): Stored<DelayRecord> => ({
  ...{ record: entry(changes), version: 'v', writtenAtMs: 1_000, nowMs: 1_000 + ageMs },
});

/** What is to be delayed under the same id instead. */
export const wanted = (changes: Partial<Wanted> = {}): Wanted => ({
  ...{ id: 'order 7', dueAtMs: 95_000, target: 'other', key: 'l', seqRef: null, queue: 'q2', shard: 3, recurrence: null },
  ...{ instr: instruction({ publishTimeMs: 2_000, messageId: '60', key: 'instruction 2' }), incarnation: 'second', opId: 'op 2' },
  ...{ carried: { message: { data: Buffer.from('b'), attributes: { 'ptk-key': 'l' } } } },
  ...changes,
});
