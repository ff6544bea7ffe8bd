import { afterEach, describe, expect, test } from 'vitest';
import { seededRandom } from '../../src/emulator/faults.ts';
import { type Consistency, createDatabase } from '../../src/emulator/firestore/database.ts';
import { databaseJournal } from '../../src/emulator/firestore/journaled.ts';
import { planQuery, type StructuredQuery } from '../../src/emulator/firestore/query.ts';
import { integerOf } from '../../src/emulator/firestore/values.ts';
import type { Write } from '../../src/emulator/firestore/writes.ts';
import { RpcError } from '../../src/emulator/grpc.ts';
import { noJournal } from '../../src/emulator/journal.ts';
import { manualTime } from '../../src/emulator/time.ts';

const name = 'projects/p/databases/d';
const parent = `${name}/documents`;
const time = manualTime();
const database = createDatabase({ name, time, journal: databaseJournal(noJournal, name), lockTimeoutMs: 1_000, abortsNext: () => false });
afterEach(() => {
  database.close();
  time.close();
});

/** A read that can be asked again; what it answers is compared as text. */
type Question = (consistency: Consistency) => { readonly answer: string; readonly begun: Buffer };

function documentQuestion(id: number): Question {
  return (consistency) => {
    const { get, begun } = database.read(consistency);
    return { answer: JSON.stringify(get(`${parent}/c/${id}`)), begun };
  };
}

function queryQuestion(least: number, limit: number, descending: boolean): Question {
  const structured: StructuredQuery = {
    from: [{ collectionId: 'c', allDescendants: false }],
    where: { filterType: 'fieldFilter', fieldFilter: { field: { fieldPath: 'n' }, op: 'GREATER_THAN_OR_EQUAL', value: integerOf(least) } },
    orderBy: [{ field: { fieldPath: 'n' }, direction: descending ? 'DESCENDING' : 'ASCENDING' }],
    select: null,
    startAt: null,
    endAt: null,
    offset: 0,
    limit: { value: limit },
    findNearest: null,
  };
  const plan = planQuery(parent, structured);
  return (consistency) => {
    const { query, begun } = database.read(consistency);
    return { answer: JSON.stringify(query(plan).rows.map(({ document }) => document)), begun };
  };
}

function setOf(id: number, n: number): Write {
  const update = { name: `${parent}/c/${id}`, fields: { n: integerOf(n) } };
  return { operation: 'update', update, updateMask: null, updateTransforms: [], currentDocument: null };
}

function deleteOf(id: number): Write {
  return { operation: 'delete', delete: `${parent}/c/${id}`, updateMask: null, updateTransforms: [], currentDocument: null };
}

type Running = { readonly id: Buffer; readonly asked: { readonly question: Question; readonly answer: string }[] };

describe('Firestore transactions in any interleaving', () => {
  test('every commit that succeeds has read only what still holds, and no plain write waits for ever', async () => {
    const random = seededRandom(7);
    const pick = (count: number) => Math.floor(random() * count);
    const question = () => (random() < 0.5 ? documentQuestion(pick(12)) : queryQuestion(pick(20), 1 + pick(4), random() < 0.5));
    const write = () => (random() < 0.7 ? setOf(pick(12), pick(20)) : deleteOf(pick(12)));
    const running: Running[] = [];
    const plain: Promise<unknown>[] = [];
    let committed = 0;
    let refused = 0;

    const step = async (transaction: Running): Promise<void> => {
      if (random() < 0.5) {
        const next = question();
        transaction.asked.push({ question: next, answer: next({ transaction: transaction.id }).answer });
      } else if (random() < 0.2) {
        plain.push(Promise.resolve(database.commit([write()], Buffer.alloc(0))));
      } else {
        running.splice(running.indexOf(transaction), 1);
        const holds = transaction.asked.every(({ question: asked, answer }) => asked({}).answer === answer);
        await database.commit([write(), write()], transaction.id);
        expect(holds).toBe(true);
        committed += 1;
      }
    };
    for (let steps = 0; steps < 4_000; steps++) {
      while (running.length < 4) {
        const first = question();
        const { answer, begun } = first({ newTransaction: {} });
        running.push({ id: begun, asked: [{ question: first, answer }] });
      }
      const transaction = running[pick(running.length)];
      if (!transaction) continue;
      await step(transaction).catch((error: unknown) => {
        if (!(error instanceof RpcError)) throw error;
        expect(error.message).toContain('contention');
        if (running.includes(transaction)) running.splice(running.indexOf(transaction), 1);
        refused += 1;
      });
    }
    for (const { id } of running) database.rollback(id);
    await Promise.all(plain);
    expect(committed).toBeGreaterThan(200);
    expect(refused).toBeGreaterThan(200);
    expect(database.waiting()).toBe(0);
  });
});
