import { describe, expect, test } from 'vitest';
import type { DedupRecord } from '../../src/shared/dedup/decide.ts';
import { ack, deadLetter, nack } from '../../src/shared/verdict.ts';
import { testMessage } from '../../src/testing/doubles.ts';
import { context, counting, dedupWorkers } from '../support/dedup-workers.ts';
import { faultyStore, silentStore } from '../support/faulty-store.ts';
import { gate, settled } from '../support/manual-system.ts';

const down = silentStore<DedupRecord>();
const message = testMessage({ attributes: { 'ptk-key': 'k' } });

describe('dedup while its store is down', () => {
  test('closed, the default: nothing runs, and the delivery is given back', async () => {
    const { system, worker, meter } = dedupWorkers();
    const handler = counting();
    expect(await settled(system, worker({ store: down })(handler)(message, context()))).toEqual(nack('storeUnavailable'));
    expect([handler.runs, meter.counts.get('ptk.dedup.unguarded outage')]).toEqual([0, undefined]);
  });

  test('open: it runs without dedup, once a delivery, which is counted and said', async () => {
    const { system, worker, meter, logged } = dedupWorkers();
    const handler = counting();
    const deliver = worker({ store: down, onOutage: 'open' })(handler);
    expect(await settled(system, deliver(message, context()))).toEqual(ack('processed'));
    expect([handler.runs, meter.counts.get('ptk.dedup.unguarded outage')]).toEqual([1, 1]);
    expect(logged).toMatchObject([{ level: 'warn', text: 'run without dedup', fields: { key: 'k' } }]);
  });

  test.each([
    ['closed', nack('storeUnavailable')],
    ['open', ack('processed')],
  ] as const)('%s: an end that cannot be written is %o, and the handler ran once', async (onOutage, verdict) => {
    const { system, records, worker } = dedupWorkers();
    const handler = counting();
    const lost = {
      get: down.get,
      put: (...args: Parameters<typeof records.put>) => (args[1].state === 'done' ? down.put(...args) : records.put(...args)),
    };
    expect(await settled(system, worker({ store: lost, onOutage })(handler)(message, context()))).toEqual(verdict);
    expect(handler.runs).toBe(1);
  });

  test('open: what the handler throws is given back all the same', async () => {
    const { system, worker } = dedupWorkers();
    const deliver = worker({ store: down, onOutage: 'open' })(counting(new Error('boom')));
    expect(await settled(system, deliver(message, context()))).toEqual(nack('failed'));
  });

  test('open is about outages: a record that cannot be read is not run over', async () => {
    const { records, worker } = dedupWorkers();
    const handler = counting();
    const odd = {
      ...faultyStore(records, []),
      put: async () => ({ conflict: { record: { v: 2 } as unknown as DedupRecord, version: 'x', writtenAtMs: 0, nowMs: 0 } }),
    };
    expect(await worker({ store: odd, onOutage: 'open' })(handler)(message, context())).toEqual(nack('storeUnavailable'));
    expect(handler.runs).toBe(0);
  });
});

describe('dedup in shadow mode', () => {
  const shadow = { shadow: true } as const;

  test('runs a duplicate, and counts that it would not have', async () => {
    const { worker, meter, logged } = dedupWorkers();
    const handler = counting();
    const deliver = worker(shadow)(handler);
    expect([await deliver(message, context()), await deliver(message, context())]).toEqual([ack('processed'), ack('processed')]);
    expect([handler.runs, meter.counts.get('ptk.dedup.shadowed duplicate')]).toEqual([2, 1]);
    expect(logged).toMatchObject([{ level: 'info', text: 'would not have run', fields: { key: 'k', reason: 'duplicate' } }]);
  });

  test('runs a copy of a running message, and other content under a finished key, each once', async () => {
    const { system, worker, meter } = dedupWorkers();
    const hold = gate();
    const first = worker(shadow)(() => hold.opened)(message, context());
    const handler = counting();
    const deliver = worker(shadow)(handler);
    await system.time.advance(0);
    expect(await deliver(message, context())).toEqual(ack('processed'));
    hold.open();
    await first;
    expect(await deliver(testMessage({ attributes: { 'ptk-key': 'k' }, data: 'other' }), context())).toEqual(ack('processed'));
    expect(handler.runs).toBe(2);
    expect([meter.counts.get('ptk.dedup.shadowed busy'), meter.counts.get('ptk.dedup.shadowed conflict')]).toEqual([1, 1]);
  });

  test('passes on what the handler says, and runs it once though the store is down', async () => {
    const { system, worker } = dedupWorkers();
    const refused = counting(deadLetter('refused', 'no'));
    expect(await settled(system, worker({ ...shadow, store: down })(refused)(message, context()))).toEqual(deadLetter('refused', 'no'));
    expect(refused.runs).toBe(1);
  });

  test('runs copies in one process side by side, as they would run without dedup', async () => {
    const { worker } = dedupWorkers();
    const handler = counting();
    const deliver = worker(shadow)(handler);
    await Promise.all([deliver(message, context()), deliver(message, context())]);
    expect(handler.runs).toBe(2);
  });
});
