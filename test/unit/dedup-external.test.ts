import { describe, expect, test } from 'vitest';
import type { DedupRecord } from '../../src/shared/dedup/decide.ts';
import type { DedupParts } from '../../src/shared/dedup/dedup.ts';
import type { Reconcile } from '../../src/shared/dedup/run.ts';
import { ack, nack } from '../../src/shared/verdict.ts';
import { testMessage } from '../../src/testing/doubles.ts';
import { context, counting, dedupWorkers } from '../support/dedup-workers.ts';
import { silentStore } from '../support/faulty-store.ts';
import { settled } from '../support/manual-system.ts';

const charge = testMessage({ messageId: '7', attributes: { 'ptk-key': 'charge-7' } });

/** A worker claimed the key and died in its handler; its lease is over. */
async function abandoned() {
  const workers = dedupWorkers();
  const { system, records, worker } = workers;
  const silent = silentStore<DedupRecord>();
  const dying = {
    get: silent.get,
    put: (...args: Parameters<typeof records.put>) => (args[2] === 'absent' ? records.put(...args) : new Promise<never>(() => {})),
  };
  void worker({ store: dying, effects: 'external' })(() => new Promise(() => {}))(charge, context());
  await system.time.advance(3_000);
  const external = (reconcile?: Reconcile, parts: Partial<DedupParts> = {}) =>
    worker({ ...parts, effects: 'external', ...(reconcile && { reconcile }) });
  return { ...workers, external };
}

describe('dedup of effects outside', () => {
  test('a run that died is not run again but a dead letter, where nobody can say what became of it', async () => {
    const { external, meter, logged } = await abandoned();
    const handler = counting();
    const verdict = await external()(handler)(charge, context());
    expect(verdict).toMatchObject({ kind: 'deadLetter', reason: 'abandoned', key: 'charge-7' });
    expect(handler.runs).toBe(0);
    expect(meter.counts.get('ptk.dedup.abandoned escalated')).toBe(1);
    expect(logged).toContainEqual({
      level: 'warn',
      text: 'a run with effects outside died',
      fields: { key: 'charge-7', messageId: '7', attempts: 1 },
    });
  });

  test('reconcile sees the record, and `done` ends the message without a run', async () => {
    const { external, record, meter } = await abandoned();
    const handler = counting();
    const seen: object[] = [];
    const done: Reconcile = async (found) => {
      seen.push(found);
      return 'done';
    };
    expect(await external(done)(handler)(charge, context())).toEqual(ack('duplicate'));
    expect(seen).toMatchObject([{ state: 'running', key: 'charge-7', attempts: 1, messageId: '7' }]);
    expect(await record('charge-7')).toMatchObject({ state: 'done', attempts: 1, rev: 2 });
    expect(await external()(handler)(charge, context())).toEqual(ack('duplicate'));
    expect([handler.runs, meter.counts.get('ptk.dedup.abandoned done')]).toEqual([0, 1]);
  });

  test('`runAgain` runs it as the next attempt', async () => {
    const { external, record } = await abandoned();
    const handler = counting();
    expect(await external(async () => 'runAgain')(handler)(charge, context())).toEqual(ack('processed'));
    expect([handler.runs, await record('charge-7')]).toMatchObject([1, { state: 'done', attempts: 2 }]);
  });

  test('`escalate` leaves the record for an operator', async () => {
    const { external, record } = await abandoned();
    expect(await external(async () => 'escalate')(counting())(charge, context())).toMatchObject({
      kind: 'deadLetter',
      reason: 'abandoned',
    });
    expect(await record('charge-7')).toMatchObject({ state: 'running', attempts: 1 });
  });

  test.each<[string, Reconcile]>([
    ['throws', () => Promise.reject(new Error('the gateway is down'))],
    ['answers something else', async () => 'perhaps' as 'done'],
  ])('is given back where reconcile %s', async (_, reconcile) => {
    const { external, record } = await abandoned();
    const handler = counting();
    expect(await external(reconcile)(handler)(charge, context())).toEqual(nack('failed'));
    expect([handler.runs, await record('charge-7')]).toMatchObject([0, { state: 'running' }]);
  });

  test('of two workers whose reconcile answers `runAgain` at once, one runs', async () => {
    const { system, external } = await abandoned();
    const handler = counting();
    const both = [0, 1].map(() => external(async () => 'runAgain')(handler)(charge, context()));
    const verdicts = await settled(system, Promise.all(both));
    expect(handler.runs).toBe(1);
    expect(verdicts.map(({ kind }) => kind).sort()).toEqual(['ack', 'nack']);
  });

  test('a run whose lease is alive is left alone: nobody is asked, and the delivery waits for it', async () => {
    const { worker } = dedupWorkers();
    void worker({ effects: 'external' })(() => new Promise(() => {}))(charge, context());
    const handler = counting();
    let asked = 0;
    const reconcile: Reconcile = async () => {
      asked += 1;
      return 'runAgain';
    };
    expect(await worker({ effects: 'external', reconcile })(handler)(charge, context())).toEqual(nack('inProgress', 3_000));
    expect([asked, handler.runs]).toEqual([0, 0]);
  });

  test('a handler that throws has said that it may run again', async () => {
    const { worker } = dedupWorkers();
    expect(await worker({ effects: 'external' })(counting(new Error('refused')))(charge, context())).toEqual(nack('failed'));
    expect(await worker({ effects: 'external' })(counting())(charge, context())).toEqual(ack('processed'));
  });

  test('in shadow mode nobody is asked about a dead run, and the message runs', async () => {
    const { external, meter } = await abandoned();
    const handler = counting();
    let asked = 0;
    const reconcile: Reconcile = async () => {
      asked += 1;
      return 'escalate';
    };
    expect(await external(reconcile, { shadow: true })(handler)(charge, context())).toEqual(ack('processed'));
    expect([asked, handler.runs, meter.counts.get('ptk.dedup.shadowed escalated')]).toEqual([0, 1, undefined]);
  });

  test('the default, effects inside, takes a dead run over', async () => {
    const { worker } = await abandoned();
    expect(await worker()(counting())(charge, context())).toEqual(ack('processed'));
  });
});
